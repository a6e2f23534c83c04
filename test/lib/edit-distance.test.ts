import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editDistance, nearest } from '../../src/lib/text.js';

function distance(a: string, b: string, limit = 10): number {
  return editDistance([...a], [...b], limit);
}

describe('the edit distance', () => {
  it.each([
    ['tea', 'tea', 0],
    ['tea', 'teas', 1],
    ['tea', 'ta', 1],
    ['tea', 'toa', 1],
    ['tea', 'tae', 1],
    ['tea', 'ate', 2],
    ['', 'tea', 3],
    ['😀a', 'a😀', 1],
  ])('of %j and %j is %i', (a, b, expected) => {
    expect(distance(a, b)).toBe(expected);
  });

  it('is the same in both directions, and stops one beyond its limit', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 });
    const isBounded = fc.property(word, word, fc.nat(4), (a, b, limit) => {
      const whole = distance(a, b);
      expect(distance(b, a)).toBe(whole);
      expect(distance(a, b, limit)).toBe(Math.min(whole, limit + 1));
    });
    fc.assert(isBounded);
  });
});

describe('the nearest word', () => {
  it.each([
    ['stauts', 'status'],
    ['STATUS', 'status'],
    ['stat', 'start'],
    ['sart', 'start'],
    ['mirror', undefined],
  ])('to %j is %j', (given, expected) => {
    expect(nearest(given, ['status', 'start'])).toBe(expected);
  });
});
