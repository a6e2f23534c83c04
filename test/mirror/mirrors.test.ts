import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/lib/clock.js';
import { passes, records } from '../../src/mirror/plan.js';
import { MARKER } from '../../src/mirror/target-path.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { FakePeer } from '../support/fake-peer.js';
import {
  A_MINUTE_LATER,
  filesBelow,
  type MirrorSettings,
  type MirrorWorld,
} from '../support/mirror-world.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { world } from '../support/world.js';

const OBJECTS = {
  a: { content: 'object a' },
  b: { content: 'object b' },
  c: { content: 'object c' },
};
const TABLES = {
  'prices-eu': { apple: { price: '1' } },
  'prices-us': { apple: { price: '1' } },
};

/** Opens mirrors of a peer with three objects and two tables. */
async function three(
  mirrors: MirrorSettings,
  {
    objects = OBJECTS,
    ...options
  }: { objects?: typeof OBJECTS; clock?: Clock; root?: string } = {},
) {
  const peer = new FakePeer({ objects, tables: TABLES });
  const w = await world({ mirrors, peer, ...options });
  const count = (what: string) => peer.requests.filter((each) => each === what).length;
  return { peer, w, count };
}

const shares = (...names: string[]) => ({ shares: names.map((data) => ({ data })) });

describe('mirrors whose configuration changes during a run', () => {
  it('are added, changed and removed, and unchanged ones keep their schedule', async () => {
    const b = { data: 'b', every: '1h' };
    const { w, count } = await three({ shares: [{ data: 'a' }, b] });
    w.start();
    await until(() => w.has('shares/a') && w.has('shares/b'), 'both are there');
    const nextAt = () => w.status('a')?.nextAt;
    await until(() => nextAt() !== undefined, 'the next turn is planned');
    const before = nextAt();
    await w.configure({ shares: [{ data: 'a' }, { ...b, path: 'moved/b' }, { data: 'c' }] });
    await until(
      () => w.has('moved/b') && w.has('shares/c'),
      'the changed and the new one are there',
    );
    expect([nextAt(), count('share a')]).toEqual([before, 1]);
    await w.configure(shares('c'));
    expect(w.names).toEqual(['c']);
    expect(w.logged.filter((line) => line.includes('not configured any more'))).toHaveLength(2);
    expect(w.read('shares/a')).toBe('object a');
    await w.configure(shares('a', 'c'));
    await until(() => count('share a') === 2, 'it runs again');
  });

  it('leave nothing of a list that is being processed', async () => {
    const { peer, w } = await three({ tables: [{ table: 't*', every: '1d' }] });
    for (let n = 0; n < 3_000; n += 1) peer.table(`t${n}`, {});
    const run = w.run('t*').catch(() => []);
    while (w.names.length === 1) await nextTurn();
    expect(w.names.length).toBeLessThan(3_000);
    await w.configure(shares('a'));
    await run;
    expect(w.names).toEqual(['a']);
  });

  it('do not interrupt the run of an unchanged mirror', async () => {
    const { peer, w, count } = await three(shares('a'));
    const release = peer.hold('share a');
    w.start();
    await until(() => count('share a') === 1, 'it is under way');
    await w.configure(shares('a', 'b'));
    await until(() => w.has('shares/b'), 'the new one ran meanwhile');
    release();
    await until(() => w.has('shares/a'), 'it ended');
    expect(count('share a')).toBe(1);
  });

  it.each([
    ['changed', [{ data: 'a', path: 'new/a' }]],
    ['removed', []],
  ])(
    'cancel the run of a mirror that is %s, and write nothing to its old path',
    async (_, after) => {
      const { peer, w, count } = await three(shares('a'));
      const release = peer.hold('share a');
      w.start();
      const run = w.once('a').catch((error: unknown) => error);
      await until(() => count('share a') >= 1, 'it is under way');
      const configured = w.configure({ shares: after });
      release();
      await configured;
      expect(await run).toMatchObject({ code: 'MIRROR_REPLACED' });
      const files = after.map(({ path }) => path);
      await until(() => files.every((file) => w.has(file)), 'the new one ran');
      expect([w.files(), w.failure]).toEqual([files, undefined]);
    },
  );

  it('remove the mirrors that a removed pattern created', async () => {
    const { w } = await three({ tables: [{ table: 'prices-*' }] });
    await w.run();
    expect(w.names).toEqual(['prices-*', 'prices-eu', 'prices-us']);
    await w.configure({ tables: [{ table: 'prices-e*' }] });
    expect(w.names).toEqual(['prices-e*', 'prices-eu']);
    expect(w.files()).toEqual(['tables/prices-eu.csv', 'tables/prices-us.csv']);
  });

  it('write everything to a new root, and take no file for removed by a person', async () => {
    const settings = {
      ...shares('a'),
      tables: [{ table: 'prices-eu', edit: true, deletes: true }],
    };
    const both = ['shares/a', 'tables/prices-eu.csv'];
    const { peer, w } = await three(settings);
    w.start();
    await until(() => both.every((file) => w.has(file)), 'both are there');
    const other = join(temporaryDirectory(), 'other');
    mkdirSync(other);
    await w.configure(settings, other);
    await until(
      () => both.every((file) => filesBelow(other).includes(file)),
      'both are there as well',
    );
    expect([[...(peer.tableRows.get('prices-eu')?.keys() ?? [])], peer.writes]).toEqual([
      ['apple'],
      [],
    ]);
  });
});

