import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { durationText, formatBytes, formatDuration, parseDuration, parseSize } from '../../src/lib/units.js';

describe('durations', () => {
  it.each([
    ['250ms', 250],
    ['7d', 604_800_000],
    ['1h30m', 5_400_000],
    ['1h 30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['0s', 0],
    ['1d2h3m4s5ms', 93_784_005],
    [' 5 m ', 300_000],
  ])('reads %j', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    '',
    ' ',
    '2',
    '-2s',
    '2 parsecs',
    '30m1h',
    '1s1s',
    's',
    '1,5s',
    '2S',
    '1e3s',
    `${'9'.repeat(20)}d`,
  ])('does not take %j for a duration', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  it('are written so that they are read back', () => {
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 40 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
    expect([5_400_000, 0].map(formatDuration)).toEqual(['1h30m', '0s']);
  });

  it.each([
    [-20, '0ms'],
    [999.4, '999ms'],
    [999.5, '1s'],
    [59_499, '59s'],
    [59_500, '1m'],
    [130_000, '2m 10s'],
    [3_605_000, '1h'],
    [100_800_000, '1d 4h'],
  ])('%d ms reads %s', (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });
});

describe('sizes', () => {
  it.each([
    ['8 MiB', 8 * 2 ** 20],
    ['20 MB', 20_000_000],
    ['500 B', 500],
    ['1.5KiB', 1536],
    ['2 gib', 2 ** 31],
    ['1 TB', 1e12],
    [1234, 1234],
  ])('reads %j', (value, bytes) => {
    expect(parseSize(value)).toBe(bytes);
  });

  it.each(['', '8', 'MiB', '-1 B', '8 M', '1e3 B', '8 MiB 2', -1, 1.5, Number.NaN, '99999999999 TiB'])(
    'does not take %j for a size',
    (value) => {
      expect(parseSize(value)).toBeUndefined();
    },
  );

  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1536, '1.5 KiB'],
    [2 ** 20 - 1, '1 MiB'],
    [3 * 2 ** 50, '3072 TiB'],
  ])('%d is written as %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});
