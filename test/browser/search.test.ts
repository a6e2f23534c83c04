import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContextOptions, Route } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { type Peer, push } from '../embedded/support.js';
import { PeerProcess } from '../support/peer-process.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { CHROMIUM, follow, LIMIT_MS, shoot, visit } from './chromium.js';

const NOTES = {
  'file:///notes/green%20tea.md': '# Green tea\n\nIt is brewed at 70 degrees, never hotter.',
  'https://h.example/coffee.md': `# Coffee\n\nIt is brewed at 93 degrees; tea is another matter. ${'x'.repeat(100)}`,
};

/** The search page of a peer with two documents. */
async function visited(
  options: BrowserContextOptions = {},
  more: Readonly<Record<string, string>> = {},
) {
  const { data, url } = await PeerProcess.start(join(temporaryDirectory(), 'peer'));
  const password = readFileSync(join(data, 'admin-password'), 'utf8').trim();
  const peer: Peer = { url, credentials: { username: 'admin', password } };
  await push(peer, NOTES, { collection: 'drinks' });
  await push(peer, more, { collection: 'more' });
  const { page } = await visit(url, options);
  const titles = () => page.locator('.hits h2').allInnerTexts();
  const words = page.getByRole('searchbox', { name: 'Words' });
  return { page, titles, words };
}

