import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { EDITABLE_FORMATS } from '../../src/config/mirror-schema.js';
import { MirrorError } from '../../src/mirror/errors.js';
import { temporaryDirectory } from '../support/temp.js';
import { rowsOf, STEPS, type TwoWayWorld, twoWayWorld } from './two-way-world.js';

const TWO = rowsOf('k1 a=1 b=2; k2 a=3 b=4');

/**
 * Columns: the title, the script (see `TwoWayWorld.play`), the writes to the peer, the conflicts,
 * the number of notes. `opened` means: an editor has the file open while the peer changes `k2 b`,
 * and a run writes the file anew.
 */
const CASES = `
pushes a changed cell                                       | edit k1 b=x                           | k1 b=x
merges changes of different cells of a row                  | peer k1 a=p · edit k1 b=m             | k1 b=m
pushes nothing if both sides made the same change           | peer k1 a=2 · edit k1 a=2
keeps the peer's value if both sides changed a cell         | peer k1 a=p · edit k1 a=m             |                    | k1 a
pushes a cleared cell                                       | edit k1 a=                            | k1 a=
pushes a new row                                            | edit k3 a=1 b=                        | k3 a=1
pushes a new row without values                             | edit k3 a=                            | k3 a=
pushes no new row that the peer has already                 | peer k3 a=1 · edit k3 a=1
does not mix two new rows of the same key                   | peer k3 a=p · edit k3 a=m b=m         |                    | k3 a, k3 b
deletes a removed row                                       | edit k1 -                             | -k1
deletes no removed row that the peer changed                | peer k1 a=2 · edit k1 -               |                    | k1
accepts a row that both sides removed                       | peer k1 - · edit k1 -
keeps an edit of a row that the peer removed                | peer k1 - · edit k1 a=2               |                    | k1
adds equal rows as separate rows                            | edit + a=x · edit + a=x · run · edit + a=x | + a=x; + a=x; + a=x

after a crash saves the same conflict only once             | peer k1 a=p · edit k1 a=m · crash conflict · run |            | k1 a
after a crash reverts an edit that was pushed               | edit k1 a=x · crash pushed · edit k1 a=1 | k1 a=x; k1 a=1
after a crash restores a row that was deleted               | open · edit k1 - · crash deleted · save | -k1; k1 a=1 b=2
after two crashes reverts two edits                         | edit k1 a=x · crash pushed · edit k1 a=y · crash pushing · edit k1 a=1 | k1 a=x; k1 a=1
after a crash pushes nothing that the peer itself reverted  | peer k1 a=p · crash written · peer k1 a=1
after a crash takes a later change of the peer for its own  | open · edit k1 a=x · crash pushed · save · peer k1 a=1 · run · peer k1 a=x | k1 a=x
after a crash saves an edit of the old file as a conflict   | peer k1 a=p · crash prepared · edit k1 a=m |                  | k1 a
after a crash saves an edit of the new file as a conflict   | peer k1 a=p · crash written · edit k1 a=m |                | k1 a
after a crash saves an edit that reverts the new file       | peer k1 a=p · crash written · edit k1 a=1 · edit k2 a=m | | k1 a, k2 a
after such a conflict pushes edits again                    | peer k1 a=p · crash written · edit k1 a=m · run · edit k1 a=m | k1 a=m | k1 a
after such a conflict keeps a row that the peer added       | open · peer k3 a=p · crash prepared · save k1 a=m · run · save k2 a=n | k1 a=m; k2 a=n | k1 a | 1
after a crash and a race saves the edit as a conflict       | peer k1 a=p · crash written · edit k2 a=m · race · peer k1 a=1 | | k1 a, k2 a
after a crash keeps a new row though the file was removed   | open · peer k3 a=p · crash written · remove · run · save k1 a=m | k1 a=m | | 1

pushes the edit of a stale copy                             | opened · save k1 a=m                  | k1 a=m             |      | 1
pushes nothing of a stale copy without an edit              | opened · save                         |                    |      | 1
keeps a row that the peer added after a stale copy          | open · peer k3 a=p · run · save k1 a=m | k1 a=m            |      | 1
does not restore a row that the peer removed after a stale copy | open · peer k2 - · run · save k1 a=m  | k1 a=m          |      | 1
keeps a column that the peer added after a stale copy       | open · peer k2 c=p · run · save k1 a=m | k1 a=m            |      | 1
keeps a cell empty that the peer cleared after a stale copy | open · peer k2 b= · run · save k1 a=m | k1 a=m             |      | 1
reports a conflict if a stale copy edits a cell that the peer changed | opened · peer k2 a=p · run · save k2 a=m |       | k2 a | 1
merges with the stale copy and not with a later one         | opened · peer k1 b=p · run · save k1 a=m | k1 a=m          |      | 1
merges with the stale copy and not with an earlier one      | peer k1 a=x · run · open · peer k1 a=y · run · peer k2 b=p · run · save k2 a=m | k2 a=m | | 1
recognises several saves of a stale copy                    | opened · save + a=x · run · save k1 a=m · run · save k1 a=1 | + a=x; k1 a=m; k1 a=1 | | 1
reports a conflict if both sides added a row after a stale copy | open · peer k3 a=p b=p · run · peer k2 b=p · run · save k3 a=m b=m | | k3 a, k3 b | 1
keeps a change of the peer after an edit                    | open · edit k1 a=m · run · peer k1 a=p · run · save | k1 a=m | k1 a | 1
keeps a change of the peer between two saves                | open · save k1 a=m · peer k2 b=p · run · save k1 b=m | k1 a=m; k1 b=m | | 1
after a crash pushes the edits of a stale copy once         | opened · save + a=x · save k1 a=m · crash ahead | k1 a=m; + a=x | | 1
takes a cell that both sides changed alike for no evidence  | open · peer k3 a=p · peer k2 b=x · save k2 b=x · run · save k1 a=m | k1 a=m | | 1
takes a row that both sides removed for no evidence         | open · peer k3 a=p · peer k2 - · save k2 - · run · save k1 a=m | k1 a=m | | 1
takes a row that both sides added alike for no evidence     | open · peer k3 a=p · peer k4 a=x · save k4 a=x · run · save k1 a=m | k1 a=m | | 1
notes a stale copy until the next edit                      | opened · save k1 a=m · run · edit k2 a=m | k1 a=m; k2 a=m
notes a stale copy for a week                               | opened · save · run · wait 6.9        |                    |      | 1
does not note a stale copy after a week                     | opened · save · run · wait 7.1
remembers a copy for a week after the next one              | wait 30 · opened · wait 6.9 · save k1 a=m | k1 a=m         |      | 1
does not remember a copy after a week                       | opened · wait 7.1 · save k1 a=m       | k1 a=m; k2 b=4

pushes a reverted cell if another change of the peer stays  | peer k1 a=p b=p · run · edit k1 a=1   | k1 a=1
pushes a reverted edit of its own                           | open · save k1 a=m · run · save k1 a=1 | k1 a=m; k1 a=1
after a crash pushes a reverted edit of its own             | open · save k1 a=m · crash pushed · run · save k1 a=1 | k1 a=m; k1 a=1
deletes a row of its own that is removed again              | open · edit k3 a=m · run · save       | k3 a=m; -k3
reverts the peer if the same stale copy is saved twice      | opened · save · run · save            | k2 b=4
does not revert a later change of the peer by that          | opened · save · run · peer k1 b=p · run · save |           |      | 1
does not revert a change that the file never showed         | opened · save · peer k1 b=p · run · save |                 |      | 1
reverts nothing if the first save was interrupted           | opened · save · crash prepared · save |                    |      | 1
reverts nothing if it was interrupted after the file        | opened · save · crash written · save  |                    |      | 1`;

