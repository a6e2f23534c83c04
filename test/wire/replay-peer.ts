import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterwards } from '../support/afterwards.js';
import { recorded } from './yacy/exchange.js';

/** Which recordings answer a request line's method and path (without its query), one after the other, the last for ever. */
export type Script = Readonly<Record<string, string | readonly string[]>>;

/** One request as it came. */
export interface Replayed {
  /** `POST /api/push_p.json`. */
  readonly line: string;
  readonly query: string;
  /** The head, request line included. */
  readonly head: string;
  readonly body: Buffer;
}

/** A peer that answers with what a YaCy 1.92 once answered, byte for byte; with its 404 to everything else. */
export class ReplayPeer {
  readonly requests: Replayed[] = [];
  url = '';
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(script: Script) {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => this.#sockets.delete(socket));
      let received = Buffer.alloc(0);
      socket.on('data', (chunk) => {
        received = Buffer.concat([received, chunk]);
        const end = received.indexOf('\r\n\r\n');
        if (end === -1) return;
        const head = received.toString('latin1', 0, end);
        const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
        if (received.length < end + 4 + length) return;
        const body = received.subarray(end + 4, end + 4 + length);
        received = received.subarray(end + 4 + length);
        const [method, target = ''] = head.split(' ');
        const [path, query = ''] = target.split('?');
        const line = `${method} ${path}`;
        const before = this.requests.filter((request) => request.line === line).length;
        this.requests.push({ line, query, head, body });
        const names = [script[line] ?? 'err_404'].flat();
        const response = whole(recorded(names[Math.min(before, names.length - 1)] ?? '').response);
        socket.write(response);
        if (/^connection: close\r$/im.test(response.toString('latin1'))) socket.end();
      });
    });
  }

  static async start(script: Script): Promise<ReplayPeer> {
    const peer = new ReplayPeer(script);
    afterwards('test', () => peer.stop());
    await new Promise<void>((resolve) => peer.#server.listen(0, '127.0.0.1', resolve));
    peer.url = `http://127.0.0.1:${(peer.#server.address() as AddressInfo).port}`;
    return peer;
  }

  get lines(): readonly string[] {
    return this.requests.map(({ line }) => line);
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

/** Paths of a file system were shortened in the recorded pages of failures, but not their lengths. */
function whole(response: Buffer): Buffer {
  const end = response.indexOf('\r\n\r\n');
  const length = response.length - end - 4;
  const head = response.toString('latin1', 0, end).replace(/^(Content-Length: )\d+/im, `$1${length}`);
  return Buffer.concat([Buffer.from(head, 'latin1'), response.subarray(end)]);
}
