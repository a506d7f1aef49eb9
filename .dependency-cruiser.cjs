/**
 * Who may import whom. Only imports of values count (tsPreCompilationDeps: false); types are free. Each folder has one rule
 * that names everything it may import: whatever is not named is forbidden. ARCHITECTURE.md shows the same as a table.
 */

const { builtinModules } = require('node:module');

/** Node's own modules, with or without `node:`. */
const node = { dependencyTypesNot: ['core'] };

/** A path in the tree, or a package wherever it is installed. */
const pkg = (name) => `(^|/)node_modules/${name}/`;

/** The one driver that a sink's folder may import; the others are handed what they need. */
const sinkDrivers = { mysql: ['mysql2'], oracle: ['oracledb'] };
/** What a sink's config.ts checks its fields by: pure. */
const sinkRules = ['^sinks/oracle/(names|connect-string)\\.ts$'];
const sinkFolders = ['file', 'spool', 'mysql', 'oracle', 'fan-out', 'jetstream'];

const allow = (name, from, allowed, { withNode, comment, fromNot, ...to }) => ({
  name,
  severity: 'error',
  comment,
  from: { path: from, ...(fromNot === undefined ? {} : { pathNot: fromNot }) },
  to: { pathNot: allowed, ...(withNode ? node : {}), ...to },
});

const sinkRule = (folder) =>
  allow(
    `sinks-${folder}`,
    `^sinks/${folder}/`,
    ['^core/', '^sinks/sink\\.ts$', '^sinks/(sql|disk)/', `^sinks/${folder}/`, ...(sinkDrivers[folder] ?? []).map(pkg)],
    {
      withNode: true,
      fromNot: `^sinks/${folder}/config\\.ts$`,
      comment: `sinks/${folder} may import core, sinks/sink.ts, sinks/sql, sinks/disk, its own driver and node:*, and no other sink, Temporal or NATS.`,
    },
  );