describe('a two-way table of "k1 a=1 b=2; k2 a=3 b=4"', () => {
  const lines = CASES.split('\n').filter((line) => line !== '');
  it.each(lines.map((line) => line.split('|').map((part) => part.trim())))(
    '%s',
    async (_, script = '', ...expected) => {
      const [writes = '', conflicts = '', notes = '0'] = expected;
      const world = await twoWayWorld();
      const ended = await world.play(script.replace('opened', 'open · peer k2 b=theirs · run'));
      const actual = [
        world.writes.join('; '),
        world.conflicts().join(', '),
        `${ended.notes?.length}`,
      ];
      expect(actual).toEqual([writes, conflicts, notes]);
      expect(world.content()).toEqual(world.theirs());
      expect(world.conflictFiles()).toHaveLength(conflicts === '' ? 0 : 1);
      const { mtimeMs, ino } = statSync(world.file);
      expect(await world.settled()).toMatchObject({ changed: false });
      expect(statSync(world.file)).toMatchObject({ mtimeMs, ino });
      expect(world.writes.join('; ')).toBe(writes);
    },
  );
});

describe('a two-way table', () => {
  it('logs once which edits it wrote to the peer', async () => {
    const world = await twoWayWorld();
    await world.play('edit k1 a=x · edit k3 a=1 · run · run · edit k2 -');
    expect(world.logged).toEqual([
      'mirror T: wrote 2 rows of the table "T" to the peer (1 changed, 1 added)',
      'mirror T: wrote 1 row of the table "T" to the peer (1 removed)',
    ]);
  });

  it('removes no row of the peer after an error of the disk that followed the rename of the file', async () => {
    const world = await twoWayWorld({ k1: { a: '1' }, k2: { a: '2' } });
    world.remote.delete('k2');
    world.onStep = (step) => {
      if (step !== STEPS.written) return;
      throw new MirrorError('MIRROR_UNWRITABLE', { what: world.file, detail: 'EIO' });
    };
    await expect(world.run()).rejects.toThrow('EIO');
    world.onStep = () => {};
    world.remote.set('k2', { a: '2' });
    await world.settled();
    expect(world.writes).toEqual([]);
    expect(world.theirs()).toMatchObject({ k2: { a: '2' } });
  });

  it.each(EDITABLE_FORMATS)('is edited as %s with any line ends', async (format) => {
    const world = await twoWayWorld(
      { k1: { a: 'before "x", ü' }, k2: { a: 'line\nbreak' } },
      { format },
    );
    world.write(
      world
        .text()
        .replace('before', 'after')
        .replace(/\n(?!break)/g, '\r\n'),
    );
    await world.settled();
    expect(world.theirs()).toEqual({ k1: { a: 'after "x", ü' }, k2: { a: 'line\nbreak' } });
    expect(world.writes).toHaveLength(1);
    expect(world.text()).not.toContain('\r');
    expect(await world.settled()).toMatchObject({ changed: false });
  });

  it('has CRLF line ends if configured', async () => {
    const world = await twoWayWorld('k1 a=1', { format: 'csv', newline: 'crlf' });
    expect(world.text()).toBe('pk,a\r\nk1,1\r\n');
  });

  it.each(EDITABLE_FORMATS)(
    'is a file as %s that rows can be added to if it has no rows',
    async (format) => {
      const world = await twoWayWorld({}, { format });
      expect(await world.settled()).toMatchObject({ changed: false });
      world.write(
        { csv: 'pk,a\nk,1\n', json: '[{"pk":"k","a":"1"}]', ndjson: '{"pk":"k","a":"1"}' }[format],
      );
      await world.settled();
      expect(world.writes).toEqual(['k a=1']);
    },
  );

  it('writes the keys of new rows into the file, and ignores an empty line', async () => {
    const world = await twoWayWorld(TWO, { format: 'csv' });
    world.write(`${world.text()},new,\nmine,x,y\n,,\n`);
    await world.settled();
    expect(world.writes).toEqual(['mine a=x b=y', '+ a=new']);
    expect(world.text()).toMatch(/\n[0-9a-z]{12},new,\n/);
  });

  it('pushes many changes in groups, and a stopped run ends between two groups', async () => {
    const world = await twoWayWorld(
      Object.fromEntries(Array.from({ length: 2_500 }, (_, i) => [`k${i}`, { n: '1' }])),
    );
    world.save(world.rows().map((row) => ({ ...row, n: '2' })));
    const stopping = new AbortController();
    let sent = 0;
    world.peer.onRequest = (what) => {
      sent += Number(what.startsWith('did'));
      if (sent === 1_500) stopping.abort(new Error('enough'));
    };
    await expect(world.run({ signal: stopping.signal })).rejects.toThrow('enough');
    expect(sent).toBe(2_000);
    await world.settled();
    expect(sent).toBe(2_500);
  });

  it('is merged after each change of its file, and not without one', async () => {
    const world = await twoWayWorld();
    const looksEdited = () => world.table.wantsRun();
    expect(await looksEdited()).toBe(false);
    for (const edit of [
      () => world.write('{'),
      () => symlinkSync('elsewhere', world.file),
      () => {},
    ]) {
      edit();
      expect(await looksEdited()).toBe(true);
      await world.run();
      expect(await looksEdited()).toBe(false);
      rmSync(world.file);
    }
  });

  it('remembers changed cells and not whole copies, of the last hundred changes, and no huge change', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, i) => [`n${i}`, { a: 'x'.repeat(600) }]),
    );
    const world = await twoWayWorld({ ...TWO, ...many });
    const sizeOf = () => statSync(join(world.bases, readdirSync(world.bases)[0] ?? '')).size;
    await world.play('peer k2 b=x · run');
    const before = sizeOf();
    await world.play('peer k2 b=y · run');
    expect(sizeOf() - before).toBeLessThan(500);
    for (const pk of Object.keys(many)) world.remote.set(pk, { a: 'y' });
    await world.settled();
    expect(sizeOf()).toBeLessThan(before);
    const small = await twoWayWorld();
    const copies = [small.rows()];
    for (let i = 1; i <= 101; i += 1) {
      await small.play(`peer k1 a=new.${i}`);
      copies.push(small.rows());
    }
    const notesAfter = async (copy: number) => {
      small.save(
        (copies[copy] ?? []).map((row) => (row.pk === 'k2' ? { ...row, a: `m${copy}` } : row)),
      );
      return (await small.settled()).notes?.length;
    };
    expect(await notesAfter(0), 'the copy before a hundred and one').toBe(0);
    await small.play('peer k1 a=last');
    expect(await notesAfter(3), 'the copy before a hundred').toBe(1);
  }, 60_000);
});

