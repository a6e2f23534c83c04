import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { passes } from '../../src/mirror/citations.js';
import { records } from '../../src/mirror/plan.js';
import { temporaryName } from '../../src/mirror/whole-file.js';
import { temporaryDirectory } from '../support/temp.js';
import { Engine, FakePeer } from './engine.js';

const LIST = { shares: [{ data: 'list', path: 'shares/list.txt' }] };

/** What was left of mirrors, where these are configured. */
async function leftovers(configured: Parameters<Engine['open']>[0]) {
  const engine = new Engine(new FakePeer());
  await engine.open(configured);
  const { state, root, stateDir, said } = engine;
  /** A file that is not finished, in a directory below the root or that of the state. */
  const unfinished = (directory: string, top = root): string => {
    const path = join(top, directory, temporaryName());
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, 'half');
    return path;
  };
  /** As before anything runs. */
  const prepare = async () => {
    for await (const _ of engine.mirrors.run([]));
  };
  return { engine, state, said, root, stateDir, unfinished, prepare };
}

describe('files that a killed process left unfinished', () => {
  it('are removed where mirrors write, and nothing else is', async () => {
    const { prepare, said, root, stateDir, unfinished } = await leftovers(LIST);
    const ours = [unfinished('shares'), unfinished('mirrors', stateDir)];
    const theirs = [unfinished('.'), unfinished('shares/deeper'), join(root, 'shares/list.txt')];
    writeFileSync(join(root, 'shares/list.txt'), 'whole');
    await prepare();
    expect(ours.map((path) => existsSync(path))).toEqual([false, false]);
    expect(theirs.map((path) => existsSync(path))).toEqual([true, true, true]);
    expect(said).toEqual(['info: removed 2 unfinished files of an earlier run']);
  });

  it('are removed where a mirror wrote that is not configured any more', async () => {
    const { prepare, state, unfinished } = await leftovers({});
    records.keep(state, 'old', { kind: 'table', path: 'tables/old.csv' });
    const path = unfinished('tables');
    await prepare();
    expect(existsSync(path)).toBe(false);
  });

  it('are removed at any depth below the folder of citations', async () => {
    const shares = [{ data: 'list', path: 'citations/list.txt' }];
    const { prepare, unfinished } = await leftovers({ citations: [{ folder: 'inbox' }], shares });
    const path = unfinished('citations/inbox/deep/down');
    await prepare();
    expect(existsSync(path)).toBe(false);
  });

  it('are left where a link leads out of the root', async () => {
    const { prepare, root, unfinished } = await leftovers(LIST);
    const elsewhere = temporaryDirectory();
    const path = unfinished('shares', elsewhere);
    mkdirSync(root);
    symlinkSync(join(elsewhere, 'shares'), join(root, 'shares'));
    await prepare();
    expect(existsSync(path)).toBe(true);
  });
});

describe('mirrors that are not configured any more', () => {
  it('are forgotten with all that is kept of them, which is said; their files stay', async () => {
    const { prepare, engine, state, said } = await leftovers(LIST);
    engine.write('shares/old.txt', 'whole');
    for (const name of ['list', 'old']) {
      records.keep(state, name, { kind: 'share', path: `shares/${name}.txt` });
      passes.keep(state, name, { beganAt: 1, files: 1, changed: false });
    }
    await prepare();
    for (const kept of [records, passes]) expect(kept.names(state)).toEqual(['list']);
    expect(said).toContain('info: mirror old is not configured any more: it is forgotten, its file stays');
    expect(engine.read('shares/old.txt')).toBe('whole');
  });
});
