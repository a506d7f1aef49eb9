import { exitStatus, type ExitStatus } from '../../exit.ts';
import type { TopicRecord } from '../../topics.ts';
import type { TopicCommand } from '../topic.ts';

export async function readRecords(
  { topics, name, json, terminal }: TopicCommand,
  { partition, from, limit }: { partition: number; from: number; limit: number },
): Promise<ExitStatus> {
  const topic = await topics.open(name);
  const page = await topic.read({ partition, from, limit });
  const { nextOffset, lag } = page;
  terminal.out(json ? pageJson(page.records, { nextOffset, lag }) : pageText(page.records, { nextOffset, lag }));
  return exitStatus('done');
}

/** One object on one line, the payloads in their own spelling. */
export function pageJson(records: readonly TopicRecord[], rest: object): string {
  const fields = JSON.stringify(rest).slice(1);
  return `{"records":[${records.map(recordJson).join(',')}],${fields}`;
}

function recordJson(record: TopicRecord): string {
  const { offset, partitionKey, deduplicationKey, appendedAt } = record;
  const keys = JSON.stringify({ offset, partitionKey, deduplicationKey }).slice(0, -1);
  return `${keys},"payload":${payloadText(record)},"appendedAt":"${appendedAt}"}`;
}

/** Line breaks of JSON stand between tokens only. */
function payloadText({ payloadBytes }: TopicRecord): string {
  return Buffer.from(payloadBytes)
    .toString('utf8')
    .replaceAll(/[\r\n]/g, ' ');
}

export function pageText(
  records: readonly TopicRecord[],
  { nextOffset, lag }: { nextOffset: number | null; lag: number | null },
): string {
  const lines = records.map(
    (record) => `${record.offset}  ${record.appendedAt}  ${record.partitionKey}  ${payloadText(record)}`,
  );
  const rest = lag === null ? '' : `, ${lag} more`;
  return [...lines, nextOffset === null ? 'nothing to lease now' : `next offset ${nextOffset}${rest}`].join('\n');
}
