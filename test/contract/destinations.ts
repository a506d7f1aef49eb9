import type { Destination } from './sink-contract.ts';

/** The destinations of each sink type: what `test/contract/TYPE.test.ts` runs, and what `npm run certify -- TYPE` records. */
export const destinations: Readonly<Record<string, () => Promise<readonly Destination[]>>> = {
  fanout: async () => (await import('./fan-out-destination.ts')).fanOutDestinations,
  file: async () => (await import('./file-destination.ts')).fileDestinations,
  jetstream: async () => (await import('./jetstream-destination.ts')).jetstreamDestinations,
  mysql: async () => (await import('./mysql-destination.ts')).mysqlDestinations,
  oracle: async () => (await import('./oracle-destination.ts')).oracleDestinations,
  sqlite: async () => (await import('../../examples/sqlite-sink/destination.ts')).sqliteDestinations,
  spool: async () => (await import('./spool-destination.ts')).spoolDestinations,
};
