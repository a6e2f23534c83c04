import { randomBytes } from 'node:crypto';
import { getEventListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ShareStream } from '../../src/peer/share.js';
import { CREDENTIALS } from '../support/digest.js';
import { FakeClock } from '../support/fake-clock.js';
import { HttpPeer } from '../support/http-peer.js';
import { until } from '../support/wait.js';
import { ACCEPTED, accepts, clientOf, raw, serving } from './support.js';

const QUERY = { data: 'x' };
const MIB = 1024 * 1024;
const ENDLESS = { maxBytes: 1e12 };

/** A reader that reads to the end, and calls a function with each piece. */
const reading =
  (onPiece: (text: string) => unknown = () => {}) =>
  async ({ chunks }: ShareStream): Promise<string> => {
    const read: Uint8Array[] = [];
    for await (const chunk of chunks) {
      read.push(chunk);
      await onPiece(Buffer.from(chunk).toString());
    }
    return Buffer.concat(read).toString('latin1');
  };

/** Writes as long as the client takes it, up to a limit; returns the number of bytes. */
function endlessly(
  response: ServerResponse,
  size = Infinity,
  written = (_bytes: number): void => {},
): void {
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

/** Returns the value of a growing number once it stops growing. */
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

describe('an answer that is streamed', () => {
  it('reaches the reader before the peer has ended it, and leaves a reusable connection', async () => {
    const open: ServerResponse[] = [];
    const { server, client } = await serving((_, response) => {
      response.write('one,');
      open.push(response);
    });
    const goOn = (piece: string) =>
      piece === 'one,' ? open.at(-1)?.write('two,') : open.at(-1)?.end();
    for (let n = 0; n < 2; n += 1)
      expect(await client.share(QUERY, reading(goOn))).toBe('one,two,');
    expect(server.connections).toBe(1);
  });

  it('arrives as the peer sent it, however it is cut and however slowly it is read', async () => {
    const lengths = fc.array(fc.oneof(fc.nat(10), fc.nat(300_000)), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(
        lengths,
        fc.integer({ min: 1, max: 5 }),
        fc.boolean(),
        async (some, every, isKnown) => {
          const parts = some.map((length) => randomBytes(length));
          const body = Buffer.concat(parts);
          const length = isKnown ? `Content-Length: ${body.length}\r\n` : '';
          const { client } = await raw((socket) => {
            for (const part of [`HTTP/1.1 200 OK\r\n${length}\r\n`, ...parts]) socket.write(part);
            socket.end();
          });
          let pieces = 0;
          const pause = async () => {
            pieces += 1;
            if (pieces % every === 0) await new Promise((resolve) => setTimeout(resolve, 1));
          };
          const read = await client.share(QUERY, reading(pause), { maxBytes: 10 * MIB });
          expect(read === body.toString('latin1')).toBe(true);
        },
      ),
      { numRuns: 25 },
    );
  });

  it('cannot be read after its reader has returned', async () => {
    const { client } = await serving((_, response) => void response.write('beginning'));
    const kept = await client.share(QUERY, async (share) => share);
    await expect(kept && reading()(kept)).rejects.toMatchObject({ code: 'PEER_ABORTED' });
  });
});

describe('an incomplete answer', () => {
  const end = (socket: Socket) => socket.end();

  it.each<[string, string, string, (socket: Socket) => unknown]>([
    ['its length is not met', 'Content-Length: 100', 'half of it', end],
    ['its last chunk is missing', 'Transfer-Encoding: chunked', 'a\r\nhalf of it\r\n', end],
    [
      'its chunks are none',
      'Transfer-Encoding: chunked',
      'a\r\nhalf of it\r\nnonsense\r\n',
      () => {},
    ],
    [
      'only its end ends it, and it is reset',
      'X: y',
      'half of it',
      (socket) => socket.resetAndDestroy(),
    ],
  ])('fails and never just ends: %s', async (_, head, body, stop) => {
    const { server, client } = await raw((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n`);
      socket.write(body);
    });
    const read: string[] = [];
    const reader = reading((piece) => read.push(piece) && server.sockets.forEach(stop));
    const firstBytes = expect.stringContaining('half of it');
    const expected = { code: 'PEER_ANSWER', status: 200, delivered: 'yes', firstBytes };
    await expect(client.share(QUERY, reader)).rejects.toMatchObject(expected);
    expect(read).toEqual(['half of it']);
    await until(() => server.open === 0, 'the connection was ended');
  });

  it('times out after 12 times the usual limit', async () => {
    const clock = new FakeClock();
    const answer = (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nx');
    const { server, client } = await raw(answer, { clock, timeouts: { total: 20_000 } });
    let read = 0;
    const failed = client
      .share(
        QUERY,
        reading(() => (read += 1)),
      )
      .catch((error: unknown) => error);
    for (let n = 1; n <= 12; n += 1) {
      await until(() => read === n, 'it was read');
      await clock.advance(20_000);
      server.sockets[0]?.write('x');
    }
    const message = expect.stringContaining('a complete answer within 240000 ms');
    expect(await failed).toMatchObject({ code: 'PEER_TIMEOUT', status: 200, message });
    expect(clock.waiting).toBe(0);
  });

  it('is refused beyond its own limit or the general one, by its announced size or while it arrives', async () => {
    const { server, client } = await serving(
      (_, response, n) =>
        endlessly(n === 0 ? response.setHeader('content-length', 4 * MIB) : response),
      { maxAnswer: MIB },
    );
    const tooLarge = { code: 'PEER_ANSWER_TOO_LARGE' };
    const none = () => Promise.reject(new Error('read'));
    await expect(client.share(QUERY, none, { maxBytes: 3 * MIB })).rejects.toMatchObject(tooLarge);
    for (const maxBytes of [3 * MIB, undefined]) {
      let read = 0;
      const reader = reading(({ length }) => {
        read += length;
        if (read > 4 * MIB) throw new Error('more than the limit was read');
      });
      await expect(client.share(QUERY, reader, { maxBytes })).rejects.toMatchObject(tooLarge);
      expect(read).toBeLessThanOrEqual(maxBytes ?? MIB);
    }
    await until(() => server.open === 0, 'the connections were ended');
  });

  it('includes an answer in an encoding that was not requested', async () => {
    const gzip = { 'content-encoding': 'gzip' };
    const { server, client } = await serving((_, response) =>
      response.writeHead(200, gzip).end('\x1f\x8b'),
    );
    const failure = { code: 'PEER_ANSWER', message: expect.stringContaining('(gzip)') };
    await expect(client.share(QUERY, reading())).rejects.toMatchObject(failure);
    expect(server.requests[0]?.headers).not.toHaveProperty('accept-encoding');
  });
});

describe('a reader', () => {
  it('that is slow makes the peer wait, has no time limit, and gets the rest afterwards', async () => {
    const clock = new FakeClock();
    const size = 64 * MIB;
    let [sent, held, read] = [0, 0, 0];
    const { server, client } = await serving(
      (_, response, n) => endlessly(response, n === 0 ? size : 0, (bytes) => (sent = bytes)),
      { clock, timeouts: { body: 5_000 } },
    );
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
    expect(await client.share(QUERY, reading())).toBe('');
    expect(server.connections).toBe(1);
    expect(clock.waiting).toBe(0);
  });

  it('that is slow makes the peer wait also with small pieces', async () => {
    const piece = Buffer.alloc(1024, 'x');
    let [sent, read, mostAhead] = [0, 0, 0];
    const { client } = await serving((_, response) => {
      const pieces = Readable.from(
        (function* () {
          for (; ; sent += piece.length) yield piece;
        })(),
      );
      pieces.pipe(response).on('close', () => pieces.destroy());
    });
    const slowly = async ({ chunks }: ShareStream) => {
      for await (const chunk of chunks) {
        read += chunk.length;
        mostAhead = Math.max(mostAhead, sent - read);
        if (read > 4 * MIB || mostAhead > 64 * MIB) return;
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await client.share(QUERY, slowly, ENDLESS);
    expect(mostAhead).toBeLessThan(64 * MIB);
  });

  const failing = reading(() => Promise.reject(new Error('the disk is full')));
  it.each<[string, (share: ShareStream) => Promise<unknown>, string]>([
    ['does not begin', () => new Promise((resolve) => setImmediate(resolve, 'done')), 'done'],
    ['fails', (share) => failing(share).catch(({ message }: Error) => message), 'the disk is full'],
  ])('that %s is not sent the rest', async (_, reader, outcome) => {
    const { server, client } = await serving((_request, response) => endlessly(response));
    expect(await client.share(QUERY, reader, ENDLESS)).toBe(outcome);
    await until(() => server.open === 0, 'the connection was ended');
  });

  it('that is aborted in the middle gets the error at once', async () => {
    const { server, client } = await serving((_, response) => void response.write('beginning'));
    const stop = new AbortController();
    const { signal } = stop;
    const failed = client.share(
      QUERY,
      reading(() => stop.abort()),
      { signal },
    );
    await expect(failed).rejects.toMatchObject({ code: 'PEER_ABORTED', delivered: 'yes' });
    await until(() => server.open === 0, 'the connection was ended');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('that is aborted after the last byte leaves no broken connection', async () => {
    let isSent = false;
    const { client } = await serving((_, response) => {
      response.write('one,');
      response.end('two', () => {
        isSent = true;
      });
    });
    const stop = new AbortController();
    const reader = reading(async () => {
      await until(() => isSent, 'all was sent');
      stop.abort();
    });
    const failed = client.share(QUERY, reader, { signal: stop.signal });
    await expect(failed).rejects.toMatchObject({ code: 'PEER_ABORTED' });
    expect(await client.share(QUERY, reading())).toBe('one,two');
  });
});

it('a request for a stream is sent again with the credentials that the peer demands', async () => {
  const server = await HttpPeer.start(accepts, { digest: {} });
  const client = clientOf(server.url, { credentials: CREDENTIALS });
  for (let i = 0; i < 2; i += 1) expect(await client.share(QUERY, reading())).toBe(ACCEPTED);
  expect(server.digest.log).toEqual(['POST -', 'POST 1', 'POST 2']);
  expect(server.requests.every(({ body }) => body === 'data=x')).toBe(true);
  expect(client.requests).toEqual({ push: 0, peerdoc: 0, other: 3 });
});

describe('a shared object', () => {
  const described = async ({ chunks, ...share }: ShareStream) => {
    let length = 0;
    for await (const chunk of chunks) length += chunk.length;
    return { ...share, length };
  };
  const modified = { 'last-modified': 'Sat, 21 Nov 2026 03:25:30 GMT' };
  const lastModified = Date.UTC(2026, 10, 21, 3, 25, 30);
  const CSV = {
    'content-type': 'Text/CSV; charset=UTF-8',
    'content-length': 7,
    ...modified,
    etag: '"x"',
  };
  const ODD = { 'content-type': '', 'last-modified': 'yesterday', 'transfer-encoding': 'chunked' };

  it.each([
    [CSV, { type: 'text/csv', size: 7, lastModified, etag: '"x"', length: 7 }],
    [ODD, { type: undefined, size: undefined, lastModified: undefined, length: 7 }],
  ])('has the metadata that the peer sends: %j', async (headers, expected) => {
    const { server, client } = await serving((_, response) =>
      response.writeHead(200, headers).end('a,b\n1,2'),
    );
    expect(await client.share(QUERY, described)).toMatchObject(expected);
    expect(server.requests[0]?.headers.accept).toBe('*/*');
  });

  it('is reported as unchanged by its date or its entity tag', async () => {
    const { client } = await serving(({ headers }, response) => {
      const { 'if-modified-since': since, 'if-none-match': tag } = headers;
      const isKnown = since === modified['last-modified'] || tag === '"x"';
      response.writeHead(isKnown ? 304 : 200).end();
    });
    for (const known of [{ ifModifiedSince: lastModified }, { ifNoneMatch: '"x"' }])
      expect(await client.share(QUERY, described, known)).toMatchObject({
        isUnchanged: true,
        length: 0,
      });
    const changed = await client.share(QUERY, described, { ifNoneMatch: '"y"' });
    expect(changed).not.toHaveProperty('isUnchanged');
  });

  it.each([
    [404, undefined],
    [206, 'PEER_ANSWER'],
    [302, 'PEER_ANSWER'],
    [500, 'PEER_FAILED'],
  ])(
    'is not there, or none, by the status, however long the answer is: %i',
    async (status, code) => {
      const { server, client } = await serving((_, response) =>
        endlessly(response.writeHead(status)),
      );
      const none = () => Promise.reject(new Error('read'));
      const error = await client.share(QUERY, none, ENDLESS).catch((e: unknown) => e);
      expect(error).toEqual(code && expect.objectContaining({ code, status }));
      await until(() => server.open === 0, 'the connection was ended');
    },
  );

  it('is refused if the peer answers 304 to a request without a condition', async () => {
    const { client } = await serving((_, response) => response.writeHead(304).end());
    await expect(client.share(QUERY, described)).rejects.toMatchObject({ code: 'PEER_ANSWER' });
  });
});

it('shared objects are listed by groups and names, and never partially', async () => {
  const shares = [{ c: 'lists', data: 'a.txt' }, { data: 'b' }];
  const { client } = await serving((_, response, n) =>
    response.end(JSON.stringify({ shares, more: n > 0 })),
  );
  expect(await client.shares()).toEqual(['lists/a.txt', 'b']);
  await expect(client.shares()).rejects.toMatchObject({ code: 'PEER_ANSWER_TOO_LARGE' });
});

describe('shared files of YaCy', () => {
  /** A directory page as Jetty writes it. */
  function directory(path: string, ...hrefs: readonly string[]): string {
    const rows = hrefs.map(
      (href) => `<TR><TD><A HREF="${href}">x&nbsp;</A></TD><TD>1 bytes</TD></TR>`,
    );
    return `<HTML><BODY><H1>Directory: ${path}</H1><TABLE>${rows.join('\n')}</TABLE></BODY></HTML>`;
  }
  const sharing = (pages: Readonly<Record<string, string>>) =>
    serving(({ url }, response) => response.writeHead(url in pages ? 200 : 404).end(pages[url]), {
      dialect: 'yacy',
    });

  it('are listed from all directories, by names that `share` takes, also behind a proxy', async () => {
    const top = ['/share/../', '/share/a%20b%23.txt', '/share/d/', '/share/%C3%BC/', '?C=N'];
    const d = ['/share/d/../', '/share/d/one.gz', '/elsewhere/two.gz', 'http://o/share/d/'];
    const { server, client } = await sharing({
      '/share/': directory('/share/', ...top),
      '/share/d/': directory('/share/d/', ...d),
      '/share/%C3%BC/': directory('/share/ü/', 'relative.bin', '/share/%C3%BC/%2e%2e%2fx'),
      '/share/a%20b%23.txt': 'gulls',
      '/peer/share/': directory('/share/', '/share/', '/share/a.gz'),
    });
    expect(await client.shares()).toEqual(['a b#.txt', 'd/one.gz', 'ü/relative.bin']);
    expect(await client.share({ data: 'a b#.txt' }, reading())).toBe('gulls');
    expect(await clientOf(`${server.url}/peer/`, { dialect: 'yacy' }).shares()).toEqual(['a.gz']);
  });

  it('are not listed from a page that is no directory page; other kinds of peer have no list', async () => {
    const { server, client } = await sharing({
      '/share/': '<html><a href="/share/x">x</a></html>',
    });
    await expect(client.shares()).rejects.toMatchObject({ code: 'PEER_ANSWER' });
    expect(await clientOf(server.url, { dialect: 'standard' }).shares()).toBeUndefined();
  });

  it('have no names that lead out of the directory', async () => {
    const { server, client } = await sharing({});
    for (const data of ['', '../x', 'a//b', 'a/./b']) {
      const expected = { code: 'PEER_NAME', exitCode: 2, delivered: 'no' };
      const message = expect.stringContaining(JSON.stringify(data));
      await expect(client.share({ data }, async () => 0)).rejects.toMatchObject({
        ...expected,
        message,
      });
    }
    expect(server.requests).toEqual([]);
  });
});
