import { describe, expect, it } from 'vitest';
import { answered, ask, basic, peerdoc, peerWith, push, search, send } from './support.js';

const REMOVE = '/api/remove_p.json';
const [a, b] = ['https://files.example.org/a.md', 'https://files.example.org/b.md'];

describe('a removal', () => {
  it('removes documents with their words, counts and collections, and no others', async () => {
    const peer = await peerWith({ [a]: 'green tea', [b]: 'green coffee' });
    expect(
      await answered(peer, REMOVE, { 'url-0': a, 'url-1': 'https://nobody.example.org/' }),
    ).toMatchObject({
      successall: 'true',
      'item-0': { url: a, success: 'true', message: 'The document is removed.' },
      'item-1': { success: 'true', message: 'There is no such document.' },
    });
    expect(await peerdoc(peer, a)).toBeUndefined();
    expect((await search(peer, { query: 'green' })).items.map(({ url }) => url)).toEqual([b]);
    expect((await search(peer, { query: 'tea' })).total).toBe(0);
    expect((await search(peer, { query: '' })).total).toBe(1);
  });

  it('lasts until the document is pushed again', async () => {
    const peer = await peerWith({ [a]: 'first' });
    await answered(peer, REMOVE, { 'url-0': a });
    expect(await peerdoc(peer, a)).toBeUndefined();
    await push(peer, { [a]: 'first' });
    expect(await peerdoc(peer, a)).toMatchObject({ size: 5 });
  });

  it('needs the administrator and POST, and is refused to a page of another site', async () => {
    const peer = await peerWith({ [a]: 'green tea' });
    const path = `${REMOVE}?url-0=${encodeURIComponent(a)}`;
    expect((await send(peer, path, { method: 'POST' })).status).toBe(401);
    expect((await send(peer, path, { headers: { authorization: basic(peer) } })).status).toBe(405);
    const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example.org' };
    expect((await ask(peer, REMOVE, { 'url-0': a }, headers)).status).toBe(403);
    expect(await peerdoc(peer, a)).toBeDefined();
  });
});
