/** Everything that a topic may answer instead of what was asked: what it is, and what to do next. */
interface TopicErrorEntry {
  readonly meaning: string;
  readonly next: string;
}

export const topicErrorCatalogue = {
  // Topics and names
  topic_missing: {
    meaning: 'There is no topic of this name.',
    next: 'Compare the name with replay-stream topic list, or create it: replay-stream topic create NAME.',
  },
  topic_exists: {
    meaning: 'A topic of this name exists already.',
    next: 'Choose another name, or delete the other one first: replay-stream topic delete NAME.',
  },
  topic_broken: {
    meaning: 'The stream of a partition is gone or was created anew: its offsets no longer mean what they meant.',
    next: 'Restore the streams of this topic from a backup, or delete the topic and create it again.',
  },
  name_invalid: {
    meaning: 'A name is empty, too long, or holds control characters.',
    next: 'Choose a name of 1 to 64 bytes of UTF-8 without control characters.',
  },
  setting_invalid: {
    meaning: 'A setting of the topic or of the call is out of its range.',
    next: 'Compare it with docs/topics.md.',
  },
  denied: {
    meaning: 'The authorisation hook refused this caller.',
    next: 'Ask whoever runs the topics for the permission.',
  },
  server_too_old: {
    meaning: 'Topics need nats-server 2.14.2 or newer: older ones lack atomic batches, or lose whole streams in a purge.',
    next: 'Upgrade nats-server.',
  },
  // Pushes
  push_empty: { meaning: 'There is no record to push.', next: 'Push at least one record.' },
  too_many_records: {
    meaning: 'More records for one partition than one push may hold.',
    next: 'Push at most 100 records of one partition at a time (replay-stream topic push --split does so).',
  },
  partition_key_invalid: {
    meaning: 'A partition key is not a string, or it is too long.',
    next: 'Use a string of at most 1,024 bytes of UTF-8; the empty one is allowed.',
  },
  deduplication_key_invalid: {
    meaning: 'A deduplication key is empty, too long, or not a string.',
    next: 'Use a string of 1 to 1,024 bytes of UTF-8, or leave it out.',
  },
  payload_invalid: {
    meaning: 'A payload cannot be written as JSON.',
    next: 'Use what JSON can hold: no undefined, functions, big integers or circles.',
  },
  record_too_large: {
    meaning: 'A record is larger than the topic, or the server, allows.',
    next: 'Store large bodies elsewhere and push their address, or raise the limit of the topic (and max_payload of the server).',
  },
  push_too_large: {
    meaning: 'The records of one partition are together larger than one push may be.',
    next: 'Push fewer records at a time.',
  },
  schema_refused: {
    meaning: 'The schema hook refused a record.',
    next: 'Mend the record; the message says what the hook said.',
  },
  quota_exceeded: {
    meaning: 'The topic takes no more records for now: its quota per second is used up.',
    next: 'Push again a second later, or raise the quota of the topic.',
  },
  partition_full: {
    meaning: 'The partition has reached its hard limit: its hot records are not yet swept.',
    next: 'Find out why its sweep does not run, then push again.',
  },
  partition_busy: {
    meaning: 'Too many pushes into this partition at once.',
    next: 'Push again; nothing of this group was stored.',
  },
  push_refused: { meaning: 'The server refused the records.', next: 'See the log of nats-server.' },
  // Reads
  truncated: {
    meaning: 'The log no longer holds this offset: it begins later.',
    next: 'Read on from the next readable offset; for a consumer group: reset it, or consume with the policy earliest.',
  },
  out_of_range: { meaning: 'The offset is beyond the end of the log.', next: 'Read from an offset up to next (topic bounds).' },
  gap: {
    meaning: 'Records inside the log are gone.',
    next: 'Read on from the next readable offset; find out who deleted messages of the stream.',
  },
  // Groups
  group_quota: { meaning: 'The topic has as many consumer groups as it may have.', next: 'Delete a group that nobody uses.' },
  group_corrupt: {
    meaning: 'The stored position of a consumer group cannot be read.',
    next: 'Find out who wrote to the bucket replay-topic-groups, then reset the group.',
  },
  group_contended: {
    meaning: 'Too many others change the position of this group at once.',
    next: 'Try again; nothing was changed.',
  },
  group_uncertain: {
    meaning: 'It cannot be said whether the change of the position was stored.',
    next: 'Look at replay-stream topic groups NAME, or do the same again.',
  },
} as const satisfies Record<string, TopicErrorEntry>;

export type TopicErrorCode = keyof typeof topicErrorCatalogue;

/** `detail` never holds keys or payloads of records. */
export class TopicError extends Error {
  readonly code: TopicErrorCode;
  readonly detail: string | undefined;
  /** With `truncated` and `gap`: where the log goes on. */
  readonly nextReadable: number | undefined;

  constructor(code: TopicErrorCode, detail?: string, more: { nextReadable?: number } = {}) {
    super(detail === undefined ? topicErrorCatalogue[code].meaning : `${topicErrorCatalogue[code].meaning} (${detail})`);
    this.name = 'TopicError';
    this.code = code;
    this.detail = detail;
    this.nextReadable = more.nextReadable;
  }

  /** What to do. */
  get next(): string {
    return topicErrorCatalogue[this.code].next;
  }
}

/** Of the log, when records that were asked for are no longer there. */
export function truncated(nextReadable: number): TopicError {
  return new TopicError('truncated', `the next readable offset is ${nextReadable}`, { nextReadable });
}
