import { createCipheriv, createDecipheriv, createHash, pbkdf2Sync, randomBytes } from 'node:crypto';
import { TtcWriter } from './buffers.ts';

/** How a server lets a user in who knows the password, without the password on the wire (verifier of 12c). */

const VERIFIER_12C = 0x4815;
const ROUNDS = 4_096;
const SESSION_ROUNDS = 3;
const KEY_BYTES = 32;
const BLOCK_BYTES = 16;
const VERSION = (19 << 24) | (3 << 16);

export interface Challenge {
  readonly answer: Buffer;
  /** The answer to the second message of the client; null for a wrong password. */
  judge(pairs: ReadonlyMap<string, string>, service: string): Buffer | null;
}

export function challenge(password: string): Challenge {
  const [salt, sessionSalt, ourPart] = [randomBytes(BLOCK_BYTES), randomBytes(BLOCK_BYTES), randomBytes(KEY_BYTES)];
  const speedy = pbkdf2Sync(password, Buffer.concat([salt, Buffer.from('AUTH_PBKDF2_SPEEDY_KEY')]), ROUNDS, 64, 'sha512');
  const passwordKey = createHash('sha512').update(speedy).update(salt).digest().subarray(0, KEY_BYTES);
  const answer = new TtcWriter()
    .uint8(8)
    .number(5)
    .pair('AUTH_SESSKEY', hex(encrypt(passwordKey, ourPart)))
    .pair('AUTH_VFR_DATA', hex(salt), VERIFIER_12C)
    .pair('AUTH_PBKDF2_CSK_SALT', hex(sessionSalt))
    .pair('AUTH_PBKDF2_VGEN_COUNT', String(ROUNDS))
    .pair('AUTH_PBKDF2_SDER_COUNT', String(SESSION_ROUNDS))
    .end();
  return {
    answer,
    judge(pairs, service) {
      const theirPart = decrypt(passwordKey, pairs.get('AUTH_SESSKEY') ?? '').subarray(0, KEY_BYTES);
      const both = hex(Buffer.concat([theirPart, ourPart]));
      const sessionKey = pbkdf2Sync(both, sessionSalt, SESSION_ROUNDS, KEY_BYTES, 'sha512');
      if (passwordIn(decrypt(sessionKey, pairs.get('AUTH_PASSWORD') ?? '')) !== password) return null;
      const proof = encrypt(sessionKey, Buffer.concat([randomBytes(BLOCK_BYTES), Buffer.from('SERVER_TO_CLIENT')]));
      return new TtcWriter()
        .uint8(8)
        .number(5)
        .pair('AUTH_SVR_RESPONSE', hex(proof))
        .pair('AUTH_VERSION_NO', String(VERSION))
        .pair('AUTH_SC_SERVICE_NAME', service)
        .pair('AUTH_MAX_OPEN_CURSORS', '300')
        .pair('AUTH_MAX_IDEN_LENGTH', '128')
        .end();
    },
  };
}

/** After a block of noise, padded to a whole block. A wrong password decrypts to noise. */
function passwordIn(decrypted: Buffer): string | null {
  const content = decrypted.subarray(BLOCK_BYTES);
  const padding = content.at(-1) ?? 0;
  return padding > BLOCK_BYTES ? null : content.subarray(0, content.length - padding).toString();
}

function encrypt(key: Buffer, content: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-cbc', key, Buffer.alloc(BLOCK_BYTES)).setAutoPadding(false);
  return Buffer.concat([cipher.update(content), cipher.final()]);
}

function decrypt(key: Buffer, content: string): Buffer {
  const cipher = createDecipheriv('aes-256-cbc', key, Buffer.alloc(BLOCK_BYTES)).setAutoPadding(false);
  return Buffer.concat([cipher.update(Buffer.from(content, 'hex')), cipher.final()]);
}

function hex(bytes: Buffer): string {
  return bytes.toString('hex').toUpperCase();
}
