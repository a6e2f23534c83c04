import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContextOptions, Page, Route } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { type Peer, push } from '../embedded/support.js';
import { PeerProcess } from '../support/peer-process.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { CHROMIUM, follow, LIMIT_MS, shoot, visit } from './chromium.js';

const LINE = 'nothing to see in this line of the text, which goes on for a while. ';
/** A page of a PDF; every hundredth has the word. */
const pageOf = (i: number): string =>
  `<p>Section ${i}<br>${LINE.repeat(45)}${i % 100 === 50 ? `<br>The lighthouse no. ${i}<br>${LINE}` : ''}</p><hr class="peersync-page-end">`;
/** 1,000 pages, as the daemon sends the text of a PDF: 3 MB. */
const PDF = `<!doctype html><html lang="en"><head><title>A long report</title><meta name="author" content="Ada Lovelace"><meta name="date" content="2024-05-01"></head><body>${Array.from({ length: 1_000 }, (_, i) => pageOf(i + 1)).join('')}</body></html>`;
const DOCUMENTS = {
  'file:///papers/report.pdf': PDF,
  'https://h.example/short.md': '# Short\n\nA lighthouse is seen from afar.',
};

/** A match in each 4 kB, so 16 in a section. They are not all counted before a page is sent. */
const MANY = { 'https://h.example/harbour.txt': `harbour ${LINE.repeat(60)}\n`.repeat(400) };

async function visited(
  options: BrowserContextOptions = {},
  documents: Readonly<Record<string, string>> = DOCUMENTS,
) {
  const { data, url } = await PeerProcess.start(join(temporaryDirectory(), 'peer'));
  const password = readFileSync(join(data, 'admin-password'), 'utf8').trim();
  const peer: Peer = { url, credentials: { username: 'admin', password } };
  await push(peer, documents);
  const { page } = await visit(url, options);
  return page;
}

/**
 * Returns the text of the current match, with the line around it; empty if it is out of sight, or
 * not loaded yet.
 */
async function inSight(page: Page): Promise<string> {
  return (await page.evaluate(`(() => {
    const mark = document.querySelector('mark.current');
    if (!mark?.nextSibling) return '';
    const { top, bottom } = mark.getBoundingClientRect();
    if (top < document.getElementById('matches').getBoundingClientRect().bottom || bottom > innerHeight) return '';
    return mark.innerText + mark.nextSibling.data.split('\\n')[0];
  })()`)) as string;
}

const status = (page: Page) => page.getByRole('status').innerText();
const isShown = (page: Page, n: number) =>
  until(
    async () =>
      (await status(page)) === `Match ${n} of 10 · page ${100 * n - 50} of 1,000` &&
      (await inSight(page)) === `lighthouse no. ${100 * n - 50}`,
    `the match ${n}`,
  );

