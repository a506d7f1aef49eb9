import { describe, test } from 'vitest';
import { spoolDestinations } from './spool-destination.ts';
import { assertCase, contractCases } from './sink-contract.ts';

describe.each(spoolDestinations)('contract of the spool, mode $mode', (destination) => {
  for (const contractCase of contractCases) test(contractCase.name, () => assertCase(contractCase, destination));
});
