import type { WriteReportRequest } from '../core/steps.ts';
import { reportMarkdown } from '../core/report-markdown.ts';
import { step, type StepDeps } from './step.ts';

/** Writes the report below the report root, replacing an older one as a whole. */
export function makeWriteReport({ reports, faults }: StepDeps): (request: WriteReportRequest) => Promise<void> {
  return ({ file, report }) =>
    step(faults, () =>
      reports.write(file, file.endsWith('.md') ? reportMarkdown(report) : `${JSON.stringify(report, null, 2)}\n`),
    );
}
