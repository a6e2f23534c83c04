import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { State } from '../../src/state/state.js';
import { accepted, read } from '../../src/state/transitions.js';
import { Commits } from '../../src/watch/commits.js';
import { Debouncer } from '../../src/watch/debouncer.js';
import { WATCH_POLICY } from '../../src/watch/deps.js';
import { HashQueue, readGroupNow } from '../../src/watch/hash-queue.js';
import { listHere } from '../../src/watch/lister.js';
import { Problems } from '../../src/watch/problems.js';
import { Reconciler } from '../../src/watch/reconciler.js';
import { Root } from '../../src/watch/root.js';
import { FolderRules } from '../../src/watch/rules.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { folderOf, refusesBinary } from './world.js';

const to = { folder: 'inbox', path: 'a', url: 'https://files.example.org/inbox/a', collection: 'inbox' };
const version = { size: 1, mtimeMs: 1, ctimeMs: 1, ino: 1, sha256: 'aa', encoding: 'utf-8' } as const;

describe('what was found,', () => {
  async function setUp() {
    const clock = new FakeClock();
    const state = await State.open(temporaryDirectory(), { clock, log: silentLogger });
    const folder = folderOf(temporaryDirectory());
    const root = new Root(folder, state);
    await root.accept();
    const onQuiet = () => {};
    const nothing = async () => {};
    const reconciler = new Reconciler(
      {
        ...{ folder, state, root, clock, log: silentLogger, accepts: refusesBinary },
        rules: new FolderRules(folder),
        debouncer: new Debouncer({
          ...{ name: 'inbox', settleMs: 1, gatherMs: 1, looksAtOnce: 1, clock },
          ...{ lookAt: nothing, lookIn: nothing, onError: onQuiet, onQuiet },
        }),
        hashQueue: new HashQueue({
          readers: 1,
          crowd: 1,
          readGroup: readGroupNow,
          onQuiet,
          onError: onQuiet,
        }),
        commits: new Commits({ commit: () => state.commit(), clock, log: silentLogger, onQuiet }),
        ...{ lister: listHere, policy: WATCH_POLICY, onQuiet, onStanding: onQuiet, events: undefined },
        problems: new Problems('inbox', clock, silentLogger),
      },
      { onOpen: onQuiet, scannedFrom: () => undefined },
    );
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
});
