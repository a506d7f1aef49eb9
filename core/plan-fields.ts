import { z } from 'zod';
import { clockProblem, zoneProblem } from './hours.ts';
import { planDefaults, planLimits, reportFileBytesMax, subjectFiltersMax } from './limits.ts';
import type { IntegerLimits } from './limits.ts';
import { ruledText } from './schema.ts';
import { filterProblem, nameProblem } from './subjects.ts';
import { parseTime } from './time.ts';
import { topicLimits, topicNameProblem } from './topic.ts';
import { windowProblem } from './window.ts';

const whole = ({ min, max }: IntegerLimits): z.ZodNumber => z.int().min(min).max(max);
const name = ruledText(nameProblem).meta({ expected: 'a NATS name (no spaces and none of . * > / \\)', maxLength: 255 });
const filter = ruledText(filterProblem).meta({ expected: 'a subject or filter such as orders.created or orders.>' });
const time = ruledText((text) => {
  const parsed = parseTime(text);
  return parsed.ok ? undefined : parsed.message;
}).meta({ expected: 'an RFC 3339 time with an offset, such as 2026-05-01T10:00:00Z', format: 'date-time' });

const timeOfDay = ruledText(clockProblem).meta({ expected: 'a time of day, HH:MM' });
const allowedHours = z.strictObject({
  zone: ruledText(zoneProblem).meta({
    description: 'Time zone of the IANA database.',
    expected: 'a time zone',
    examples: ['Europe/Berlin'],
  }),
  from: timeOfDay.meta({ description: 'When batches may begin.', examples: ['22:00'] }),
  to: timeOfDay.meta({ description: 'From when on none begins.', examples: ['06:00'] }),
});

const partitionNumber = /^(?:0|[1-9]\d{0,2})$/;
const fromExpected =
  '"earliest", an RFC 3339 time with an offset, or offsets by partition such as { "0": 1200, "1": 0 } with partitions from 0 to ' +
  String(topicLimits.partitions.max - 1);

function fromProblem(text: string): string | undefined {
  return text === 'earliest' || parseTime(text).ok ? undefined : `is no start; expected ${fromExpected}`;
}

