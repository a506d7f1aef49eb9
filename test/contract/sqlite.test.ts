import { describe, test } from 'vitest';
import { sqliteDestinations } from '../../examples/sqlite-sink/destination.ts';
import { assertCase, contractCases } from './sink-contract.ts';

describe.each(sqliteDestinations)('contract of the SQLite sink of the example', (destination) => {
  for (const contractCase of contractCases) test(contractCase.name, () => assertCase(contractCase, destination));
});