it('mirrors that are not configured any more are forgotten and logged, and their files stay', async () => {
  const { w } = await three(shares('a', 'b'));
  await w.run();
  passes.keep(w.state, 'b', { beganAt: 1, files: 1, changed: false });
  await w.open(shares('a'));
  await w.run();
  expect([records.names(w.state), passes.names(w.state)]).toEqual([['a'], []]);
  expect(w.logged).toContain(
    'info: mirror b is not configured any more: it is forgotten, its file stays',
  );
  expect(w.read('shares/b')).toBe('object b');
});

it('the health check measures runs that neither ask the peer nor wait for a commit', async () => {
  const { peer, w, count } = await three(shares('a'));
  const { mirrors, state } = w;
  const check = mirrors.health.find(({ name }) => name === 'mirror runs');
  const answer = peer.hold('share a');
  const setMeta = state.setMeta.bind(state);
  let busy: unknown;
  let isOver = false;
  state.setMeta = (...record) => {
    busy = check?.busy;
    isOver = JSON.stringify(record).includes('succeededAt');
    setMeta(...record);
  };
  const commit = state.commit.bind(state);
  let keep: (() => void) | undefined;
  state.commit = async () => {
    if (isOver)
      await new Promise<void>((resolve) => {
        keep = resolve;
      });
    await commit();
  };
  expect(check?.busy).toBe(false);
  w.start();
  await until(() => count('share a') === 1, 'the peer is asked');
  expect(check?.busy).toBe(false);
  answer();
  // A full disk keeps it waiting for as long as it is full.
  await until(() => keep !== undefined, 'the record is to be kept');
  expect([busy, check?.busy]).toEqual([true, false]);
  keep?.();
  await until(() => w.status()?.nextAt !== undefined, 'done');
  expect(check?.busy).toBe(false);
});

