import { describe, expect, it } from 'vitest';
import { paceOf, paceText } from '../../src/report/status-report.js';
import { counts, NOW, queue } from '../commands/report.js';

const items = { ...counts, pending: 700, accepted: 64 };
const moving = { items, confirmedPerSecond: 38.2, queue, isScanning: false };
const outage = {
  kind: 'unreachable',
  code: 'ECONNREFUSED',
  message: 'connect ECONNREFUSED',
} as const;
const circuit = { ...queue.circuit, state: 'open', reason: outage } as const;

describe('the pace', () => {
  it('is what is confirmed a second, and how long the rest takes at that', () => {
    expect(paceOf(moving, NOW)).toEqual({ perSecond: 38.2, leftMs: 20_000 });
    expect(paceOf({ ...moving, confirmedPerSecond: 1_234.567 }, NOW)?.perSecond).toBe(1_230);
  });

  it('tells no end while a folder is scanned: more may come', () => {
    expect(paceOf({ ...moving, isScanning: true }, NOW)).toEqual({ perSecond: 38.2 });
  });

  it('is there only while something waits, and moves', () => {
    const lists = { ...queue, circuit: { ...circuit, held: ['mirror'] as const } };
    expect(paceOf({ ...moving, queue: lists }, NOW)).toBeDefined();
    const still = {
      'nothing waits': { ...moving, items: { ...items, pending: 0, accepted: 0 } },
      'nothing moves': { ...moving, confirmedPerSecond: 0 },
      'the peer is away': {
        ...moving,
        queue: { ...queue, circuit: { ...circuit, held: ['push'] as const } },
      },
      'it does not show documents': {
        ...moving,
        queue: { ...queue, circuit: { ...circuit, held: ['confirm'] as const } },
      },
      'the peer asked to wait': { ...moving, queue: { ...queue, retryAfterUntil: NOW + 1 } },
      'a person paused': { ...moving, queue: { ...queue, paused: { since: NOW } } },
      'no daemon runs': { ...moving, queue: undefined },
    };
    for (const [why, facts] of Object.entries(still))
      expect(paceOf(facts, NOW), why).toBeUndefined();
  });

  it('reads as a sentence, without an end that is near', () => {
    expect(paceText({ perSecond: 38.2, leftMs: 130_000 })).toBe(
      '38.2 a second, about 2m 10s to go',
    );
    expect(paceText({ perSecond: 1_230, leftMs: 9_000 })).toBe('1,230 a second');
    expect(paceText({ perSecond: 0.25 })).toBe('0.25 a second');
  });
});
