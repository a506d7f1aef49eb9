import { describe, test } from 'vitest';
import { withoutMysql } from '../support/mysql.ts';
import { mysqlDestinations } from './mysql-destination.ts';
import { assertCase, contractCases } from './sink-contract.ts';

describe.skipIf(withoutMysql).each(mysqlDestinations)('contract of the MySQL sink, mode $mode', (destination) => {
  for (const contractCase of contractCases) test(contractCase.name, () => assertCase(contractCase, destination));
});