describe('the mirror root', () => {
  /** Another file system than the one of the temporary directory. Linux has one in memory. */
  const other = ['/dev/shm', '/tmp'].find(
    (path) => existsSync(path) && statSync(path).dev !== statSync(tmpdir()).dev,
  );
  const FILE = 'tables/prices-eu.csv';

  /**
   * `prices-eu`, mirrored once below a root that is a link, as good as a mount point: what it leads
   * to can be taken away.
   */
  async function mounted(more: object, clock?: Clock) {
    const root = join(temporaryDirectory(), 'mirror');
    const disk = mkdtempSync(join(other ?? '', 'peersync-'));
    const mountPoint = temporaryDirectory();
    afterwards('test', async () => rmSync(disk, { recursive: true, force: true }));
    const lead = (to: string): void => {
      rmSync(root, { force: true });
      symlinkSync(to, root);
    };
    lead(disk);
    const mirrors = { tables: [{ table: 'prices-eu', ...more }] };
    const { peer, w } = await three(mirrors, clock === undefined ? { root } : { root, clock });
    const once = () => w.once('prices-eu');
    expect(await once()).toMatchObject({ changed: true });
    return { peer, w, once, mount: () => lead(disk), unmount: () => lead(mountPoint) };
  }

  it.skipIf(other === undefined)(
    'is not written to while its disk is not mounted, and an old file on that disk is no edit',
    async () => {
      const { peer, w, once, mount, unmount } = await mounted({ edit: true }, A_MINUTE_LATER);
      unmount();
      peer.table('prices-eu', { apple: { price: '2' } });
      expect(await once()).toMatchObject({ failure: { code: 'MIRROR_ROOT_AWAY' } });
      expect(w.has('tables')).toBe(false);
      mount();
      expect((await once()).failure).toBeUndefined();
      expect(w.read(FILE)).toBe('pk,price\napple,2\n');
      expect(peer.writes).toEqual([]);
    },
  );

  it.skipIf(other === undefined)(
    'may move to another disk with its files, or begin anew',
    async () => {
      const { w, once, unmount } = await mounted({});
      unmount();
      writeFileSync(join(w.root, 'a file'), '');
      expect((await once()).failure).toBeUndefined();
      expect(w.has(FILE)).toBe(true);
      for (const name of ['tables', 'a file']) rmSync(join(w.root, name), { recursive: true });
      expect((await once()).changed).toBe(true);
    },
  );

  it.skipIf(other === undefined)(
    'gets no directories by a poll for edits while its disk is not mounted',
    async () => {
      const clock = new FakeClock(Date.now() + 3_600_000);
      const { w, unmount } = await mounted({ edit: true, every: '1h' }, clock);
      const passUntil = (isSo: () => boolean, what: string) =>
        until(async () => {
          await clock.advance(1_000);
          return isSo();
        }, what);
      w.start();
      await passUntil(
        () => w.status()?.nextAt !== undefined && w.status()?.running === false,
        'it ran',
      );
      unmount();
      await passUntil(() => w.status()?.failure?.code === 'MIRROR_ROOT_AWAY', 'it is noticed');
      expect(w.has('tables')).toBe(false);
    },
  );

  it('is filled again if somebody emptied it on the same disk', async () => {
    const { w } = await three(shares('a'));
    for (let i = 0; i < 2; i += 1) {
      expect((await w.once('a')).changed).toBe(true);
      rmSync(w.root, { recursive: true });
    }
  });
});

