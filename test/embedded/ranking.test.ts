import { expect, it } from 'vitest';
import { peerWith, search } from './support.js';

const FILL = 'and other words that nobody looks for in this place '.repeat(3);

async function order(documents: Readonly<Record<string, string>>, query: string) {
  const others = Array.from({ length: 20 }, (_, n) => [
    `http://h/other${n}`,
    `other ${n} ${FILL.repeat(4)}`,
  ]);
  const peer = await peerWith({ ...documents, ...Object.fromEntries(others) });
  const { items } = await search(peer, { query });
  return items.map(({ url }) => url.slice(9));
}

it('documents with the words near each other come before those that have them far apart', async () => {
  const documents = {
    'http://h/far': `list\nlimit ${FILL} time`,
    'http://h/near': `list\n${FILL} limit of time`,
  };
  expect(await order(documents, 'time limit')).toEqual(['near', 'far']);
});

it('symbol words count as near as their plain words are, wherever their signs are indexed', async () => {
  const documents = {
    'http://h/far': `list\nC++ ${FILL} compiler`,
    'http://h/near': `list\n${FILL} compiler of C++`,
  };
  expect(await order(documents, 'compiler C++')).toEqual(['near', 'far']);
});

it('documents with the word in title or name come before those that repeat it', async () => {
  const documents = {
    'http://h/guides.md': `# Guides\n${'a prototype of the prototype. '.repeat(2)}`,
    'http://h/prototype.md': `# About it\n${FILL.repeat(3)}`,
  };
  expect(await order(documents, 'prototype')).toEqual(['prototype.md', 'guides.md']);
});