describe.skipIf(CHROMIUM === undefined)('the page of a document', { timeout: LIMIT_MS }, () => {
  test('opens at the first match, and is walked through by the keyboard alone', async () => {
    const page = await visited();
    await page.keyboard.type('lighthouse title:report ');
    await until(() => page.url().includes('report+'), 'the results of the words');
    await page.getByText('1 result', { exact: true }).waitFor();
    await page.keyboard.press('ArrowDown');
    await follow(page, () => page.keyboard.press('Enter'));
    await page.getByRole('heading', { name: 'A long report' }).waitFor();
    await isShown(page, 1);
    await shoot(page, 'document-match-desktop', false);
    await page.evaluate('window.isTheSame = true');
    for (const n of [2, 3]) {
      await page.keyboard.press('n');
      await isShown(page, n);
    }
    await page.keyboard.press('p');
    await isShown(page, 2);
    // Keys may be faster than the peer.
    for (let key = 0; key < 8; key += 1) await page.keyboard.press('n');
    await isShown(page, 10);
    await page.keyboard.press('n');
    await isShown(page, 1);
    await page.keyboard.press('p');
    await isShown(page, 10);
    // The links keep the focus.
    await page.getByRole('link', { name: 'Previous match' }).focus();
    await page.keyboard.press('Enter');
    await isShown(page, 9);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await isShown(page, 10);
    expect(await page.evaluate('window.isTheSame')).toBe(true);
    // A reload shows the same match.
    await page.reload();
    await isShown(page, 10);
    expect(await page.locator('mark.current').getAttribute('aria-current')).toBe('true');
  });

  test('asks for the rest of the count once, however many sections are fetched meanwhile', async () => {
    const page = await visited({}, MANY);
    const counts: Route[] = [];
    await page.route('**/document.json*', (route) => void counts.push(route));
    await page.goto(`${page.url()}document?url=https://h.example/harbour.txt&query=harbour`);
    const isAt = (match: number) =>
      until(async () => (await status(page)).startsWith(`Match ${match} of`), `the match ${match}`);
    for (let match = 2; match <= 40; match += 1) {
      await page.keyboard.press('n');
      await isAt(match);
    }
    expect(await status(page)).toMatch(/ or more$/);
    for (const route of counts) await route.continue();
    await until(async () => (await status(page)) === 'Match 40 of 400', 'the whole count');
    expect(counts).toHaveLength(1);
  });

  test('has each match in sight on a phone without scripts, in dark colours', async () => {
    const viewport = { width: 390, height: 844 };
    const page = await visited({ javaScriptEnabled: false, viewport, colorScheme: 'dark' });
    await page.getByRole('searchbox', { name: 'Words' }).fill('lighthouse title:report');
    await follow(page, () => page.getByRole('searchbox', { name: 'Words' }).press('Enter'));
    await follow(page, () => page.getByRole('link', { name: 'A long report' }).click());
    await isShown(page, 1);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    await shoot(page, 'document-match-phone-dark', false);
    for (const n of [2, 3]) {
      await follow(page, () => page.getByRole('link', { name: 'Next match' }).click());
      await isShown(page, n);
    }
    await follow(page, () => page.getByRole('link', { name: 'Previous match' }).click());
    await isShown(page, 2);
    expect(await page.locator('kbd:visible').count()).toBe(0);
  });

  test('has one tab stop a result: its title, where keys open the original and copy the path', async () => {
    const page = await visited({ permissions: ['clipboard-read', 'clipboard-write'] });
    const stops: unknown[] = [];
    await page.getByRole('button', { name: 'Search' }).focus();
    for (let stop = 0; stop < 2; stop += 1) {
      await page.keyboard.press('Tab');
      stops.push(await page.evaluate('document.activeElement.innerText'));
    }
    expect(stops.sort()).toEqual(['A long report', 'Short']);
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.closest(".hits")')).toBeNull();
    await page.getByRole('link', { name: 'A long report' }).focus();
    await page.keyboard.press('c');
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('/papers/report.pdf');
    await page.getByRole('link', { name: 'Short', exact: true }).focus();
    await page.evaluate(
      'document.addEventListener("click", (event) => { window.opened = event.target.href; event.preventDefault(); })',
    );
    await page.keyboard.press('o');
    expect(await page.evaluate('window.opened')).toBe('https://h.example/short.md');
  });

  test('does not take the keys of a word that is typed, nor those with a modifier', async () => {
    const page = await visited();
    await page.goto(`${page.url()}document?url=file:///papers/report.pdf&query=lighthouse`);
    await isShown(page, 1);
    await page.evaluate(
      'document.body.append(Object.assign(document.createElement("input"), { id: "typed" }))',
    );
    await page.locator('#typed').focus();
    await page.keyboard.type('nnp');
    expect(await page.locator('#typed').inputValue()).toBe('nnp');
    await page.locator('#typed').blur();
    await page.keyboard.press('Alt+n');
    expect(await status(page)).toMatch(/^Match 1 of 10/);
    await page.keyboard.press('n');
    await isShown(page, 2);
  });
});
