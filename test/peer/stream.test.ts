import { randomBytes } from 'node:crypto';
import { getEventListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ShareStream } from '../../src/peer/share.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { CREDENTIALS, DigestServer } from './auth-server.js';
import { ACCEPTED, clientOf, http, ITEM, raw, serving } from './servers.js';

const QUERY = { data: 'x' };
const MIB = 1024 * 1024;
const ENDLESS = { maxBytes: 1e12 };

/** Reads to the end. */
async function textOf({ chunks }: ShareStream): Promise<string> {
  const read: Uint8Array[] = [];
  for await (const chunk of chunks) read.push(chunk);
  return Buffer.concat(read).toString();
}

/** Takes one piece, and lets the peer know no more. */
async function firstOf({ chunks }: ShareStream): Promise<string> {
  for await (const chunk of chunks) return Buffer.from(chunk).toString();
  return '';
}

/** Writes for as long as the client takes it, at most so many bytes; says how many went. */
function endlessly(response: ServerResponse, size = Infinity, written = (_bytes: number): void => {}): void {
  const block = Buffer.alloc(64 * 1024, 'x');
  let sent = 0;
  const go = (): void => {
    while (!response.destroyed && sent < size) {
      const goesOn = response.write(block);
      sent += block.length;
      written(sent);
      if (!goesOn) {
        response.once('drain', go);
        return;
      }
    }
    if (sent >= size) response.end();
  };
  go();
}

/** The value of a number that grows, once it stands still. */
async function stillStanding(value: () => number): Promise<number> {
  let before = -1;
  let rounds = 0;
  await until(() => {
    rounds = value() === before && before > 0 ? rounds + 1 : 0;
    before = value();
    return rounds === 10;
  }, 'it stands still');
  return before;
}

