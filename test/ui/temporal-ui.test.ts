import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import type { JetStreamManager, NatsConnection } from 'nats';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { replayHandle, startReplay } from '../../client/replays.ts';
import type { ReplayRequest } from '../../core/steps.ts';
import { startTemporal } from '../../scripts/servers/temporal.ts';
import { openBrowser } from '../support/browser.ts';
import { atFileEnd } from '../support/file-end.ts';
import { connectTestNats } from '../support/servers.ts';
import { mixedMessages, publishAll } from '../support/streams.ts';
import { startWorker } from '../support/worker.ts';

/**
 * What a person sees and does in Temporal's own UI, in a real browser. Runs with `npm run test:long`. REPLAY_TEST_PICTURES=1 also
 * takes the pictures of docs/pictures anew.
 */

const patience = { timeout: 60_000 };
const pictures = process.env['REPLAY_TEST_PICTURES'] === '1';

let nats: NatsConnection;
let manager: JetStreamManager;
let client: Client;
let page: Page;
let ui: string;

beforeAll(async () => {
  nats = await connectTestNats();
  manager = await nats.jetstreamManager();
  const temporal = await startTemporal();
  atFileEnd(() => temporal.stop());
  ui = `${temporal.uiUrl}/namespaces/default`;
  const connection = await Connection.connect({ address: temporal.address });
  atFileEnd(() => connection.close());
  client = new Client({ connection });
  await startWorker({ TEMPORAL_ADDRESS: temporal.address });
  const browser = await openBrowser();
  page = await browser.newPage({ viewport: { width: 1300, height: 800 } });
  page.setDefaultTimeout(patience.timeout);
  await manager.streams.add({ name: 'UI-DLQ', subjects: ['dlq.ui'] });
  atFileEnd(() => manager.streams.delete('UI-DLQ'));
}, 120_000);

async function request(stream: string, plan: object = {}, target: object = {}): Promise<ReplayRequest> {
  const prefix = stream.toLowerCase();
  await manager.streams.add({ name: stream, subjects: [`${prefix}.>`], allow_direct: true });
  atFileEnd(() => manager.streams.delete(stream));
  await publishAll(nats, mixedMessages(prefix, 5_000));
  const replay = {
    stream,
    subject_filter: `${prefix}.>`,
    durable_consumer: `${prefix}-replay`,
    start_sequence: 1,
    end_sequence: 5_000,
    max_messages: 100_000,
    batch_size: 20,
    rate_limit_per_second: 20,
    dry_run: false,
    ...plan,
  };
  return {
    plan: { replay },
    target: { sink: { type: 'file', directory: prefix }, dead_letter: { subject: 'dlq.ui' }, ...target },
  };
}

async function picture(name: string): Promise<void> {
  if (!pictures) return;
  await page.screenshot({ path: fileURLToPath(new URL(`../../docs/pictures/${name}.png`, import.meta.url)) });
}

/** The state as the run itself tells it. */
async function untilState(id: string, state: string): Promise<void> {
  await expect.poll(async () => (await replayHandle(client, id).progress()).state, patience).toBe(state);
}

/** What Current Details says; the page is loaded anew until it does, since it does not follow by itself. */
async function untilDetails(id: string, wanted: string | RegExp): Promise<string> {
  let shown = '';
  const look = async (): Promise<string> => {
    await page.goto(`${ui}/workflows/${encodeURIComponent(id)}`);
    await page.getByRole('tab', { name: 'User Metadata' }).click();
    shown = await page.frameLocator('iframe').last().locator('body').innerText();
    return shown;
  };
  await expect.poll(look, { ...patience, interval: 500 }).toMatch(wanted);
  return shown;
}

/** Chooses a message in its dialog, types its input, and sends it. */
async function send(kind: 'Signal' | 'Update', name: string, input?: object): Promise<void> {
  await page.getByRole('button', { name: 'More Actions' }).click();
  await page.getByRole('menuitem', { name: kind === 'Signal' ? 'Send a Signal' : 'Send an Update' }).click();
  const dialog = page.getByRole('dialog').filter({ hasText: kind === 'Signal' ? 'Send a Signal' : 'Send an Update' });
  await dialog.getByRole('button', { name: /^Select an? / }).click();
  await page.getByRole('option', { name: new RegExp(`^${name}`) }).click();
  if (input !== undefined) {
    await dialog.getByRole('textbox', { name: 'Data' }).click();
    await page.keyboard.insertText(JSON.stringify(input));
  }
  if (name === 'decide') await picture('decide-dialog');
  // The first click may only end the typing: the button moves when the input is formatted.
  await expect
    .poll(async () => {
      if (await dialog.isVisible())
        await dialog
          .getByRole('button', { name: 'Submit' })
          .click({ timeout: 2_000 })
          .catch(() => undefined);
      return await dialog.isVisible();
    }, patience)
    .toBe(false);
}

