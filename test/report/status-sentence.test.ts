import { describe, expect, it } from 'vitest';
import type { StatusFacts } from '../../src/report/status.js';
import { statusSentence } from '../../src/report/status.js';
import { queue, report } from '../commands/report.js';

const at = (time: string): number => new Date(`2026-11-21T${time}`).getTime();
const items = { pending: 0, accepted: 0, confirmed: 0, quarantined: 0, gone: 0 };
const none = report({ items, figures: undefined });
const sentenceOf = (parts: Partial<StatusFacts>) => statusSentence(report({ ...none, ...parts }));
const peer = (over: Partial<typeof queue>) => ({
  peer: { url: 'http://x', dialect: 'yacy' as const, queue: { ...queue, ...over } },
});

describe('the sentence for systemctl status', () => {
  it('gives the counts, what waits and the last confirmation', () => {
    expect(statusSentence({ ...none, items, conditions: [] })).toBe('0 documents confirmed, nothing waiting');
    const figures = { timeToSearch: [], confirmedPerSecond: 0, alerts: [], lastConfirmedAt: at('10:04:12') };
    const busy = { ...items, confirmed: 12_345, pending: 10, accepted: 7, gone: 5 };
    expect(sentenceOf({ items: busy, figures })).toBe(
      '12,345 documents confirmed, 17 waiting, last confirmation 2026-11-21 10:04:12',
    );
    expect(sentenceOf({ items: busy, figures, wallAheadMs: 3_600_000 })).toMatch(/ 2026-11-21 11:04:12$/);
    expect(statusSentence({ ...none, items: { ...items, confirmed: 1, quarantined: 2 } })).toBe(
      '1 document confirmed, nothing waiting, 2 in quarantine',
    );
  });

  it('says that a disk does not answer, or that the state cannot be written', () => {
    const trouble = {
      code: 'X',
      message: 'The disk of /srv does not answer: nothing is read.',
      hint: 'Look.',
    };
    expect(sentenceOf({ diskTrouble: { ...trouble, path: '/srv', since: at('10:00:00') } })).toMatch(
      /; The disk of \/srv does not answer: nothing is read \(since 2026-11-21 10:00:00\)/,
    );
    expect(sentenceOf({ stateTrouble: { ...trouble, message: 'The state is full' } })).toMatch(
      /; The state is full/,
    );
  });

  it('says that a changed configuration was refused, and when', () => {
    const refused = { code: 'X', message: 'It is wrong', hint: 'Mend it.', at: at('03:12:00') };
    expect(sentenceOf({ configuration: { takenUpAt: 0, refused } })).toMatch(
      /; The changed configuration was refused, and the one before holds: It is wrong \(since 2026-11-21 03:12:00\)$/,
    );
    expect(sentenceOf({ configuration: { takenUpAt: 0 } })).not.toMatch(/configuration/);
  });

  it.each([
    ['unreachable', 'does not answer'],
    ['denied', 'refuses the credentials'],
    ['failing', 'answers with errors'],
  ] as const)('says of a peer that is %s what it does, and since when', (kind, words) => {
    const circuit = {
      ...{ state: 'open' as const, since: at('10:04:00'), held: [], tries: 0 },
      reason: { kind, message: 'no' },
    };
    const sentence = sentenceOf(peer({ circuit } as unknown as typeof queue));
    expect(sentence).toContain(words);
    expect(sentence).toMatch(/; The peer .*: no \(since 2026-11-21 10:04:00\)$/);
  });

  it('says that the peer asked to wait, where that is all', () => {
    expect(sentenceOf(peer({ pausedUntil: at('11:00:00') } as Partial<typeof queue>))).toMatch(
      /; the peer asked to wait until 2026-11-21 11:00:00$/,
    );
  });

  it('says that a person paused the work', () => {
    const paused = { since: at('10:00:00') };
    expect(sentenceOf({ paused })).toMatch(/; paused since 2026-11-21 10:00:00$/);
    expect(sentenceOf({ paused: { ...paused, until: at('12:00:00') } })).toMatch(
      /; paused since 2026-11-21 10:00:00 until 2026-11-21 12:00:00$/,
    );
  });

  it('counts what would be too many to name', () => {
    const problems = ['a', 'b', 'c'].map((path) => ({
      ...{ folder: 'f', path, since: 0 },
      trouble: { code: 'UNREADABLE', message: 'It cannot be read.', hint: 'Allow it.' },
    }));
    expect(sentenceOf({ problems, restart: ['a'], repairs: ['b'], paused: { since: 0 } })).not.toMatch(
      /more/,
    );
    const trouble = { code: 'X', message: 'It is full.', hint: 'Look.' };
    expect(sentenceOf({ problems, restart: ['a'], repairs: ['b'], stateTrouble: trouble })).toMatch(
      /; and 1 more: `peersync status`$/,
    );
  });
});
