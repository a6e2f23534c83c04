import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { type Peer, push } from '../embedded/support.js';
import { PeerProcess } from '../support/peer-process.js';
import { temporaryDirectory } from '../support/temp.js';
import { CHROMIUM, LIMIT_MS, shoot, visit } from './chromium.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const page = (title: string, author: string, words: string): string =>
  `<html lang="en"><head><title>${title}</title><meta name="author" content="${author}"><meta name="date" content="2024-05-01"></head><body><p>${words}</p></body></html>`;
const DOCUMENTS = {
  'file:///home/ada/leases/flat.html': page('Lease of the flat', 'Ada', 'The lease of a flat, C++'),
  'file:///home/ada/leases/car.html': page('Lease of a car', 'Bob', 'One lease. '.repeat(200)),
  'https://h.example/notes.md': '# Notes\n\nSome leases are long. Mail comes late.',
  'https://h.example/table.csv': 'a,b\nlease,1\n',
};

/** What a page shows, its path, and a text that is on it. */
const PAGES = [
  ['no-query', '/', 'Newest documents'],
  ['facets', '/?query=lease+type:page', 'Remove the filter'],
  ['other-forms', '/?query=leases', 'other forms of the words'],
  ['relaxed', '/?query=mail+squirrelmail', 'without squirrelmail'],
  ['misread', '/?query=mail+date:tomorrow+notes', 'a filter is'],
  ['no-results', '/?query=zeppelin', 'Nothing found'],
  ['document', '/document?url=file:///home/ada/leases/car.html&query=lease', 'Match 1 of 200'],
] as const;

/** Returns what axe finds, a line each. */
async function findings(shown: Page): Promise<string[]> {
  await shown.evaluate(AXE);
  const { violations } = (await shown.evaluate('axe.run()')) as AxeResults;
  return violations.flatMap(({ help, id, nodes }) =>
    nodes.map(({ html }) => `${id}: ${help}: ${html.slice(0, 200)}`),
  );
}

describe.skipIf(CHROMIUM === undefined)('the pages of the peer', { timeout: LIMIT_MS }, () => {
  test.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 390],
    ['dark', 390],
  ] as const)('have no findings of axe in %s colours at %i px', async (colorScheme, width) => {
    const { data, url } = await PeerProcess.start(join(temporaryDirectory(), 'peer'));
    const password = readFileSync(join(data, 'admin-password'), 'utf8').trim();
    const peer: Peer = { url, credentials: { username: 'admin', password } };
    await push(peer, DOCUMENTS);
    const { page: shown } = await visit(url, { colorScheme, viewport: { width, height: 900 } });
    for (const [name, path, text] of PAGES) {
      await shown.goto(new URL(path, url).href);
      expect((await shown.content()).includes(text), `${path}: ${text}`).toBe(true);
      expect(await findings(shown), `${name}: ${path}`).toEqual([]);
      await shoot(shown, `search-${name}-${colorScheme}-${width}`, false);
    }
  });
});
