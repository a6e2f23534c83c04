import fc from 'fast-check';
import { expect, test } from 'vitest';
import { numberText } from '../../src/lib/text.js';
import { wallClockText } from '../../src/lib/units.js';

test('a number and a moment are written as the tables of Intl would have them', () => {
  const moment = fc.integer({ min: 0, max: 250_000_000_000_000 });
  const asTheyAre = fc.property(fc.maxSafeInteger(), moment, (n, at) => {
    expect(numberText(n)).toBe(n.toLocaleString('en'));
    expect(wallClockText(at)).toBe(new Date(at).toLocaleString('sv-SE'));
  });
  fc.assert(asTheyAre);
});

test('a moment that no calendar has is told, and no error', () => {
  expect(wallClockText(1e18)).toContain('NaN');
});
