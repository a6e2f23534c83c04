import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { PeerClient, type PeerClientOptions } from '../../src/index.js';

/**
 * What the standard dialect puts on the wire, byte for byte, to be laid beside the specification of the API. The rules
 * quoted are its sections.
 */

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

let client: PeerClient | undefined;
let close: (() => void) | undefined;
afterEach(async () => {
  await client?.close();
  close?.();
});

/** A server that only records; it answers each request with the next of `answers`, the last one for ever. */
async function recording(
  answers: readonly string[],
  options: Partial<PeerClientOptions> = {},
): Promise<{ readonly client: PeerClient; readonly requests: string[]; readonly host: string }> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const head = text.indexOf('\r\n\r\n');
      const length = Number(/^content-length: (\d+)$/im.exec(text.slice(0, head + 2))?.[1] ?? 0);
      if (head === -1 || text.length < head + 4 + length) return;
      const body = answers[Math.min(requests.length, answers.length - 1)] ?? '';
      requests.push(text);
      text = '';
      socket.write(
        body.startsWith('HTTP/') ? body : `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = new PeerClient({
    dialect: 'standard',
    baseUrl: `http://${host}/`,
    timeouts: { connect: 10_000, headers: 10_000, body: 10_000, total: 20_000 },
    maxAnswer: 100_000,
    ...options,
  });
  return { client, requests, host };
}

