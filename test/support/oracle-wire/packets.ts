import type { Socket } from 'node:net';

/** Packets of Oracle's transport (TNS): what stands around the messages. */

const CONNECT = 1;
const ACCEPT = 2;
const REFUSE = 4;
const DATA = 6;
const MARKER = 12;

const HEADER_BYTES = 8;
const CONNECT_BYTES = 74;
const PACKET_BYTES_MAX = 8_192;
const CONTENT_BYTES_MAX = PACKET_BYTES_MAX - HEADER_BYTES - 2;
/** In the two bytes before the content of a data packet. */
const END_OF_SESSION = 0x40;
const END_OF_REQUEST = 0x800;
const MARKER_INTERRUPT = 1;
const MARKER_RESET = 2;
const VERSION = 318;

export interface PacketEvents {
  /** Text of the descriptor; answers the number of the error to refuse with, or null. */
  connect(descriptor: string): number | null;
  message(content: Buffer): void;
  /** The client wants the call that runs to end. */
  interrupt(): void;
  /** The client waits for the line to be quiet after an interrupt. */
  reset(): void;
}

export interface Packets {
  send(content: Buffer): void;
  /** Answers an interrupt: the client then resets the line. */
  sendMarker(): void;
  sendReset(): void;
}

export function openPackets(socket: Socket, events: PacketEvents): Packets {
  let received = Buffer.alloc(0);
  let accepted = false;
  let awaitsDescriptor = false;
  let parts: Buffer[] = [];

  const packet = (type: number, content: Buffer): void => {
    const header = Buffer.alloc(HEADER_BYTES);
    if (accepted) header.writeUInt32BE(content.length + HEADER_BYTES);
    else header.writeUInt16BE(content.length + HEADER_BYTES);
    header[4] = type;
    socket.write(Buffer.concat([header, content]));
  };
  const open = (descriptor: string): void => {
    const error = events.connect(descriptor);
    if (error === null) {
      packet(ACCEPT, acceptance());
      accepted = true;
      return;
    }
    const text = `(DESCRIPTION=(TMP=)(VSNNUM=0)(ERR=${error})(ERROR_STACK=(ERROR=(CODE=${error})(EMFI=4))))`;
    const reason = Buffer.from([34, 0, 0, 0]);
    reason.writeUInt16BE(text.length, 2);
    packet(REFUSE, Buffer.concat([reason, Buffer.from(text)]));
    socket.end();
  };
  const take = (type: number, whole: Buffer): void => {
    if (type === CONNECT) {
      awaitsDescriptor = whole.length === CONNECT_BYTES && whole.readUInt16BE(24) > 0;
      if (!awaitsDescriptor) open(whole.subarray(CONNECT_BYTES).toString());
    } else if (awaitsDescriptor) {
      awaitsDescriptor = false;
      open(whole.subarray(10).toString());
    } else if (type === MARKER) {
      if (whole[10] === MARKER_RESET) events.reset();
      else events.interrupt();
    } else if (type === DATA) {
      const flags = whole.readUInt16BE(8);
      if ((flags & END_OF_SESSION) !== 0) {
        socket.end();
        return;
      }
      parts.push(whole.subarray(10));
      if ((flags & END_OF_REQUEST) === 0) return;
      const content = Buffer.concat(parts);
      parts = [];
      events.message(content);
    }
  };
  socket.on('data', (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    while (received.length >= HEADER_BYTES) {
      const length = accepted ? received.readUInt32BE() : received.readUInt16BE();
      if (received.length < length) return;
      const whole = received.subarray(0, length);
      received = received.subarray(length);
      take(whole[4]!, whole);
    }
  });
  return {
    send(content) {
      for (let start = 0; start < content.length; start += CONTENT_BYTES_MAX) {
        packet(DATA, Buffer.concat([Buffer.alloc(2), content.subarray(start, start + CONTENT_BYTES_MAX)]));
      }
    },
    sendMarker: () => packet(MARKER, Buffer.from([1, 0, MARKER_INTERRUPT])),
    sendReset: () => packet(MARKER, Buffer.from([1, 0, MARKER_RESET])),
  };
}

function acceptance(): Buffer {
  const content = Buffer.alloc(37);
  content.writeUInt16BE(VERSION, 0);
  content.writeUInt16BE(PACKET_BYTES_MAX, 4);
  content.writeUInt16BE(65_535, 6);
  content.writeUInt16BE(1, 8);
  content.writeUInt16BE(45, 12);
  // No network encryption is offered.
  content[14] = 4 | 1;
  content[15] = 8;
  content.writeUInt32BE(PACKET_BYTES_MAX, 24);
  content.writeUInt32BE(65_535, 28);
  return content;
}
