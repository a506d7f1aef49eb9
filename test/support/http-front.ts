import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AwsClient } from 'aws4fetch';
import type { S3Settings } from '../../cold/s3.ts';
import { atFileEnd } from './file-end.ts';

/** What becomes of one request: answered here, hung up on, never answered, passed on, or passed on and its answer dropped. */
export type Verdict =
  | { readonly kind: 'answer'; readonly status: number; readonly body?: string }
  | { readonly kind: 'hang_up' | 'silence' | 'pass' | 'drop_answer' }
  /** As a store does that knows no conditions. */
  | { readonly kind: 'pass_unconditionally' };

export interface Front {
  readonly endpoint: string;
  /** Methods and paths so far. */
  readonly seen: readonly string[];
  /** Of the requests to come. */
  decide(verdict: (method: string, path: string) => Verdict): void;
}

/** A server in front of a real store. The Host header is kept: it is signed. */
export async function startFront(target: S3Settings & { readonly endpoint: string }): Promise<Front> {
  const { accessKeyId, secretAccessKey, region } = target;
  const signer = new AwsClient({ accessKeyId, secretAccessKey, region, service: 's3', retries: 0 });
  const seen: string[] = [];
  let verdictOf: (method: string, path: string) => Verdict = () => ({ kind: 'pass' });
  const server = createServer((asked, answer) => {
    const { method = '', url = '' } = asked;
    seen.push(`${method} ${url}`);
    const verdict = verdictOf(method, url);
    const chunks: Buffer[] = [];
    asked.on('data', (chunk: Buffer) => chunks.push(chunk));
    asked.on('end', () => {
      if (verdict.kind === 'silence') return;
      if (verdict.kind === 'hang_up') return void asked.socket.destroy();
      if (verdict.kind === 'answer') return void answer.writeHead(verdict.status).end(verdict.body ?? '');
      const body = Buffer.concat(chunks);
      if (verdict.kind === 'pass_unconditionally') {
        const init = { method, ...(body.length > 0 ? { body } : {}) };
        void signer.fetch(target.endpoint + url, init).then(async (reply) => {
          answer.writeHead(reply.status).end(Buffer.from(await reply.arrayBuffer()));
        });
        return;
      }
      const { hostname, port } = new URL(target.endpoint);
      const passed = forward({ hostname, port, method, path: url, headers: asked.headers }, (reply) => {
        if (verdict.kind === 'drop_answer') return void reply.resume().on('end', () => asked.socket.destroy());
        answer.writeHead(reply.statusCode ?? 502, reply.headers);
        reply.pipe(answer);
      });
      passed.on('error', () => asked.socket.destroy());
      passed.end(body);
    });
    asked.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atFileEnd(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    decide: (verdict) => void (verdictOf = verdict),
  };
}
