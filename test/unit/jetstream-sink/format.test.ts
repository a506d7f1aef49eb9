import { describe, expect, test } from 'vitest';
import { headerBlock, madeId, originOf } from '../../../sinks/jetstream/format.ts';
import { makeRecord } from '../../contract/records.ts';

const context = { stream: 'COPY', plan: 'plan', run: 'run' };

function linesOf(headers: readonly (readonly [string, readonly string[]])[], id = 'order-1'): string[] {
  const text = headerBlock(makeRecord(1, { headers: new Map(headers) }), id, context).toString();
  expect(text.endsWith('\r\n\r\n')).toBe(true);
  return text.slice(0, -4).split('\r\n');
}

describe('headers of a copy', () => {
  test('name its source, then keep those of the record', () => {
    const lines = linesOf([
      ['Nats-Msg-Id', ['order-1']],
      ['Trace', ['a', 'b']],
    ]);
    expect(lines).toEqual([
      'NATS/1.0',
      'Nats-Expected-Stream: COPY',
      'Replay-Source-Stream: ORDERS',
      'Replay-Source-Incarnation: 2026-05-01T10:00:00.000000001Z',
      'Replay-Source-Subject: orders.updated',
      'Replay-Source-Sequence: 1',
      'Replay-Source-Time: 2026-05-01T10:00:00.001000008Z',
      'Replay-Plan: plan',
      'Replay-Run: run',
      'Nats-Msg-Id: order-1',
      'Trace: a',
      'Trace: b',
    ]);
  });

  test.each(['Nats-Rollup', 'Nats-TTL', 'nats-expected-last-sequence', 'Replay-Source-Sequence', 'replay-plan'])(
    'set %s aside',
    (name) => {
      const lines = linesOf([[name, ['x']]]);
      expect(lines).toContain(`Replay-Original-${name}: x`);
      expect(lines.filter((line) => line === `${name}: x`)).toEqual([]);
    },
  );

  test('set the id aside where another one is needed', () => {
    const lines = linesOf([['Nats-Msg-Id', ['order-1']]], 'replay-1');
    expect(lines[1]).toBe('Nats-Msg-Id: replay-1');
    expect(lines.at(-1)).toBe('Replay-Original-Nats-Msg-Id: order-1');
  });
});

test('a made id depends on stream, incarnation and sequence only', () => {
  const id = madeId(makeRecord(1));
  expect(madeId(makeRecord(1, { subject: 'x', messageId: 'y' }))).toBe(id);
  expect(madeId(makeRecord(2))).not.toBe(id);
  expect(madeId(makeRecord(1, { incarnation: 'later' }))).not.toBe(id);
  expect(madeId(makeRecord(1, { stream: 'OTHER' }))).not.toBe(id);
});

test('a message that no replay copied has no origin', () => {
  expect(originOf(new Map([['Replay-Source-Stream', ['S']]]))).toBeNull();
});