module.exports = {
  forbidden: [
    {
      name: 'not-to-unresolvable',
      severity: 'error',
      comment: 'A module that cannot be found also escapes the rules below.',
      from: {},
      to: { couldNotResolve: true },
    },
    allow('core', '^core/', ['^core/', pkg('zod')], {
      withNode: false,
      comment: 'core is pure: it may import itself, and zod in its schema files.',
    }),
    {
      name: 'core-zod',
      severity: 'error',
      comment:
        'Only the schema files of core (schema.ts, target.ts, *-fields.ts, *-schema.ts) import zod, so that workflows can use the others.',
      from: { path: '^core/', pathNot: ['^core/(schema|target)\\.ts$', '-(schema|fields)\\.ts$'] },
      to: { path: pkg('zod') },
    },
    allow('workflows', '^workflows/', ['^workflows/', '^core/', pkg('@temporalio/workflow'), pkg('@temporalio/common')], {
      withNode: false,
      comment: 'Temporal replays workflows: they may import @temporalio/workflow, @temporalio/common and core, nothing else.',
    }),
    {
      name: 'workflows-reach-no-zod',
      severity: 'error',
      comment: 'zod would be bundled into every workflow: workflows may use only core files that do not reach it.',
      from: { path: '^workflows/' },
      to: { path: pkg('zod'), reachable: true },
    },
    {
      name: 'workflows-reach-no-node',
      severity: 'error',
      comment: 'A workflow that reaches node:* through other files is not deterministic.',
      from: { path: '^workflows/' },
      to: { path: `^(node:)?(${builtinModules.join('|')})$`, reachable: true },
    },
    allow(
      'activities',
      '^activities/',
      ['^activities/', '^core/', '^sinks/sink\\.ts$', '^cold/store\\.ts$', pkg('@temporalio/activity')],
      {
        withNode: true,
        comment: 'Activities may import core, the ports, @temporalio/activity and node:*: drivers are injected.',
      },
    ),
    allow('jetstream', '^jetstream/', ['^jetstream/', '^core/', pkg('nats')], {
      withNode: true,
      comment: 'jetstream may import core, the NATS client and node:*.',
    }),
    ...sinkFolders.map(sinkRule),
    allow('sinks-sql', '^sinks/sql/', ['^core/', '^sinks/sql/'], {
      withNode: false,
      fromNot: '-schema\\.ts$',
      comment: 'sinks/sql is what the SQL sinks share, and pure: core and itself, and zod in its schema file.',
    }),
    allow('sinks-sql-schema', '^sinks/sql/.*-schema\\.ts$', ['^core/', '^sinks/sql/', pkg('zod')], {
      withNode: false,
      comment: 'The schema file of sinks/sql may import core, itself and zod.',
    }),
    allow('sinks-disk', '^sinks/disk/', ['^core/', '^sinks/disk/', pkg('zod')], {
      withNode: true,
      comment: 'sinks/disk is what the sinks below the data root share: core, itself, zod for its schema, and node:*.',
    }),
    allow('sinks-new', '^sinks/[^/]+/', ['^core/', '^sinks/sink\\.ts$'], {
      withNode: true,
      fromNot: `^sinks/(${[...sinkFolders, 'sql', 'disk'].join('|')})/`,
      comment: 'A new sink: name its folder, and its driver, in .dependency-cruiser.cjs.',
    }),
    allow(
      'sinks-config',
      '^sinks/[^/]+/config\\.ts$',
      ['^core/', '^sinks/sink\\.ts$', '^sinks/(sql|disk)/', ...sinkRules, pkg('zod')],
      {
        withNode: true,
        dynamic: false,
        comment: 'config.ts describes a sink without loading it: its driver comes in through load() alone, by import().',
      },
    ),
    {
      name: 'sinks-config-loads-its-own',
      severity: 'error',
      comment: 'load() of a config.ts loads the sink beside it.',
      from: { path: '^sinks/([^/]+)/config\\.ts$' },
      to: { dynamic: true, pathNot: '^sinks/$1/' },
    },
    allow('sinks-port', '^sinks/sink\\.ts$', ['^core/'], {
      withNode: false,
      comment: 'The port of the sinks may import core.',
    }),
    allow('sinks-registry', '^sinks/registry\\.ts$', ['^core/', '^sinks/[^/]+/config\\.ts$'], {
      withNode: false,
      comment: 'The registry may import core and each config.ts.',
    }),
    allow('sinks-packages', '^sinks/packages\\.ts$', ['^core/', '^sinks/registry\\.ts$'], {
      withNode: true,
      comment: 'Packages of sinks are found by name: nothing but core, the registry and node:*.',
    }),
    allow('sinks-public', '^sinks/public\\.ts$', ['^core/'], {
      withNode: false,
      comment: 'What packages of sinks build on: the port, and what core offers sinks.',
    }),
    allow('cold', '^cold/', ['^cold/', '^core/', pkg('aws4fetch')], {
      withNode: true,
      comment: 'cold may import core, the S3 client and node:*.',
    }),
    allow('platform', '^platform/', ['^platform/', pkg('@temporalio/(client|common|envconfig)'), pkg('pino'), pkg('zod')], {
      withNode: true,
      comment: 'platform does not know what a replay is: Temporal clients, the logger, zod and node:* only.',
    }),
    {
      name: 'worker',
      severity: 'error',
      comment: 'The worker may import everything but the client; and what ships never imports tests, benches or scripts.',
      from: { path: '^worker/' },
      to: { path: '^(client|test|bench|scripts)/' },
    },
    {
      name: 'client',
      severity: 'error',
      comment:
        'The client may import core, sinks/registry.ts and packages.ts, workflows/messages.ts and platform; inspect and topics also jetstream and ' +
        'cold; the verbs worker and dev start worker/main.ts, dev also the servers of scripts/servers.',
      from: { path: '^client/' },
      to: {
        path: '^(activities|sinks|workflows|jetstream|cold|worker|scripts|test|bench)/',
        pathNot: [
          '^sinks/(registry|packages)\\.ts$',
          '^workflows/messages\\.ts$',
          '^jetstream/',
          '^cold/',
          '^worker/main\\.ts$',
          '^scripts/servers/',
        ],
      },
    },
    {
      name: 'client-stream-access',
      severity: 'error',
      comment:
        'Only inspect, doctor and topics read streams and cold segments by themselves; all else goes through a workflow.',
      from: {
        path: '^client/',
        pathNot: [
          '^client/commands/(inspect|doctor|topics?)[^/]*\\.ts$',
          '^client/doctor/',
          '^client/commands/topics?/',
          '^client/topics\\.ts$',
        ],
      },
      to: { path: '^(jetstream|cold)/' },
    },
    {
      name: 'client-starts-worker',
      severity: 'error',
      comment: 'Only the verbs worker and dev start a worker.',
      from: { path: '^client/', pathNot: '^client/commands/(worker|dev)\\.ts$' },
      to: { path: '^worker/' },
    },
    {
      name: 'client-starts-servers',
      severity: 'error',
      comment: 'Only the verb dev starts servers, and only doctor shares what they need.',
      from: { path: '^client/', pathNot: '^client/(commands/dev|doctor/temporal)\\.ts$' },
      to: { path: '^scripts/' },
    },
    {
      name: 'client-no-drivers',
      severity: 'error',
      comment: 'The NATS client belongs to jetstream, drivers to their sinks.',
      from: { path: '^client/' },
      to: { path: [pkg('nats'), ...Object.values(sinkDrivers).flat().map(pkg), pkg('aws4fetch')] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: false,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
};
