import { describe, expect, it } from 'vitest';
import { stepOf } from '../../src/commands/once.js';
import { progressLine } from '../../src/commands/terminal.js';

const counts = { pending: 0, accepted: 0, confirmed: 12, quarantined: 0, gone: 0, passed: 0 };
const none = { total: 0, waiting: [] };

const told = (...step: Parameters<typeof stepOf>): string => progressLine(stepOf(...step), undefined).trim();

describe('what once shows', () => {
  it('is how much is confirmed, and what is still to be done', () => {
    expect(told({ ...counts, pending: 5, accepted: 3 }, true, none)).toBe(
      '60% 12/20 confirmed, 5 to push, 3 to confirm',
    );
    expect(told({ ...counts, quarantined: 2 }, false, none)).toBe(
      '100% 12/12 confirmed, 0 to push, 0 to confirm, 2 quarantined, scanning',
    );
  });

  it('counts the mirrors that are still to be fetched', () => {
    const mirrors = { total: 4, waiting: ['prices'] };
    expect(told({ ...counts, pending: 4 }, true, mirrors)).toBe(
      '75% 12/16 confirmed, 4 to push, 0 to confirm, 1 mirror to fetch',
    );
  });

  it('names the mirrors that it waits for when nothing else is to be done, and is not all done then', () => {
    expect(told(counts, true, { total: 4, waiting: ['prices'] })).toBe(
      '93% waiting for 1 mirror (prices), 12/12 confirmed',
    );
    expect(told({ ...counts, quarantined: 1 }, true, { total: 5, waiting: ['a', 'b', 'c', 'd'] })).toBe(
      '76% waiting for 4 mirrors (a, b, c, …), 12/12 confirmed, 1 quarantined',
    );
    expect(told(counts, true, { total: 4, waiting: [] })).toBe(
      '100% 12/12 confirmed, 0 to push, 0 to confirm',
    );
  });

  it('counts no mirrors in the rate, nor lets a name act on the terminal', () => {
    const step = stepOf(counts, true, { total: 4, waiting: ['\u001b[2J'] });
    expect(step.done).toBe(12);
    expect(step.parts.join()).not.toContain('\u001b');
  });
});
