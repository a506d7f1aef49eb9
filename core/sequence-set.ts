/** Sequences a block covers: block n holds n * BLOCK_SPAN up to the next block. */
const BLOCK_SPAN = 65_536;
const BITMAP_BYTES = BLOCK_SPAN / 8;
/** More offsets than these take less room as a bitmap. */
const SPARSE_MAX = BITMAP_BYTES / Uint16Array.BYTES_PER_ELEMENT;
const SPARSE_FIRST_CAPACITY = 4;

/** Three forms, so that memory stays flat for dense ranges and small for scattered sequences. */
type Block = FullBlock | BitmapBlock | SparseBlock;
interface FullBlock {
  readonly kind: 'full';
  readonly count: number;
}
interface BitmapBlock {
  readonly kind: 'bitmap';
  readonly bits: Uint8Array;
  count: number;
}
interface SparseBlock {
  readonly kind: 'sparse';
  /** Rising; only the first `count` are in. */
  offsets: Uint16Array;
  count: number;
}

const FULL: FullBlock = { kind: 'full', count: BLOCK_SPAN };

/** `full`, or `bitmap:` or `sparse:` with base64 of the bits or of little-endian 16-bit offsets. */
export type EncodedBlock = readonly [number: number, content: string];

/** A set of stream sequences, 0 to 2^53 - 1. */
export class SequenceSet {
  readonly #blocks = new Map<number, Block>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(sequence: number): boolean {
    const number = Math.floor(sequence / BLOCK_SPAN);
    const block = this.#blocks.get(number);
    return block !== undefined && holds(block, sequence - number * BLOCK_SPAN);
  }

  /** Adds `length` sequences from `first` on. */
  addRun(first: number, length: number): void {
    const end = first + length;
    for (let next = first; next < end;) {
      const number = Math.floor(next / BLOCK_SPAN);
      const start = number * BLOCK_SPAN;
      const stop = Math.min(end, start + BLOCK_SPAN);
      this.#addToBlock(number, next - start, stop - start);
      next = stop;
    }
  }

  #addToBlock(number: number, from: number, to: number): void {
    const before = this.#blocks.get(number);
    const countBefore = before?.count ?? 0;
    let block: Block = to - from === BLOCK_SPAN ? FULL : (before ?? emptyBlock());
    for (let offset = from; offset < to && block.kind !== 'full'; offset++) block = withOffset(block, offset);
    if (block !== before) this.#blocks.set(number, block);
    this.#size += block.count - countBefore;
  }

  /** Blocks in rising order. */
  *encode(): Generator<EncodedBlock> {
    for (const number of [...this.#blocks.keys()].sort((a, b) => a - b)) {
      yield [number, encodeBlock(this.#blocks.get(number)!)];
    }
  }

  /** Throws a RangeError when it is not an encoded block, or already there. */
  addEncoded([number, content]: EncodedBlock): void {
    if (!Number.isSafeInteger(number) || number < 0 || this.#blocks.has(number)) throw new RangeError('not a block number');
    const block = decodeBlock(content);
    this.#blocks.set(number, block);
    this.#size += block.count;
  }
}

function emptyBlock(): SparseBlock {
  return { kind: 'sparse', offsets: new Uint16Array(SPARSE_FIRST_CAPACITY), count: 0 };
}

function holds(block: Block, offset: number): boolean {
  if (block.kind === 'full') return true;
  if (block.kind === 'bitmap') return (block.bits[offset >> 3]! & (1 << (offset & 7))) !== 0;
  const at = position(block, offset);
  return at < block.count && block.offsets[at] === offset;
}

/** Where the offset is, or would be inserted. */
function position(block: SparseBlock, offset: number): number {
  let low = 0;
  let high = block.count;
  if (high > 0 && block.offsets[high - 1]! < offset) return high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (block.offsets[middle]! < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Changes the block, or returns the form that takes its place. */
function withOffset(block: BitmapBlock | SparseBlock, offset: number): Block {
  if (holds(block, offset)) return block;
  if (block.kind === 'bitmap') {
    block.bits[offset >> 3]! |= 1 << (offset & 7);
    block.count++;
    return block.count === BLOCK_SPAN ? FULL : block;
  }
  if (block.count === SPARSE_MAX) return withOffset(toBitmap(block), offset);
  const at = position(block, offset);
  if (block.count === block.offsets.length) {
    const larger = new Uint16Array(Math.min(block.offsets.length * 2, SPARSE_MAX));
    larger.set(block.offsets);
    block.offsets = larger;
  }
  block.offsets.copyWithin(at + 1, at, block.count);
  block.offsets[at] = offset;
  block.count++;
  return block;
}

function toBitmap(block: SparseBlock): BitmapBlock {
  const bits = new Uint8Array(BITMAP_BYTES);
  for (const offset of block.offsets.subarray(0, block.count)) bits[offset >> 3]! |= 1 << (offset & 7);
  return { kind: 'bitmap', bits, count: block.count };
}

function encodeBlock(block: Block): string {
  if (block.kind === 'full') return 'full';
  if (block.kind === 'bitmap') return `bitmap:${Buffer.from(block.bits).toString('base64')}`;
  const bytes = Buffer.alloc(block.count * Uint16Array.BYTES_PER_ELEMENT);
  for (let i = 0; i < block.count; i++) bytes.writeUInt16LE(block.offsets[i]!, i * Uint16Array.BYTES_PER_ELEMENT);
  return `sparse:${bytes.toString('base64')}`;
}

function decodeBlock(content: string): Block {
  if (content === 'full') return FULL;
  const [kind, base64] = content.split(':');
  const bytes = Buffer.from(base64 ?? '', 'base64');
  if (kind === 'bitmap' && bytes.length === BITMAP_BYTES) {
    return { kind, bits: new Uint8Array(bytes), count: bytes.reduce((count, byte) => count + bitsOf(byte), 0) };
  }
  const count = bytes.length / Uint16Array.BYTES_PER_ELEMENT;
  if (kind !== 'sparse' || !Number.isInteger(count) || count === 0 || count > SPARSE_MAX) throw new RangeError('not a block');
  const offsets = Uint16Array.from({ length: count }, (_, i) => bytes.readUInt16LE(i * Uint16Array.BYTES_PER_ELEMENT));
  if (offsets.some((offset, i) => i > 0 && offset <= offsets[i - 1]!)) throw new RangeError('not a block');
  return { kind, offsets, count };
}

function bitsOf(byte: number): number {
  let bits = 0;
  for (let rest = byte; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}

/** The sets of a directory, one a stream and incarnation. */
export class SequenceIndex {
  readonly #sets = new Map<string, Map<string, SequenceSet>>();

  get size(): number {
    let size = 0;
    for (const [, , set] of this.sets()) size += set.size;
    return size;
  }

  /** Made when it is not there. */
  of(stream: string, incarnation: string): SequenceSet {
    let incarnations = this.#sets.get(stream);
    if (incarnations === undefined) this.#sets.set(stream, (incarnations = new Map()));
    let set = incarnations.get(incarnation);
    if (set === undefined) incarnations.set(incarnation, (set = new SequenceSet()));
    return set;
  }

  *sets(): Generator<readonly [stream: string, incarnation: string, set: SequenceSet]> {
    for (const [stream, incarnations] of this.#sets) {
      for (const [incarnation, set] of incarnations) yield [stream, incarnation, set];
    }
  }
}