describe('a conflict', () => {
  it('saves the file with its content and mode, and is listed until that file is removed', async () => {
    const world = await twoWayWorld();
    chmodSync(world.file, 0o640);
    writeFileSync(world.file, world.text().replace('"1"', '"m"'));
    utimesSync(world.file, 1, 1);
    const edited = world.text();
    const { conflicts } = await world.play('peer k1 a=p');
    const [name = ''] = world.conflictFiles();
    expect(name).toMatch(/^T\.ndjson\.conflict-\d{8}T\d{6}Z$/);
    expect(world.conflictTexts()).toEqual([edited]);
    expect(statSync(join(dirname(world.file), name)).mode & 0o777).toBe(0o640);
    expect(conflicts).toEqual([
      { pk: 'k1', column: 'a', file: `tables/${name}`, at: world.clock.now() },
    ]);
    expect((await world.play('run')).conflicts).toEqual(conflicts);
    rmSync(join(dirname(world.file), name));
    expect((await world.settled()).conflicts).toEqual([]);
  });

  it('gets a number in the same second, and is not confused by a link', async () => {
    const world = await twoWayWorld();
    const time = new Date(world.clock.now()).toISOString().replace(/[-:]|\.\d+/g, '');
    const first = `${world.file}.conflict-${time}`;
    writeFileSync(`${world.root}/elsewhere`, world.text().replace('"1"', '"one"'));
    symlinkSync(`${world.root}/elsewhere`, `${first}-0`);
    await world.play('peer k1 a=p · edit k1 a=one');
    await world.play('peer k1 a=q · edit k1 a=two');
    const saved = (path: string) => /"a":"(\w+)"/.exec(readFileSync(path, 'utf8'))?.[1];
    expect([saved(first), saved(`${first}-2`)]).toEqual(['one', 'two']);
    expect(world.conflicts()).toEqual(['k1 a', '', 'k1 a']);
  });

  it('is listed without cells if no record has it, and with at most a hundred cells', async () => {
    const world = await twoWayWorld(
      Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`k${i}`, { a: '1' }])),
    );
    world.save(world.rows().map((row) => ({ ...row, a: 'mine' })));
    for (const pk of world.remote.keys()) world.remote.set(pk, { a: 'theirs' });
    await world.settled();
    expect(world.conflicts()).toHaveLength(100);
    for (const name of [
      'T.ndjson.old',
      'S.ndjson.conflict-1',
      'T.ndjson.conflict-20260101T000000Z',
    ])
      writeFileSync(join(dirname(world.file), name), 'old');
    await world.settled();
    expect([world.conflicts()[0], world.conflicts().length]).toEqual(['', 101]);
  });
});

