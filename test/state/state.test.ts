import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { State } from '../../src/state/state.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { lifeOf, pendingRecord } from './records.js';

const options = { clock: new FakeClock(), log: silentLogger };

describe('state', () => {
  it('has after a restart what was committed before', async () => {
    const dir = temporaryDirectory();
    const first = await State.open(dir, options);
    for (const name of ['a.txt', 'sub/b.txt', 'sub/ümläut 😀.txt']) {
      for (const entry of lifeOf(pendingRecord(name))) first.put(entry);
    }
    first.put(pendingRecord('c.txt', 'other'));
    first.put(pendingRecord('d.txt'));
    first.remove('inbox', 'd.txt');
    first.setMeta('peer', { url: 'http://localhost', seen: [1, 2.5] });
    first.setMeta('old', 1);
    first.setMeta('old', undefined);
    await first.commit();
    const before = [...first.entries.all()];
    await first.close();

    const second = await State.open(dir, options);
    expect([...second.entries.all()]).toEqual(before);
    expect(second.get('inbox', 'sub/ümläut 😀.txt')?.status).toBe('confirmed');
    expect(second.get('inbox', 'd.txt')).toBeUndefined();
    expect(second.counts()).toEqual({
      pending: 1,
      accepted: 0,
      confirmed: 3,
      quarantined: 0,
      gone: 0,
      passed: 0,
    });
    expect(second.meta('peer')).toEqual({ url: 'http://localhost', seen: [1, 2.5] });
    expect(second.meta('old')).toBeUndefined();
    expect(second.repairs).toEqual([]);
    await second.close();
  });
});
