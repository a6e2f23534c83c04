import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { MirrorCondition } from '../../src/mirror/errors.js';
import { until } from '../support/wait.js';
import { CHROMIUM, LIMIT_MS, visit } from './chromium.js';
import { item, mirror, NOW } from './reports.js';
import { scriptOf } from './scripts.js';
import { type Script, StandIn } from './stand-in.js';

const conditions = scriptOf('conditions');

async function ready(page: Page): Promise<void> {
  await page.locator('#connection', { hasText: /^live$/ }).waitFor();
  await page.locator('#files tbody tr:not(.below)').first().waitFor();
}

/** Returns the page of a stand-in after all of it is drawn. */
async function shown(script: Script = conditions, options: Parameters<typeof visit>[1] = {}) {
  const standIn = await StandIn.start(script);
  const { page } = await visit(standIn.url, options);
  await ready(page);
  return { standIn, page };
}

/** Returns the accessible name of the focused element, and whether its focus ring is visible. */
const FOCUSED = `(() => {
  const at = document.activeElement;
  const ring = getComputedStyle(at.closest('.field') ?? at);
  const box = at.getBoundingClientRect();
  const label = at.labels?.[0]?.textContent ?? '';
  return {
    name: (at.getAttribute('aria-label') ?? (label || at.textContent)).trim(),
    tag: at.tagName,
    isSeen: ring.outlineStyle !== 'none' && parseFloat(ring.outlineWidth) >= 2 && box.width > 0 && box.height > 0,
  };
})()`;

interface Focused {
  readonly name: string;
  readonly tag: string;
  readonly isSeen: boolean;
}

describe.skipIf(CHROMIUM === undefined)('the page by keyboard', { timeout: LIMIT_MS }, () => {
  test('reaches every control by the Tab key, each with a name and a visible focus', async () => {
    const { page } = await shown();
    const stops: Focused[] = [];
    for (let i = 0; i < 120; i += 1) {
      await page.keyboard.press('Tab');
      const stop = (await page.evaluate(FOCUSED)) as Focused;
      if (stop.tag === 'BODY') break;
      stops.push(stop);
    }
    const names = stops.map(({ name }) => name);
    expect(names.slice(0, 4)).toEqual(['Skip to the content', 'Pause', 'Colours: auto', 'Keys']);
    const files = ['Retry all', 'Retry 2020/field-report-0001.pdf', 'files: the next page'];
    const mirrors = ['Accept what the peer has of prices', 'Update all now'];
    const wanted = ['Why?', 'Explain', 'Scan all now', ...files, ...mirrors, 'metrics'];
    expect(names).toEqual(expect.arrayContaining(wanted));
    expect(stops.filter(({ name }) => name === '')).toEqual([]);
    expect(stops.filter(({ isSeen }) => !isSeen)).toEqual([]);
    // No control traps the focus.
    expect(stops.length).toBeLessThan(120);
  });

  test('skips to the content, and has shortcuts that are off while somebody types', async () => {
    const { page, standIn } = await shown();
    const focus = async () => (await page.evaluate(FOCUSED)) as Focused;
    const focusedId = () => page.evaluate('document.activeElement.id');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await until(async () => (await focusedId()) === 'main', 'the content has the focus');

    await page.keyboard.press('/');
    expect((await focus()).name).toBe('Why?');
    await page.keyboard.type('p?r');
    expect(await page.getByRole('textbox', { name: 'Why?' }).inputValue()).toBe('p?r');
    expect(await page.locator('dialog[open]').count()).toBe(0);

    await page.getByRole('textbox', { name: 'Why?' }).blur();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'hidden' });

    await page.keyboard.press('p');
    // The menu has the focus after it was drawn.
    await until(
      async () => (await focus()).name === 'for 15 minutes',
      'the menu is open and has the focus',
    );
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await until(() => standIn.asked.length === 1, 'the pause is asked for');
    expect(standIn.asked).toEqual([{ ask: 'pause', parameters: { forMs: 3_600_000 } }]);

    await page.keyboard.press('r');
    await until(() => standIn.asked.length === 2, 'the retry is asked for');
    expect(standIn.asked[1]).toEqual({ ask: 'retry', parameters: { all: true } });
    await page.keyboard.press('m');
    await until(async () => (await focusedId()) === 'mirrors', 'the mirrors have the focus');
  });

  test('asks for confirmation before a mirror accepts the version of the peer, and does nothing on Cancel', async () => {
    const { code, message, hint } = new MirrorCondition('TABLE_GONE', 'prices', 'the table prices');
    const mirrors = [mirror('prices', { condition: { code, message, hint, since: 1 } })];
    const { page, standIn } = await shown({
      ...conditions,
      status: { ...conditions.status, mirrors },
    });
    const accept = page.getByRole('button', { name: 'Accept what the peer has of prices' });
    await accept.click();
    const dialog = page.getByRole('dialog', { name: 'Take what the peer has of prices?' });
    await dialog.waitFor();
    // The text describes the effect of accepting, after which the file does not stay as it was.
    const text = await dialog.textContent();
    expect(text).toMatch(
      /does not have the table prices any more\. If that is right, .*removes the file/,
    );
    expect(text).not.toContain('stays');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    expect(standIn.asked).toEqual([]);
    await accept.click();
    await dialog.getByRole('button', { name: 'Accept it' }).click();
    await until(() => standIn.asked.length === 1, 'it is accepted');
    expect(standIn.asked).toEqual([{ ask: 'mirror-accept', parameters: { names: ['prices'] } }]);
  });
});