describe('a row removed from the file', () => {
  const MANY = 'k0 a=0; k1 a=1; k2 a=2; k3 a=3';

  it('comes back with a note if deletions are off', async () => {
    const world = await twoWayWorld(TWO, { deletes: false });
    expect((await world.play('edit k1 -')).notes).toEqual([expect.stringContaining('"k1"')]);
    expect([world.content(), world.writes]).toEqual([TWO, []]);
  });

  it('comes back if the peer changed a column that the file does not show', async () => {
    const world = await twoWayWorld('k1 a=1 hidden=x; k2 a=2', { columns: ['a'] });
    await world.play('peer k1 hidden=y · edit k1 -');
    expect([world.writes, world.conflicts()]).toEqual([[], ['k1']]);
  });

  it('waits for a person with all other edits if there are more than maxDeletes, and accepting covers only the named rows', async () => {
    const world = await twoWayWorld(MANY, { maxDeletes: 1 });
    world.save([
      { pk: 'k2', a: 'x' },
      { pk: 'k3', a: '3' },
    ]);
    const edited = world.text();
    expect((await world.run({ accept: 'EDIT_DELETES' })).kind, 'there was nothing to accept').toBe(
      'condition',
    );
    const condition = await world.condition();
    expect(condition).toContain('2 rows were removed ("k0", "k1"), more than maxDeletes, 1');
    expect(condition).toContain('mirror accept T');
    expect(world.text()).toBe(edited);
    world.save([{ pk: 'k3', a: 'x' }]);
    expect((await world.run({ accept: 'EDIT_DELETES' })).kind).toBe('condition');
    expect(world.writes).toEqual([]);
    await world.settled('EDIT_DELETES');
    expect(world.writes).toEqual(['k3 a=x', '-k0', '-k1', '-k2']);
  });

  it('counts even if all rows and with them the columns were removed', async () => {
    const world = await twoWayWorld(MANY, { format: 'json', maxDeletes: 3 });
    world.write('[]');
    expect(await world.condition()).toContain('EDIT_DELETES');
    expect(world.writes).toEqual([]);
  });
});

