import type { Client } from '@temporalio/client';
import { reportHtml } from '../../core/report-html.ts';
import { reportMarkdown } from '../../core/report-markdown.ts';
import type { Report } from '../../core/report.ts';
import { assertWorker, withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { CommandFailure } from '../failure.ts';
import { reportSummary } from '../render.ts';
import { outJson, type Terminal } from '../terminal.ts';
import { findByName, type FoundReplay, type ReplayName } from '../which.ts';

export interface ReportOptions {
  readonly name: ReplayName;
  readonly form: 'text' | 'markdown' | 'html' | 'json';
}

/** The report as it stands; final once the run has ended. */
export async function report({ name, form }: ReportOptions, terminal: Terminal): Promise<ExitStatus> {
  const found = await withTemporal(async (client) => await fetchReport(client, await findByName(client, name)));
  if (form === 'json') outJson(terminal, found);
  else terminal.out(textOf(found, form));
  return exitStatus('done');
}

function textOf(found: Report, form: Exclude<ReportOptions['form'], 'json'>): string {
  if (form === 'markdown') return reportMarkdown(found).trimEnd();
  return form === 'html' ? reportHtml(found).trimEnd() : reportSummary(found);
}

async function fetchReport(client: Client, { handle, facts }: FoundReplay): Promise<Report> {
  const { workflow_id: id } = facts;
  if (facts.open) {
    await assertWorker(client);
    const report = await handle.report().catch((error: unknown) => {
      throw new CommandFailure(`No worker answers for ${id}. Start one (replay-stream worker), then try again.`, 'failed', {
        cause: error,
      });
    });
    if (report === null)
      throw new CommandFailure(
        `${id} has nothing to report yet: the plan is still being described. Look: replay-stream status ${id}`,
      );
    return report;
  }
  // A completed run's report is its result: Temporal has it, without a worker.
  const { report, state, message } = await handle.result();
  if (report !== null) return report;
  if (state === 'refused') throw new CommandFailure(`${id} was refused, so there is nothing to report:\n${message}`);
  throw new CommandFailure(
    `${id} ended ${state}. Its report must be asked of a worker, and none answers: start one (replay-stream worker), then try again.`,
  );
}
