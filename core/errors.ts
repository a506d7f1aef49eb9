/**
 * Every fault of the environment, once: what it is, whether time can heal it, and what a person does next.
 * Faults of a single record are rejects (core/record.ts); faults of plan and target are refusals (core/problems.ts).
 *
 * `retry` faults are tried again with backoff; `stop` faults turn the plan `blocked` at once. A `credential` fault is tried
 * again only when an operator says `resume`, because repeated wrong logins lock accounts.
 */
interface FaultEntry {
  readonly kind: 'retry' | 'stop';
  readonly meaning: string;
  readonly next: string;
  readonly credential?: true;
}

export const faultCatalogue = {
  // The stream and its consumer
  nats_unreachable: {
    kind: 'retry',
    meaning: 'The NATS server does not answer, or the connection broke.',
    next: 'Check that the NATS server is up and that NATS_URL reaches it; the plan goes on by itself.',
  },
  nats_timeout: {
    kind: 'retry',
    meaning: 'A JetStream request had no answer in time.',
    next: 'Check the load of the NATS server and that JetStream is enabled; the plan goes on by itself.',
  },
  nats_denied: {
    kind: 'stop',
    credential: true,
    meaning: 'The NATS user may not do what this step needs, or the login was refused.',
    next: 'Give the user the subjects listed in docs/permissions.md, or mend the credentials, then resume.',
  },
  stream_missing: {
    kind: 'stop',
    meaning: 'The stream is gone.',
    next: 'Restore the stream, then resume; if it was deleted for good, cancel this replay.',
  },
  stream_recreated: {
    kind: 'stop',
    meaning: 'A stream of the same name was created anew: sequences no longer mean what they meant.',
    next: 'Cancel this replay and start a new plan on the new stream.',
  },
  stream_unsupported: {
    kind: 'stop',
    meaning: 'This stream cannot be replayed.',
    next: 'Cancel this replay; move the messages to a stream with ordinary sequences, then replay that.',
  },
  consumer_taken: {
    kind: 'stop',
    meaning: 'The durable consumer now belongs to another replay, or to somebody else.',
    next: 'Find the other run (replay-stream list); cancel one of the two, then resume or start again.',
  },
  consumer_disturbed: {
    kind: 'retry',
    meaning: 'Someone else pulled from this durable consumer, or it was deleted; it is put back at the cursor.',
    next: 'Nothing, unless it repeats: then find the other client of this durable consumer.',
  },
  consumer_refused: {
    kind: 'stop',
    meaning: 'The server refused the settings of the durable consumer, often because of the limits of the stream.',
    next: 'Compare the limits of the stream (consumer_limits, max_consumers) with docs/permissions.md, mend them, then resume.',
  },
  // Dead letters
  dead_letter_not_configured: {
    kind: 'stop',
    meaning: 'The sink refused a record and the target names no dead-letter subject.',
    next: 'Cancel, add "dead_letter": { "subject": ... } to the target, and start again; or mend the destination and resume; or decide: skip leaves these records out for good.',
  },
  dead_letter_unbound: {
    kind: 'stop',
    meaning: 'No stream takes the dead-letter subject.',
    next: 'Create the dead-letter stream (or bind the subject to one), then resume.',
  },
  dead_letter_refused: {
    kind: 'stop',
    meaning: 'The dead-letter stream refused the message: it is full, sealed, or its limits are too small.',
    next: 'Make room in the dead-letter stream or raise its limits, then resume.',
  },
  // Limits of the plan
  reject_budget: {
    kind: 'stop',
    meaning: 'More records were refused than max_rejects allows; nothing of this batch was dead-lettered or acknowledged.',
    next: 'Look at the rejects. resume grants one more budget of max_rejects; decide settles those of this batch only (dead-letter or skip), or tries them again (retry). Otherwise mend the destination or cancel.',
  },
  drift: {
    kind: 'stop',
    meaning: 'Every record of a batch was refused for the same reason: the destination does not fit the data.',
    next: 'Mend the target or the destination, then decide: retry. If the records are really bad, resume dead-letters them, and decide: skip leaves them out.',
  },
  // Destinations
  sink_unreachable: {
    kind: 'retry',
    meaning: 'The destination does not answer, or the connection broke.',
    next: 'Check that the destination is up and reachable from the worker; the plan goes on by itself.',
  },
  sink_busy: {
    kind: 'retry',
    meaning: 'The destination asked to try again: deadlock, lock wait, or another writer.',
    next: 'Nothing, unless it lasts: then look for the other writer.',
  },
  sink_login: {
    kind: 'stop',
    credential: true,
    meaning: 'The destination refused the user or the password.',
    next: 'Mend the credentials where the worker runs, restart the worker if they are environment variables, then resume.',
  },
  sink_missing: {
    kind: 'stop',
    meaning: 'The directory, table or column of the target is missing, or what this replay wrote there is gone.',
    next: 'Create it, then resume. If this replay had written there: put it back as it was; else cancel, and start again under another durable.',
  },
  sink_denied: {
    kind: 'stop',
    meaning: 'The destination is read-only or the worker lacks the permission to write there.',
    next: 'Give the worker the permission, then resume.',
  },
  sink_unfit: {
    kind: 'stop',
    meaning: 'The table of the target is there, and does not fit what the target asks for.',
    next: 'replay-stream check PLAN TARGET --connect names what to change, with the statement; then resume.',
  },
  sink_tls: {
    kind: 'stop',
    meaning: 'No trusted TLS connection to the destination could be made.',
    next: 'Compare "tls" of the target with the certificate of the destination (authority, host name, date), then resume.',
  },
  sink_full: {
    kind: 'stop',
    meaning: 'The destination has no space left.',
    next: 'Make room, then resume.',
  },
  sink_corrupt: {
    kind: 'stop',
    meaning: 'What the destination holds does not agree with its own index.',
    next: 'See the worker log for the file; restore it from a backup or move the directory away, then resume.',
  },
  wrong_root: {
    kind: 'stop',
    meaning: 'This worker has another data root than the one the replay began with.',
    next: 'Run the plan on the host it began on, or give all workers one shared data root, then resume.',
  },
  secret_missing: {
    kind: 'stop',
    credential: true,
    meaning: 'An environment variable that the target names is not set in the worker.',
    next: 'Set the variable where the worker runs, restart the worker, then resume.',
  },
  secret_invalid: {
    kind: 'stop',
    credential: true,
    meaning: 'A secret that the target names is set, and has not the form that it must have.',
    next: 'Set the variable where the worker runs to a secret of that form, restart the worker, then resume.',
  },
  // Spools
  spool_key: {
    kind: 'stop',
    meaning: 'The spool holds records that were encrypted with a key that is not named, or is another one by now.',
    next: 'Name that key in the spool file, under encryption.old_keys, cancel this drain and start it again; nothing is lost meanwhile.',
  },
  spool_taken: {
    kind: 'stop',
    meaning: 'Another drain works on this spool.',
    next: 'Find it (replay-stream list); let it finish or cancel it, then resume.',
  },
  // Cold history of topics
  cold_unavailable: {
    kind: 'retry',
    meaning: 'The cold store does not answer.',
    next: 'Check that it is up and reachable from the worker; the sweep goes on by itself. Nothing hot is removed before it is cold.',
  },
  cold_denied: {
    kind: 'stop',
    meaning: 'The cold store is read-only, or the worker lacks the permission to write there.',
    next: 'Give the worker the permission; the next sweep goes on.',
  },
  cold_unconfigured: {
    kind: 'stop',
    meaning: 'Where the cold store of a topic is, or how to log in there, is not set in this process.',
    next: 'Set what is named (docs/reference/settings.md) for workers and for those who read topics, and start them again.',
  },
  cold_missing: {
    kind: 'stop',
    meaning: 'The cold store holds not one object of a topic that has cold segments. Nothing was changed.',
    next: 'Compare REPLAY_COLD_ROOT or REPLAY_COLD_S3 of this worker with the others; if the objects are really gone, topic expire-cold.',
  },
  cold_full: {
    kind: 'stop',
    meaning: 'The cold store has no space left.',
    next: 'Make room, or expire old segments; the next sweep goes on.',
  },
  cold_unfit: {
    kind: 'stop',
    meaning: 'The cold store replaces objects where it must only create them: two sweeps could destroy records.',
    next: 'Use a store that honours If-None-Match: * (AWS S3, R2, MinIO, SeaweedFS), or files.',
  },
  cold_conflict: {
    kind: 'stop',
    meaning: 'The cold store holds another object under the name of this segment. The hot records were left alone.',
    next: 'Find out who writes to this place of the cold store, and move that object away; the next sweep goes on.',
  },
  cold_corrupt: {
    kind: 'stop',
    meaning: 'A cold segment is damaged, or is not the one that its manifest names.',
    next: 'Restore the object from a backup of the cold store.',
  },
  // Ourselves
  step_timeout: {
    kind: 'retry',
    meaning: 'A step did not finish in time, or its worker was lost several times.',
    next: 'Check that a worker runs, its log, and its memory; the plan tries again by itself.',
  },
  report_unwritable: {
    kind: 'stop',
    meaning: 'The report could not be written below the report root.',
    next: 'Make the report root writable (REPLAY_REPORT_ROOT); the report is also the result of the workflow and its query "report".',
  },
  unexpected: {
    kind: 'retry',
    meaning: 'A fault without a name.',
    next: 'See the worker log (REPLAY_LOG_LEVEL=debug shows the text of the error); the plan tries again by itself.',
  },
} as const satisfies Record<string, FaultEntry>;

export type FaultCode = keyof typeof faultCatalogue;
export type FaultKind = FaultEntry['kind'];

const brand = Symbol.for('durable-replay.fault');

/** Thrown by the effects (sinks, jetstream); becomes a Temporal failure in activities/failure.ts. `detail` never holds values of
 *  records, secrets, addresses or paths: it reaches histories and reports. */
export class ReplayFault extends Error {
  readonly code: FaultCode;
  readonly detail: string | undefined;
  /** Also a fault of another copy of this module, which a package of sinks may have brought along. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && brand in value;
  }

  constructor(code: FaultCode, detail?: string, options?: ErrorOptions) {
    super(detail === undefined ? faultCatalogue[code].meaning : `${faultCatalogue[code].meaning} (${detail})`, options);
    this.name = 'ReplayFault';
    this.code = code;
    this.detail = detail;
  }

  get [brand](): true {
    return true;
  }

  get kind(): FaultKind {
    return faultCatalogue[this.code].kind;
  }
}

export function faultEntry(code: FaultCode): FaultEntry {
  return faultCatalogue[code];
}

export function isFaultCode(text: string): text is FaultCode {
  return Object.hasOwn(faultCatalogue, text);
}
