import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tempDir } from './file-end.ts';

/** Paths of an authority's certificate, and of the certificate and key of each name, made by openssl for `localhost`. */
export async function makeCertificates(names: readonly string[]): Promise<(file: string) => string> {
  const folder = await tempDir();
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=authority', '-days', '2');
  await writeFile(join(folder, 'san'), 'subjectAltName=DNS:localhost\n');
  for (const name of names) {
    openssl('req', ...key, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
    const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'san'];
    openssl('x509', '-req', '-in', `${name}.csr`, '-out', `${name}.pem`, ...signing);
  }
  return (file) => join(folder, file);
}
