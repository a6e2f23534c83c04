import { expect, it } from 'vitest';
import { stepOf } from '../../src/commands/once.js';
import { progressLine } from '../../src/commands/terminal.js';

const counts = { pending: 0, accepted: 0, confirmed: 12, quarantined: 0, gone: 0, skipped: 0 };

it.each([
  [{ pending: 5, accepted: 3 }, true, 0, [], '60% 12/20 confirmed, 5 to push, 3 to confirm'],
  [
    { quarantined: 2 },
    false,
    0,
    [],
    '100% 12/12 confirmed, 0 to push, 0 to confirm, 2 quarantined, scanning',
  ],
  [{ pending: 4 }, true, 4, ['a'], '75% 12/16 confirmed, 4 to push, 0 to confirm, 1 mirror to fetch'],
  // Nothing else is to be done.
  [{}, true, 4, ['a'], '93% waiting for 1 mirror (a), 12/12 confirmed'],
  [
    { quarantined: 1 },
    true,
    5,
    ['a', 'b', 'c', 'd'],
    '76% waiting for 4 mirrors (a, b, c, …), 12/12 confirmed, 1 quarantined',
  ],
  [{}, true, 4, [], '100% 12/12 confirmed, 0 to push, 0 to confirm'],
  // A name does not act on the terminal.
  [{}, true, 4, ['\x1b[2J'], '93% waiting for 1 mirror (\\x1b[2J), 12/12 confirmed'],
])(
  'once with %j, scanned %s, of %i mirrors %j to wait for, shows %s',
  (parts, isScanned, total, waiting, line) => {
    const step = stepOf({ ...counts, ...parts }, isScanned, { total, waiting });
    expect(progressLine(step, undefined).trim()).toBe(line);
    // Mirrors do not count in the rate.
    expect(step.done).toBe(12);
  },
);