describe.skipIf(CHROMIUM === undefined)('the search page', { timeout: LIMIT_MS }, () => {
  test('finds while words are typed, without being loaded anew, and leads to the document with the words marked', async () => {
    const { page, titles, words } = await visited();
    expect(await titles()).toEqual(['Coffee', 'Green tea']);
    await page.evaluate('window.isTheSame = true');
    // The words have the focus already.
    await page.keyboard.type('gree');
    await until(async () => (await titles()).join() === 'Green tea', 'the one that begins so');
    await words.fill('grene tea');
    await page
      .getByRole('status')
      .getByText('1 result for green tea, which is similar', { exact: true })
      .waitFor();
    await page.getByRole('combobox', { name: 'Collection' }).selectOption('drinks');
    await until(() => page.url().includes('collection=drinks'), 'the address follows');
    expect(await page.title()).toBe('grene tea – search · peersync');
    expect(await page.evaluate('window.isTheSame')).toBe(true);
    await words.fill('nothing-of-it');
    await page.getByText('Nothing found for nothing-of-it in drinks.').waitFor();
    expect(await titles()).toEqual([]);
    await words.fill('tea');
    await until(async () => (await titles()).length === 2, 'both');
    await shoot(page, 'search-results-desktop');
    await follow(page, () => page.getByRole('link', { name: 'Coffee', exact: true }).click());
    expect(await page.locator('article mark').allInnerTexts()).toEqual(['tea']);
    await follow(page, () => page.getByRole('link', { name: '← Results' }).click());
    expect((await titles()).sort()).toEqual(['Coffee', 'Green tea']);
  });

  test('is used by the keyboard alone', async () => {
    const { page, titles, words } = await visited();
    await page.keyboard.press('Escape');
    await page.keyboard.type('tea ');
    await until(() => page.url().includes('query=tea+'), 'the results of the words');
    const focused = () =>
      page.evaluate('document.activeElement.closest("h2") && document.activeElement.innerText');
    const [first, second] = await titles();
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toBe(first);
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toBe(second);
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.type('drinks');
    expect(await words.inputValue()).toBe('tea drinks');
    await page.keyboard.press('Escape');
    expect(await words.inputValue()).toBe('');
    await until(() => !page.url().includes('query=tea'), 'all documents');
    await page.keyboard.type('tea');
    await until(() => page.url().includes('query=tea'), 'the results of the word');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('/');
    await page.keyboard.type('coffee');
    await until(() => page.url().includes('query=coffee'), 'the words are replaced');
    expect(await titles()).toEqual(['Coffee']);
    await page.keyboard.press('ArrowDown');
    await follow(page, () => page.keyboard.press('Enter'));
    await page.getByRole('heading', { name: 'Coffee' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/document');
  });

  test('leaves the focus on a result while later results come, and else gives it to the words', async () => {
    const { page, words } = await visited();
    const queries: Route[] = [];
    await page.route('**/?query=*', (route) => void queries.push(route));
    const focused = () =>
      page.evaluate('document.activeElement.innerText || document.activeElement.name');
    /** Types a word, focuses a result before there are others, and waits for these. */
    const typeAndFocus = async (word: string, title: string) => {
      await words.fill(word);
      await until(() => queries.length > 0, 'the query is sent');
      await page.getByRole('link', { name: title, exact: true }).focus();
      expect(await focused()).toBe(title);
      await queries.shift()?.continue();
      await until(() => page.url().includes(`query=${word}`), 'the results of the word');
    };
    await typeAndFocus('brewed', 'Green tea');
    expect(await focused()).toBe('Green tea');
    await page.keyboard.press('ArrowUp');
    await typeAndFocus('green', 'Coffee');
    expect(await focused()).toBe('query');
  });

  test('counts the results by type, year and collection, and restricts them by one click', async () => {
    const letter =
      '<html><meta name="author" content="Ada Lovelace"><meta name="date" content="2024-03-01"><title>Letter</title>about tea';
    const { page, titles, words } = await visited({}, { 'file:///letters/ada.html': letter });
    await words.fill('tea');
    await until(() => page.url().includes('query=tea'), 'the results of the word');
    expect(await titles()).toHaveLength(3);
    await shoot(page, 'search-facets');
    const facets = await page.locator('.facets').innerText();
    expect(facets.replace(/\s+/g, ' ')).toMatch(
      /^Collection drinks 2 more 1 Type md 2 html 1 Year \d+ 2 2024 1 Author Ada Lovelace 1$/,
    );
    const click = (name: string) =>
      follow(page, () => page.getByRole('link', { name, exact: true }).click());
    await click('md');
    // The word was being typed, so it stays a prefix.
    expect(new URL(page.url()).searchParams.get('query')).toBe('type:.md tea*');
    expect((await titles()).sort()).toEqual(['Coffee', 'Green tea']);
    await shoot(page, 'search-filters');
    await click('Remove the filter type:.md');
    expect((await titles()).length).toBe(3);
    await click('Ada Lovelace');
    expect(await words.inputValue()).toBe('author:"Ada Lovelace" tea*');
    expect(await titles()).toEqual(['Letter']);
    await click('Remove the filter author:"Ada Lovelace"');
    await click('drinks');
    expect(new URL(page.url()).searchParams.get('collection')).toBe('drinks');
  });

  test('copies the path of a file, and keeps the colours that were chosen', async () => {
    const { page } = await visited({ permissions: ['clipboard-read', 'clipboard-write'] });
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('/notes/green tea.md');
    const scheme = () => page.evaluate('document.documentElement.style.colorScheme');
    const seen: unknown[] = [await scheme()];
    for (let click = 0; click < 2; click += 1) {
      await page.getByRole('button', { name: /^Colours/ }).click();
      seen.push(await scheme());
    }
    expect(seen).toEqual(['', 'light', 'dark']);
    expect(await page.getByRole('button', { name: 'Colours: dark' }).innerText()).toMatch(/dark/i);
    // It holds for all pages of the machine, whatever their port, as the status page.
    expect((await page.context().cookies()).map(({ name, value }) => `${name}=${value}`)).toEqual([
      'peersync_theme=dark',
    ]);
    await page.getByRole('link', { name: 'Shares' }).click();
    await page.getByText('No shared objects yet.').waitFor();
    expect(await scheme()).toBe('dark');
  });

  test('does the same on a phone without scripts, and shows no button that would do nothing', async () => {
    const viewport = { width: 390, height: 844 };
    const { page, titles, words } = await visited({ javaScriptEnabled: false, viewport });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(await page.getByRole('button').allInnerTexts()).toEqual(['Search']);
    await words.fill('"green tea"');
    await follow(page, () => words.press('Enter'));
    expect(await titles()).toEqual(['Green tea']);
    await shoot(page, 'search-results-phone');
    await follow(page, () => page.getByRole('link', { name: 'Green tea', exact: true }).click());
    expect(await page.locator('article mark').allInnerTexts()).toEqual(['Green', 'tea']);
    expect(await page.locator('.origin').innerText()).toContain('/notes/green tea.md');
  });
});
