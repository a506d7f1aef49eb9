import { isAbsolute, relative } from 'node:path';
import { settingsSchema } from '../../platform/settings.ts';
import { code, page, table } from './markdown.ts';

export function settingsPage(): string {
  const rows = Object.entries(settingsSchema.shape).map(([name, field]) => {
    return [code(name), fallbackOf(field.safeParse(undefined).data), field.meta()?.['description'] as string];
  });
  return page(
    'platform/settings.ts',
    `# Settings

Everything comes from the environment. Temporal and NATS are reached with the variables that their own commands know, so a shell in
which \`temporal\` and \`nats\` work is a shell in which \`replay-stream\` works.

## Ours

${table(['Variable', 'Default', 'Meaning'], rows)}

Secrets of targets are read from variables whose names begin with \`REPLAY_SECRET_\`, in the worker only.

## Temporal

\`TEMPORAL_ADDRESS\`, \`TEMPORAL_NAMESPACE\`, \`TEMPORAL_API_KEY\`, \`TEMPORAL_TLS*\`, and the profiles of Temporal's own configuration file
(\`TEMPORAL_PROFILE\`, \`TEMPORAL_CONFIG_FILE\`).

## NATS (worker only)

\`NATS_URL\`, and one way to log in: \`NATS_CREDS\`, \`NATS_NKEY\`, \`NATS_USER\` with \`NATS_PASSWORD\`, or \`NATS_TOKEN\`. TLS: \`NATS_CA\`,
\`NATS_CERT\` with \`NATS_KEY\`. The subjects the user needs: [permissions](../permissions.md).
`,
  );
}

/** Folders are resolved against the working directory: the page shows them as written. */
function fallbackOf(value: unknown): string {
  if (typeof value !== 'string') return 'none';
  return code(isAbsolute(value) ? `./${relative(process.cwd(), value)}` : value);
}
