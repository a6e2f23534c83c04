import { describe, expect, it } from 'vitest';
import { HashQueue } from '../../src/content/hash-queue.js';
import { HealthCheck } from '../../src/lib/health.js';
import { silentLogger } from '../../src/lib/logger.js';
import { accepted, read } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { Debouncer } from '../../src/watch/debouncer.js';
import { listHere } from '../../src/watch/lister.js';
import { Reconciler, WATCH_POLICY } from '../../src/watch/reconciler.js';
import { FolderRules, Problems } from '../../src/watch/rules.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { folderOf, refusesBinary } from './world.js';

const to = { folder: 'inbox', path: 'a', url: 'https://files.example.org/inbox/a', collection: 'inbox' };
const version = { size: 1, mtimeMs: 1, ctimeMs: 1, ino: 1, sha256: 'aa', encoding: 'utf-8' } as const;

describe('what was found,', () => {
  async function setUp(isCertain = true) {
    const clock = new FakeClock();
    const log = silentLogger;
    const state = await State.open(temporaryDirectory(), { clock, log });
    const folder = folderOf(temporaryDirectory());
    const nothing = () => {};
    const reconciler = new Reconciler({
      ...{ folder, state, clock, log, accepts: refusesBinary, list: listHere, events: undefined },
      rules: new FolderRules(folder),
      debouncer: new Debouncer(1, clock, async () => {}),
      hashQueue: new HashQueue(async () => [], 1, 1),
      problems: new Problems('inbox', clock, log),
      digests: new Map([['', 1]]),
      health: new HealthCheck('folder', 'a scan'),
      policy: WATCH_POLICY,
      ...{ absolute: (path) => path, onStanding: nothing },
      ...{ changed: nothing, mayLook: () => true, isCertain: async () => isCertain },
    });
    return { state, reconciler };
  }

  it('that a file is gone is dropped when the file was found again meanwhile', async () => {
    const { state, reconciler } = await setUp();
    const before = read(undefined, to, version, 0);
    state.put(before);
    const removing = reconciler.removed([before]);
    state.put(read(before, to, { ...version, sha256: 'bb' }, 0));
    await removing;
    expect(state.get('inbox', 'a')?.status).toBe('pending');
    const last = state.get('inbox', 'a');
    if (last) await reconciler.removed([last]);
    expect(state.get('inbox', 'a')?.status).toBe('gone');
    await state.close();
  });

  it('that a file is gone holds when the peer took it meanwhile', async () => {
    const { state, reconciler } = await setUp();
    const before = read(undefined, to, version, 0);
    state.put(before);
    const removing = reconciler.removed([before]);
    if (before.status === 'pending') {
      state.put(accepted(before, { ...to, sha256: 'aa', digest: 'aa', size: 1, at: 0 }, 0));
    }
    await removing;
    expect(state.get('inbox', 'a')).toMatchObject({ status: 'gone', sent: { sha256: 'aa' } });
    await state.close();
  });

  it('that a file is gone means nothing while the root is not certain', async () => {
    const { state, reconciler } = await setUp(false);
    const before = read(undefined, to, version, 0);
    state.put(before);
    await reconciler.removed([before]);
    expect(state.get('inbox', 'a')?.status).toBe('pending');
    await state.close();
  });
});
