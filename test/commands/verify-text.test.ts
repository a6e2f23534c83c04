import { expect, it } from 'vitest';
import { verifyText } from '../../src/commands/items.js';

it('what was looked up is told, and so is that there was nothing to look up', () => {
  const of = (checked: number, lost: number, failed = 0) =>
    verifyText({ kind: 'verified', checked, lost, failed }, false);
  expect(of(0, 0)).toBe('Nothing is confirmed yet, so that there is nothing to look up.');
  expect(of(7, 0)).toBe('7 confirmed items looked up: all are there.');
  expect(of(7, 0, 1)).toBe(
    '7 confirmed items looked up: none is missing. Of 1 item the answer could not be used; the log names them.',
  );
  expect(of(7, 2)).toMatch(/^7 confirmed items looked up, 2 missing\. `peersync verify --repair` pushes/);
});
