import { ReplayFault } from '../core/errors.ts';

/** Only these names are resolved: a target cannot read the worker's other variables. */
const secretName = /^REPLAY_SECRET_[A-Z0-9_]+$/;

/** Resolves secrets by the names that targets give; values stay in the worker. */
export function createSecrets(env: NodeJS.ProcessEnv): (name: string) => string {
  return (name) => {
    const value = secretName.test(name) ? env[name] : undefined;
    if (value === undefined || value === '') throw new ReplayFault('secret_missing', name);
    return value;
  };
}