describe('an answer that is read as it comes', () => {
  it('is with the reader before the peer has ended it, and leaves a connection that is used again', async () => {
    const open: ServerResponse[] = [];
    const { server, client } = await serving((_, response) => {
      response.write('one,');
      open.push(response);
    });
    for (const n of [0, 1]) {
      const read: string[] = [];
      await client.share(QUERY, async ({ chunks }) => {
        for await (const chunk of chunks) {
          read.push(Buffer.from(chunk).toString());
          if (read.length === 1) open[n]?.write('two,');
          else open[n]?.end();
        }
      });
      expect(read).toEqual(['one,', 'two,']);
    }
    expect(server.connections).toBe(1);
  });

  it.each([
    ['of a known length', (body: Buffer) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`],
    ['that ends with its connection', () => 'HTTP/1.1 200 OK\r\n\r\n'],
  ])('is what the peer sent, however it is cut and however slowly it is read: %s', async (_, head) => {
    const lengths = fc.array(fc.oneof(fc.nat(10), fc.nat(300_000)), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(lengths, fc.integer({ min: 1, max: 5 }), async (some, pause) => {
        const parts = some.map((length) => randomBytes(length));
        const body = Buffer.concat(parts);
        const { client } = await raw((socket) => {
          for (const part of [head(body), ...parts]) socket.write(part);
          socket.end();
        });
        const read: Uint8Array[] = [];
        const slowly = async ({ chunks }: ShareStream) => {
          for await (const chunk of chunks) {
            read.push(chunk);
            if (read.length % pause === 0) await new Promise((resolve) => setTimeout(resolve, 1));
          }
        };
        await client.share(QUERY, slowly, { maxBytes: 10 * MIB });
        expect(Buffer.concat(read).equals(body)).toBe(true);
      }),
      { numRuns: 20 },
    );
  });

  it('cannot be read any more once its reader is through', async () => {
    const { client } = await serving((_, response) => void response.write('beginning'));
    const kept = await client.share(QUERY, async (share) => share);
    await expect(kept && textOf(kept)).rejects.toMatchObject({ code: 'PEER_ABORTED' });
  });
});

describe('an answer that is not whole', () => {
  const LENGTH = 'Content-Length: 100\r\n';
  const CHUNKED = 'Transfer-Encoding: chunked\r\n';
  const CLOSE = 'Connection: close\r\n';
  const end = (socket: Socket) => socket.end();
  const reset = (socket: Socket) => socket.resetAndDestroy();
  const nothing = () => {};

  it.each<[string, string, string, (socket: Socket) => unknown]>([
    ['its length is not met', LENGTH, 'half of it', end],
    ['its last chunk is missing', CHUNKED, 'a\r\nhalf of it\r\n', end],
    ['a chunk is cut', CHUNKED, 'ff\r\nhalf of it', end],
    ['its last chunk is missing, and it closes', CLOSE + CHUNKED, 'a\r\nhalf of it\r\n', end],
    ['its length is not met, and it closes', CLOSE + LENGTH, 'half of it', end],
    ['it is reset', LENGTH, 'half of it', reset],
    ['it is reset where only its end ends it', CLOSE, 'half of it', reset],
    ['its chunks are none', CHUNKED, 'a\r\nhalf of it\r\nnonsense\r\n', nothing],
  ])('never just ends: %s', async (_, head, body, stop) => {
    const { server, client } = await raw((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n`);
      socket.write(body);
    });
    const read: string[] = [];
    const failed = client.share(QUERY, async ({ chunks }) => {
      for await (const chunk of chunks) {
        read.push(Buffer.from(chunk).toString());
        for (const socket of server.sockets) stop(socket);
      }
    });
    const firstBytes = expect.stringContaining('half of it');
    const told = { code: 'PEER_ANSWER', status: 200, delivered: 'yes', firstBytes };
    await expect(failed).rejects.toMatchObject(told);
    expect(read).toEqual(['half of it']);
    await until(() => server.sockets.every((socket) => socket.destroyed), 'the connection was ended');
  });

  it.each([
    ['between two pieces', 100_000, 1, 'the rest of the answer within 30000 ms'],
    ['of 12 times that of others', 20_000, 12, 'a complete answer within 240000 ms'],
  ])('is not waited for beyond its limit %s', async (_, total, pieces, words) => {
    const clock = new FakeClock();
    const timeouts = { connect: 5_000, headers: 60_000, body: 30_000, total };
    const { server, client } = await raw((socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nx'), {
      clock,
      timeouts,
    });
    let read = 0;
    const reading = client.share(QUERY, async ({ chunks }) => {
      for await (const chunk of chunks) read += chunk.length;
    });
    const message = expect.stringContaining(words);
    const failed = expect(reading).rejects.toMatchObject({ code: 'PEER_TIMEOUT', status: 200, message });
    for (let n = 1; n <= pieces; n += 1) {
      await until(() => read === n, 'it was read');
      await clock.advance(pieces === 1 ? 30_000 : 20_000);
      server.sockets[0]?.write('x');
    }
    await failed;
    expect(clock.waiting).toBe(0);
  });

  it('is refused by what it announces, before anybody reads it', async () => {
    const { client } = await raw((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n'));
    const failed = client.share(QUERY, () => Promise.reject(new Error('read')), { maxBytes: 1999 });
    const message = expect.stringContaining('more than 1999 bytes');
    await expect(failed).rejects.toMatchObject({ code: 'PEER_ANSWER_TOO_LARGE', message });
  });

  it('is refused while it comes, beyond its limit or that of all answers', async () => {
    const { server, client } = await serving((_, response) => endlessly(response), { maxAnswer: MIB });
    for (const maxBytes of [3 * MIB, undefined]) {
      let read = 0;
      const reading = async ({ chunks }: ShareStream) => {
        for await (const chunk of chunks) read += chunk.length;
      };
      await expect(client.share(QUERY, reading, { maxBytes })).rejects.toMatchObject({
        ...{ code: 'PEER_ANSWER_TOO_LARGE', firstBytes: expect.stringMatching(/^x+/) },
      });
      expect(read).toBeLessThanOrEqual(maxBytes ?? MIB);
      await until(() => server.sockets.size === 0, 'the connection was ended');
    }
  });

  it('is one in an encoding that nobody asked for', async () => {
    const { server, client } = await serving((_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end('\x1f\x8b'),
    );
    const failure = { code: 'PEER_ANSWER', message: expect.stringContaining('(gzip)') };
    await expect(client.share(QUERY, textOf)).rejects.toMatchObject(failure);
    await expect(client.peerdoc({ url: ITEM.url })).rejects.toMatchObject(failure);
    expect(server.requests.map(({ headers }) => headers['accept-encoding'])).toEqual([undefined, undefined]);
  });
});

describe('a reader', () => {
  it('who is slow makes the peer wait, has all the time, and is given the rest afterwards', async () => {
    const clock = new FakeClock();
    const size = 64 * MIB;
    let sent = 0;
    const timeouts = { connect: 5_000, headers: 5_000, body: 5_000, total: 600_000 };
    const answer = (_: unknown, response: ServerResponse, n: number) =>
      endlessly(response, n === 0 ? size : 0, (bytes) => {
        sent = bytes;
      });
    const { server, client } = await serving(answer, { clock, timeouts });
    let read = 0;
    let held = 0;
    const slowly = async ({ chunks }: ShareStream) => {
      for await (const chunk of chunks) {
        read += chunk.length;
        if (held > 0) continue;
        held = await stillStanding(() => sent);
        await clock.advance(60_000);
      }
    };
    await client.share(QUERY, slowly, { maxBytes: size });
    expect(read).toBe(size);
    expect(held).toBeLessThan(size / 2);
    expect(await client.share(QUERY, textOf)).toBe('');
    expect(server.connections).toBe(1);
    expect(clock.waiting).toBe(0);
  });

  const failure = new Error('the disk is full');
  it.each<[string, (share: ShareStream) => Promise<unknown>]>([
    ['stops', firstOf],
    ['does not begin', () => new Promise((resolve) => setImmediate(resolve, 'x'))],
    ['fails', (share) => firstOf(share).then(() => Promise.reject(failure))],
  ])('who %s is not sent the rest', async (_, reader) => {
    const { server, client } = await serving((_request, response) => endlessly(response));
    const outcome = await client.share(QUERY, reader, ENDLESS).catch((error: unknown) => error);
    expect(outcome === failure || /^x+$/.test(String(outcome))).toBe(true);
    await until(() => server.sockets.size === 0, 'the connection was ended');
  });

  it.each([
    ['is called off', (controller: AbortController) => controller.abort('no more')],
    ['loses the client', (_: AbortController, client: { close(): Promise<void> }) => void client.close()],
  ])('who %s in the middle is told at once', async (_, stop) => {
    const { server, client } = await serving((_request, response) => void response.write('beginning'));
    const controller = new AbortController();
    const { signal } = controller;
    const reading = async ({ chunks }: ShareStream) => {
      for await (const _chunk of chunks) stop(controller, client);
    };
    const told = { code: 'PEER_ABORTED', delivered: 'yes' };
    await expect(client.share(QUERY, reading, { signal })).rejects.toMatchObject(told);
    await until(() => server.sockets.size === 0, 'the connection was ended');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

it('a reader who is called off when all has come leaves no broken connection behind', async () => {
  let isSent = false;
  const { client } = await serving((_, response) => {
    response.write('one,');
    response.end('two', () => {
      isSent = true;
    });
  });
  const stop = new AbortController();
  const reading = async ({ chunks }: ShareStream) => {
    for await (const _chunk of chunks) {
      await until(() => isSent, 'all was sent');
      stop.abort();
    }
  };
  const failed = client.share(QUERY, reading, { signal: stop.signal });
  await expect(failed).rejects.toMatchObject({ code: 'PEER_ABORTED' });
  expect(await client.share(QUERY, textOf)).toBe('one,two');
});

describe('a request whose answer is read as it comes', () => {
  it('is sent again with what the peer asks for, and only the answer is handed over', async () => {
    const server = await DigestServer.start();
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    for (let i = 0; i < 2; i += 1) expect(await client.share(QUERY, textOf)).toBe(ACCEPTED);
    expect(server.log).toEqual(['POST -', 'POST 1', 'POST 2']);
    expect(server.http.bodies).toEqual(['data=x', 'data=x', 'data=x']);
    expect(client.requests).toEqual({ push: 0, peerdoc: 0, other: 3 });
    const wrong = clientOf(server.url, { credentials: { username: 'admin', password: 'x' } });
    await expect(wrong.share(QUERY, textOf)).rejects.toMatchObject({ code: 'PEER_AUTH', status: 401 });
  });

  it.each([
    [403, 'PEER_AUTH'],
    [429, 'PEER_BUSY'],
    [500, 'PEER_FAILED'],
    [302, 'PEER_ANSWER'],
  ])('fails by its status at whatever length: %i', async (status, code) => {
    const { server, client } = await serving((_, response) => endlessly(response.writeHead(status)));
    const firstBytes = expect.stringMatching(/^x/);
    await expect(client.share(QUERY, textOf, ENDLESS)).rejects.toMatchObject({ code, status, firstBytes });
    await until(() => server.sockets.size === 0, 'the connection was ended');
  });

  it('is not sent again after the head of an answer', async () => {
    const { server, client } = await raw((socket, _, n) =>
      n === 0 ? socket.write(http('answer')) : socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'),
    );
    expect(await client.share(QUERY, textOf)).toBe('answer');
    await expect(client.share(QUERY, textOf)).rejects.toMatchObject({ code: 'PEER_ANSWER' });
    expect(server.connections).toBe(1);
  });
});

describe('a shared object', () => {
  const described = async ({ type, size, lastModified, chunks }: ShareStream) => {
    let length = 0;
    for await (const chunk of chunks) length += chunk.length;
    return { type, size, lastModified, length };
  };
  const CSV = {
    'content-type': 'Text/CSV; charset=UTF-8',
    'content-length': 7,
    'last-modified': 'Sat, 21 Nov 2026 03:25:30 GMT',
  };
  const NOTHING = { type: undefined, size: undefined, lastModified: undefined, length: 7 };

  it.each([
    [CSV, { type: 'text/csv', size: 7, lastModified: Date.UTC(2026, 10, 21, 3, 25, 30), length: 7 }],
    [{ 'content-type': '', 'last-modified': 'yesterday', 'transfer-encoding': 'chunked' }, NOTHING],
  ])('has what the peer says of it: %j', async (headers, expected) => {
    const { client } = await serving((_, response) => response.writeHead(200, headers).end('a,b\n1,2'));
    expect(await client.share(QUERY, described)).toEqual(expected);
  });

  it('is asked for by its name, and by its group where one is given; that is not there is undefined', async () => {
    const { server } = await serving((_, response, n) => response.writeHead(n < 2 ? 200 : 404).end());
    const client = clientOf(`${server.url}/peer`);
    expect(await client.share({ data: 'notes & more/ä.txt' }, described)).toMatchObject({ length: 0 });
    await client.share({ data: 'a', c: 'docs' }, described);
    expect(await client.share(QUERY, () => Promise.reject(new Error('read')))).toBeUndefined();
    const asked = { method: 'POST', url: '/peer/api/share.html' };
    expect(server.requests).toMatchObject([
      { ...asked, body: 'data=notes+%26+more%2F%C3%A4.txt', headers: { accept: '*/*' } },
      { ...asked, body: 'data=a&c=docs' },
      { ...asked, body: 'data=x' },
    ]);
  });

  it.each([206, 304])('is none where a part or nothing comes unasked: %i', async (status) => {
    const { client } = await serving((_, response) => response.writeHead(status).end());
    await expect(client.share(QUERY, textOf)).rejects.toMatchObject({ code: 'PEER_ANSWER' });
  });
});

describe('shared files of YaCy', () => {
  /** A directory page as Jetty writes it. */
  function directory(path: string, ...hrefs: readonly string[]): string {
    const rows = hrefs.map((href) => `<TR><TD><A HREF="${href}">x&nbsp;</A></TD><TD>1 bytes</TD></TR>`);
    const title = `Directory: ${path}`;
    return `<HTML><HEAD><TITLE>${title}</TITLE></HEAD><BODY><H1>${title}</H1><TABLE>${rows.join('\n')}</TABLE></BODY></HTML>`;
  }
  const sharing = (pages: Readonly<Record<string, string>>) =>
    serving(({ url }, response) => response.writeHead(url in pages ? 200 : 404).end(pages[url]), {
      dialect: 'yacy',
    });

  it('are listed through all directories, by names that can be asked for', async () => {
    const top = ['/share/../', '/share/a%20b%23.txt', '/share/d/', '/share/%C3%BC/', '?C=N'];
    const d = ['/share/d/../', '/share/d/one.gz', '/elsewhere/two.gz', 'http://o/share/d/'];
    const { client } = await sharing({
      '/share/': directory('/share/', ...top),
      '/share/d/': directory('/share/d/', ...d),
      '/share/%C3%BC/': directory('/share/ü/', 'relative.bin', '/share/%C3%BC/%2e%2e%2fx'),
      '/share/a%20b%23.txt': 'gulls',
    });
    expect(await client.shares()).toEqual(['a b#.txt', 'd/one.gz', 'ü/relative.bin']);
    expect(await client.share({ data: 'a b#.txt' }, textOf)).toBe('gulls');
  });

  it('are listed behind a proxy, that puts a path before theirs', async () => {
    const page = directory('/share/', '/share/', '/share/../', '/share/a.gz');
    const { server } = await sharing({ '/peer/share/': page });
    expect(await clientOf(`${server.url}/peer/`, { dialect: 'yacy' }).shares()).toEqual(['a.gz']);
  });

  it('are not listed by a page that is none of a directory; another kind of peer has no list', async () => {
    const { server, client } = await sharing({ '/share/': '<html><a href="/share/x">x</a></html>' });
    await expect(client.shares()).rejects.toMatchObject({ code: 'PEER_ANSWER' });
    expect(await clientOf(server.url, { dialect: 'standard' }).shares()).toBeUndefined();
    expect(server.requests.at(-1)).toMatchObject({ url: '/api/share.html', body: '' });
  });

  it.each(['', '../x', 'a//b', 'd/', '/etc', 'a/./b'])('have no such name: %j', async (data) => {
    const { server, client } = await sharing({});
    await expect(client.share({ data }, async () => 0)).rejects.toMatchObject({
      ...{ code: 'PEER_NAME', exitCode: 2, delivered: 'no' },
      message: expect.stringContaining(JSON.stringify(data)),
      hint: expect.stringContaining('such as lists/a.txt'),
    });
    expect(server.requests).toEqual([]);
  });
});
