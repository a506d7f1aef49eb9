/** Which partition of a topic a partition key belongs to. The version is part of the topic and never changes silently. */
export const hashVersion = 'fnv1a-utf16-v1';

const offsetBasis = 2_166_136_261;
const prime = 16_777_619;

/** FNV-1a over UTF-16 code units, in signed 32-bit arithmetic; the empty string keeps the start value. */
function fnv1aUtf16(text: string): number {
  let hash = offsetBasis;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), prime);
  return hash;
}

/** From 0 to `partitions` less one. */
export function partitionOf(partitionKey: string, partitions: number): number {
  return Math.abs(fnv1aUtf16(partitionKey)) % partitions;
}

/** Indexes of the records by partition, in their order; partitions in the order in which they first appear. */
export function groupByPartition(
  records: readonly { readonly partitionKey: string }[],
  partitions: number,
): Map<number, number[]> {
  const groups = new Map<number, number[]>();
  for (const [index, { partitionKey }] of records.entries()) {
    const partition = partitionOf(partitionKey, partitions);
    const group = groups.get(partition);
    if (group === undefined) groups.set(partition, [index]);
    else group.push(index);
  }
  return groups;
}
