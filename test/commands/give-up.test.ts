import { describe, expect, it } from 'vitest';
import { lastingTrouble } from '../../src/commands/daemon-access.js';
import type { TroubleKind } from '../../src/queue/breaker.js';

const NOW = Date.UTC(2026, 0, 1);

/** Whether a command gives up when this trouble has lasted for so long, and trouble of any kind for that long. */
function givesUp(kind: TroubleKind, troubleMs: number, downMs = troubleMs): boolean {
  const reason = { kind, message: 'no' };
  const circuit = { reason, state: 'open', since: NOW - troubleMs, downSince: NOW - downMs } as const;
  const given = lastingTrouble({ ...circuit, held: [], tries: 1 }, NOW);
  expect(given).toBe(given === undefined ? undefined : reason);
  return given !== undefined;
}

describe('a command', () => {
  it('bears a trouble for the time of its kind', () => {
    expect([givesUp('unreachable', 14_000), givesUp('unreachable', 16_000)]).toEqual([false, true]);
    expect([givesUp('failing', 59_000), givesUp('failing', 61_000)]).toEqual([false, true]);
    expect([givesUp('denied', 7_000), givesUp('denied', 9_000)]).toEqual([false, true]);
  });

  it('lets a refusal have its other try, however long the peer was away before', () => {
    expect(givesUp('denied', 1_000, 14_000)).toBe(false);
  });

  it('gives up on a peer whose trouble turns from one kind into another without end', () => {
    expect(givesUp('failing', 1_000, 2 * 60_000)).toBe(true);
  });

  it('gives up on nobody who is not in trouble', () => {
    const circuit = { state: 'closed', since: NOW - 3_600_000, held: [], tries: 0 } as const;
    expect(lastingTrouble(circuit, NOW)).toBeUndefined();
  });
});
