import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  escapeInvisible,
  escapeUnseen,
  fromVisible,
  numberText,
  readableUrl,
  shellWord,
  visibleParts,
} from '../../src/lib/text.js';
import { wallClockText } from '../../src/lib/units.js';

test('numbers and dates look as Intl formats them', () => {
  const moment = fc.integer({ min: 0, max: 250_000_000_000_000 });
  const asTheyAre = fc.property(fc.maxSafeInteger(), moment, (n, at) => {
    expect(numberText(n)).toBe(n.toLocaleString('en'));
    expect(wallClockText(at)).toBe(new Date(at).toLocaleString('sv-SE'));
  });
  fc.assert(asTheyAre);
});

test('a date that no calendar has is shown, without an error', () => {
  expect(wallClockText(1e18)).toContain('NaN');
});

test('invisible characters in a name are escaped; letters, marks and emoji stay', () => {
  const hidden = 'a\u001b[31m\u0007\n\u200b\u200f\u202e\u2060\u2066\ufeff\u{e0041}\u{e0100}\u3164';
  expect(escapeInvisible(hidden)).toBe(
    'a\\x1b[31m\\x07\\x0a\\u200b\\u200f\\u202e\\u2060\\u2066\\ufeff\\u{e0041}\\u{e0100}\\u3164',
  );
  expect(escapeInvisible('\u034f\u180b\ufe0e\u2800\ud800')).toBe(
    '\\u034f\\u180b\\ufe0e\\u2800\\ud800',
  );
  for (const name of ['Bücher', 'e\u0301', '文書', 'शब्द', '❤️', '👍🏽'])
    expect(escapeInvisible(name)).toBe(name);
  expect(fromVisible(escapeInvisible(hidden))).toBe(hidden);
  // None of these is an escape that `visible` writes.
  for (const text of ['\\x41', '\\x00', '\\u{ffffff}', 'C:\\new'])
    expect(fromVisible(text)).toBe(text);
});

test('JSON keeps its values when invisible characters are escaped', () => {
  const line = JSON.stringify({ msg: 'a\u202e\u009b31m\u{e0041}\u200bß' });
  const escaped = escapeUnseen(line);
  expect(escaped).toBe('{"msg":"a\\u202e\\u009b31m\\udb40\\udc41\\u200bß"}');
  expect(JSON.parse(escaped)).toEqual(JSON.parse(line));
});

test('an escape in a name is distinguished from a name that contains its letters', () => {
  expect(visibleParts('zero\u200bwidth\n.txt')).toEqual([
    'zero',
    '\\u200b',
    'width',
    '\\x0a',
    '.txt',
  ]);
  expect(visibleParts('zero\\u200bwidth.txt')).toEqual(['zero\\u200bwidth.txt']);
  expect(visibleParts('')).toEqual(['']);
});

test('a URL is shown decoded, with escapes only for invisible characters', () => {
  expect(readableUrl('https://h/B%C3%BCcher/a%E2%80%AEfdp%E3%85%A4')).toBe(
    'https://h/Bücher/a%E2%80%AEfdp%E3%85%A4',
  );
  expect(readableUrl('https://h/%ff')).toBe('https://h/%ff');
});

test('a name in a command to copy is one word of a shell', () => {
  expect(shellWord('notes-2.b/*')).toBe("'notes-2.b/*'");
  for (const name of ['notes', 'My notes', "it's $HOME", 'Bücher', '-x', '']) {
    const echoed = execFileSync('sh', [
      '-c',
      `printf %s ${shellWord(name)}`.replace('%s', "'%s|'"),
    ]);
    expect(echoed.toString()).toBe(`${name}|`);
  }
});
