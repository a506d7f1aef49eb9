import { describe, expect, test } from 'vitest';
import { readConnectString } from '../../../sinks/oracle/connect-string.ts';

const address = (host: string, protocol = 'tcp') => `(ADDRESS=(PROTOCOL=${protocol})(HOST=${host})(PORT=1521))`;
const service = '(CONNECT_DATA=(SERVICE_NAME=orders))';

describe('taken, with every host in it', () => {
  test.each([
    ['db.example.com/orders', ['db.example.com'], false],
    ['db.example.com:1521/orders', ['db.example.com'], false],
    ['db.example.com:1521/orders:pooled/inst1', ['db.example.com'], false],
    ['tcp://db/orders', ['db'], false],
    ['tcps://db.example.com:2484/orders?ssl_server_dn_match=on&retry_count=3', ['db.example.com'], true],
    ['a.example.com,b.example.com:1522/orders.example.com', ['a.example.com', 'b.example.com'], false],
    ['a:1521;b:1522/orders', ['a', 'b'], false],
    ['[2001:db8::1]:1521/orders', ['2001:db8::1'], false],
    [`(DESCRIPTION=${address('db.example.com')}${service})`, ['db.example.com'], false],
    [`(DESCRIPTION=${address('db', 'tcps')}${service}(SECURITY=(SSL_SERVER_CERT_DN="CN=db, O=x")))`, ['db'], true],
    [
      `(description_list = (description=(address_list=(load_balance=on)${address('a')}${address('b')})${service}) (description=${address('c')}${service}))`,
      ['a', 'b', 'c'],
      false,
    ],
    [`(DESCRIPTION=${address('a', 'tcps')}${address('b', 'tcp')}${service})`, ['a', 'b'], false],
  ])('%s', (text, hosts, encrypted) => {
    expect(readConnectString(text)).toEqual({ ok: true, hosts, encrypted });
  });
});

describe('refused', () => {
  test.each([
    '',
    'orders',
    'db.example.com:1521',
    'db.example.com:1521/x',
    ' db/orders',
    'db/orders\n',
    'scott/tiger@db.example.com/orders',
    'db/orders?wallet_location=/etc/wallet',
    'db/orders?https_proxy=proxy.example.com',
    'db/orders?sdu=(x)',
    'ldap://directory/orders',
    'ldaps://directory/orders',
    'config-file:///etc/orders.json',
    'config-azure://x?key=y',
    'udp://db/orders',
    `(DESCRIPTION=${address('db')}${service})x`,
    `(DESCRIPTION=${address('db')}${service}`,
    `(DESCRIPTION=(ADDRESS=(PROTOCOL=ipc)(KEY=x))${service})`,
    `(DESCRIPTION=(ADDRESS=(PROTOCOL=sdp)(HOST=db)(PORT=1))${service})`,
    `(DESCRIPTION=(ADDRESS=(PROTOCOL=tcp)(HOST=db)(PORT=1)(HTTPS_PROXY=proxy))${service})`,
    `(DESCRIPTION=${address('db')}${service}(SECURITY=(WALLET_LOCATION=/etc)))`,
    `(DESCRIPTION=${service})`,
    `(DESCRIPTION=${address('a b')}${service})`,
    `(DESCRIPTION=(SOURCE_ROUTE=on)${address('db')}${service})`,
    '(DESCRIPTION='.repeat(30),
    'x'.repeat(5_000),
  ])('%j', (text) => {
    const read = readConnectString(text);
    expect(read.ok).toBe(false);
    if (!read.ok) expect(read.problem).toContain('expected');
  });

  test('a password in the text is not repeated', () => {
    const read = readConnectString('scott/tiger@db.example.com/orders');
    expect(JSON.stringify(read)).not.toContain('tiger');
  });
});
