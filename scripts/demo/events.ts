import { headers, type MsgHdrs } from 'nats';

/** A small shop's day, the same one every time: what the demo replays. */
export interface ShopEvent {
  readonly subject: string;
  readonly headers: MsgHdrs;
  readonly body: Uint8Array;
}

/** Seeded, so that the demo's report is the same on every machine (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const cities = ['Zürich', 'São Paulo', '東京', 'Nairobi', 'Reykjavík', 'Austin', 'Kraków'];
const items = ['teapot', 'lamp ☕', 'notebook', 'kettle', 'chair "no. 14"', 'bicycle bell'];
const encoder = new TextEncoder();

/** `oversized` of the events in scope have a body larger than 16 KiB. */
export function* shopEvents(count: number, oversized: number): Generator<ShopEvent> {
  const random = randomNumbers(14);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const every = Math.floor(count / oversized);
  for (let i = 0; i < count; i++) {
    const order = 70_889_923_641_396_000n + BigInt(Math.floor(random() * 5_000));
    const subject = i % every === 5 ? 'orders.updated' : pickSubject(random());
    const messageHeaders = headers();
    messageHeaders.set('Nats-Msg-Id', `evt-${i}`);
    messageHeaders.set('Trace-Id', Math.floor(random() * 2 ** 32).toString(16));
    yield { subject, headers: messageHeaders, body: body(i, subject) };

    function body(index: number, on: string): Uint8Array {
      if (index % every === 5) return encoder.encode(JSON.stringify({ order: String(order), note: 'x'.repeat(20_000) }));
      if (index % 997 === 0) return encoder.encode(`manual correction for order ${order}: see ticket ${index}`);
      if (index % 1_499 === 0) return Uint8Array.of(0xff, 0xfe, index & 0xff, 0x00, 0x80);
      // Written by hand, since JSON.stringify knows neither 19-digit numbers nor 1.10.
      const price = `${Math.floor(random() * 200)}.${String(Math.floor(random() * 10)).padEnd(2, '0')}`;
      const text = `{"order": ${order}, "event": "${on}", "price": ${price}, "item": ${JSON.stringify(pick(items))}, "city": "${pick(cities)}"}`;
      return encoder.encode(index % 50 === 0 ? text.replaceAll(', ', ',\n  ') : text);
    }
  }
}

function pickSubject(chance: number): string {
  if (chance < 0.35) return 'orders.created';
  if (chance < 0.65) return 'orders.updated';
  if (chance < 0.85) return 'payments.captured';
  if (chance < 0.9) return 'payments.refunded';
  return 'carts.changed';
}
