import { describe, expect, test } from 'vitest';
import { until } from '../support/wait.js';
import { CHROMIUM, LIMIT_MS, shoot, visit } from './chromium.js';
import { SCRIPTS } from './scripts.js';
import { StandIn } from './stand-in.js';

const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
/** These are kept as they look in the dark, too. */
const DARK = ['quiet', 'trouble'];

describe.skipIf(CHROMIUM === undefined)('the page as a person sees it', { timeout: LIMIT_MS }, () => {
  for (const [name, script] of Object.entries(SCRIPTS)) {
    test(`${name}: is drawn on a desktop and on a phone, and kept as pictures`, async () => {
      const standIn = await StandIn.start(script);
      const stuck = Math.min(10, script.status.items.quarantined);
      for (const colorScheme of DARK.includes(name) ? (['light', 'dark'] as const) : (['light'] as const)) {
        for (const [size, viewport] of Object.entries(SIZES)) {
          const { page } = await visit(standIn.url, { viewport, colorScheme, reducedMotion: 'reduce' });
          await page.locator('#connection', { hasText: /^live$/ }).waitFor();
          await until(async () => (await page.locator('.plot canvas').count()) === 3, 'three charts');
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
});
