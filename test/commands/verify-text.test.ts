import { expect, it } from 'vitest';
import { verifyText } from '../../src/commands/verify.js';

it('what was looked up is told, and so is that there was nothing to look up', () => {
  const of = (checked: number, lost: number, failed = 0, removed = 0, back = 0) =>
    verifyText({ kind: 'verified', checked, removed, lost, back, failed }, false);
  expect(of(0, 0)).toBe('Nothing is confirmed yet, so that there is nothing to look up.');
  expect(of(7, 0)).toBe('7 confirmed items looked up: all are there.');
  expect(of(7, 0, 1)).toBe(
    '7 confirmed items looked up: none is missing. Of 1 item the answer could not be used; the log names them.',
  );
  expect(of(7, 2)).toMatch(
    /^7 confirmed items looked up, 2 missing\. `peersync verify --all --repair` pushes/,
  );
  expect(of(10, 0, 0, 3)).toBe(
    '7 confirmed items looked up: all are there. 3 removed items looked up: none has come back.',
  );
  expect(of(3, 0, 0, 3, 1)).toBe(
    '3 removed items looked up, 1 back. `peersync verify --all --repair` removes again what is back.',
  );
});
