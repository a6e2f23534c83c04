import { expect, it } from 'vitest';
import { verifyText } from '../../src/commands/verify.js';

it('what was looked up is told, and so is that there was nothing to look up', () => {
  const of = (checked: number, missed: number) => verifyText({ kind: 'verified', checked, missed }, false);
  expect(of(0, 0)).toBe('Nothing is confirmed yet, so that there is nothing to look up.');
  expect(of(7, 0)).toBe('7 confirmed items looked up: all are there.');
  expect(of(7, 2)).toMatch(/^7 confirmed items looked up, 2 missing\. `peersync verify --repair` pushes/);
});
