import { type NatsOptions, type NatsServer, startNats, verifyNats } from './nats.ts';
import type { Say } from './setup-error.ts';
import { startTemporal, type TemporalOptions, type TemporalServer, verifyTemporal } from './temporal.ts';

export interface ServersOptions {
  readonly nats?: Omit<NatsOptions, 'env' | 'say'>;
  readonly temporal?: Omit<TemporalOptions, 'env' | 'say'>;
  readonly env?: NodeJS.ProcessEnv;
  readonly say?: Say;
}

export interface Servers {
  readonly natsUrl: string;
  /** host:port */
  readonly temporalAddress: string;
  /** null: the Temporal server was there already, and where its UI is, is not known. */
  readonly uiUrl: string | null;
  /** null: the server of NATS_URL, which is not ours to stop. */
  readonly nats: NatsServer | null;
  /** null: the server of TEMPORAL_ADDRESS, which is not ours to stop. */
  readonly temporal: TemporalServer | null;
  /** What the user should know: search attributes that an existing server does not have. */
  readonly warnings: readonly string[];
  /** Ends what was started here; may be called again. */
  stop(): Promise<void>;
}

/**
 * Temporal and NATS for this machine. NATS_URL and TEMPORAL_ADDRESS win: such a server is verified and used; the others are
 * started on free ports and end with this process, however it ends. Throws ServerSetupError; then nothing was left running.
 */
export async function startServers(options: ServersOptions = {}): Promise<Servers> {
  const env = options.env ?? process.env;
  const common = { env, say: options.say ?? sayOnStderr };
  const natsUrl = env['NATS_URL'];
  const temporalAddress = env['TEMPORAL_ADDRESS'];
  const [nats, temporal] = await Promise.allSettled([
    natsUrl ? verifyNats(natsUrl, options.nats?.minimum).then(() => null) : startNats({ ...options.nats, ...common }),
    temporalAddress ? useTemporal(env) : startTemporal({ ...options.temporal, ...common }).then(ours),
  ]);
  if (nats.status === 'rejected' || temporal.status === 'rejected') {
    if (nats.status === 'fulfilled') await nats.value?.stop();
    if (temporal.status === 'fulfilled') await temporal.value.own?.stop();
    throw nats.status === 'rejected' ? nats.reason : (temporal as PromiseRejectedResult).reason;
  }
  const ownNats = nats.value;
  const { own: ownTemporal, warnings } = temporal.value;
  return {
    natsUrl: ownNats?.url ?? natsUrl!,
    temporalAddress: ownTemporal?.address ?? temporalAddress!,
    uiUrl: ownTemporal?.uiUrl ?? null,
    nats: ownNats,
    temporal: ownTemporal,
    warnings,
    async stop() {
      await Promise.all([ownNats?.stop(), ownTemporal?.stop()]);
    },
  };
}

interface Temporal {
  readonly own: TemporalServer | null;
  readonly warnings: readonly string[];
}

function ours(own: TemporalServer): Temporal {
  return { own, warnings: [] };
}

async function useTemporal(env: NodeJS.ProcessEnv): Promise<Temporal> {
  const missing = await verifyTemporal(env);
  return { own: null, warnings: missing.length === 0 ? [] : [missingAttributesWarning(missing)] };
}

function missingAttributesWarning(missing: readonly string[]): string {
  return (
    `The Temporal server does not know the search attributes ${missing.join(', ')}: replays run, but lists cannot be filtered ` +
    'by them. Someone who may, registers them with: temporal operator search-attribute create --name NAME --type TYPE'
  );
}

function sayOnStderr(line: string): void {
  process.stderr.write(`${line}\n`);
}
