import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.js';
import { Housekeeping } from '../../src/daemon/housekeeping.js';
import { silentLogger } from '../../src/lib/logger.js';
import { State } from '../../src/state/state.js';
import { accepted, gone, skipped } from '../../src/state/transitions.js';
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
let isEmbedded: boolean | undefined;

beforeEach(async () => {
  said.length = 0;
  isEmbedded = false;
  state = await State.open(temporaryDirectory(), { clock, log: silentLogger });
  housekeeping = new Housekeeping({ state, clock, log, isEmbedded: () => isEmbedded });
});
afterEach(async () => {
  await housekeeping.stop();
  await state.close();
});

/** Returns a configuration with these folders. */
function configOf(names: readonly string[], keepGone = 2 * DAY_MS) {
  return { folders: names.map((name) => ({ name })), state: { keepGone } } as unknown as Config;
}
const INBOX = configOf(['inbox']);

function fill(count: number): void {
  for (let i = 0; i < count; i += 1) state.put(pendingRecord(`${i}`, 'old'));
}

describe('a folder that left the configuration', () => {
  it('has only gone files afterwards, on disk as well, and is logged once', async () => {
    state.put(pendingRecord('waits', 'old'));
    const item = pendingRecord('done', 'old');
    state.put(lifeOf(item)[2]);
    const why = { code: 'EMPTY', message: 'The file is empty.', hint: '' };
    state.put(skipped(undefined, { folder: 'old', path: 'empty' }, item.version, why, clock.now()));
    state.put(pendingRecord('stays'));
    for (let i = 0; i < 2; i += 1) await housekeeping.configure(INBOX);
    expect(state.counts()).toMatchObject({ pending: 1, confirmed: 0, gone: 2, skipped: 0 });
    expect(state.get('inbox', 'stays')?.status).toBe('pending');
    expect(state.figures().unsaved).toBe(0);
    expect(said).toEqual([expect.stringContaining('its 3 files count as gone')]);
  });

  it('is retired in slices, with the changes that others make meanwhile', async () => {
    await housekeeping.configure(INBOX);
    fill(8_000);
    const goneAt = new Set<number>();
    let isOver = false;
    const keeping = housekeeping.configure(configOf([])).then(() => {
      isOver = true;
    });
    while (!isOver && state.counts().gone < 8_000) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      goneAt.add(state.counts().gone);
      const entry = state.get('old', `${8_000 - goneAt.size}`);
      if (entry?.status === 'pending') state.put(accepted(entry, sentOf(entry), clock.now()));
    }
    await keeping;
    expect(goneAt.size).toBeGreaterThan(5);
    expect([...state.entries.all('old')].some((entry) => entry.sent !== undefined)).toBe(true);
    expect(state.counts()).toMatchObject({ pending: 0, accepted: 0, gone: 8_000 });
  });

  it('is retired by the next run if the daemon stops', async () => {
    await housekeeping.configure(INBOX);
    fill(5_000);
    const keeping = housekeeping.configure(configOf([]));
    await housekeeping.stop();
    await keeping;
    expect(state.counts().pending).toBeGreaterThan(500);
    expect(said).toEqual([]);
    housekeeping = new Housekeeping({ state, clock, log, isEmbedded: () => isEmbedded });
    await housekeeping.configure(INBOX);
    expect(state.counts()).toMatchObject({ pending: 0, gone: 5_000 });
  });
});

describe('a gone file', () => {
  it('loses its record after keepGone in a daemon that is never restarted, and not earlier', async () => {
    await housekeeping.configure(INBOX);
    state.put(gone(pendingRecord('a'), clock.now()));
    await clock.advance(2 * DAY_MS);
    expect(state.entries.size).toBe(1);
    await clock.advance(DAY_MS);
    await until(() => state.entries.size === 0, 'what is gone for three days is forgotten');
  });

  it('keeps its record if its document is still to be removed', async () => {
    const [inbox] = INBOX.folders;
    const folder = { ...inbox, url: 'https://files.example.org/inbox/', onDelete: 'remove' };
    await housekeeping.configure({ ...INBOX, folders: [folder] } as unknown as Config);
    const item = pendingRecord('a');
    state.put(gone(accepted(item, sentOf(item), clock.now()), clock.now()));
    state.put(gone(pendingRecord('never-sent'), clock.now()));
    await clock.advance(2 * DAY_MS);
    await clock.advance(DAY_MS);
    await until(() => state.counts().gone === 1, 'the other one is forgotten');
    expect(state.get('inbox', 'a')?.status).toBe('gone');
  });

  it('keeps its record while it is unknown whether the documents of the peer are removed', async () => {
    isEmbedded = undefined;
    const [inbox] = INBOX.folders;
    const folder = { ...inbox, url: 'https://files.example.org/inbox/' };
    const config = { ...INBOX, folders: [folder] } as unknown as Config;
    await housekeeping.configure(config);
    const item = pendingRecord('a');
    state.put(gone(accepted(item, sentOf(item), clock.now()), clock.now()));
    await clock.advance(4 * DAY_MS);
    expect(state.get('inbox', 'a')?.status).toBe('gone');
    isEmbedded = false;
    await housekeeping.configure(config);
    expect(state.get('inbox', 'a')).toBeUndefined();
  });

  it('keeps its record for as long as a changed configuration says', async () => {
    await housekeeping.configure(INBOX);
    state.put(gone(pendingRecord('a'), clock.now()));
    await clock.advance(1.5 * DAY_MS);
    await housekeeping.configure(configOf(['inbox'], DAY_MS));
    await until(() => state.counts().gone === 0, 'it is forgotten');
    state.put(gone(pendingRecord('b'), clock.now()));
    await housekeeping.configure(configOf(['inbox'], 10 * DAY_MS));
    await clock.advance(5 * DAY_MS);
    expect(state.counts().gone).toBe(1);
  });
});
