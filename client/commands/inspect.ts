import { createHash } from 'node:crypto';
import { cut, printable, shownHeaders, type ShownHeaders } from '../../core/inspection.ts';
import { counted, formatProblems } from '../../core/problems.ts';
import { formatTime } from '../../core/time.ts';
import { connectNats, readNatsSettings } from '../../jetstream/connection.ts';
import { createInspector, type InspectedMessage, type Inspector } from '../../jetstream/inspect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { ReplayFault } from '../../core/errors.ts';
import { CommandFailure } from '../failure.ts';
import { outJson, type Terminal } from '../terminal.ts';

export interface InspectOptions {
  readonly stream: string;
  readonly filters: readonly string[];
  readonly from: number;
  readonly limit: number;
  /** Payload bytes read in all. */
  readonly bytesMax: number;
  /** Show the beginning of each body; otherwise only its size and hash. */
  readonly bodies: boolean;
  readonly json: boolean;
}

interface Shown extends ShownHeaders {
  readonly sequence: number;
  readonly time: string;
  readonly subject: string;
  readonly payload_bytes: number;
  readonly payload_sha256: string;
  /** The beginning of the body; null: not asked for. */
  readonly body: string | null;
}

interface Inspected {
  readonly stream: { readonly incarnation: string; readonly first: number; readonly last: number; readonly messages: number };
  readonly messages: readonly Shown[];
  /** `limit`: so many were asked for. `payload_bytes`: the next one is larger than what may still be read. */
  readonly stopped_by: 'limit' | 'end_of_stream' | 'payload_bytes';
  /** Where to go on. */
  readonly next: number;
}

const bodyCharactersMax = 500;

/** Shows stored messages in stream order. Reads only: no consumer, no ACK, no sink; asks the NATS server of this shell. */
export async function inspect(options: InspectOptions, terminal: Terminal): Promise<ExitStatus> {
  const settings = readNatsSettings(process.env);
  if (!settings.ok) throw new CommandFailure(formatProblems(settings.problems), 'refused');
  const nats = await connectNats(settings.value);
  try {
    const inspected = await look(createInspector(nats, settings.value), options);
    if (options.json) outJson(terminal, inspected);
    else terminal.out(textOf(options.stream, inspected));
    return exitStatus('done');
  } finally {
    await nats.close();
  }
}

async function look(
  inspector: Inspector,
  { stream, filters, from, limit, bytesMax, bodies }: InspectOptions,
): Promise<Inspected> {
  const facts = await inspector.describe(stream).catch((error: unknown) => {
    if (!(error instanceof ReplayFault) || error.code !== 'stream_missing') throw error;
    throw new CommandFailure(`There is no stream ${stream}. Those that there are: nats stream ls`, 'failed', { cause: error });
  });
  const { incarnation, firstSequence: first, lastSequence: last, messages: count } = facts;
  const messages: Shown[] = [];
  let [next, bytesLeft] = [from, bytesMax];
  let stopped_by: Inspected['stopped_by'] = 'limit';
  while (messages.length < limit) {
    const message = await inspector.next(stream, next, filters);
    if (message === null) stopped_by = 'end_of_stream';
    else if (message.body.length > bytesLeft) stopped_by = 'payload_bytes';
    if (message === null || stopped_by === 'payload_bytes') break;
    messages.push(shown(message, bodies));
    bytesLeft -= message.body.length;
    next = message.sequence + 1;
  }
  return { stream: { incarnation, first, last, messages: count }, messages, stopped_by, next };
}

function shown({ sequence, timeNanos, subject, headers, body }: InspectedMessage, bodies: boolean): Shown {
  return {
    sequence,
    time: formatTime(timeNanos),
    subject,
    payload_bytes: body.length,
    payload_sha256: createHash('sha256').update(body).digest('hex'),
    body: bodies ? cut(body.toString('utf8'), bodyCharactersMax) : null,
    ...shownHeaders(headers),
  };
}

function textOf(name: string, { stream, messages, stopped_by, next }: Inspected): string {
  const head = `${name}: ${counted(stream.messages, 'message')}, ${stream.first} to ${stream.last}, made ${stream.incarnation}`;
  const stops = {
    limit: `There may be more: --from ${next}`,
    end_of_stream: 'Nothing more is there.',
    payload_bytes: `Stopped: the next body is larger than what may still be read (--max-bytes). To go on: --from ${next}`,
  };
  return [head, ...messages.flatMap(linesOf), stops[stopped_by]].join('\n');
}

function linesOf({
  sequence,
  time,
  subject,
  payload_bytes,
  payload_sha256,
  body,
  headers,
  headers_not_shown,
}: Shown): string[] {
  const more = headers_not_shown === 0 ? [] : [`    ${headers_not_shown} more headers`];
  const named = Object.entries(headers).flatMap(([name, values]) =>
    values.map((value) => `    ${printable(name)}: ${printable(value)}`),
  );
  return [
    `  ${sequence}  ${time}  ${printable(subject)}  ${payload_bytes} bytes, sha256 ${payload_sha256.slice(0, 16)}`,
    ...named,
    ...more,
    ...(body === null ? [] : [`    | ${printable(body)}`]),
  ];
}