describe("in Temporal's UI", () => {
  test('a plan is started, found, paused, paced, resumed and canceled', async () => {
    const id = 'replay:ORDERS:orders-replay';
    const input = JSON.stringify(await request('ORDERS'));
    await page.goto(
      `${ui}/workflows/start-workflow?workflowId=${encodeURIComponent(id)}&taskQueue=durable-replay&workflowType=replayPlan`,
    );
    await page.getByRole('textbox', { name: 'Data' }).click();
    await page.keyboard.insertText(input);
    await page.getByRole('textbox', { name: 'Workflow Type' }).click();
    await page.getByRole('button', { name: 'Start Workflow' }).last().click();
    await untilState(id, 'running');

    const query = 'ReplayStream="ORDERS" AND ReplaySink="file" AND ReplayState="running"';
    const found = async (): Promise<boolean> => {
      await page.goto(`${ui}/workflows?query=${encodeURIComponent(query)}`);
      return await page
        .getByRole('link', { name: id })
        .first()
        .isVisible({ timeout: 3_000 })
        .catch(() => false);
    };
    await page.goto(`${ui}/workflows?query=${encodeURIComponent(query)}`);
    await page.getByRole('link', { name: id }).first().waitFor(patience).catch(found);
    await picture('found');

    const running = await untilDetails(id, /running: ORDERS → file/);
    expect(running).toMatch(/% *\n/);
    expect(running).toContain('dead-lettered 0');
    expect(running).toMatch(/records\/s \(limit 20\), about .* left/);
    await picture('running');

    await send('Signal', 'pause');
    await untilState(id, 'paused');
    await untilDetails(id, /paused: ORDERS/);
    await send('Update', 'setRate', { perSecond: 40 });
    await expect.poll(async () => (await replayHandle(client, id).progress()).rate_limit_per_second, patience).toBe(40);
    await send('Signal', 'resume');
    await untilState(id, 'running');
    await page.goto(`${ui}/workflows/${encodeURIComponent(id)}`);
    await page.getByRole('button', { name: 'Request Cancellation' }).click();
    await page.getByRole('button', { name: 'Confirm' }).click();
    await untilState(id, 'canceled');
    await untilDetails(id, /canceled: ORDERS/);
  }, 600_000);

  test('a blocked plan says why, since when and what to do; it is decided there', async () => {
    const input = await request(
      'PAYMENTS',
      { max_rejects: 0 },
      { sink: { type: 'file', directory: 'payments', require_json: true } },
    );
    const { id } = await startReplay(client, input);
    await untilState(id, 'blocked');
    const shown = await untilDetails(id, /blocked: PAYMENTS/);
    expect(shown).toMatch(/Problem: More records were refused than max_rejects allows/);
    expect(shown).toMatch(/reject_budget: .*not_json.*since 20.*it waits for you/s);
    expect(shown).toMatch(/Next: Look at the rejects\./);
    expect(shown).toContain('Send an Update: decide, input {"decision":"skip"}: leave them out');
    await picture('blocked');
    await send('Update', 'decide', { decision: 'skip' });
    await expect.poll(async () => (await replayHandle(client, id).progress()).counts.rejected, patience).toBeGreaterThan(0);
    await replayHandle(client, id).cancel();
  }, 600_000);

  test('a plan that requires approval shows its numbers and the input to copy', async () => {
    const { id } = await startReplay(client, await request('INVOICES', { require_approval: true }));
    await untilState(id, 'awaiting_approval');
    const shown = await untilDetails(id, /awaiting_approval: INVOICES/);
    expect(shown).toContain('would replay 5,000 messages');
    const { fingerprint } = JSON.parse(/\{"by".*\}/.exec(shown)![0]) as { fingerprint: string };
    await picture('awaiting-approval');
    await send('Update', 'approve', { by: 'ann', reason: 'INC-42', fingerprint });
    await untilState(id, 'running');
    await replayHandle(client, id).cancel();
  }, 600_000);

  test('a refused plan says what is wrong', async () => {
    const handle = await client.workflow.start('replayPlan', {
      taskQueue: 'durable-replay',
      workflowId: 'refused',
      args: [{ plan: { replay: { stream: 'NONE' } }, target: null }],
    });
    await handle.result().catch(() => undefined);
    const shown = await untilDetails('refused', /refused/);
    expect(shown).toContain('replay.durable_consumer: missing');
  }, 600_000);
});
