import { describe, test } from 'vitest';
import { jetstreamDestinations } from './jetstream-destination.ts';
import { assertCase, contractCases } from './sink-contract.ts';

describe.each(jetstreamDestinations)('contract of the jetstream sink', (destination) => {
  for (const contractCase of contractCases) test(contractCase.name, () => assertCase(contractCase, destination));
});