describe('a mirrored file that somebody edited', () => {
  const SETTINGS = {
    shares: [{ data: 'a' }],
    tables: [{ table: 'prices-eu' }, { table: 'prices-us', edit: true, format: 'csv' }],
  };
  const CONTENT = {
    'shares/a': 'object a',
    'tables/prices-eu.csv': 'pk,price\napple,1\n',
    'tables/prices-us.csv': 'pk,price\napple,1\n',
  };
  const EDITED = {
    'shares/a': 'mine',
    'tables/prices-eu.csv': 'pk,price\napple,2\n',
    'tables/prices-us.csv': 'pk,price\napple,2\n',
  };
  /** Returns the contents of the conflict files of a file. */
  const kept = (w: MirrorWorld, file: string) =>
    w.files().flatMap((name) => (name.startsWith(`${file}.conflict-`) ? [w.read(name)] : []));

  it('is kept as a conflict file if a new state mirrors there, and an unedited file is not', async () => {
    const { peer, w } = await three(SETTINGS, { clock: A_MINUTE_LATER });
    await w.run();
    for (const [file, text] of Object.entries(EDITED)) w.write(file, text);
    await w.loseState();
    rmSync(join(w.root, MARKER));
    await w.open(SETTINGS);
    for (const { name, conflicts } of await w.run())
      expect([name, conflicts?.length]).toEqual([name, 1]);
    for (const [file, text] of Object.entries(CONTENT)) {
      expect(w.read(file)).toBe(text);
      expect(kept(w, file)).toEqual([EDITED[file as keyof typeof EDITED]]);
    }
    expect(peer.writes).toEqual([]);
    await w.loseState();
    rmSync(join(w.root, MARKER));
    await w.open(SETTINGS);
    await w.run();
    expect(w.files().filter((name) => name.includes('.conflict-'))).toHaveLength(3);
  });

  it('is listed until a person removes the conflict file', async () => {
    const { w } = await three(shares('a'));
    await w.run();
    w.write('shares/a', 'mine');
    const [report] = await w.run();
    const file = report?.conflicts?.[0]?.file ?? '';
    expect(w.read(file)).toBe('mine');
    expect(w.logged.join()).toContain(`the file as it was edited is ${file}`);
    expect((await w.once('a')).conflicts).toHaveLength(1);
    rmSync(join(w.root, file));
    expect((await w.once('a')).conflicts).toBeUndefined();
  });

  it('is kept as a conflict file if a person accepts that the peer does not have it any more', async () => {
    const { peer, w } = await three(SETTINGS);
    await w.run('a', 'prices-eu');
    for (const file of ['shares/a', 'tables/prices-eu.csv'] as const) w.write(file, EDITED[file]);
    peer.objects.clear();
    peer.tableRows.clear();
    for (const name of ['a', 'prices-eu']) {
      expect((await w.once(name)).condition).toBeDefined();
      await w.mirrors.accept(name);
    }
    expect(w.has('shares/a') || w.has('tables/prices-eu.csv')).toBe(false);
    expect(kept(w, 'shares/a')).toEqual(['mine']);
    expect(kept(w, 'tables/prices-eu.csv')).toEqual([EDITED['tables/prices-eu.csv']]);
  });

  it('is not confused with a file that a killed process replaced or kept', async () => {
    const { peer, w } = await three(shares('a'));
    await w.run();
    w.write('shares/a', 'mine');
    const older = w.state.meta('mirror/a');
    await w.run();
    // Killed after the copy, before the file was replaced.
    w.state.setMeta('mirror/a', older);
    w.write('shares/a', 'mine');
    expect((await w.once('a')).conflicts).toHaveLength(1);
    expect(kept(w, 'shares/a')).toEqual(['mine']);
    // Killed after the file was replaced, before that was on disk.
    let writing: unknown;
    const { setMeta } = w.state;
    w.state.setMeta = (name, value) => {
      if (value !== null && typeof value === 'object' && 'writing' in value) writing = value;
      setMeta.call(w.state, name, value);
    };
    peer.objects.set('a', { content: 'second' });
    await w.run();
    setMeta.call(w.state, 'mirror/a', writing as never);
    // … and again before the next was in place.
    peer.objects.set('a', { content: 'third' });
    await w.run();
    setMeta.call(w.state, 'mirror/a', writing as never);
    w.write('shares/a', 'second');
    peer.objects.set('a', { content: 'fourth' });
    await w.run();
    expect([w.read('shares/a'), kept(w, 'shares/a')]).toEqual(['fourth', ['mine']]);
  });

  it('is left alone after a hundred conflict files', async () => {
    const { w } = await three(shares('a'));
    await w.run();
    for (let n = 0; n < 100; n += 1) w.write(`shares/a.conflict-2026-${n}`, `${n}`);
    w.write('shares/a', 'mine');
    expect((await w.once('a')).failure?.code).toBe('MIRROR_EDITED_AGAIN');
    expect(w.read('shares/a')).toBe('mine');
  });

  it('is left as it is if it is edited just before the rename, and the next run keeps the edit', async () => {
    const { w } = await three(shares('a'));
    await w.run();
    w.write('shares/a', 'first');
    const { commit } = w.state;
    let edits = 0;
    w.state.commit = async () => {
      edits += 1;
      if (edits === 1) w.write('shares/a', 'and second');
      await commit.call(w.state);
    };
    await w.run();
    expect(w.read('shares/a')).toBe('and second');
    await w.run();
    expect(w.read('shares/a')).toBe('object a');
    expect(kept(w, 'shares/a')).toContain('and second');
  });
});

