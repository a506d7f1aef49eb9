import { z } from 'zod';
import { drainDefaults, planLimits } from './limits.ts';
import { replaySchema } from './plan-fields.ts';
import { checkSchema } from './schema.ts';
import type { DrainOptions } from './drain.ts';
import type { Parsed } from './problems.ts';

const whole = ({ min, max }: { readonly min: number; readonly max: number }) => z.int().min(min).max(max);

/** The `drain` object of a drain's request. Every field may be left out. */
const drainSchema = z.strictObject({
  dry_run: z.boolean().optional(),
  batch_size: whole(planLimits.batch_size).optional(),
  max_rejects: whole(planLimits.max_rejects).optional(),
  rate_limit_per_second: whole(planLimits.rate_limit_per_second).optional(),
  report_file: replaySchema.shape.report_file,
});

/** All problems at once. Absent: all defaults. */
export function parseDrainOptions(document: unknown): Parsed<DrainOptions> {
  const checked = checkSchema(drainSchema, document ?? {}, { at: ['drain'], echo: true });
  if (!checked.ok) return checked;
  const { dry_run, batch_size, max_rejects, rate_limit_per_second, report_file } = checked.value;
  return {
    ok: true,
    value: {
      dry_run: dry_run ?? drainDefaults.dry_run,
      batch_size: batch_size ?? drainDefaults.batch_size,
      max_rejects: max_rejects ?? drainDefaults.max_rejects,
      rate_limit_per_second: rate_limit_per_second ?? null,
      report_file: report_file ?? null,
    },
  };
}
