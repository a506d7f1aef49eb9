import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nkeys } from 'nats';
import { describe, expect, test } from 'vitest';
import { startNats, type NatsServer } from '../../scripts/servers/nats.ts';
import { connectNats, readNatsSettings } from '../../jetstream/connection.ts';
import { createSource } from '../../jetstream/source.ts';
import { makeCertificates } from '../support/certificates.ts';
import { atFileEnd, tempDir } from '../support/file-end.ts';

/** Every way to log in, against a real server that asks for it; and the refusal, which names no value. */

async function serverWith(config: string): Promise<NatsServer> {
  const server = await startNats({ config });
  atFileEnd(() => server.stop());
  return server;
}

/** Logs in as a worker does and asks for a stream that is not there. */
async function answerOf(env: Record<string, string>): Promise<string> {
  const settings = readNatsSettings(env);
  if (!settings.ok) throw new Error(JSON.stringify(settings.problems));
  const connection = await connectNats(settings.value);
  try {
    await createSource(connection).describe('NONE');
    return 'found';
  } catch (error) {
    return (error as { code: string }).code;
  } finally {
    await connection.close();
  }
}

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

test('nkey', async () => {
  const [user, stranger] = [nkeys.createUser(), nkeys.createUser()];
  const server = await serverWith(`authorization { users: [ { nkey: "${user.getPublicKey()}" } ] }`);
  const folder = await tempDir();
  await writeFile(join(folder, 'user.nk'), text(user.getSeed()));
  await writeFile(join(folder, 'stranger.nk'), text(stranger.getSeed()));
  expect(await answerOf({ NATS_URL: server.url, NATS_NKEY: join(folder, 'user.nk') })).toBe('stream_missing');
  await expect(answerOf({ NATS_URL: server.url, NATS_NKEY: join(folder, 'stranger.nk') })).rejects.toMatchObject({
    code: 'nats_denied',
  });
});

describe('TLS', () => {
  test('a certificate of our own authority, and one of the client where the server wants it', async () => {
    const file = await makeCertificates(['server', 'client']);
    const server = await serverWith(
      `tls { cert_file: "${file('server.pem')}", key_file: "${file('server.key')}", ca_file: "${file('ca.pem')}", verify: true }`,
    );
    // The client checks a certificate against a name, never against an address.
    const named = server.url.replace('127.0.0.1', 'localhost');
    const known = { NATS_URL: named, NATS_CA: file('ca.pem') };
    expect(await answerOf({ ...known, NATS_CERT: file('client.pem'), NATS_KEY: file('client.key') })).toBe('stream_missing');
    await expect(answerOf(known)).rejects.toHaveProperty('code');
    await expect(answerOf({ NATS_URL: named.replace('nats:', 'tls:') })).rejects.toHaveProperty('code');
  });
});

test('creds: an operator, an account, a user', async () => {
  const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()];
  const system = nkeys.createAccount();
  const limits = { subs: -1, data: -1, payload: -1 };
  const jetStream = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };
  const accountLimits = { ...limits, ...jetStream, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
  const tokenOf = (subject: string, issuer: typeof operator, nats: object): string => jwt(subject, issuer, nats);
  const operatorJwt = tokenOf(operator.getPublicKey(), operator, { type: 'operator', version: 2 });
  const accountJwt = tokenOf(account.getPublicKey(), operator, { type: 'account', version: 2, limits: accountLimits });
  const systemLimits = { ...limits, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
  const systemJwt = tokenOf(system.getPublicKey(), operator, { type: 'account', version: 2, limits: systemLimits });
  const userJwt = tokenOf(user.getPublicKey(), account, { type: 'user', version: 2, ...limits });
  const server = await serverWith(
    `operator: "${operatorJwt}"\nsystem_account: ${system.getPublicKey()}\nresolver: MEMORY\nresolver_preload: { ${account.getPublicKey()}: "${accountJwt}", ${system.getPublicKey()}: "${systemJwt}" }\n`,
  );
  const creds = join(await tempDir(), 'user.creds');
  const block = (name: string, value: string): string => `-----BEGIN ${name}-----\n${value}\n------END ${name}------\n\n`;
  await writeFile(creds, block('NATS USER JWT', userJwt) + block('USER NKEY SEED', text(user.getSeed())));
  expect(await answerOf({ NATS_URL: server.url, NATS_CREDS: creds })).toBe('stream_missing');
  const refusal = await answerOf({ NATS_URL: server.url }).catch((error: Error) => error);
  expect(refusal).toMatchObject({ code: 'nats_denied' });
  expect(String(refusal)).not.toContain(server.url);
});

function jwt(subject: string, issuer: ReturnType<typeof nkeys.createUser>, nats: object): string {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { iss: issuer.getPublicKey(), sub: subject, name: 'test', iat: Math.floor(Date.now() / 1_000), nats };
  const jti = createHash('sha256').update(JSON.stringify(claims)).digest('hex');
  const signed = `${encode({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encode({ ...claims, jti })}`;
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString('base64url')}`;
}
