import { describe, expect, it } from 'vitest';
import { checkedRow, checkKey, checkName, newKey } from '../../src/peer/table-names.js';

describe('a name', () => {
  it.each(['a', 'x'.repeat(500), 'a b', '🎉', 'ends with NUL\0'])('can be %j', (name) => {
    expect(() => checkName('column', name)).not.toThrow();
  });

  it.each(['', 'x'.repeat(501), 'half \ud83d'])('is none of a peer: %j', (name) => {
    expect(() => checkName('table', name)).toThrow(/^a table has 1 to 500 well-formed characters/);
    expect(() => checkKey(name)).toThrow(/^a key has/);
  });
});

it('a key does not end with NUL, and may hold one', () => {
  expect(() => checkKey('k\0')).toThrow(TypeError);
  expect(() => checkKey('k\0k')).not.toThrow();
});

describe('a row', () => {
  it('travels with its cells well-formed', () => {
    const cells = new Map([
      ['a', 'half \ud83d'],
      ['b', ''],
    ]);
    expect(checkedRow({ pk: 'k', cells })).toEqual({
      pk: 'k',
      cells: new Map([
        ['a', 'half \ufffd'],
        ['b', ''],
      ]),
    });
  });

  it('is none with a key or a column that is none', () => {
    expect(() => checkedRow({ pk: '', cells: new Map() })).toThrow(/^a key/);
    expect(() => checkedRow({ pk: 'k\0', cells: new Map() })).toThrow(/^a key/);
    expect(() => checkedRow({ pk: 'k', cells: new Map([['', 'x']]) })).toThrow(/^a column/);
  });
});

describe('a new key', () => {
  it('sorts by time, whenever that is', () => {
    const times = [0, 1, 36 ** 7, Date.UTC(2026, 0, 1), Date.UTC(2050, 0, 1)];
    const keys = times.map((now) => newKey(now));
    expect(keys.toSorted()).toEqual(keys);
    for (const key of keys) expect(key).toMatch(/^[0-9a-z]{12}$/);
  });

  it('is another one in the same moment', () => {
    expect(new Set(Array.from({ length: 20 }, () => newKey(5))).size).toBeGreaterThan(15);
  });
});