/** The `replay` object of the plan file, field by field. Rules between fields: core/plan.ts. */
export const replaySchema = z.strictObject({
  stream: name.optional().meta({ description: 'The JetStream stream to replay. This or `topic`.', examples: ['ORDERS'] }),
  topic: ruledText((text) => {
    const problem = topicNameProblem(text);
    return problem === null ? undefined : `${problem}; expected the name of a topic, as replay-stream topic list shows it`;
  })
    .optional()
    .meta({
      description:
        'The topic to replay, its cold history before what is hot; instead of `stream`, a scope and a start. See docs/topics.md.',
      expected: 'the name of a topic',
      examples: ['orders'],
    }),
  from: z
    .union([ruledText(fromProblem), z.record(z.string().regex(partitionNumber), whole(planLimits.offset))])
    .optional()
    .meta({
      description:
        'Where the replay of a topic starts: `"earliest"`, in each partition with the first record appended at or after a time, or at offsets by partition; partitions that are not named are then left out.',
      expected: fromExpected,
      examples: ['earliest', '2026-05-01T10:00:00Z', { '0': 1200, '1': 0 }],
    }),
  subject_filter: filter.optional().meta({
    description: 'The scope, as one subject or filter. This or `subject_filters`.',
    examples: ['orders.>'],
  }),
  subject_filters: z
    .array(filter)
    .min(1)
    .max(subjectFiltersMax)
    .optional()
    .meta({
      description: 'The scope, as several subjects or filters, none of which overlap. This or `subject_filter`.',
      expected: `a list of 1 to ${subjectFiltersMax} subjects or filters`,
      examples: [['orders.created', 'orders.updated']],
    }),
  durable_consumer: name.meta({
    description:
      'The durable consumer that this replay makes and owns; of a topic one per partition, with `-p0`, `-p1` ... after the name. The same name again goes on with an unfinished replay of the same plan.',
    examples: ['orders-replay-2026-05'],
  }),
  start_sequence: whole(planLimits.sequence)
    .optional()
    .meta({
      description:
        'The first stream sequence, inclusive. Exactly one of this and `start_time`; not past the end of the stream.',
      examples: [1000],
    }),
  start_time: time.optional().meta({
    description:
      'Starts with the first message stored at or after this time; nanoseconds are kept. Exactly one of this and `start_sequence`; not in the future.',
    examples: ['2026-05-01T10:00:00.123456789Z'],
  }),
  end_sequence: whole(planLimits.sequence)
    .optional()
    .meta({
      description: 'The last stream sequence, inclusive. With `end_time` too, whichever comes first.',
      examples: [250000],
    }),
  end_time: time.optional().meta({
    description: 'Ends before the first message stored at or after this time (exclusive).',
    examples: ['2026-05-02T00:00:00+02:00'],
  }),
  window: ruledText(windowProblem)
    .optional()
    .meta({
      description:
        'Instead of a start and an end, for a plan that runs again and again: the time before the run is due (of a Schedule; else before its start), or `since_last_success`: from where the last successful run of the same Schedule stopped, the first time from the start of the stream. Ends when the run is due.',
      expected: '"since_last_success", or a length of time such as "90m", "24h" or "7d"',
      examples: ['24h', 'since_last_success'],
    }),
  max_messages: whole(planLimits.max_messages).meta({
    description: 'The most messages that this replay settles; it ends there even when the range holds more.',
    examples: [5000],
  }),
  batch_size: whole(planLimits.batch_size)
    .optional()
    .meta({ description: 'Messages a batch. Absent: begins at 1,000 and adapts to the sink.', examples: [64] }),
  batch_bytes: whole(planLimits.batch_bytes).optional().meta({
    description: 'Bytes a batch, 64 KiB to 64 MiB. A single larger message comes alone.',
    default: planDefaults.batch_bytes,
  }),
  stop_after_idle_seconds: whole(planLimits.stop_after_idle_seconds).optional().meta({
    description: 'Ends when the stream has had nothing more in the scope for so many seconds.',
    default: planDefaults.stop_after_idle_seconds,
  }),
  dry_run: z.boolean().optional().meta({
    description: 'Only describe what would be replayed. `false` is the decision to write.',
    default: planDefaults.dry_run,
  }),
  report_file: ruledText(reportFileProblem)
    .optional()
    .meta({
      description:
        'Where the report is written, relative to the report root of the worker: JSON or Markdown by its ending. Replaced if it exists.',
      expected: 'a relative path that ends in .json or .md',
      examples: ['orders-replay-report.json'],
    }),
  rate_limit_per_second: whole(planLimits.rate_limit_per_second)
    .optional()
    .meta({ description: 'The most messages a second. Can be changed while the replay runs.', examples: [500] }),
  rate_limit_bytes_per_second: whole(planLimits.rate_limit_bytes_per_second)
    .optional()
    .meta({ description: 'The most payload bytes a second. Can be changed while the replay runs.', examples: [1_048_576] }),
  pace: z
    .enum(['original'])
    .optional()
    .meta({
      description:
        'Absent: as fast as it goes. `original`: with the gaps between messages that the stream had, divided by `pace_factor`.',
      expected: '"original"',
      examples: ['original'],
    }),
  pace_factor: z
    .number()
    .min(planLimits.pace_factor.min)
    .max(planLimits.pace_factor.max)
    .optional()
    .meta({
      description:
        'With `pace`: how many times faster than in the stream; 0.5 is half as fast. Can be changed while the replay runs.',
      default: planDefaults.pace_factor,
      examples: [10],
    }),
  pace_gap_seconds_max: whole(planLimits.pace_gap_seconds_max).optional().meta({
    description: 'With `pace`: a gap that lasts longer, after the division, is cut to so many seconds.',
    default: planDefaults.pace_gap_seconds_max,
  }),
  allowed_hours: allowedHours.optional().meta({
    description:
      'The hours of the day in which batches begin, by the clock on a wall in that zone, changes of the clock included. Outside of them the replay waits, and says until when. `from` is inclusive, `to` exclusive; from later than to means over midnight.',
    expected: 'an object, { "zone": "Europe/Berlin", "from": "22:00", "to": "06:00" }',
    examples: [{ zone: 'Europe/Berlin', from: '22:00', to: '06:00' }],
  }),
  require_approval: z.boolean().optional().meta({
    description:
      'Before the first batch: rehearse, show the numbers (state `awaiting_approval`), and wait for the update `approve`.',
    default: planDefaults.require_approval,
  }),
  approval_timeout_seconds: whole(planLimits.approval_timeout_seconds).optional().meta({
    description: 'How long a plan with `require_approval` waits. Then it ends as refused, and nothing was written.',
    default: planDefaults.approval_timeout_seconds,
  }),
  max_rejects: whole(planLimits.max_rejects).optional().meta({
    description: 'How many records the sink may refuse before the plan stops and asks (state `blocked`).',
    default: planDefaults.max_rejects,
  }),
  keep_consumer: z.boolean().optional().meta({
    description: 'Keep the durable consumer after a complete replay instead of deleting it.',
    default: planDefaults.keep_consumer,
  }),
  production_consumer: name.optional().meta({
    description: 'Name of the consumer that serves production: a guard, `durable_consumer` must be another.',
    examples: ['orders-service'],
  }),
});

/** The plan file. Rules between fields are checked by `parsePlan`. */
export const planFileSchema = z
  .strictObject({
    $schema: z
      .string()
      .optional()
      .meta({ description: 'For editors: where the JSON Schema of this file is. Not read otherwise.' }),
    replay: replaySchema.meta({ description: 'The replay plan.', expected: 'an object' }),
  })
  .meta({ expected: 'an object, { "replay": { ... } }' });

function reportFileProblem(file: string): string | undefined {
  const expected = 'expected a path below the report root that ends in .json or .md, such as reports/orders.json';
  if (file === '') return `is empty; ${expected}`;
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\\]/u.test(file)) return `has a backslash or an unprintable character; ${expected}`;
  if (file.startsWith('/') || /^[A-Za-z]:/.test(file)) return `is not relative; ${expected}`;
  const parts = file.split('/');
  if (parts.includes('..')) return `leaves the report root; ${expected}`;
  if (parts.some((part) => part === '' || part === '.')) return `has an empty part or a lone dot; ${expected}`;
  if (!/[^/]\.(?:json|md)$/.test(file)) return `does not end in .json or .md; ${expected}`;
  if (new TextEncoder().encode(file).length > reportFileBytesMax)
    return `is longer than ${reportFileBytesMax} bytes; ${expected}`;
  if (parts.some((part) => new TextEncoder().encode(part).length > 255)) return `has a part longer than 255 bytes; ${expected}`;
  return undefined;
}
