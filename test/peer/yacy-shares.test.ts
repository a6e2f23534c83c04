import { describe, expect, it } from 'vitest';
import { clientOf, HttpServer } from './servers.js';

/** A directory page as Jetty writes it. */
function directory(path: string, ...hrefs: readonly string[]): string {
  const rows = hrefs.map((href) => `<TR><TD><A HREF="${href}">x&nbsp;</A></TD><TD>1 bytes</TD></TR>`);
  return `<HTML><HEAD><TITLE>Directory: ${path}</TITLE></HEAD><BODY><H1>Directory: ${path}</H1><TABLE>${rows.join('\n')}</TABLE></BODY></HTML>`;
}

async function sharing(pages: Readonly<Record<string, string>>) {
  const server = await HttpServer.start(({ url }, response) => {
    const page = pages[url];
    if (page === undefined) response.writeHead(404);
    response.end(page);
  });
  return { server, client: clientOf(server.url, { dialect: 'yacy' }) };
}

describe('shared files', () => {
  it('are listed through all directories, by names that can be asked for', async () => {
    const pages = {
      '/share/': directory(
        '/share/',
        '/share/../',
        '/share/a%20b%23.txt',
        '/share/d/',
        '/share/%C3%BC/',
        '?C=N',
      ),
      '/share/d/': directory(
        '/share/d/',
        '/share/d/../',
        '/share/d/one.gz',
        '/elsewhere/two.gz',
        'http://o/share/d/',
      ),
      '/share/%C3%BC/': directory('/share/ü/', 'relative.bin', '/share/%C3%BC/%2e%2e%2fx'),
      '/share/a%20b%23.txt': 'gulls',
    };
    const { client } = await sharing(pages);
    expect(await client.shares()).toEqual(['a b#.txt', 'd/one.gz', 'ü/relative.bin']);
    const size = await client.share({ data: 'a b#.txt' }, async ({ size }) => size);
    expect(size).toBe(5);
  });

  it('are listed behind a proxy, that puts a path before theirs', async () => {
    const pages = { '/peer/share/': directory('/share/', '/share/', '/share/../', '/share/a.gz') };
    const { server } = await sharing(pages);
    expect(await clientOf(`${server.url}/peer/`, { dialect: 'yacy' }).shares()).toEqual(['a.gz']);
  });

  it('are not listed by a page that is none of a directory', async () => {
    const { client } = await sharing({ '/share/': '<html><body><a href="/share/x">x</a></body></html>' });
    await expect(client.shares()).rejects.toMatchObject({ code: 'PEER_ANSWER' });
  });

  it('of another kind of peer are not told where it has no list', async () => {
    const { server } = await sharing({});
    expect(await clientOf(server.url, { dialect: 'standard' }).shares()).toBeUndefined();
    expect(server.requests.map(({ url, body }) => url + body)).toEqual(['/api/share.html']);
  });

  it.each(['', '../x', 'a//b', 'd/', '/etc', 'a/./b'])('have no such name: %j', async (data) => {
    const { server, client } = await sharing({});
    await expect(client.share({ data }, async () => 0)).rejects.toMatchObject({
      code: 'PEER_NAME',
      exitCode: 2,
      delivered: 'no',
      message: expect.stringContaining(JSON.stringify(data)),
      hint: expect.stringContaining('such as lists/a.txt'),
    });
    expect(server.requests).toEqual([]);
  });
});

describe('a shared file that is asked for again', () => {
  const MODIFIED = Date.parse('2026-11-21T03:37:40Z');
  const WHOLE = 'gulls sleep on one leg';

  /** A server of files as RFC 9110 has it. */
  async function serving(content: string, modified: number) {
    const server = await HttpServer.start(({ headers }, response) => {
      if (Date.parse(String(headers['if-modified-since'])) >= modified) {
        response.writeHead(304).end();
      } else response.end(content);
    });
    const client = clientOf(server.url, { dialect: 'yacy' });
    const ask = (options: Parameters<typeof client.share>[2]) =>
      client.share(
        { data: 'x' },
        async ({ chunks, isUnchanged = false }) => {
          let text = '';
          for await (const chunk of chunks) text += Buffer.from(chunk).toString();
          return { text, isUnchanged };
        },
        options,
      );
    return { ask };
  }

  it('says that it did not change, and comes when it did', async () => {
    const { ask } = await serving(WHOLE, MODIFIED);
    expect(await ask({ ifModifiedSince: MODIFIED })).toMatchObject({ isUnchanged: true, text: '' });
    expect(await ask({ ifModifiedSince: MODIFIED - 1000 })).toMatchObject({
      isUnchanged: false,
      text: WHOLE,
    });
  });

  it('is no object where a part or nothing comes unasked', async () => {
    for (const status of [206, 304]) {
      const server = await HttpServer.start((_, response) => response.writeHead(status).end());
      const client = clientOf(server.url, { dialect: 'yacy' });
      await expect(client.share({ data: 'x' }, async () => 0)).rejects.toMatchObject({ code: 'PEER_ANSWER' });
    }
  });
});
