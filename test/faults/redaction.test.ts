import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { headers } from 'nats';
import { beforeAll, expect, test } from 'vitest';
import { newPlace, openBench, placeEnvironment, until, type Bench } from '../support/fault-bench.ts';
import { requestOf } from '../support/request.ts';
import { natsUrl, temporalAddress, uniqueName } from '../support/servers.ts';
import { addStream, publishAll } from '../support/streams.ts';
import { startWorker } from '../support/worker.ts';

/** Whatever a run comes to, its outputs hold no secret, no content of a record, no address and no path. */

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
});

test('logs, histories, reports and errors hold nothing that must stay where it is', { timeout: 120_000 }, async () => {
  const mark = (what: string): string => uniqueName(`MARK-${what}`);
  const [secret, body, header, token] = [mark('secret'), mark('body'), mark('header'), mark('token')];
  const place = await newPlace();
  const environment = placeEnvironment(place);
  const worker = await startWorker({ ...environment, REPLAY_SECRET_DB: secret, REPLAY_LOG_LEVEL: 'info' });
  const stream = await addStream(bench.manager);
  const marked = headers();
  marked.set('Trace', header);
  const good = { subject: `${stream.prefix}.${body}`, body: new TextEncoder().encode(`{"text":"${body}"}`), headers: marked };
  const bad = { ...good, body: new TextEncoder().encode(`${body} is no JSON`) };
  await publishAll(bench.nats, [good, bad, good, bad, bad, good]);
  const output: string[] = [];

  const start = async (plan: Record<string, unknown>, sink: Record<string, unknown>) =>
    await bench.client.workflow.start('replayPlan', {
      taskQueue: 'durable-replay',
      workflowId: uniqueName('run'),
      args: [requestOf(stream, plan, { require_json: true, ...sink })],
    });
  const collect = async (run: Awaited<ReturnType<typeof start>>): Promise<void> => {
    output.push(await run.result().then(JSON.stringify, (error: Error) => `${error.message} ${String(error.cause)}`));
    output.push(JSON.stringify(historyToJSON(await run.fetchHistory())));
    output.push(JSON.stringify(await run.query('report')), JSON.stringify(await run.query('progress')));
  };

  await collect(await start({ end_sequence: 6, report_file: 'done.json' }, {}));
  await collect(await start({ end_sequence: 6, report_file: 'dry.md', dry_run: true }, {}));
  // A literal secret is refused; the request itself is what the caller put into the history.
  const literal = await start({ end_sequence: 6 }, { password: token });
  output.push(await literal.result().then(JSON.stringify, (error: Error) => `${error.message} ${String(error.cause)}`));
  const blocked = await start({ end_sequence: 6, max_rejects: 0, report_file: 'blocked.json' }, { directory: 'elsewhere' });
  await until(bench.client, blocked.workflowId, ({ state }) => state === 'blocked');
  await blocked.cancel();
  await collect(blocked);
  await worker.stop();
  output.push(worker.log());
  for (const name of await readdir(place.reportRoot)) output.push(await readFile(join(place.reportRoot, name), 'utf8'));
  expect(output.length).toBeGreaterThan(15);

  const forbidden = [secret, body, header, token, place.dataRoot, place.reportRoot, new URL(natsUrl()).host, temporalAddress()];
  for (const text of output)
    for (const word of forbidden) expect(text.includes(word), `${word} in ${text.slice(0, 400)}`).toBe(false);
});