describe('the columns of an edited file', () => {
  it('are added to the peer if they are new, and stay in the file without a value', async () => {
    const world = await twoWayWorld('k1 a=1', { format: 'csv' });
    world.write('pk,a,c,later\nk1,1,x,\n');
    await world.play('run · peer k1 a=2');
    expect([world.text(), world.writes]).toEqual(['pk,a,c,later\nk1,2,x,\n', ['k1 c=x']]);
    world.write('pk,a,c\nk1,2,x\n');
    await world.settled();
    expect([world.text(), world.writes]).toEqual(['pk,a,c\nk1,2,x\n', ['k1 c=x']]);
  });

  it('may be missing if only an earlier copy had them', async () => {
    const world = await twoWayWorld('k1 a=1 b=2');
    await world.play('peer k1 - · run');
    world.save([{ pk: 'k1', a: 'm' }]);
    expect((await world.settled()).notes).toEqual([]);
    expect(world.writes).toEqual(['k1 a=m']);
  });
});

const KEY = 'k'.repeat(501);
describe('a file that cannot be merged', () => {
  it.each<[string, string, string, string, object?]>([
    ['csv', 'pk,a,b\nk1,1,2\nk2,3,"4\n', 'EDIT_UNREADABLE', 'line 3, column 6'],
    ['csv', '', 'EDIT_UNREADABLE', 'line 1, column 1: nothing: the file is empty'],
    ['json', ' \n', 'EDIT_UNREADABLE', 'nothing: the file is empty'],
    ['ndjson', '{"a":"1","b":"2"}\n{"pk":"k\\u0000"}\n', 'EDIT_UNREADABLE', 'line 2: the key'],
    ['ndjson', `{"pk":"${KEY}","a":"1","b":"2"}\n`, 'EDIT_UNREADABLE', 'line 1: the key'],
    ['ndjson', '{"pk":"k1","a":"1"}\n', 'EDIT_COLUMNS', 'lacks columns that it had: "b"'],
    [
      'ndjson',
      '{"pk":"k1","a":"1","c":"x"}\n',
      'EDIT_COLUMNS',
      'cannot have: "c"',
      { columns: ['a'] },
    ],
    ['ndjson', `{"pk":"k1","a":"1","b":"2","${KEY}":"x"}\n`, 'EDIT_COLUMNS', 'cannot have: "kkk'],
  ])(
    'as %s %j is left alone, and reported: %s, %s',
    async (format, text, code, where, more = {}) => {
      const world = await twoWayWorld(TWO, { format, ...more });
      world.write(text);
      const condition = await world.condition();
      expect(condition).toContain(`${code}: ${world.file}`);
      expect(condition).toContain(where);
      world.remote.set('k1', { a: 'changed in the peer', b: '2' });
      await world.condition();
      expect([world.text(), world.writes]).toEqual([text, []]);
    },
  );

  it('is reported without the peer, and merged once it is mended', async () => {
    const world = await twoWayWorld();
    const good = world.text();
    world.peer.onRequest = () => Promise.reject(new Error('the peer is away'));
    world.write('{');
    expect(await world.condition()).toContain('EDIT_UNREADABLE');
    world.peer.onRequest = () => {};
    world.write(good.replace('"1"', '"mended"'));
    await world.settled();
    expect(world.writes).toEqual(['k1 a=mended']);
  });

  it('is one that is too large, or whose table has more than 100,000 rows', async () => {
    const world = await twoWayWorld();
    const before = world.text();
    for (let i = 0; i < 100_000; i += 1) world.remote.set(`n${i}`, {});
    expect(await world.condition()).toContain('EDIT_TOO_LARGE');
    expect(world.text()).toBe(before);
    truncateSync(world.file, 64 * 2 ** 20 + 1);
    expect(await world.condition()).toContain('EDIT_TOO_LARGE');
  });

  it('is anything that is no regular file, while a missing file is written anew without deletions', async () => {
    const world = await twoWayWorld();
    const elsewhere = join(temporaryDirectory(), 'elsewhere');
    writeFileSync(elsewhere, 'not ours');
    const inItsPlace = [
      () => symlinkSync(elsewhere, world.file),
      () => execFileSync('mkfifo', [world.file]),
      () => mkdirSync(world.file),
    ];
    for (const make of inItsPlace) {
      rmSync(world.file, { recursive: true });
      make();
      expect(await world.condition()).toContain('EDIT_UNREADABLE');
    }
    expect(readFileSync(elsewhere, 'utf8')).toBe('not ours');
    rmSync(world.file, { recursive: true });
    await world.settled();
    expect([world.content(), world.writes]).toEqual([TWO, []]);
  });
});

