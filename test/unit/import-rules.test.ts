import { spawnSync } from 'node:child_process';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { tempDir } from '../support/file-end.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Files of a small tree: what each imports (its value used, so that the import counts), and the rules it breaks. */
const files: Record<string, { imports: readonly string[]; breaks: readonly string[]; text?: string }> = {
  'core/plan-schema.ts': { imports: ['zod'], breaks: [] },
  'core/plan.ts': { imports: ['./plan-schema.ts'], breaks: [] },
  'core/progress.ts': { imports: [], breaks: [] },
  'core/loose.ts': { imports: ['zod'], breaks: ['core-zod'] },
  'core/clock.ts': { imports: ['node:fs'], breaks: ['core'] },
  'core/reporting.ts': { imports: ['../platform/logger.ts'], breaks: ['core'] },

  'workflows/index.ts': {
    imports: ['@temporalio/workflow', '../core/progress.ts'],
    breaks: [],
    text: "import type { deliver } from '../activities/deliver.ts';\nexport type Deliver = typeof deliver;",
  },
  'workflows/messages.ts': { imports: ['@temporalio/common'], breaks: [] },
  'workflows/by-value.ts': {
    imports: ['../activities/deliver.ts'],
    breaks: ['workflows', 'workflows-reach-no-node', 'workflows-reach-no-zod'],
  },
  'workflows/two-hops-zod.ts': { imports: ['../core/plan.ts'], breaks: ['workflows-reach-no-zod'] },
  'workflows/two-hops-node.ts': { imports: ['../core/clock.ts'], breaks: ['workflows-reach-no-node'] },
  'workflows/client.ts': { imports: ['@temporalio/client'], breaks: ['workflows'] },

  'activities/deliver.ts': { imports: ['@temporalio/activity', 'node:fs', '../core/plan.ts', '../sinks/sink.ts'], breaks: [] },
  'activities/own-driver.ts': { imports: ['nats'], breaks: ['activities'] },
  'activities/own-sink.ts': { imports: ['../sinks/registry.ts'], breaks: ['activities'] },

  'jetstream/source.ts': { imports: ['nats', 'node:fs', '../core/plan.ts'], breaks: [] },
  'jetstream/temporal.ts': { imports: ['@temporalio/common'], breaks: ['jetstream'] },
  'jetstream/sinks.ts': { imports: ['../sinks/sink.ts'], breaks: ['jetstream'] },

  'sinks/sink.ts': { imports: ['../core/progress.ts'], breaks: [] },
  'sinks/registry.ts': { imports: ['./file/config.ts'], breaks: [] },
  'sinks/file/config.ts': { imports: ['zod'], breaks: [], text: "export const load = () => import('./sink.ts');" },
  'sinks/file/sink.ts': { imports: ['node:fs', './format.ts', '../sink.ts'], breaks: [] },
  'sinks/file/format.ts': { imports: ['../../core/plan.ts'], breaks: [] },
  'sinks/spool/config.ts': { imports: ['./sink.ts'], breaks: ['sinks-config'] },
  'sinks/spool/sink.ts': { imports: ['../file/sink.ts'], breaks: ['sinks-spool'] },
  'sinks/mysql/sink.ts': { imports: ['nats'], breaks: ['sinks-mysql'] },
  'sinks/brand-new/sink.ts': { imports: ['@temporalio/activity'], breaks: ['sinks-new'] },

  'platform/logger.ts': { imports: ['pino', 'node:fs'], breaks: [] },
  'platform/settings.ts': { imports: ['../core/plan.ts'], breaks: ['platform'] },
  'platform/nats.ts': { imports: ['nats'], breaks: ['platform'] },

  'worker/main.ts': {
    imports: ['../activities/deliver.ts', '../jetstream/source.ts', '../sinks/registry.ts', '@temporalio/worker'],
    breaks: [],
  },
  'worker/asking.ts': { imports: ['../client/main.ts'], breaks: ['worker'] },

  'client/main.ts': { imports: ['../sinks/registry.ts', '../workflows/messages.ts', '../platform/logger.ts'], breaks: [] },
  'client/doing.ts': { imports: ['../activities/deliver.ts'], breaks: ['client'] },
  'client/writing.ts': { imports: ['../sinks/file/sink.ts'], breaks: ['client'] },
  'client/pulling.ts': { imports: ['../jetstream/source.ts'], breaks: ['client-stream-access'] },
  'client/talking.ts': { imports: ['nats'], breaks: ['client-no-drivers'] },
  'client/commands/inspect.ts': { imports: ['../../jetstream/source.ts'], breaks: [] },
  'client/commands/worker.ts': { imports: ['../../worker/main.ts'], breaks: [] },
  'client/commands/dev.ts': { imports: ['../../worker/main.ts', '../../scripts/servers/servers.ts'], breaks: [] },
  'client/commands/status.ts': {
    imports: ['../../worker/main.ts', '../../scripts/servers/servers.ts'],
    breaks: ['client-starts-servers', 'client-starts-worker'],
  },

  'scripts/servers/servers.ts': { imports: ['../../core/plan.ts', 'nats', '@temporalio/client'], breaks: [] },
  'test/lost.ts': { imports: ['./nowhere.ts'], breaks: ['not-to-unresolvable'] },
};

test('each import rule finds what it forbids and lets pass what it allows', async () => {
  const tree = await tempDir();
  await symlink(join(root, 'node_modules'), join(tree, 'node_modules'));
  await cp(join(root, 'tsconfig.json'), join(tree, 'tsconfig.json'));
  for (const [path, { imports, text }] of Object.entries(files)) {
    await mkdir(dirname(join(tree, path)), { recursive: true });
    await writeFile(join(tree, path), `${source(imports)}\n${text ?? ''}\n`);
  }
  const found = new Map<string, Set<string>>(Object.keys(files).map((path) => [path, new Set()]));
  for (const { from, rule } of cruise(tree)) found.get(from)?.add(rule.name);
  const expected = Object.entries(files).map(([path, { breaks }]) => [path, [...breaks]]);
  expect([...found].map(([path, rules]) => [path, [...rules].sort()])).toEqual(expected);
});

function source(imports: readonly string[]): string {
  const lines = imports.map((name, index) => `import * as used${index} from '${name}';\nconsole.log(used${index});`);
  return [...lines, 'export const deliver = 1;'].join('\n');
}

function cruise(tree: string): { from: string; rule: { name: string } }[] {
  const program = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const folders = [...new Set(Object.keys(files).map((path) => path.split('/')[0]!))];
  const args = [program, '--config', join(root, '.dependency-cruiser.cjs'), '--output-type', 'json', ...folders];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: tree, encoding: 'utf8', timeout: 30_000 });
  if (!stdout.startsWith('{')) throw new Error(`dependency-cruiser failed: ${stderr}${stdout}`);
  return (JSON.parse(stdout) as { summary: { violations: { from: string; rule: { name: string } }[] } }).summary.violations;
}