describe('a mirror root', () => {
  const SETTINGS = { ...shares('a', 'b'), tables: [{ table: 'prices-eu', edit: true }] };

  /** One that is mirrored into, and another daemon with a state of its own. */
  async function two(root = (first: string) => first) {
    const { w: one } = await three(SETTINGS);
    await one.run();
    const { w: other } = await three(SETTINGS, {
      objects: { ...OBJECTS, a: { content: 'other a' }, b: { content: 'other b' } },
      clock: A_MINUTE_LATER,
      root: root(one.root),
    });
    const conditions = async () =>
      (await other.run()).map(({ condition, failure }) => (condition ?? failure)?.code);
    return { one, other, conditions };
  }

  it('belongs to one state: another state writes nothing there, and names the owner', async () => {
    const { one, other, conditions } = await two((root) => {
      const path = join(temporaryDirectory(), 'link');
      symlinkSync(root, path);
      return path;
    });
    one.write('shares/a', 'mine');
    const before = one.files().map((file) => [file, one.mtime(file)]);
    expect(await conditions()).toEqual(['ROOT_TAKEN', 'ROOT_TAKEN', 'ROOT_TAKEN']);
    expect(one.files().map((file) => [file, one.mtime(file)])).toEqual(before);
    const { message, hint } = other.status('a')?.condition ?? {};
    expect(message).toContain(one.stateDir);
    expect(hint).toContain('`peersync mirror accept a`');
  });

  it('is taken for all mirrors when a person accepts that for one, and then the other state waits', async () => {
    const { one, other, conditions } = await two();
    one.write('shares/a', 'mine');
    await conditions();
    other.start();
    expect((await other.mirrors.accept('b')).condition).toBeUndefined();
    await until(
      () => other.mirrors.status().every(({ condition }) => condition === undefined),
      'all go on',
    );
    expect([other.read('shares/a'), other.read('shares/b')]).toEqual(['other a', 'other b']);
    expect(other.read(other.status('a')?.conflicts?.[0]?.file ?? '')).toBe('mine');
    one.write('shares/b', 'mine as well');
    for (const { condition } of await one.run()) expect(condition?.code).toBe('ROOT_TAKEN');
    expect(one.read('shares/b')).toBe('mine as well');
  });

  it('waits for a person after the state was lost', async () => {
    const { w } = await three(shares('a'));
    await w.run();
    await w.loseState();
    await w.open(shares('a'));
    expect((await w.once('a')).condition?.code).toBe('ROOT_TAKEN');
    expect((await w.mirrors.accept('a')).condition).toBeUndefined();
    expect((await w.once('a')).condition).toBeUndefined();
  });

  it('belongs to a state that was killed right after it took the root', async () => {
    const { w } = await three(shares('a'));
    const { commit } = w.state;
    w.state.commit = async () => {
      expect(existsSync(join(w.root, MARKER))).toBe(false);
      await commit.call(w.state);
      w.state.commit = commit;
    };
    expect((await w.once('a')).failure).toBeUndefined();
    await w.open(shares('a'));
    expect((await w.once('a')).condition).toBeUndefined();
  });

  it.each(['', '{"owner":', '{"owner":""}', '[]', 'null'])(
    "with the marker %j is nobody's who could be asked",
    async (text) => {
      const { w } = await three(shares('a'));
      await w.run();
      w.write(MARKER, text);
      expect((await w.once('a')).condition?.message).toContain(`${MARKER} cannot be read`);
      await w.mirrors.accept('a');
      expect((await w.once('a')).condition).toBeUndefined();
    },
  );

  it('is taken by one of two states after its marker was removed', async () => {
    const { one, other, conditions } = await two();
    rmSync(join(one.root, MARKER));
    const ends = await Promise.all([one.run(), conditions()]);
    const isOnes = ends[0].every(({ condition }) => condition === undefined);
    expect(ends[1].every((code) => code === (isOnes ? 'ROOT_TAKEN' : undefined))).toBe(true);
    const loser = isOnes ? other : one;
    for (const { condition } of await loser.run()) expect(condition?.code).toBe('ROOT_TAKEN');
  });

  it('is refused within the root of another state', async () => {
    const { conditions } = await two((root) => join(root, 'shares'));
    const refused = 'MIRROR_ROOT_NESTED';
    expect(await conditions()).toEqual([refused, refused, refused]);
  });

  it('is used around the root of another state, except for that root', async () => {
    const { conditions } = await two((root) => {
      renameSync(root, `${root}-moved`);
      mkdirSync(root);
      renameSync(`${root}-moved`, join(root, 'shares'));
      return root;
    });
    expect((await conditions()).sort()).toEqual([
      'MIRROR_ROOT_NESTED',
      'MIRROR_ROOT_NESTED',
      undefined,
    ]);
  });

  it('keeps its marker from a mirror with the same path', async () => {
    const { w } = await three({ shares: [{ data: 'a', path: MARKER.toUpperCase() }] });
    for (let i = 0; i < 2; i += 1) expect((await w.once('a')).condition).toBeUndefined();
    expect(w.files()).toHaveLength(1);
  });
});