describe('a file that is being written', () => {
  /** A run, half a second of which passes at a time. */
  async function runInTime(world: TwoWayWorld, meanwhile: () => void = () => {}) {
    let isOver = false;
    const began = world.clock.now();
    const run = world.run().finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await nextTurn();
      if (world.clock.waiting === 0) continue;
      meanwhile();
      await world.clock.advance(500);
    }
    return { kind: (await run).kind, isSoon: world.clock.now() - began < 2_000 };
  }

  it.each([
    [
      'read once it is at rest for two seconds',
      'current',
      (world: TwoWayWorld) => world.clock.now() / 1000,
      false,
    ],
    [
      'left for a later run if it does not come to rest',
      'busy',
      (world: TwoWayWorld) => world.clock.now() / 1000,
      true,
    ],
    ['at rest even if its time is in the future', 'current', () => 4_000_000_000, false],
  ])('is %s', async (_, kind, timeOf, isGoingOn) => {
    const world = await twoWayWorld();
    world.write(world.text().replace('"1"', '"m"'));
    const touch = () => utimesSync(world.file, timeOf(world), timeOf(world));
    touch();
    expect(await runInTime(world, isGoingOn ? touch : undefined)).toEqual({ kind, isSoon: false });
    expect(world.writes).toEqual(isGoingOn ? [] : ['k1 a=m']);
    expect(await world.table.wantsRun()).toBe(isGoingOn);
  });

  it('is not overwritten if it is saved during a push, or created during a run', async () => {
    const world = await twoWayWorld();
    world.write(world.text().replace('"1"', '"first"'));
    world.peer.onRequest = (what) =>
      what.startsWith('did') && world.write(world.text().replace('"2"', '"second"'));
    expect(await world.run()).toEqual({ kind: 'busy' });
    world.peer.onRequest = () => {};
    await world.settled();
    expect(world.theirs().k1).toEqual({ a: 'first', b: 'second' });
    const text = world.text();
    rmSync(world.file);
    world.peer.onRequest = () => world.write(text.replace('first', 'mine'));
    expect(await world.run()).toEqual({ kind: 'busy' });
    world.peer.onRequest = () => {};
    await world.settled();
    expect(world.theirs().k1?.a).toBe('mine');
  });
});

