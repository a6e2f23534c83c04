import { expect, it } from 'vitest';
import { lastingTrouble } from '../../src/commands/daemon-access.js';

const NOW = Date.UTC(2026, 0, 1);

it.each([
  ['unreachable', 14, 14, false],
  ['unreachable', 16, 16, true],
  ['failing', 59, 59, false],
  ['failing', 61, 61, true],
  ['denied', 7, 7, false],
  ['denied', 9, 9, true],
  // A refusal has its other try, however long the peer was away before.
  ['denied', 1, 14, false],
  // Trouble that turns from one kind into another without end.
  ['failing', 1, 120, true],
] as const)(
  'a command at a peer that is %s for %i s, and in trouble for %i s, gives up: %s',
  (kind, s, downS, isGivenUp) => {
    const reason = { kind, message: 'no' };
    const circuit = {
      reason,
      state: 'open',
      since: NOW - s * 1_000,
      downSince: NOW - downS * 1_000,
    } as const;
    expect(lastingTrouble({ ...circuit, held: [], tries: 1 }, NOW)).toBe(isGivenUp ? reason : undefined);
  },
);

it('a command gives up on no peer that is not in trouble', () => {
  const circuit = { state: 'closed', since: NOW - 3_600_000, held: [], tries: 0 } as const;
  expect(lastingTrouble(circuit, NOW)).toBeUndefined();
});
