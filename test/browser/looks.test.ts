import { describe, expect, test } from 'vitest';
import { until } from '../support/wait.js';
import { CHROMIUM, LIMIT_MS, shoot, visit } from './chromium.js';
import { SCRIPTS, scriptOf } from './scripts.js';
import { StandIn } from './stand-in.js';

const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
/** These are kept as they look in the dark, too. */
const DARK = ['quiet', 'trouble', 'leaving'];

/** Of each station of the page: where it stands, and whether all in it has room. */
const STATIONS = `[...document.querySelectorAll('.station')].map((station) => {
  const { top, left, right } = station.getBoundingClientRect();
  const parts = [...station.querySelectorAll('.number, .label, .note')];
  return { top, left, right, hasRoom: parts.every((part) => part.scrollWidth <= station.clientWidth + 1) };
})`;

interface Station {
  readonly top: number;
  readonly left: number;
  readonly right: number;
  readonly hasRoom: boolean;
}

describe.skipIf(CHROMIUM === undefined)(
  'the page as a person sees it',
  { timeout: LIMIT_MS },
  () => {
    test.each([1024, 1280, 1920])(
      'all eight stations stand in one line at %i px, each with room',
      async (width) => {
        const standIn = await StandIn.start(scriptOf('leaving'));
        const { page } = await visit(standIn.url, { viewport: { width, height: 800 } });
        await page.locator('.station[class*="s-removed"]').waitFor();
        const stations = (await page.evaluate(STATIONS)) as Station[];
        expect(stations).toHaveLength(8);
        expect(new Set(stations.map(({ top }) => Math.round(top))).size).toBe(width > 1024 ? 1 : 2);
        for (const [i, { hasRoom, right }] of stations.entries()) {
          expect(hasRoom, `${i}`).toBe(true);
          const next = stations[i + 1];
          if (next && next.top === stations[i]?.top)
            expect(right).toBeLessThanOrEqual(next.left + 1);
        }
      },
    );

    test('no sentence is cut at the edge of a phone, also with a long path in it', async () => {
      const standIn = await StandIn.start(scriptOf('trouble'));
      const { page } = await visit(standIn.url, { viewport: SIZES.phone });
      await page
        .locator('#mirrors .troubles p', { hasText: /conflict-20261126T213517Z/ })
        .waitFor();
      const cut = await page.evaluate(`[...document.querySelectorAll('p')]
        .filter((p) => p.className !== 'unseen' && p.getBoundingClientRect().right > innerWidth)
        .map((p) => p.textContent)`);
      expect(cut).toEqual([]);
    });

    for (const [name, script] of Object.entries(SCRIPTS)) {
      test(`${name}: is drawn on a desktop and on a phone, and kept as pictures`, async () => {
        const standIn = await StandIn.start(script);
        const stuck = Math.min(10, script.status.items.quarantined);
        for (const colorScheme of DARK.includes(name)
          ? (['light', 'dark'] as const)
          : (['light'] as const)) {
          for (const [size, viewport] of Object.entries(SIZES)) {
            const { page } = await visit(standIn.url, {
              viewport,
              colorScheme,
              reducedMotion: 'reduce',
            });
            await page.locator('#connection', { hasText: /^live$/ }).waitFor();
            await until(
              async () => (await page.locator('.plot canvas').count()) === 3,
              'three charts',
            );
            await until(
              async () => (await page.locator('#files tbody tr:not(.below)').count()) === stuck,
              'what is in quarantine',
            );
            expect(await page.locator('#folders tbody tr:not(.below)').count()).toBe(
              script.status.folders.length,
            );
            await shoot(page, `${name}-${size}-${colorScheme}`);
          }
        }
      });
    }
  },
);
