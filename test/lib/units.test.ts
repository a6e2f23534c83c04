import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  durationText,
  formatBytes,
  formatDuration,
  parseDuration,
  parseSize,
} from '../../src/lib/units.js';

describe('durations', () => {
  it('are read with units in falling order, each at most once, and from no other text', () => {
    const read = {
      '250ms': 250,
      '7d': 604_800_000,
      '1h30m': 5_400_000,
      '1.5h': 5_400_000,
      '0s': 0,
    };
    const spaced = { ' 5 m ': 300_000, '1h 30m': 5_400_000, '1d2h3m4s5ms': 93_784_005 };
    for (const [text, ms] of Object.entries({ ...read, ...spaced }))
      expect(parseDuration(text), text).toBe(ms);
    const none = [
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
      `${10n ** 20n}d`,
    ];
    for (const text of none) expect(parseDuration(text), text).toBeUndefined();
  });

  it('are written so that they are read back', () => {
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 40 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
    expect([5_400_000, 0].map(formatDuration)).toEqual(['1h30m', '0s']);
  });

  it('are shown to a person in their two largest units', () => {
    const [short, long] = [
      [-20, 999.4, 999.5, 59_499, 59_500],
      [130_000, 3_605_000, 100_800_000],
    ];
    expect(short.map(durationText)).toEqual(['0ms', '999ms', '1s', '59s', '1m']);
    expect(long.map(durationText)).toEqual(['2m 10s', '1h', '1d 4h']);
  });
});

describe('sizes', () => {
  it('are read with their unit, and as whole numbers of bytes', () => {
    const read = {
      '8 MiB': 2 ** 23,
      '20 MB': 2e7,
      '500 B': 500,
      '1.5KiB': 1536,
      '2 gib': 2 ** 31,
      '1 TB': 1e12,
    };
    for (const [text, bytes] of Object.entries(read)) expect(parseSize(text), text).toBe(bytes);
    expect(parseSize(1234)).toBe(1234);
    const none = [
      '',
      '8',
      'MiB',
      '-1 B',
      '8 M',
      '1e3 B',
      '8 MiB 2',
      -1,
      1.5,
      Number.NaN,
      '99999999999 TiB',
    ];
    for (const value of none) expect(parseSize(value), String(value)).toBeUndefined();
  });

  it('are written for a person', () => {
    const texts = ['0 B', '1023 B', '1.5 KiB', '1 MiB', '3072 TiB'];
    expect([0, 1023, 1536, 2 ** 20 - 1, 3 * 2 ** 50].map(formatBytes)).toEqual(texts);
  });
});