/** A request as it stands on the wire, lines ended as HTTP ends them. */
function wire(head: readonly string[], body = ''): string {
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

const NOTE = {
  url: 'https://files.example.org/inbox/note.txt',
  collection: 'inbox',
  data: Buffer.from('Hello, peer & world!\n'),
};
const UMLAUT = {
  url: 'https://files.example.org/inbox/%C3%BCber%20uns%20%231.md',
  collection: 'notes_2026',
  data: Buffer.from('50 % für „uns“ + 1 = 🙂\r\n~*-._'),
};

describe('push_p (4.3)', () => {
  it('is one POST with the items numbered from 0, and no parameter that was not asked for', async () => {
    const { client, requests, host } = await recording(['{"count":2,"successall":true}']);
    await client.push([NOTE, UMLAUT]);

    // 4, rule 1: form-encoded body, exact parameter names, URL-encoded values.
    // 4.3: count, and per item data-<n>, url-<n>, collection-<n>, the placeholder replaced by the item's number.
    // 4, rule 2: what is not relevant is left out (synchronous, commit: "otherwise omit").
    // 4, rule 3: no submit button.
    const body = [
      'count=2',
      'data-0=Hello%2C+peer+%26+world%21%0A',
      'url-0=https%3A%2F%2Ffiles.example.org%2Finbox%2Fnote.txt',
      'collection-0=inbox',
      'data-1=50+%25+f%C3%BCr+%E2%80%9Euns%E2%80%9C+%2B+1+%3D+%F0%9F%99%82%0D%0A%7E*-._',
      'url-1=https%3A%2F%2Ffiles.example.org%2Finbox%2F%25C3%25BCber%2520uns%2520%25231.md',
      'collection-1=notes_2026',
    ].join('&');
    expect(requests).toEqual([
      wire(
        [
          // 4.3: POST {base_url}/api/push_p.html
          'POST /api/push_p.html HTTP/1.1',
          `host: ${host}`,
          'connection: keep-alive',
          'accept: */*',
          `user-agent: peersync/${version}`,
          'content-type: application/x-www-form-urlencoded',
          `content-length: ${body.length}`,
        ],
        body,
      ),
    ]);
  });

  it('sends synchronous and commit, with their only value, when they are asked for', async () => {
    const { client, requests } = await recording(['ok']);
    const bodyOf = (request: string | undefined) => request?.split('\r\n\r\n')[1];
    const item =
      'count=1&data-0=Hello%2C+peer+%26+world%21%0A&url-0=https%3A%2F%2Ffiles.example.org%2Finbox%2Fnote.txt&collection-0=inbox';
    await client.push([NOTE], { synchronous: true });
    await client.push([NOTE], { commit: true });
    await client.push([NOTE], { synchronous: true, commit: true });
    await client.push([NOTE], { synchronous: false, commit: false });
    expect(requests.map(bodyOf)).toEqual([
      `synchronous=true&${item}`,
      `commit=true&${item}`,
      `synchronous=true&commit=true&${item}`,
      item,
    ]);
  });

  it('sends a text that is read while it is sent in the same bytes, with its length before it', async () => {
    const { client, requests } = await recording(['ok']);
    const pieces = {
      size: NOTE.data.length,
      chunks: async function* () {
        yield NOTE.data.subarray(0, 7);
        yield NOTE.data.subarray(7);
      },
    };
    await client.push([NOTE]);
    await client.push([{ ...NOTE, data: pieces }]);
    expect(requests[1]).toBe(requests[0]);
  });
});

describe('peerdoc (4.2)', () => {
  const NOT_FOUND = '{"error":"not found"}';

  it('is one POST with the URL alone', async () => {
    const { client, requests, host } = await recording([NOT_FOUND]);
    await client.peerdoc({ url: UMLAUT.url });
    const body = 'url=https%3A%2F%2Ffiles.example.org%2Finbox%2F%25C3%25BCber%2520uns%2520%25231.md';
    expect(requests).toEqual([
      wire(
        [
          // 4.2: POST {base_url}/api/peerdoc.html
          'POST /api/peerdoc.html HTTP/1.1',
          `host: ${host}`,
          'connection: keep-alive',
          'accept: */*',
          `user-agent: peersync/${version}`,
          'content-type: application/x-www-form-urlencoded',
          `content-length: ${body.length}`,
        ],
        // 4, rule 2: neither urlhash nor html.
        body,
      ),
    ]);
  });

  it('is one POST with the hash alone, copied from earlier output (2), and html only when it is given', async () => {
    const { client, requests } = await recording([NOT_FOUND]);
    await client.peerdoc({ urlhash: 'He4fSbqdOZpQ' });
    await client.peerdoc({ urlhash: 'He4fSbqdOZpQ' }, { html: 'x y' });
    expect(requests.map((request) => request.split('\r\n\r\n')[1])).toEqual([
      'urlhash=He4fSbqdOZpQ',
      'urlhash=He4fSbqdOZpQ&html=x+y',
    ]);
  });
});

describe('access (5)', () => {
  const CHALLENGE =
    'HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic realm="peer"\r\ncontent-length: 0\r\n\r\n';

  it('to push_p is the administrator’s: the challenge is answered before the documents travel', async () => {
    const credentials = { username: 'admin', password: 'secret' };
    const { client, requests, host } = await recording([CHALLENGE, '<p>Push</p>', 'ok'], { credentials });
    await client.push([NOTE]);
    const common = [
      `host: ${host}`,
      'connection: keep-alive',
      'accept: */*',
      `user-agent: peersync/${version}`,
    ];
    const authorization = `authorization: Basic ${Buffer.from('admin:secret').toString('base64')}`;
    expect(requests.slice(0, 2)).toEqual([
      wire(['GET /api/push_p.html HTTP/1.1', ...common]),
      wire(['GET /api/push_p.html HTTP/1.1', ...common, authorization]),
    ]);
    expect(requests).toHaveLength(3);
    expect(requests[2]?.split('\r\n').slice(0, 6)).toEqual([
      'POST /api/push_p.html HTTP/1.1',
      ...common,
      authorization,
    ]);
  });

  it('to peerdoc is public: no credentials are sent unless the peer asks for them', async () => {
    const credentials = { username: 'admin', password: 'secret' };
    const { client, requests } = await recording(['{"error":"not found"}'], { credentials });
    await client.peerdoc({ url: NOTE.url });
    expect(requests).toHaveLength(1);
    expect(requests[0]).not.toMatch(/authorization/i);
  });
});
