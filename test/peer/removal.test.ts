import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { standard } from '../../src/peer/dialects/standard.js';
import { yacy } from '../../src/peer/dialects/yacy.js';
import { openPeer, peerWith } from '../embedded/support.js';
import { HttpPeer } from '../support/http-peer.js';
import { RECORDED } from '../wire/yacy/timing.js';
import { YacyModel } from '../wire/yacy/yacy-model.js';
import { clientOf } from './support.js';

const [a, b] = ['https://files.example.org/a.md', 'https://files.example.org/b.md'];

describe('a removal', () => {
  it('sends many URLs to an embedded peer in one request, known or not', async () => {
    const peer = await peerWith({ [a]: 'green tea', [b]: 'black tea' });
    const client = clientOf(peer.url, { credentials: peer.credentials });
    expect(await client.remove([a, 'https://files.example.org/none'])).toEqual([
      { ok: true },
      { ok: true },
    ]);
    expect(await client.peerdoc({ url: a })).toBeUndefined();
    expect(await client.peerdoc({ url: b })).toBeDefined();
  });

  it('is refused by an embedded peer without credentials, and replaces no document', async () => {
    const peer = await openPeer();
    const client = clientOf(peer.url);
    await expect(client.remove([a])).rejects.toMatchObject({ code: 'PEER_AUTH' });
    expect(await client.peerdoc({ url: a })).toBeUndefined();
  });

  it('sends one URL at a time to YaCy with one token, and gets a new token when that expires', async () => {
    let time = 0;
    const peer = await YacyModel.start({ now: () => time, timing: { ...RECORDED, start: 10 } });
    const client = clientOf(peer.url, { dialect: 'yacy' });
    await client.push(
      [a, b].map((url) => ({ url, collection: 'c', data: Buffer.from('green tea') })),
    );
    time += 20_000;
    const odd = a.toUpperCase().replace('A.MD', 'a.md#top');
    expect(await client.remove([odd, b])).toEqual([{ ok: true }, { ok: true }]);
    expect(yacy.isRemoved(await client.peerdoc({ url: a }))).toBe(false);
    time += 20_000;
    expect(yacy.isRemoved(await client.peerdoc({ url: a }))).toBe(true);
    expect(yacy.isRemoved(await client.peerdoc({ url: b }))).toBe(true);
    const asked = () =>
      peer.served.flatMap(({ target, method }) => (/Index/.test(target) ? method : []));
    expect(asked()).toEqual(['GET', 'POST', 'POST']);
    await peer.stop();
    await peer.restart();
    await client.remove([a]);
    expect(asked().slice(3)).toEqual(['POST', 'GET', 'POST']);
  });

  it.each([
    ['a page of a gateway', 200, '<html>Welcome</html>', {}, 'PEER_ANSWER'],
    ['no token', 200, 'Removed URL', {}, 'PEER_ANSWER'],
    ['an error', 500, 'no', { 'X-YaCy-Transaction-Token': 'x' }, 'PEER_FAILED'],
  ])('of a YaCy that answers with %s fails', async (_, status, text, headers, code) => {
    const server = await HttpPeer.start((__, response) =>
      response.writeHead(status, headers).end(text),
    );
    await expect(clientOf(server.url, { dialect: 'yacy' }).remove([a])).rejects.toMatchObject({
      code,
    });
  });

  it.each([404, 405, 410, 501])(
    'pushes empty documents if the peer has no removal page: %i',
    async (status) => {
      const server = await HttpPeer.start(({ url }, response) => {
        if (url.includes('remove')) response.writeHead(status).end('no such page');
        else response.end('{"successall": "true"}');
      });
      const client = clientOf(server.url);
      expect(await client.remove([a, b])).toEqual([{ ok: true }, { ok: true }]);
      await client.remove([a]);
      expect(server.requests.map(({ url }) => url)).toEqual([
        '/api/remove_p.html',
        '/api/push_p.html',
        '/api/push_p.html',
      ]);
      const [, pushed] = server.requests.map(({ body }) => new URLSearchParams(body));
      expect(pushed?.get('url-1')).toBe(b);
      expect(pushed?.get('data-1')).toBe('');
      expect(pushed?.get('collection-1')).toBe('removed');
    },
  );
});

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
it.each([
  ['no document', undefined, true],
  ['an empty one', { digest: digestOf(''), size: 0, collections: ['removed'] }, true],
  ['an empty one by its size', { size: 0 }, true],
  ['an empty one by its words', { words: 0, collections: ['removed'] }, true],
  ['one in that collection alone', { collections: ['removed'] }, true],
  ['an empty one in another collection', { size: 0, collections: ['notes'] }, false],
  [
    'one with a text in that collection',
    { digest: digestOf('x'), size: 1, collections: ['removed'] },
    false,
  ],
  ['one of which nothing is told', { url: a }, false],
])('a standard peer that shows %s: removed %s', (_, shown, isRemoved) => {
  expect(standard.isRemoved(shown && { at: 0, fields: {}, ...shown })).toBe(isRemoved);
});