describe('a two-way table whose last run was interrupted', () => {
  it('by a stop pushes the edits in its next run', async () => {
    const world = await twoWayWorld();
    world.remote.set('k1', { a: 'p', b: '2' });
    const stopping = new AbortController();
    world.onStep = (step) => {
      if (step === 'the new base is prepared') stopping.abort(new Error('stopped'));
    };
    await expect(world.run({ signal: stopping.signal })).rejects.toThrow('stopped');
    world.onStep = () => {};
    await world.play('edit k2 a=m');
    expect([world.writes, world.conflictFiles()]).toEqual([['k2 a=m'], []]);
    expect(world.theirs()).toEqual(rowsOf('k1 a=p b=2; k2 a=m b=4'));
  });

  it('by an error of the peer leaves the file as it was, and continues in its next run', async () => {
    const world = await twoWayWorld();
    world.save(world.rows().map((row) => ({ ...row, a: 'm' })));
    const edited = world.text();
    world.peer.onRequest = (what) =>
      what.startsWith('set T k2') && Promise.reject(new Error('the peer is away'));
    await expect(world.run()).rejects.toThrow('the peer is away');
    expect(world.text()).toBe(edited);
    world.peer.onRequest = () => {};
    world.peer.requests.length = 0;
    await world.settled();
    expect([world.writes, world.content()]).toEqual([['k2 a=m'], rowsOf('k1 a=m b=2; k2 a=m b=4')]);
  });
});

describe('a two-way table whose base is missing', () => {
  it.each([
    ['is gone', (path: string) => rmSync(path)],
    [
      'is damaged',
      (path: string) => writeFileSync(path, readFileSync(path, 'utf8').replace('"3"', '"9"')),
    ],
    ['is cut off', (path: string) => truncateSync(path, statSync(path).size - 10)],
  ])('because it %s pushes nothing, and saves the file as a conflict file', async (_, spoil) => {
    const world = await twoWayWorld();
    world.save([
      { pk: 'k1', a: 'm', b: '2' },
      { pk: 'k2', a: '3', b: '4' },
      { pk: 'new', a: 'x' },
    ]);
    const edited = world.text();
    spoil(join(world.bases, readdirSync(world.bases)[0] ?? ''));
    world.open();
    await world.settled();
    expect([world.writes, world.content()]).toEqual([[], TWO]);
    expect([world.conflictTexts(), world.conflicts()]).toEqual([[edited], ['k1 a', 'new']]);
  });

  it('follows the peer if its file is unedited', async () => {
    const world = await twoWayWorld();
    rmSync(world.bases, { recursive: true });
    await world.play('peer k1 a=p');
    expect([world.content(), world.conflictFiles()]).toEqual([world.theirs(), []]);
  });

  it('writes nothing if no base can be written, and removes what a killed process left', async () => {
    const world = await twoWayWorld();
    const [base = ''] = readdirSync(world.bases);
    for (const name of [`${base}.next.tmp`, 'other.tmp'])
      writeFileSync(join(world.bases, name), 'half');
    await world.play('peer k1 a=p');
    expect(readdirSync(world.bases).sort()).toEqual([base, 'other.tmp'].sort());
    rmSync(world.bases, { recursive: true });
    writeFileSync(world.bases, 'in the way');
    const before = world.text();
    await expect(world.play('peer k1 a=q')).rejects.toMatchObject({ code: 'MIRROR_BLOCKED' });
    expect(world.text()).toBe(before);
  });
});

describe('a two-way table that a person accepts to be gone', () => {
  it('loses its file and its base, and an edit is left as a conflict file', async () => {
    const world = await twoWayWorld();
    await world.play('peer k2 b=p · run');
    world.write(world.text().replace('"1"', '"m"'));
    const edited = world.text();
    expect(await world.table.retire(world.record)).toMatchObject([{ pk: '' }]);
    expect(existsSync(world.file)).toBe(false);
    expect([world.conflictTexts(), readdirSync(world.bases)]).toEqual([[edited], []]);
  });

  it('keeps a file that is saved just before the removal', async () => {
    const world = await twoWayWorld();
    world.onStep = (step) =>
      step === 'the file is about to be removed' && world.save([{ pk: 'k2' }]);
    await expect(world.table.retire(world.record)).rejects.toMatchObject({
      code: 'MIRROR_BLOCKED',
    });
    expect(world.content()).toEqual({ k2: {} });
  });
});
