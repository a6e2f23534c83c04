import { describe, expect, test } from 'vitest';
import { CHROMIUM, shoot, visit } from './chromium.js';
import { SCRIPTS } from './scripts.js';
import { StandIn } from './stand-in.js';

const SIZES = {
  desktop: { width: 1280, height: 800 },
  wide: { width: 1440, height: 1000 },
  phone: { width: 390, height: 844 },
};

describe.skipIf(CHROMIUM === undefined)('the page as a person sees it', () => {
  for (const [name, script] of Object.entries(SCRIPTS)) {
    test(`${name}: drawn at every size, light and dark, without a scroll bar across`, async () => {
      const standIn = await StandIn.start(script);
      for (const colorScheme of ['light', 'dark'] as const) {
        for (const [size, viewport] of Object.entries(SIZES)) {
          if (size === 'wide' && colorScheme === 'dark') continue;
          const { page } = await visit(standIn.url, { viewport, colorScheme, reducedMotion: 'reduce' });
          await page.waitForSelector('#connection-text:text("live")');
          await page.waitForSelector('.charts');
          await page.waitForTimeout(150);
          await shoot(page, `${name}-${size}-${colorScheme}`);
          const width = await page.evaluate('document.documentElement.scrollWidth');
          expect(width).toBeLessThanOrEqual(viewport.width);
        }
      }
    });
  }
});
