/** One partition of a topic with its consumer groups as a list in memory: what the real one must agree with. */
export class TopicModel {
  readonly records: { readonly key: string; readonly body: number }[] = [];
  oldest = 0;
  readonly cursors = new Map<string, number>();

  get next(): number {
    return this.records.length;
  }

  /** Offset of a key that is hot; undefined when it is not there. */
  offsetOf(key: string): number | undefined {
    const offset = this.records.findLastIndex((record) => record.key === key);
    return offset >= this.oldest ? offset : undefined;
  }

  push(records: readonly { readonly key: string; readonly body: number }[]): number[] {
    return records.map((record) => {
      const known = this.offsetOf(record.key);
      if (known !== undefined) return known;
      this.records.push(record);
      return this.next - 1;
    });
  }

  read(from: number, limit: number): ModelPage | 'truncated' | 'out_of_range' {
    if (from < this.oldest) return 'truncated';
    if (from > this.next) return 'out_of_range';
    const bodies = this.records.slice(from, from + limit).map(({ body }) => body);
    return { bodies, nextOffset: from + bodies.length, lag: this.next - from - bodies.length };
  }

  consume(group: string, limit: number): ModelPage | 'truncated' | 'out_of_range' {
    return this.read(this.cursors.get(group) ?? this.oldest, limit);
  }

  commit(group: string, nextOffset: number): 'advanced' | 'ignored' | 'out_of_range' {
    const cursor = this.cursors.get(group);
    if (nextOffset > this.next) return 'out_of_range';
    if (cursor !== undefined && nextOffset <= cursor) return 'ignored';
    this.cursors.set(group, nextOffset);
    return 'advanced';
  }

  reset(group: string, offset: number): 'truncated' | 'out_of_range' | 'done' {
    if (offset < this.oldest) return 'truncated';
    if (offset > this.next) return 'out_of_range';
    this.cursors.set(group, offset);
    return 'done';
  }
}

export interface ModelPage {
  readonly bodies: readonly number[];
  readonly nextOffset: number;
  readonly lag: number;
}
