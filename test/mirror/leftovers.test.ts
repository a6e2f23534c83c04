import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { keepPass, passNames } from '../../src/mirror/citations-pass.js';
import { downloadNames, keepDownload } from '../../src/mirror/download.js';
import { Leftovers } from '../../src/mirror/leftovers.js';
import type { Identity } from '../../src/mirror/life.js';
import { keepRecord, recordedNames } from '../../src/mirror/records.js';
import { temporaryName } from '../../src/mirror/temporary.js';
import type { Json } from '../../src/state/load.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

const DAY_MS = 86_400_000;
const LIST: Identity = { kind: 'share', path: 'shares/list.txt' };

/** What was left of mirrors, where these are configured. */
function leftovers(configured: Record<string, Identity>) {
  const top = temporaryDirectory();
  const [root, stateDir] = [join(top, 'root'), join(top, 'state')];
  for (const directory of [root, stateDir]) mkdirSync(directory);
  const kept = new Map<string, Json>();
  const state = {
    meta: (name: string) => kept.get(name),
    setMeta: (name: string, value: Json | undefined) => {
      if (value === undefined) kept.delete(name);
      else kept.set(name, value);
    },
    metaNames: (prefix: string) => [...kept.keys()].filter((name) => name.startsWith(prefix)),
  };
  const clock = new FakeClock();
  const said: string[] = [];
  const log = {
    debug() {},
    warn() {},
    error() {},
    info: (_: object, words: string) => void said.push(words),
  };
  const set = {
    get: (name: string) => configured[name],
    all: Object.values(configured).map((identity) => ({ identity })),
  };
  const part = new Leftovers({ ...{ set, state, stateDir, clock, log }, root: () => root });
  const unfinished = (directory: string): string => {
    const path = join(top, directory, temporaryName());
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, 'half');
    return path;
  };
  return { part, state, clock, said, top, root, unfinished };
}

function downloadAt(file: string, at: number) {
  const version = { of: 'of', at, etag: '"a"' };
  return { file, bytes: 4, size: 2 ** 21, type: 'text/plain', version };
}

describe('files that a killed process left unfinished', () => {
  it('are removed where mirrors write, and nothing else is', async () => {
    const { part, said, root, unfinished } = leftovers({ list: LIST });
    const ours = [unfinished('root/shares'), unfinished('state/mirrors')];
    const theirs = [unfinished('root'), unfinished('root/shares/deeper'), join(root, 'shares/list.txt')];
    writeFileSync(join(root, 'shares/list.txt'), 'whole');
    await part.sweep();
    expect(ours.map((path) => existsSync(path))).toEqual([false, false]);
    expect(theirs.map((path) => existsSync(path))).toEqual([true, true, true]);
    expect(said).toEqual(['removed 2 unfinished files of an earlier run']);
    await part.sweep();
    expect(said).toHaveLength(1);
  });

  it('are removed where a mirror wrote that is not configured any more', async () => {
    const { part, state, unfinished } = leftovers({});
    keepRecord(state, 'old', { kind: 'table', path: 'tables/old.csv' });
    const path = unfinished('root/tables');
    await part.sweep();
    expect(existsSync(path)).toBe(false);
  });

  it('are removed at any depth below the folder of citations', async () => {
    const citations: Identity = { kind: 'citations', path: 'citations/{folder}/{path}.json' };
    const beside: Identity = { kind: 'share', path: 'citations/list.txt' };
    const { part, unfinished } = leftovers({ citations, beside });
    const path = unfinished('root/citations/inbox/deep/down');
    await part.sweep();
    expect(existsSync(path)).toBe(false);
  });

  it('are left where a link leads out of the root', async () => {
    const { part, top, root, unfinished } = leftovers({ list: LIST });
    const path = unfinished('elsewhere');
    symlinkSync(join(top, 'elsewhere'), join(root, 'shares'));
    await part.sweep();
    expect(existsSync(path)).toBe(true);
  });

  it('are spared where a download goes on with them, unless that is too old', async () => {
    const { part, state, clock, root, unfinished } = leftovers({ list: LIST });
    const path = unfinished('root/shares');
    const other = unfinished('root/shares');
    keepDownload(state, 'list', downloadAt(path.slice(root.length + 1), clock.now()));
    await part.sweep();
    expect([existsSync(path), existsSync(other)]).toEqual([true, false]);
    expect(downloadNames(state)).toEqual(['list']);
    await clock.advance(8 * DAY_MS);
    await part.sweep();
    expect([existsSync(path), downloadNames(state)]).toEqual([false, []]);
  });

  it('are not spared for the download of a mirror that is not configured any more', async () => {
    const { part, state, clock, root, unfinished } = leftovers({ list: LIST });
    const path = unfinished('root/shares');
    keepDownload(state, 'old', downloadAt(path.slice(root.length + 1), clock.now()));
    await part.sweep();
    expect([existsSync(path), downloadNames(state)]).toEqual([false, []]);
  });
});

describe('mirrors that are not configured any more', () => {
  it('are forgotten with all that is kept of them, which is said; their files stay', () => {
    const { part, state, clock, said, root } = leftovers({ list: LIST });
    mkdirSync(join(root, 'shares'));
    writeFileSync(join(root, 'shares/old.txt'), 'whole');
    for (const name of ['list', 'old']) {
      keepRecord(state, name, { kind: 'share', path: `shares/${name}.txt` });
      keepPass(state, name, { beganAt: 1, files: 1, changed: false });
      keepDownload(state, name, downloadAt('shares/x', clock.now()));
    }
    part.forgetStrays();
    expect([recordedNames(state), passNames(state), downloadNames(state)]).toEqual([
      ['list'],
      ['list'],
      ['list'],
    ]);
    expect(said).toEqual(['mirror old is not configured any more: it is forgotten, its file stays']);
    expect(existsSync(join(root, 'shares/old.txt'))).toBe(true);
    part.forgetStrays();
    expect(said).toHaveLength(1);
  });
});
