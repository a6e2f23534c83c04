import { beforeAll, describe, expect, it } from 'vitest';
import { openPeer, push, search, send } from './support.js';

describe('a filter', () => {
  let peer: Awaited<ReturnType<typeof openPeer>>;
  beforeAll(async () => {
    peer = await openPeer({}, 'file');
    const page = (author: string, day: string, words: string) =>
      `<html><meta name="author" content="${author}"><meta name="date" content="${day}"><title>T</title>tea ${words}`;
    await push(peer, {
      'file:///home/a/2024/letter.html': page('Ada Müller', '2024-03-17', 'of Ada'),
      'file:///home/a/2023/letter.HTM': page('Bob', '2023-12-31', 'of Bob'),
      'file:///home/b/50%25_of.txt': `tea ${'long '.repeat(400)}`,
      'file:///home/b/J%C3%A4nner/n.md': '# Tea\n\nnote: date:unknown size: large',
    });
  });

  it.each([
    ['type:html', 'letter.HTM letter.html'],
    ['type:.TXT', '50%25_of.txt'],
    ['type:text', '50%25_of.txt n.md'],
    ['type:pdf', ''],
    ['type:t%t', ''],
    ['tea -type:page', '50%25_of.txt n.md'],
    ['author:müller', 'letter.html'],
    ['author:"Ada M"', 'letter.html'],
    ['date:2024-03-17', 'letter.html'],
    ['date:2024-03', 'letter.html'],
    ['date:2023', 'letter.HTM'],
    ['date:2023-12-31..2024', 'letter.HTM letter.html'],
    ['date:..2023', 'letter.HTM'],
    ['date:2024-03-18..2025', ''],
    ['size:>1k', '50%25_of.txt'],
    ['size:<1k type:md', 'n.md'],
    ['size:1k..5M', '50%25_of.txt'],
    ['path:a/2024', 'letter.html'],
    ['path:Jänner', 'n.md'],
    ['path:50%_', '50%25_of.txt'],
    ['ada type:html', 'letter.html'],
    ['(ada OR bob) date:2023', 'letter.HTM'],
    ['date:unknown', 'n.md'],
    ['size: large', 'n.md'],
    ['date:2024-13', ''],
  ])('restricts a search: %s', async (query, names) => {
    const { items, total } = await search(peer, { query });
    const found = items.map(({ url }) => url.replace(/.*\//, '')).sort();
    expect([total, found.join(' ')]).toEqual([found.length, names]);
  });

  it('that cannot be understood is said to be taken as words, once the query is finished', async () => {
    const { misread } = await search(peer, { query: 'tea date:2024-13 -size:big type:md' });
    expect(misread).toEqual(['date:2024-13', '-size:big']);
    const { body } = await send(peer, '/?query=tea+date:2024-13');
    expect(body).toContain(', with date:2024-13 as words (a filter is date:2024-03');
    const leftOut = await send(peer, '/?query=tea+date:tomorrow');
    expect(leftOut.body).toContain(', without date:tomorrow (a filter is date:2024-03');
    expect((await search(peer, { query: 'tea date:20', typing: 'true' })).misread).toBeUndefined();
    expect((await search(peer, { query: 'tea date:2024' })).misread).toBeUndefined();
  });
});
