import { describe, expect, it } from 'vitest';
import { type Standing, statusSentence } from '../../src/report/status-sentence.js';

const at = (time: string): number => new Date(`2026-11-21T${time}`).getTime();
const items = { pending: 0, accepted: 0, confirmed: 0, quarantined: 0, gone: 0 };
const closed = { state: 'closed', since: at('09:00:00'), held: [], tries: 0 } as const;
const calm: Standing = { items, peer: { queue: { circuit: closed } }, mirrors: [] };

describe('the sentence for systemctl status', () => {
  it('tells of the items, what waits and the last confirmation', () => {
    expect(statusSentence(calm)).toBe('0 documents confirmed, nothing waiting');
    expect(
      statusSentence({
        ...calm,
        items: { ...items, confirmed: 12_345, pending: 10, accepted: 7, gone: 5 },
        figures: { lastConfirmedAt: at('10:04:12') },
      }),
    ).toBe('12,345 documents confirmed, 17 waiting, last confirmation 2026-11-21 10:04:12');
    expect(statusSentence({ ...calm, items: { ...items, confirmed: 1, quarantined: 2 } })).toBe(
      '1 document confirmed, nothing waiting, 2 in quarantine',
    );
  });

  it('tells that a disk does not answer, or that the state cannot be written', () => {
    expect(statusSentence({ ...calm, diskTrouble: {} })).toMatch(/; a disk does not answer, and what needs/);
    expect(statusSentence({ ...calm, stateTrouble: {} })).toMatch(/; what happens cannot be recorded/);
  });

  it('tells that a changed configuration was refused, and when', () => {
    const configuration = { refused: { at: at('03:12:00') } };
    expect(statusSentence({ ...calm, configuration })).toMatch(
      /; the changed configuration was refused 2026-11-21 03:12:00, and the one before holds$/,
    );
    expect(statusSentence({ ...calm, configuration: {} })).not.toMatch(/configuration/);
  });

  it('tells of trouble with the peer, and since when', () => {
    const open = (kind: 'unreachable' | 'denied' | 'failing') => ({
      ...closed,
      state: 'open' as const,
      since: at('10:04:00'),
      reason: { kind, message: 'no' },
    });
    const sentence = (kind: 'unreachable' | 'denied' | 'failing') =>
      statusSentence({ ...calm, peer: { queue: { circuit: open(kind) } } });
    expect(sentence('unreachable')).toBe(
      '0 documents confirmed, nothing waiting; the peer does not answer since 2026-11-21 10:04:00',
    );
    expect(sentence('denied')).toMatch(/; the peer refuses our credentials since /);
    expect(sentence('failing')).toMatch(/; the peer answers with errors since /);
  });

  it('tells that the peer asked to wait, where that is all', () => {
    const queue = { circuit: closed, pausedUntil: at('11:00:00') };
    expect(statusSentence({ ...calm, peer: { queue } })).toMatch(
      /; the peer asked to wait until 2026-11-21 11:00:00$/,
    );
  });

  it('tells that a person paused the work, beside any trouble', () => {
    const queue = { circuit: closed, paused: { since: at('10:00:00') } };
    expect(statusSentence({ ...calm, peer: { queue } })).toMatch(/; paused since 2026-11-21 10:00:00$/);
    const paused = { since: at('10:00:00'), until: at('12:00:00') };
    expect(statusSentence({ ...calm, peer: { queue: { circuit: closed, paused } } })).toMatch(
      /; paused since 2026-11-21 10:00:00 until 2026-11-21 12:00:00$/,
    );
  });

  it('tells of mirrors with an alarm and of those that fail', () => {
    const [alarm, failure] = [{ code: 'A' }, { code: 'F' }];
    expect(statusSentence({ ...calm, mirrors: [{ alarm }, { failure }, { alarm, failure }, {}] })).toMatch(
      /; 2 mirrors with an alarm; 1 mirror fails$/,
    );
  });
});
