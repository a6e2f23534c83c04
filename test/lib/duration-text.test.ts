import { expect, test } from 'vitest';
import { durationText } from '../../src/lib/units.js';

test.each([
  [0, '0ms'],
  [-20, '0ms'],
  [999, '999ms'],
  [999.4, '999ms'],
  [999.5, '1s'],
  [1000, '1s'],
  [59_499, '59s'],
  [59_500, '1m'],
  [130_000, '2m 10s'],
  [3_600_000, '1h'],
  [3_605_000, '1h'],
  [3_660_000, '1h 1m'],
  [100_800_000, '1d 4h'],
])('%i ms reads %s', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});
