import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.js';
import { Housekeeping } from '../../src/daemon/housekeeping.js';
import { silentLogger } from '../../src/lib/logger.js';
import { accepted, gone, passedOver, read } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { lifeOf, pendingRecord, sentOf } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const DAY_MS = 86_400_000;
const clock = new FakeClock();
const said: string[] = [];
const log = { ...silentLogger, info: (_: object, message: string) => void said.push(message) };
let state: State;
let housekeeping: Housekeeping;

beforeEach(async () => {
  said.length = 0;
  state = await State.open(temporaryDirectory(), { clock, log: silentLogger });
  housekeeping = new Housekeeping({ state, clock, log });
});
afterEach(async () => {
  await housekeeping.stop();
  await state.close();
});

/** A configuration with these folders. */
function configOf(names: readonly string[], keepGone = 2 * DAY_MS) {
  return { folders: names.map((name) => ({ name })), state: { keepGone } } as unknown as Config;
}
const INBOX = configOf(['inbox']);

describe('a folder that left the configuration', () => {
  it('has no files that anybody waits for, and that is said once', async () => {
    state.put(pendingRecord('waits', 'old'));
    state.put(lifeOf(pendingRecord('done', 'old'))[2]);
    const { version } = pendingRecord('empty');
    const why = { code: 'EMPTY', message: 'The file is empty.', hint: '' };
    state.put(passedOver(undefined, { folder: 'old', path: 'empty' }, version, why, clock.now()));
    state.put(pendingRecord('stays'));
    await housekeeping.keep(INBOX);
    expect(state.counts()).toMatchObject({ pending: 1, confirmed: 0, gone: 2, passed: 0 });
    expect(state.get('inbox', 'stays')?.status).toBe('pending');
    expect(said).toEqual([expect.stringContaining('its 3 files count as gone')]);
    await housekeeping.keep(INBOX);
    expect(said).toHaveLength(1);
  });

  it('costs no pushes when it comes back', async () => {
    const item = pendingRecord('done', 'old');
    state.put(lifeOf(item)[2]);
    await housekeeping.keep(INBOX);
    expect(read(state.get('old', 'done'), item, item.version, clock.now()).status).toBe('accepted');
  });
});

describe('a folder that leaves the configuration of a running daemon', () => {
  it('has no files that anybody waits for, and that is on disk when it is answered', async () => {
    await housekeeping.keep(INBOX);
    for (let i = 0; i < 12_000; i += 1) state.put(pendingRecord(`${i}`, 'old'));
    state.put(pendingRecord('stays'));
    await housekeeping.keep(INBOX);
    expect(state.counts()).toMatchObject({ pending: 1, gone: 12_000 });
    expect(state.figures().unsaved).toBe(0);
    expect(said).toEqual([expect.stringContaining('its 12,000 files count as gone')]);
  });

  it('lets others work meanwhile, and takes what they did with it', async () => {
    await housekeeping.keep(INBOX);
    for (let i = 0; i < 20_000; i += 1) state.put(pendingRecord(`${i}`, 'old'));
    const goneAt: number[] = [];
    const keeping = housekeeping.keep(configOf([])).then(() => goneAt.push(0));
    while (goneAt.at(-1) !== 0) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      goneAt.push(state.counts().gone);
      const [entry] = [...state.entries.all('old', 'pending')].slice(-1);
      if (entry?.status === 'pending') state.put(accepted(entry, sentOf(entry), clock.now()));
      if (state.counts().gone === 20_000) break;
    }
    await keeping;
    expect(new Set(goneAt).size).toBeGreaterThan(10);
    expect([...state.entries.all('old')].some((entry) => entry.sent !== undefined)).toBe(true);
    expect(state.counts()).toMatchObject({ pending: 0, accepted: 0, gone: 20_000 });
  });

  it('is left to the next run where the daemon stops', async () => {
    await housekeeping.keep(INBOX);
    for (let i = 0; i < 5_000; i += 1) state.put(pendingRecord(`${i}`, 'old'));
    const keeping = housekeeping.keep(configOf([]));
    await housekeeping.stop();
    await keeping;
    expect(state.counts().pending).toBeGreaterThan(500);
    expect(said).toEqual([]);
    const next = new Housekeeping({ state, clock, log });
    await next.keep(INBOX);
    await next.stop();
    expect(state.counts()).toMatchObject({ pending: 0, gone: 5_000 });
  });

  it('is remembered for as long as is said then', async () => {
    await housekeeping.keep(INBOX);
    state.put(gone(pendingRecord('a'), clock.now()));
    await clock.advance(1.5 * DAY_MS);
    await housekeeping.keep(configOf(['inbox'], DAY_MS));
    await until(() => state.counts().gone === 0, 'it is forgotten');
    state.put(gone(pendingRecord('b'), clock.now()));
    await housekeeping.keep(configOf(['inbox'], 10 * DAY_MS));
    await clock.advance(5 * DAY_MS);
    expect(state.counts().gone).toBe(1);
  });
});

describe('a file that is gone', () => {
  it('is forgotten in time by a daemon that is never restarted, and not earlier', async () => {
    await housekeeping.keep(INBOX);
    state.put(gone(pendingRecord('a'), clock.now()));
    await clock.advance(2 * DAY_MS);
    expect(state.entries.size).toBe(1);
    await clock.advance(DAY_MS);
    await until(() => state.entries.size === 0, 'what is gone for three days is forgotten');
  });
});