describe.skipIf(CHROMIUM === undefined)('the page', { timeout: LIMIT_MS }, () => {
  test('has landmarks, one main heading, captions of tables and descriptions of charts', async () => {
    const { page } = await shown();
    for (const role of ['banner', 'main', 'complementary', 'contentinfo'] as const) {
      expect(await page.getByRole(role).count(), role).toBe(1);
    }
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
    expect(await page.locator('html').getAttribute('lang')).toBe('en');
    for (const table of await page.getByRole('table').all()) {
      expect(await table.locator('caption').textContent()).not.toBe('');
      expect(await table.getByRole('columnheader').count()).toBeGreaterThan(3);
    }
    const charts = page.getByRole('img');
    expect(await charts.count()).toBe(3);
    for (const words of [
      /^Confirmed over the last hour: [\d,]+ in the hour, at most /,
      /^Backlog over the last hour: [\d,]+ now, at most /,
      /^Time to search over the last hour: last at [\d :-]+: p50 .*, at most /,
    ]) {
      // The samples come after the status.
      await page.getByRole('img', { name: words }).waitFor();
    }
    // A screen reader announces this text when the condition changes.
    expect(await page.getByRole('status').textContent()).toMatch(
      /^20,848 documents searchable, 2,000 of them of removed files\. 44 need you\. The folder "usb" is held/,
    );
  });

  test('shows every condition: the gravest in the headline, the others below', async () => {
    const { page } = await shown();
    expect(await page.locator('.detail > a').allInnerTexts()).toEqual(['usb']);
    expect(await page.locator('#attention li p > a').allInnerTexts()).toEqual([
      'papers',
      'mirrors',
      'notes',
      'quarantine',
      'mirrors',
      'mirrors',
      'papers',
      'state',
    ]);
  });

  test('groups the digits of large numbers', async () => {
    const { page } = await shown();
    const counts = page.locator('.status-count .number');
    expect(await counts.allInnerTexts()).toEqual(['0', '0', '18,848', '44', '12', '2,000']);
  });

  test('shows the conditions of a mirror over the whole width of its table', async () => {
    const { page } = await shown();
    const widthOf = async (place: string) =>
      (await page.locator(place).first().boundingBox())?.width;
    expect(await widthOf('#mirrors .below td')).toBe(await widthOf('#mirrors table'));
  });

  test.each([
    ['waits', NOW + 60_000],
    // The button stays, so that a click does not miss it.
    ['is running', undefined],
  ])(
    'sends a request to an unreachable peer at once on Try now, while the next try %s',
    async (_, nextProbeAt) => {
      const away = { ...scriptOf('away') };
      away.status = structuredClone(away.status);
      Object.assign(away.status.peer.queue?.circuit ?? {}, { nextProbeAt });
      const standIn = await StandIn.start(away);
      const { page } = await visit(standIn.url);
      await page.getByRole('button', { name: 'Try now' }).click();
      await page.getByText('The peer is asked again.').waitFor();
      expect(standIn.asked).toEqual([{ ask: 'try', parameters: {} }]);
    },
  );

  test('loads the list of files again after a failure', async () => {
    const standIn = await StandIn.start(conditions);
    standIn.isBroken = true;
    const { page, forgive } = await visit(standIn.url);
    forgive(/status of 409/);
    await page.getByText('There is no such thing. Go back.').waitFor();
    let refused = 0;
    page.on('response', (response) => {
      if (response.status() === 409) refused += 1;
    });
    await until(() => refused > 2, 'the list is requested again');
    standIn.isBroken = false;
    await ready(page);
  });

  test('finds files by name, and sends one query at a time', async () => {
    const { page, standIn } = await shown();
    standIn.listMs = 300;
    await page.getByRole('searchbox', { name: 'Find a file' }).pressSequentially(' Minutes ');
    await until(() => standIn.items.includes('minutes'), 'the daemon is asked for the name');
    expect(standIn.mostLists).toBe(1);
  });

  test.each([
    ['conditions', 390],
    ['conditions', 360],
    ['busy', 360],
    ['conditions', 320],
    ['workers', 320],
  ])(
    'shows the script %s without anything cut off or hidden on a screen of %d px',
    async (name, width) => {
      const standIn = await StandIn.start(scriptOf(name));
      const { page } = await visit(standIn.url, { viewport: { width, height: 740 } });
      await page.locator('#connection', { hasText: /^live$/ }).waitFor();
      await page.locator('#folders tbody tr').first().waitFor();
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
        width,
      );
      expect(
        await page.evaluate(
          '[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .unseen, .sprite, .plot, .wide thead, .menu") && e.checkVisibility()).map((e) => e.className || e.tagName)',
        ),
      ).toEqual([]);
      // No table scrolls sideways either.
      const scrolled =
        '[...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth + 1).length';
      expect(await page.evaluate(scrolled)).toBe(0);
    },
  );

  test('shows markup in names as text', async () => {
    const evil = '<img src="/x" onerror="window.isTaken = true"><b>bold</b> & `code`.md';
    const mirrors = conditions.status.mirrors.map((mirror) => ({
      ...mirror,
      notes: [`It is called ${evil}`],
    }));
    const folders = conditions.status.folders.map((folder) => ({
      ...folder,
      path: `/srv/${evil}`,
    }));
    const names = (index: number) => ({ path: evil, file: `/srv/${index}/${evil}`, message: evil });
    const { page } = await shown({
      status: { ...conditions.status, mirrors, folders },
      recents: [{ id: 1, at: 1, level: 'warn', message: `skipped ${evil}` }],
      item: (index, status) => ({ ...item(index, status), ...names(index) }),
    });
    for (const place of ['#files .path', '#folders .path', '#mirrors .conditions', '.events']) {
      const text = await page.locator(place).first().textContent();
      expect(text, place).toContain('<img src="/x" onerror="window.isTaken = true"><b>bold</b> & ');
    }
    expect(await page.locator('main img, main b').count()).toBe(0);
    expect(await page.evaluate('window.isTaken')).toBeUndefined();
  });

  test('writes invisible characters in names as escapes, wherever it shows a name', async () => {
    const path = 'in\u202evoice\u200b\n.pdf';
    const odd = { ...item(0, 'quarantined'), path, file: `/srv/library/papers/${path}` };
    const why = { ...scriptOf('quiet').why, file: odd.file, path } as NonNullable<Script['why']>;
    const status = { ...conditions.status, items: { ...conditions.status.items, quarantined: 1 } };
    const { page } = await shown({ ...conditions, status, item: () => odd, why });
    const written = 'in\\u202evoice\\u200b\\x0a.pdf';
    const link = page.locator('#files').getByRole('link', { name: `papers/${written}` });
    expect(await link.locator('.written').allInnerTexts()).toEqual(['\\u202e', '\\u200b', '\\x0a']);
    await page.getByRole('button', { name: `Retry ${written}`, exact: true }).waitFor();
    await link.click();
    await page.locator('#why-answer code', { hasText: `/srv/library/papers/${written}` }).waitFor();
    expect(await page.getByRole('textbox', { name: 'Why?' }).inputValue()).toBe('');
    expect(await page.locator('body').innerText()).not.toMatch(/[\u200b\u202e]/);
  });

  test('has legends for its colours', async () => {
    const { page } = await shown();
    const legends = await page.locator('.legend').allInnerTexts();
    expect(legends.map((text) => text.replaceAll(/\s+/g, ' ').trim())).toEqual([
      'p50 p95',
      'pending accepted confirmed quarantine skipped',
      'information warning failure',
    ]);
  });

  test('leads from an unknown address back to the status page', async () => {
    const standIn = await StandIn.start(conditions);
    const { page, forgive } = await visit(`${standIn.url}nothing`);
    forgive(/status of 404/);
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    const navigation = page.getByRole('navigation', { name: 'Pages of peersync' });
    await navigation.getByRole('link', { name: 'Status' }).click();
    await ready(page);
  });

  test('keeps the light or dark theme that was chosen', async () => {
    const { page } = await shown(conditions, { colorScheme: 'light' });
    const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const bright = await ground();
    await page.keyboard.press('t');
    await page.keyboard.press('t');
    expect(await page.locator('#theme').getAttribute('aria-label')).toBe('Colours: dark');
    const night = await ground();
    expect(night).not.toBe(bright);
    await page.reload();
    expect(await ground()).toBe(night);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.keyboard.press('t');
    expect(await page.locator('#theme').getAttribute('aria-label')).toBe('Colours: auto');
    expect(await ground()).toBe(night);
    await page.keyboard.press('t');
    expect(await page.locator('#theme').getAttribute('aria-label')).toBe('Colours: light');
    expect(await ground()).toBe(bright);
  });

  test('has no animations if the system asks for reduced motion', async () => {
    const { page } = await shown(conditions, { reducedMotion: 'reduce' });
    const moves = 'getComputedStyle(document.querySelector(".band")).transitionDuration';
    expect(await page.evaluate(moves)).toBe('0s');
  });
});
