import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { numberText, shellWord } from '../../src/lib/text.js';
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

test('a name in a command that a person copies is one word of a shell', () => {
  expect(shellWord('notes-2.b/*')).toBe("'notes-2.b/*'");
  for (const name of ['notes', 'My notes', "it's $HOME", 'Bücher', '-x', '']) {
    const echoed = execFileSync('sh', ['-c', `printf %s ${shellWord(name)}`.replace('%s', "'%s|'")]);
    expect(echoed.toString()).toBe(`${name}|`);
  }
});
