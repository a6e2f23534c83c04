import { describe, expect, it } from 'vitest';
import type { WorkerReport } from '../../src/fleet/protocol.js';
import { WorkerList } from '../../src/fleet/worker-list.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** What a worker says of itself. The clock of Redis is an hour ahead. */
function saidAt(at: number, host: string, parts: Partial<WorkerReport> = {}): WorkerReport {
  const counts = { slots: 2, active: 1, done: 0, failed: 0, pushSlots: 0, orders: [] };
  const program = { pid: 1, version: '1.0.0', build: '1.0.0' };
  return { id: `1 of ${host}`, host, ...program, ...counts, seenAt: at + 60 * MINUTE, ...parts };
}

describe('the workers as the owner sees them', () => {
  it('have a speed, that of the last minute', () => {
    const list = new WorkerList();
    const speed = (now: number) => list.status(now).workers[0]?.perSecond;
    list.update([saidAt(0, 'a', { done: 100 })], 0);
    expect(speed(0)).toBeUndefined();
    list.update([saidAt(5 * SECOND, 'a', { done: 110 })], 5 * SECOND);
    expect(speed(5 * SECOND)).toBe(2);
    for (let at = 10; at <= 120; at += 5)
      list.update([saidAt(at * SECOND, 'a', { done: 110 })], at * SECOND);
    expect(speed(2 * MINUTE)).toBe(0);
  });

  it('were seen when they last said something new, by the clock of the owner', () => {
    const list = new WorkerList();
    list.update([saidAt(0, 'a')], 0);
    list.update([saidAt(0, 'a')], 5 * SECOND);
    expect(list.status(5 * SECOND).workers[0]?.seenAt).toBe(0);
    list.update([saidAt(6 * SECOND, 'a')], 10 * SECOND);
    expect(list.status(10 * SECOND).workers[0]?.seenAt).toBe(10 * SECOND);
  });

  it('are lost when they are silent for half a minute, and for ten minutes', () => {
    const list = new WorkerList();
    list.update([saidAt(0, 'a'), saidAt(0, 'b')], 0);
    const lostAt = (now: number) => {
      list.update([saidAt(now, 'b')], now);
      return list.status(now).lost.map(({ host }) => host);
    };
    expect(lostAt(20 * SECOND)).toEqual([]);
    expect(lostAt(31 * SECOND)).toEqual(['a']);
    expect(lostAt(10 * MINUTE)).toEqual(['a']);
    expect(lostAt(10 * MINUTE + 1)).toEqual([]);
    expect(list.status(10 * MINUTE).workers.map(({ host }) => host)).toEqual(['b']);
  });

  it('are not lost after they said that they stop, or when another one starts on that machine', () => {
    const list = new WorkerList();
    list.update([saidAt(0, 'a', { idle: { reason: 'stopping' } }), saidAt(0, 'b')], 0);
    list.update([], 5 * SECOND);
    expect(list.status(MINUTE).lost.map(({ host }) => host)).toEqual(['b']);
    list.update([saidAt(MINUTE, 'b', { id: 'another' })], MINUTE);
    expect(list.status(MINUTE).lost).toEqual([]);
  });

  it('are none only after a while', () => {
    const list = new WorkerList();
    list.update([], 5 * SECOND);
    expect(list.status(30 * SECOND).noneSince).toBeUndefined();
    list.update([], 40 * SECOND);
    expect(list.status(40 * SECOND).noneSince).toBe(5 * SECOND);
    list.update([saidAt(41 * SECOND, 'a', { active: 3 })], 41 * SECOND);
    expect(list.status(2 * MINUTE)).toMatchObject({ noneSince: undefined, active: 3 });
  });
});
