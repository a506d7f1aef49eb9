import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { ReplayFault } from '../../core/errors.ts';
import type { SinkContext } from '../sink.ts';
import type { SpoolConfig } from './config.ts';

const KEY_BYTES = 32;
const SALT_BYTES = 16;
const CHECK_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

/** What a pack says of the key that encrypted it. `check` tells a wrong key from a damaged entry; it tells nothing of the key. */
export interface KeyNote {
  readonly id: string;
  readonly salt: string;
  readonly check: string;
}

export interface Keys {
  readonly currentId: string;
  /** By key id. */
  readonly secrets: ReadonlyMap<string, Buffer>;
}

/** null for a spool that is not encrypted. Throws ReplayFault `secret_missing` or `secret_invalid`. */
export function readKeys({ encryption }: Pick<SpoolConfig, 'encryption'>, secret: SinkContext['secret']): Keys | null {
  if (encryption === undefined) return null;
  const { key_id: currentId, key, old_keys: old = {} } = encryption;
  const named = [[currentId, key] as const, ...Object.entries(old)];
  return { currentId, secrets: new Map(named.map(([id, { env }]) => [id, parseKey(env, secret(env))])) };
}

function parseKey(name: string, text: string): Buffer {
  const trimmed = text.trim();
  const bytes = Buffer.from(trimmed, /^[0-9a-f]{64}$/i.test(trimmed) ? 'hex' : 'base64');
  const isBase64 = /^[A-Za-z0-9+/]{43}=?$/.test(trimmed);
  if (bytes.length === KEY_BYTES && (isBase64 || trimmed.length === 2 * KEY_BYTES)) return bytes;
  throw new ReplayFault('secret_invalid', `${name}: expected a key of 32 bytes, as base64 or hexadecimal`);
}

/** Encrypts and decrypts the entries of one pack, under a key of its own, so that no nonce can ever come twice. */
export interface PackCipher {
  readonly note: KeyNote;
  seal(index: number, identity: Buffer, plain: Uint8Array): Buffer;
  /** null when the entry was altered, or belongs elsewhere. */
  open(index: number, identity: Buffer, sealed: Buffer): Buffer | null;
}

export function newPackCipher({ currentId, secrets }: Keys): PackCipher {
  return packCipher(currentId, secrets.get(currentId)!, randomBytes(SALT_BYTES));
}

/** Throws ReplayFault `spool_key` when the key is not named, or is another one under the same name. */
export function cipherOf(note: KeyNote, keys: Keys | null): PackCipher {
  const secret = keys?.secrets.get(note.id);
  if (secret === undefined) throw new ReplayFault('spool_key', `no key "${note.id}"`);
  const cipher = packCipher(note.id, secret, Buffer.from(note.salt, 'base64'));
  if (cipher.note.check !== note.check)
    throw new ReplayFault('spool_key', `the key "${note.id}" is another than the one that encrypted`);
  return cipher;
}

function packCipher(id: string, secret: Buffer, salt: Buffer): PackCipher {
  const key = Buffer.from(hkdfSync('sha256', secret, salt, 'durable-replay spool pack', KEY_BYTES));
  const check = Buffer.from(hkdfSync('sha256', secret, salt, 'durable-replay spool check', CHECK_BYTES));
  return {
    note: { id, salt: salt.toString('base64'), check: check.toString('base64') },
    seal(index, identity, plain) {
      const cipher = createCipheriv(CIPHER, key, nonceOf(index));
      cipher.setAAD(identity);
      return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    },
    open(index, identity, sealed) {
      if (sealed.length < TAG_BYTES) return null;
      const decipher = createDecipheriv(CIPHER, key, nonceOf(index), { authTagLength: TAG_BYTES });
      decipher.setAAD(identity);
      decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
      try {
        return Buffer.concat([decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES)), decipher.final()]);
      } catch {
        return null;
      }
    },
  };
}

function nonceOf(index: number): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeUInt32BE(index, NONCE_BYTES - 4);
  return nonce;
}
