/**
 * The forms of a connect string that are allowed: Easy Connect and a whole descriptor, with named parts only. Anything else
 * (aliases, wallets and proxies by parameter, configuration from elsewhere) could lead to hosts and files that a worker's
 * list of allowed hosts does not see.
 */

export type ConnectString =
  | { readonly ok: true; readonly hosts: readonly string[]; readonly encrypted: boolean }
  | { readonly ok: false; readonly problem: string };

const TEXT_CHARACTERS_MAX = 4_096;
const NESTING_MAX = 16;
const expected =
  'expected host:port/service, tcps://host:port/service, or a descriptor (DESCRIPTION=...); user and password have fields of their own';

export function readConnectString(text: string): ConnectString {
  if (text.length > TEXT_CHARACTERS_MAX) return refused(`is longer than ${TEXT_CHARACTERS_MAX} characters`);
  if (text.trim() !== text || /[\p{Cc}\p{Cs}]/u.test(text)) return refused('has an unprintable character or a space around it');
  return text.startsWith('(') ? readDescriptor(text) : readEasyConnect(text);
}

const easyConnect =
  /^(?:(?<protocol>tcps?):\/\/)?(?<hosts>[^/?@\s]+)\/(?<service>[A-Za-z0-9][\w.$#-]*)(?::(?:dedicated|shared|pooled))?(?:\/[A-Za-z0-9]\w*)?(?:\?(?<parameters>.*))?$/i;
const address = /^(?:\[(?<six>[0-9A-Fa-f:.]+)\]|(?<host>[A-Za-z0-9][\w.-]*))(?::\d{1,5})?$/;
const easyParameters: ReadonlySet<string> = new Set([
  'connect_timeout',
  'transport_connect_timeout',
  'retry_count',
  'retry_delay',
  'expire_time',
  'failover',
  'load_balance',
  'sdu',
  'ssl_server_dn_match',
  'ssl_server_cert_dn',
  'ssl_allow_weak_dn_match',
]);

function readEasyConnect(text: string): ConnectString {
  const groups = easyConnect.exec(text)?.groups;
  if (groups === undefined) return refused('is not understood');
  // The driver refuses it with an error that names no part.
  if (groups['service']!.length < 2) return refused('has a service of one letter');
  const hosts: string[] = [];
  for (const part of groups['hosts']!.split(/[,;]/)) {
    const found = address.exec(part)?.groups;
    if (found === undefined) return refused('has a host that is not understood');
    hosts.push(found['six'] ?? found['host']!);
  }
  for (const parameter of (groups['parameters'] ?? '').split('&').filter((piece) => piece !== '')) {
    const name = parameter.split('=')[0]!.trim().toLowerCase();
    if (!easyParameters.has(name)) return refused('has a parameter that is not allowed');
    if (/[()]/.test(parameter)) return refused('has a parenthesis in a parameter');
  }
  return { ok: true, hosts, encrypted: groups['protocol']?.toLowerCase() === 'tcps' };
}

/** Parts that hold parts, and parts that hold a value. */
const containers: ReadonlySet<string> = new Set([
  'DESCRIPTION_LIST',
  'DESCRIPTION',
  'ADDRESS_LIST',
  'ADDRESS',
  'CONNECT_DATA',
  'SECURITY',
]);
const values: ReadonlySet<string> = new Set([
  'PROTOCOL',
  'HOST',
  'PORT',
  'SERVICE_NAME',
  'SID',
  'SERVER',
  'INSTANCE_NAME',
  'CONNECT_TIMEOUT',
  'TRANSPORT_CONNECT_TIMEOUT',
  'RETRY_COUNT',
  'RETRY_DELAY',
  'EXPIRE_TIME',
  'ENABLE',
  'FAILOVER',
  'LOAD_BALANCE',
  'SDU',
  'SSL_SERVER_DN_MATCH',
  'SSL_SERVER_CERT_DN',
  'SSL_ALLOW_WEAK_DN_MATCH',
]);

/** Reads every part, so that no host can hide in one that was skipped. */
function readDescriptor(text: string): ConnectString {
  const found = { hosts: [] as string[], protocols: [] as string[] };
  let at = 0;
  let problem: string | null = null;
  const fail = (what: string): false => {
    problem ??= what;
    return false;
  };
  const take = (pattern: RegExp): string | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null) return null;
    at = pattern.lastIndex;
    return match[1] ?? match[0];
  };
  const part = (depth: number): boolean => {
    if (depth > NESTING_MAX) return fail('is nested too deep');
    const name = take(/\(\s*([A-Za-z_]+)\s*=\s*/y)?.toUpperCase();
    if (name === undefined) return fail('has a part that is not understood');
    if (containers.has(name)) {
      do if (!part(depth + 1)) return false;
      while (text[at] === '(');
    } else if (values.has(name)) {
      const value = take(/("[^"()]*"|[^"()]*)/y)!.trim();
      if (value === '') return fail('has a part without a value');
      if (name === 'HOST') found.hosts.push(value.replace(/^\[(.*)\]$/, '$1'));
      if (name === 'PROTOCOL') found.protocols.push(value.toLowerCase());
    } else return fail('has a part that is not allowed');
    return take(/\s*\)\s*/y) === null ? fail('has a part that does not end') : true;
  };
  if (!part(1)) return refused(problem!);
  if (at < text.length) return refused('goes on after the descriptor');
  if (found.hosts.length === 0) return refused('names no host');
  if (found.hosts.some((host) => !address.test(host.includes(':') ? `[${host}]` : host))) {
    return refused('has a host that is not understood');
  }
  if (found.protocols.some((protocol) => protocol !== 'tcp' && protocol !== 'tcps')) {
    return refused('has a protocol other than TCP and TCPS');
  }
  const encrypted = found.protocols.length > 0 && found.protocols.every((protocol) => protocol === 'tcps');
  return { ok: true, hosts: found.hosts, encrypted };
}

function refused(what: string): ConnectString {
  return { ok: false, problem: `${what}; ${expected}` };
}
