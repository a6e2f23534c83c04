import { readFileSync } from 'node:fs';
import { connect } from 'node:net';

/** One request and its answer, as bytes on the wire. */
export interface Exchange {
  readonly request: Buffer;
  readonly response: Buffer;
}

export interface Response {
  readonly status: number;
  /** The words behind the status. */
  readonly reason: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** An exchange with a YaCy 1.92 that was recorded. */
export function recorded(name: string): Exchange {
  const file = readFileSync(new URL(`../recorded/yacy-1.92/${name}.http`, import.meta.url));
  return { request: after(file, '>>> REQUEST'), response: after(file, '<<< RESPONSE') };
}

function after(file: Buffer, mark: string): Buffer {
  const line = file.indexOf(mark);
  const start = file.indexOf('\n', line) + 1;
  const length = Number(/(\d+) bytes\)/.exec(file.toString('latin1', line, start))?.[1]);
  return file.subarray(start, start + length);
}

export function parseResponse(bytes: Buffer): Response {
  const end = bytes.indexOf('\r\n\r\n');
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  const headers = lines.map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return {
    status: Number(first.split(' ')[1]),
    reason: first.split(' ').slice(2).join(' '),
    headers: Object.fromEntries(headers),
    body: bytes.subarray(end + 4),
  };
}

/** Sends bytes on a connection of their own, and reads one answer. */
export async function exchange(url: string, request: Buffer): Promise<Response> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(request);
  let received = Buffer.alloc(0);
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk]);
    const head = received.indexOf('\r\n\r\n');
    if (head === -1) continue;
    const length = Number(
      /content-length: (\d+)/i.exec(received.toString('latin1', 0, head))?.[1] ?? 0,
    );
    if (received.length >= head + 4 + length) break;
  }
  socket.destroy();
  return parseResponse(received);
}
