import { HttpPeer, onRequest } from '../support/http-peer.js';
import { recorded } from './yacy/exchange.js';

/**
 * Which recordings answer a request line's method and path (without its query), one after the
 * other, the last for ever.
 */
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

/**
 * A peer that answers with what a YaCy 1.92 once answered, byte for byte; with its 404 to
 * everything else. It is apart from the fake peers because its answers are measured: no test
 * scripts them.
 */
export class ReplayPeer {
  readonly requests: Replayed[] = [];
  url = '';

  static async start(script: Script): Promise<ReplayPeer> {
    const peer = new ReplayPeer();
    const server = await HttpPeer.raw((socket) =>
      onRequest(socket, (request) => {
        const response = peer.#answer(script, request);
        socket.write(response);
        if (/^connection: close\r$/im.test(response.toString('latin1'))) socket.end();
      }),
    );
    peer.url = server.url;
    return peer;
  }

  get lines(): readonly string[] {
    return this.requests.map(({ line }) => line);
  }

  #answer(script: Script, request: string): Buffer {
    const end = request.indexOf('\r\n\r\n');
    const head = request.slice(0, end);
    const [method, target = ''] = head.split(' ');
    const [path, query = ''] = target.split('?');
    const line = `${method} ${path}`;
    const before = this.requests.filter((each) => each.line === line).length;
    this.requests.push({ line, query, head, body: Buffer.from(request.slice(end + 4), 'latin1') });
    const names = [script[line] ?? 'err_404'].flat();
    return whole(recorded(names[Math.min(before, names.length - 1)] ?? '').response);
  }
}

/**
 * Paths of a file system were shortened in the recorded pages of failures, but not their lengths.
 */
function whole(response: Buffer): Buffer {
  const end = response.indexOf('\r\n\r\n');
  const length = response.length - end - 4;
  const head = response
    .toString('latin1', 0, end)
    .replace(/^(Content-Length: )\d+/im, `$1${length}`);
  return Buffer.concat([Buffer.from(head, 'latin1'), response.subarray(end)]);
}
