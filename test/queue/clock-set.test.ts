import { describe, expect, test } from 'vitest';
import { lastingTrouble } from '../../src/commands/give-up.js';
import { bad, openQueue } from './queue-setup.js';

const YEAR_MS = 365 * 86_400_000;

/** A queue whose peer has been away for 10 s. */
async function openQueueOfPeerThatIsAway() {
  const opened = openQueue();
  const { queue, clock } = opened;
  await queue.run('push', async () => 'it answers');
  await clock.advance(60_000);
  for (let i = 0; i < 2; i += 1)
    await queue.run('push', () => Promise.reject(bad('unreachable'))).catch(() => {});
  await clock.advance(10_000);
  return opened;
}

describe.each([YEAR_MS, -YEAR_MS])('a clock that is set by %d ms', (byMs) => {
  test('makes no trouble of the peer last longer or shorter, and nobody gives up because of it', async () => {
    const { queue, clock } = await openQueueOfPeerThatIsAway();
    clock.set(byMs);
    const { circuit } = queue.status();
    expect(circuit.state).not.toBe('closed');
    expect(clock.now() - circuit.since).toBe(10_000);
    expect(clock.now() - (circuit.downSince ?? 0)).toBe(10_000);
    expect(lastingTrouble(circuit, clock.now())).toBeUndefined();
    await clock.advance(6_000);
    expect(lastingTrouble(queue.status().circuit, clock.now())).toBeDefined();
  });

  test('does not change for how long it has answered', async () => {
    const { queue, clock } = openQueue();
    await queue.run('push', async () => 'it answers');
    await clock.advance(10_000);
    clock.set(byMs);
    expect(queue.answeringForMs).toBe(10_000);
    expect(clock.now() - queue.status().circuit.since).toBe(10_000);
  });
});
