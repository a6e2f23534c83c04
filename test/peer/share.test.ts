import { describe, expect, it } from 'vitest';
import type { ShareStream } from '../../src/peer/share.js';
import { clientOf, HttpServer } from './servers.js';

async function described({ type, size, lastModified, chunks }: ShareStream) {
  let length = 0;
  for await (const chunk of chunks) length += chunk.length;
  return { type, size, lastModified, length };
}

describe('a shared object', () => {
  it('is asked for by its name, and by its group where one is given', async () => {
    const server = await HttpServer.start((_, response) => response.end('x'));
    const client = clientOf(`${server.url}/peer`);
    await client.share({ data: 'notes & more/ä.txt' }, described);
    await client.share({ data: 'a', c: 'docs' }, described);
    expect(server.requests).toMatchObject([
      { method: 'POST', url: '/peer/api/share.html', body: 'data=notes+%26+more%2F%C3%A4.txt' },
      { method: 'POST', url: '/peer/api/share.html', body: 'data=a&c=docs' },
    ]);
    expect(server.requests[0]?.headers).toMatchObject({
      'content-type': 'application/x-www-form-urlencoded',
      accept: '*/*',
    });
  });

  it('has the type, the size and the date that the peer says', async () => {
    const server = await HttpServer.start((_, response) =>
      response
        .writeHead(200, {
          'content-type': 'Text/CSV; charset=UTF-8',
          'content-length': 7,
          'last-modified': 'Sat, 21 Nov 2026 03:25:30 GMT',
        })
        .end('a,b\n1,2'),
    );
    expect(await clientOf(server.url).share({ data: 'x' }, described)).toEqual({
      type: 'text/csv',
      size: 7,
      lastModified: Date.UTC(2026, 10, 21, 3, 25, 30),
      length: 7,
    });
  });

  it('has none of them where the peer does not say', async () => {
    const server = await HttpServer.start((_, response) => {
      response.setHeader('last-modified', 'yesterday');
      response.setHeader('content-type', '');
      response.write('x');
      response.end();
    });
    expect(await clientOf(server.url).share({ data: 'x' }, described)).toEqual({
      type: undefined,
      size: undefined,
      lastModified: undefined,
      length: 1,
    });
  });

  it('may be empty', async () => {
    const server = await HttpServer.start((_, response) => response.end());
    expect(await clientOf(server.url).share({ data: 'x' }, described)).toMatchObject({ size: 0, length: 0 });
  });

  it('that the peer does not have is undefined, and nobody reads it', async () => {
    const server = await HttpServer.start((_, response) => response.writeHead(404).end('no such object'));
    let reads = 0;
    const client = clientOf(server.url);
    const read = async () => {
      reads += 1;
    };
    expect(await client.share({ data: 'x' }, read)).toBeUndefined();
    expect(reads).toBe(0);
  });
});
