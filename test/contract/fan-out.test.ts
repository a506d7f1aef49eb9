import { describe, test } from 'vitest';
import { fanOutDestinations } from './fan-out-destination.ts';
import { assertCase, contractCases } from './sink-contract.ts';

describe.each(fanOutDestinations)('contract of the fan-out', (destination) => {
  for (const contractCase of contractCases) test(contractCase.name, () => assertCase(contractCase, destination));
});
