import { describe, expect, test } from 'vitest';
import { until } from '../support/wait.js';
import { CHROMIUM, LIMIT_MS, shoot, visit } from './chromium.js';
import { scriptOf } from './scripts.js';
import { StandIn } from './stand-in.js';

const WIDTHS = { desktop: 1_280, phone: 390 } as const;

describe.skipIf(CHROMIUM === undefined)('the workers on the page', { timeout: LIMIT_MS }, () => {
  test('have a row each, with the reason of one that takes no jobs', async () => {
    const standIn = await StandIn.start(scriptOf('workers'));
    const { page } = await visit(standIn.url);
    const section = page.locator('#workers');
    await section.getByText('11 jobs under way, 12 waiting, the oldest for ').waitFor();
    const rows = section.locator('tbody tr:not(.below)');
    expect(await rows.count()).toBe(4);
    const [first = ''] = await rows.allInnerTexts();
    expect(first.replaceAll(/\s+/g, ' ')).toMatch(
      /^reader-1 version 1\.2\.3 · process 4711 · seen .*8 of 8 4\.3 120,441 0$/,
    );
    const reasons = await section.locator('.below').allInnerTexts();
    expect(reasons).toEqual([
      'Takes no jobs: it has another version.',
      'Takes no jobs: it does not see the folder "papers".',
    ]);
    // The conditions lead here.
    await page.getByRole('link', { name: 'reader-5' }).click();
    await until(() => new URL(page.url()).hash === '#workers', 'the address follows');
    await page
      .locator('#attention')
      .getByText('The worker on "reader-5" is gone; others do its jobs.')
      .waitFor();
  });

  test.each(Object.entries(WIDTHS))('fit on a %s, in light and dark', async (name, width) => {
    const standIn = await StandIn.start(scriptOf('workers'));
    for (const colorScheme of ['light', 'dark'] as const) {
      const viewport = { width, height: 844 };
      const { page } = await visit(standIn.url, { viewport, colorScheme });
      await page.locator('#workers tbody tr').first().waitFor();
      const overflow = 'document.documentElement.scrollWidth - innerWidth';
      await until(async () => Number(await page.evaluate(overflow)) <= 0, 'nothing is cut off');
      await shoot(page, `workers-${name}-${colorScheme}`);
    }
  });

  test('are not on the page of a daemon that has none', async () => {
    const standIn = await StandIn.start(scriptOf('quiet'));
    const { page } = await visit(standIn.url);
    await page.locator('#peer h2').waitFor();
    expect(await page.locator('#workers').innerHTML()).toBe('');
    const padding = "getComputedStyle(document.getElementById('workers')).paddingBottom";
    expect(await page.evaluate(padding)).toBe('0px');
  });
});
