import { describe, test } from 'vitest';
import { withoutOracle } from '../support/oracle.ts';
import { oracleDestinations } from './oracle-destination.ts';
import { assertCase, contractCases } from './sink-contract.ts';

/** Over the wire ladder (test/support/oracle.ts), unless REPLAY_TEST_ORACLE_URL names a real one. */
describe.skipIf(withoutOracle).each(oracleDestinations)('contract of the Oracle sink, mode $mode', (destination) => {
  for (const contractCase of contractCases) test(contractCase.name, () => assertCase(contractCase, destination));
});
