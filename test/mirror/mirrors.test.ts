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
import { FakePeer, hold } from '../support/mirror-peer.js';
import { A_MINUTE_LATER, filesBelow, MirrorWorld } from '../support/mirror-world.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

/**
 * Mirrors of a peer with the objects `a`, `b` and `c` and the tables `prices-eu` and `prices-us`;
 * not opened.
 */
function three(clock?: Clock) {
  const peer = new FakePeer();
  for (const name of ['a', 'b', 'c']) peer.objects.set(name, { content: `object ${name}` });
  for (const name of ['prices-eu', 'prices-us']) peer.table(name, { apple: { price: '1' } });
  const world = new MirrorWorld(peer, { clock });
  const count = (what: string) => peer.asked.filter((each) => each === what).length;
  return { peer, world, count };
}

const shares = (...names: string[]) => ({ shares: names.map((data) => ({ data })) });

describe('mirrors whose configuration changes during a run', () => {
  it('are added, changed and removed, and unchanged ones keep their schedule', async () => {
    const { world, count } = three();
    const b = { data: 'b', every: '1h' };
    await world.open({ shares: [{ data: 'a' }, b] });
    world.start();
    await until(() => world.has('shares/a') && world.has('shares/b'), 'both are there');
    const nextAt = () => world.status('a')?.nextAt;
    await until(() => nextAt() !== undefined, 'the next turn is planned');
    const before = nextAt();
    await world.configure({ shares: [{ data: 'a' }, { ...b, path: 'moved/b' }, { data: 'c' }] });
    await until(
      () => world.has('moved/b') && world.has('shares/c'),
      'the changed and the new one are there',
    );
    expect([nextAt(), count('share a')]).toEqual([before, 1]);
    await world.configure(shares('c'));
    expect(world.names).toEqual(['c']);
    expect(world.logged.filter((line) => line.includes('not configured any more'))).toHaveLength(2);
    expect(world.read('shares/a')).toBe('object a');
    await world.configure(shares('a', 'c'));
    await until(() => count('share a') === 2, 'it runs again');
  });

  it('leave nothing of a list that is being processed', async () => {
    const { peer, world } = three();
    for (let n = 0; n < 3_000; n += 1) peer.table(`t${n}`, {});
    await world.open({ tables: [{ table: 't*', every: '1d' }] });
    const run = world.run('t*').catch(() => []);
    while (world.names.length === 1) await nextTurn();
    expect(world.names.length).toBeLessThan(3_000);
    await world.configure(shares('a'));
    await run;
    expect(world.names).toEqual(['a']);
  });

  it('do not interrupt the run of an unchanged mirror', async () => {
    const { peer, world, count } = three();
    const release = hold(peer, 'share a');
    await world.open(shares('a'));
    world.start();
    await until(() => count('share a') === 1, 'it is under way');
    await world.configure(shares('a', 'b'));
    await until(() => world.has('shares/b'), 'the new one ran meanwhile');
    release();
    await until(() => world.has('shares/a'), 'it ended');
    expect(count('share a')).toBe(1);
  });

  it.each([
    ['changed', [{ data: 'a', path: 'new/a' }]],
    ['removed', []],
  ])(
    'cancel the run of a mirror that is %s, and write nothing to its old path',
    async (_, after) => {
      const { peer, world, count } = three();
      const release = hold(peer, 'share a');
      await world.open(shares('a'));
      world.start();
      const run = world.once('a').catch((error: unknown) => error);
      await until(() => count('share a') >= 1, 'it is under way');
      const configured = world.configure({ shares: after });
      release();
      await configured;
      expect(await run).toMatchObject({ code: 'MIRROR_REPLACED' });
      const files = after.map(({ path }) => path);
      await until(() => files.every((file) => world.has(file)), 'the new one ran');
      expect([world.files(), world.failure]).toEqual([files, undefined]);
    },
  );

  it('remove the mirrors that a removed pattern created', async () => {
    const { world } = three();
    await world.open({ tables: [{ table: 'prices-*' }] });
    await world.run();
    expect(world.names).toEqual(['prices-*', 'prices-eu', 'prices-us']);
    await world.configure({ tables: [{ table: 'prices-e*' }] });
    expect(world.names).toEqual(['prices-e*', 'prices-eu']);
    expect(world.files()).toEqual(['tables/prices-eu.csv', 'tables/prices-us.csv']);
  });

  it('write everything to a new root, and take no file for removed by a person', async () => {
    const { peer, world } = three();
    const settings = {
      ...shares('a'),
      tables: [{ table: 'prices-eu', edit: true, deletes: true }],
    };
    const both = ['shares/a', 'tables/prices-eu.csv'];
    await world.open(settings);
    world.start();
    await until(() => both.every((file) => world.has(file)), 'both are there');
    const other = join(temporaryDirectory(), 'other');
    mkdirSync(other);
    await world.configure(settings, other);
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
  const { world } = three();
  await world.open(shares('a', 'b'));
  await world.run();
  passes.keep(world.state, 'b', { beganAt: 1, files: 1, changed: false });
  await world.open(shares('a'));
  await world.run();
  expect([records.names(world.state), passes.names(world.state)]).toEqual([['a'], []]);
  expect(world.logged).toContain(
    'info: mirror b is not configured any more: it is forgotten, its file stays',
  );
  expect(world.read('shares/b')).toBe('object b');
});

it('the health check measures runs that neither ask the peer nor wait for a commit', async () => {
  const { peer, world, count } = three();
  const { mirrors, state } = await world.open(shares('a'));
  const check = mirrors.health.find(({ name }) => name === 'mirror runs');
  const answer = hold(peer, 'share a');
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
  world.start();
  await until(() => count('share a') === 1, 'the peer is asked');
  expect(check?.busy).toBe(false);
  answer();
  // A full disk keeps it waiting for as long as it is full.
  await until(() => keep !== undefined, 'the record is to be kept');
  expect([busy, check?.busy]).toEqual([true, false]);
  keep?.();
  await until(() => world.status()?.nextAt !== undefined, 'done');
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
    const { peer, world } = three(clock);
    const disk = mkdtempSync(join(other ?? '', 'peersync-'));
    const mountPoint = temporaryDirectory();
    afterwards('test', async () => rmSync(disk, { recursive: true, force: true }));
    const lead = (to: string): void => {
      rmSync(world.root, { force: true });
      symlinkSync(to, world.root);
    };
    lead(disk);
    await world.open({ tables: [{ table: 'prices-eu', ...more }] });
    const once = () => world.once('prices-eu');
    expect(await once()).toMatchObject({ changed: true });
    return { peer, world, once, mount: () => lead(disk), unmount: () => lead(mountPoint) };
  }

  it.skipIf(other === undefined)(
    'is not written to while its disk is not mounted, and an old file on that disk is no edit',
    async () => {
      const { peer, world, once, mount, unmount } = await mounted({ edit: true }, A_MINUTE_LATER);
      unmount();
      peer.table('prices-eu', { apple: { price: '2' } });
      expect(await once()).toMatchObject({ failure: { code: 'MIRROR_ROOT_AWAY' } });
      expect(world.has('tables')).toBe(false);
      mount();
      expect((await once()).failure).toBeUndefined();
      expect(world.read(FILE)).toBe('pk,price\napple,2\n');
      expect(peer.writes).toEqual([]);
    },
  );

  it.skipIf(other === undefined)(
    'may move to another disk with its files, or begin anew',
    async () => {
      const { world, once, unmount } = await mounted({});
      unmount();
      writeFileSync(join(world.root, 'a file'), '');
      expect((await once()).failure).toBeUndefined();
      expect(world.has(FILE)).toBe(true);
      for (const name of ['tables', 'a file']) rmSync(join(world.root, name), { recursive: true });
      expect((await once()).changed).toBe(true);
    },
  );

  it.skipIf(other === undefined)(
    'gets no directories by a poll for edits while its disk is not mounted',
    async () => {
      const clock = new FakeClock(Date.now() + 3_600_000);
      const { world, unmount } = await mounted({ edit: true, every: '1h' }, clock);
      const passUntil = (isSo: () => boolean, what: string) =>
        until(async () => {
          await clock.advance(1_000);
          return isSo();
        }, what);
      world.start();
      await passUntil(
        () => world.status()?.nextAt !== undefined && world.status()?.running === false,
        'it ran',
      );
      unmount();
      await passUntil(() => world.status()?.failure?.code === 'MIRROR_ROOT_AWAY', 'it is noticed');
      expect(world.has('tables')).toBe(false);
    },
  );

  it('is filled again if somebody emptied it on the same disk', async () => {
    const { world } = three();
    await world.open(shares('a'));
    for (let i = 0; i < 2; i += 1) {
      expect((await world.once('a')).changed).toBe(true);
      rmSync(world.root, { recursive: true });
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
  const kept = (world: MirrorWorld, file: string) =>
    world
      .files()
      .flatMap((name) => (name.startsWith(`${file}.conflict-`) ? [world.read(name)] : []));

  it('is kept as a conflict file if a new state mirrors there, and an unedited file is not', async () => {
    const { peer, world } = three(A_MINUTE_LATER);
    await world.open(SETTINGS);
    await world.run();
    for (const [file, text] of Object.entries(EDITED)) world.write(file, text);
    await world.loseState();
    rmSync(join(world.root, MARKER));
    await world.open(SETTINGS);
    for (const { name, conflicts } of await world.run())
      expect([name, conflicts?.length]).toEqual([name, 1]);
    for (const [file, text] of Object.entries(CONTENT)) {
      expect(world.read(file)).toBe(text);
      expect(kept(world, file)).toEqual([EDITED[file as keyof typeof EDITED]]);
    }
    expect(peer.writes).toEqual([]);
    await world.loseState();
    rmSync(join(world.root, MARKER));
    await world.open(SETTINGS);
    await world.run();
    expect(world.files().filter((name) => name.includes('.conflict-'))).toHaveLength(3);
  });

  it('is listed until a person removes the conflict file', async () => {
    const { world } = three();
    await world.open(shares('a'));
    await world.run();
    world.write('shares/a', 'mine');
    const [report] = await world.run();
    const file = report?.conflicts?.[0]?.file ?? '';
    expect(world.read(file)).toBe('mine');
    expect(world.logged.join()).toContain(`the file as it was edited is ${file}`);
    expect((await world.once('a')).conflicts).toHaveLength(1);
    rmSync(join(world.root, file));
    expect((await world.once('a')).conflicts).toBeUndefined();
  });

  it('is kept as a conflict file if a person accepts that the peer does not have it any more', async () => {
    const { peer, world } = three();
    await world.open(SETTINGS);
    await world.run('a', 'prices-eu');
    for (const file of ['shares/a', 'tables/prices-eu.csv'] as const)
      world.write(file, EDITED[file]);
    peer.objects.clear();
    peer.tableRows.clear();
    for (const name of ['a', 'prices-eu']) {
      expect((await world.once(name)).condition).toBeDefined();
      await world.mirrors.accept(name);
    }
    expect(world.has('shares/a') || world.has('tables/prices-eu.csv')).toBe(false);
    expect(kept(world, 'shares/a')).toEqual(['mine']);
    expect(kept(world, 'tables/prices-eu.csv')).toEqual([EDITED['tables/prices-eu.csv']]);
  });

  it('is not confused with a file that a killed process replaced or kept', async () => {
    const { peer, world } = three();
    await world.open(shares('a'));
    await world.run();
    world.write('shares/a', 'mine');
    const older = world.state.meta('mirror/a');
    await world.run();
    // Killed after the copy, before the file was replaced.
    world.state.setMeta('mirror/a', older);
    world.write('shares/a', 'mine');
    expect((await world.once('a')).conflicts).toHaveLength(1);
    expect(kept(world, 'shares/a')).toEqual(['mine']);
    // Killed after the file was replaced, before that was on disk.
    let writing: unknown;
    const { setMeta } = world.state;
    world.state.setMeta = (name, value) => {
      if (value !== null && typeof value === 'object' && 'writing' in value) writing = value;
      setMeta.call(world.state, name, value);
    };
    peer.objects.set('a', { content: 'second' });
    await world.run();
    setMeta.call(world.state, 'mirror/a', writing as never);
    // … and again before the next was in place.
    peer.objects.set('a', { content: 'third' });
    await world.run();
    setMeta.call(world.state, 'mirror/a', writing as never);
    world.write('shares/a', 'second');
    peer.objects.set('a', { content: 'fourth' });
    await world.run();
    expect([world.read('shares/a'), kept(world, 'shares/a')]).toEqual(['fourth', ['mine']]);
  });

  it('is left alone after a hundred conflict files', async () => {
    const { world } = three();
    await world.open(shares('a'));
    await world.run();
    for (let n = 0; n < 100; n += 1) world.write(`shares/a.conflict-2026-${n}`, `${n}`);
    world.write('shares/a', 'mine');
    expect((await world.once('a')).failure?.code).toBe('MIRROR_EDITED_AGAIN');
    expect(world.read('shares/a')).toBe('mine');
  });

  it('is left as it is if it is edited just before the rename, and the next run keeps the edit', async () => {
    const { world } = three();
    await world.open(shares('a'));
    await world.run();
    world.write('shares/a', 'first');
    const { commit } = world.state;
    let edits = 0;
    world.state.commit = async () => {
      edits += 1;
      if (edits === 1) world.write('shares/a', 'and second');
      await commit.call(world.state);
    };
    await world.run();
    expect(world.read('shares/a')).toBe('and second');
    await world.run();
    expect(world.read('shares/a')).toBe('object a');
    expect(kept(world, 'shares/a')).toContain('and second');
  });
});

describe('a mirror root', () => {
  const SETTINGS = { ...shares('a', 'b'), tables: [{ table: 'prices-eu', edit: true }] };

  /** One that is mirrored into, and another daemon with a state of its own. */
  async function two(root = (first: string) => first) {
    const [one, other] = [three(), three(A_MINUTE_LATER)];
    for (const name of ['a', 'b']) other.peer.objects.set(name, { content: `other ${name}` });
    await one.world.open(SETTINGS);
    await one.world.run();
    other.world.root = root(one.world.root);
    await other.world.open(SETTINGS);
    const conditions = async () =>
      (await other.world.run()).map(({ condition, failure }) => (condition ?? failure)?.code);
    return { one: one.world, other: other.world, conditions };
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
    const { world } = three();
    await world.open(shares('a'));
    await world.run();
    await world.loseState();
    await world.open(shares('a'));
    expect((await world.once('a')).condition?.code).toBe('ROOT_TAKEN');
    expect((await world.mirrors.accept('a')).condition).toBeUndefined();
    expect((await world.once('a')).condition).toBeUndefined();
  });

  it('belongs to a state that was killed right after it took the root', async () => {
    const { world } = three();
    await world.open(shares('a'));
    const { commit } = world.state;
    world.state.commit = async () => {
      expect(existsSync(join(world.root, MARKER))).toBe(false);
      await commit.call(world.state);
      world.state.commit = commit;
    };
    expect((await world.once('a')).failure).toBeUndefined();
    await world.open(shares('a'));
    expect((await world.once('a')).condition).toBeUndefined();
  });

  it.each(['', '{"owner":', '{"owner":""}', '[]', 'null'])(
    "with the marker %j is nobody's who could be asked",
    async (text) => {
      const { world } = three();
      await world.open(shares('a'));
      await world.run();
      world.write(MARKER, text);
      expect((await world.once('a')).condition?.message).toContain(`${MARKER} cannot be read`);
      await world.mirrors.accept('a');
      expect((await world.once('a')).condition).toBeUndefined();
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
    const { world } = three();
    await world.open({ shares: [{ data: 'a', path: MARKER.toUpperCase() }] });
    for (let i = 0; i < 2; i += 1) expect((await world.once('a')).condition).toBeUndefined();
    expect(world.files()).toHaveLength(1);
  });
});
