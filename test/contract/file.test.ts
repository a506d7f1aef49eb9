import { describe, test } from 'vitest';
import { fileDestinations } from './file-destination.ts';
import { assertCase, contractCases } from './sink-contract.ts';

describe.each(fileDestinations)('contract of the file sink, mode $mode', (destination) => {
  for (const contractCase of contractCases) test(contractCase.name, () => assertCase(contractCase, destination));
});
