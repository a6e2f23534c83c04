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
import { temporaryDirectory } from '../support/temp.js';
import { type Desk, deskWith, rowsOf } from './edit-desk.js';

const TWO = rowsOf('k1 a=1 b=2; k2 a=3 b=4');
const FORMATS = ['csv', 'json', 'ndjson'] as const;

/**
 * What happens (see `Desk.play`), what the peer is told, what clashes, and how many notes there
 * are. `opened` stands for a file that is open in an editor while the peer changes `k2 b`, and that
 * reaches the file.
 */
const CASES = `
is left alone while nothing differs             | run
tells a cell that was changed                   | edit k1 b=x                           | k1 b=x
takes a cell that the peer changed              | they k1 b=x
takes cells of one row from either side         | they k1 a=p · edit k1 b=m             | k1 b=m
tells no equal changes                          | they k1 a=2 · edit k1 a=2
keeps the peer's cell where both changed it     | they k1 a=p · edit k1 a=m             |                    | k1 a
tells a cleared cell                            | edit k1 a=                            | k1 a=
tells a new row                                 | edit k3 a=1 b=                        | k3 a=1
tells a new row without anything in it          | edit k3 a=                            | k3 a=
tells no new row that the peer has just so      | they k3 a=1 · edit k3 a=1
mixes no rows of the same new key               | they k3 a=p · edit k3 a=m b=m         |                    | k3 a, k3 b
deletes a removed row                           | edit k1 -                             | -k1
deletes no removed row that the peer changed    | they k1 a=2 · edit k1 -               |                    | k1
takes a row removed on both sides               | they k1 - · edit k1 -
takes a row that the peer removed               | they k1 -
keeps an edit of a row that the peer removed    | they k1 - · edit k1 a=2               |                    | k1
adds equal rows                                 | edit + a=x · edit + a=x · run · edit + a=x | + a=x; + a=x; + a=x

adds a row once, though runs were cut short     | edit + a=x · crash told · crash based · crash written | + a=x
saves what clashes once                         | they k1 a=p · edit k1 a=m · crash saved · run |            | k1 a
takes back an edit that was told                | edit k1 a=x · crash told · edit k1 a=1 | k1 a=x; k1 a=1
puts back a row that was deleted                | open · edit k1 - · crash deleted · save | -k1; k1 a=1 b=2
takes edits back step by step                   | edit k1 a=x · crash told · edit k1 a=y · crash telling · edit k1 a=1 | k1 a=x; k1 a=1
tells nothing that only the peer took back      | they k1 a=p · crash written · they k1 a=1
takes nothing for told twice                    | open · edit k1 a=x · crash told · save · they k1 a=1 · run · they k1 a=x | k1 a=x
saves an edit of nobody knows which file        | they k1 a=p · crash based · edit k1 a=m |                  | k1 a
saves such an edit also of the new file         | they k1 a=p · crash written · edit k1 a=m |                | k1 a
saves an edit that takes the new file back too      | they k1 a=p · crash written · edit k1 a=1 · edit k2 a=m | | k1 a, k2 a
goes on behind that                             | they k1 a=p · crash written · edit k1 a=m · run · edit k1 a=m | k1 a=m | k1 a
keeps a row that the peer added before that     | open · they k3 a=p · crash based · save k1 a=m · run · save k2 a=n | k1 a=m; k2 a=n | k1 a | 1
keeps it also behind the new file               | open · they k3 a=p · crash written · save k1 a=m · run · save k2 a=n | k1 a=m; k2 a=n | k1 a | 1
saves it also where a run was overtaken then    | they k1 a=p · crash written · edit k2 a=m · overtaken · they k1 a=1 | | k1 a, k2 a
keeps a row behind that where the file went     | open · they k3 a=p · crash written · remove · run · save k1 a=m | k1 a=m | | 1

tells what was edited in an earlier copy        | opened · save k1 a=m                  | k1 a=m             |      | 1
tells nothing of an earlier copy                | opened · save                         |                    |      | 1
keeps a row that the peer added since           | open · they k3 a=p · run · save k1 a=m | k1 a=m            |      | 1
keeps a row away that the peer removed since    | open · they k2 - · run · save k1 a=m  | k1 a=m             |      | 1
keeps a column that the peer added since        | open · they k2 c=p · run · save k1 a=m | k1 a=m            |      | 1
keeps a cell empty that the peer cleared since  | open · they k2 b= · run · save k1 a=m | k1 a=m             |      | 1
keeps a cell that both changed since            | opened · they k2 a=p · run · save k2 a=m |                 | k2 a | 1
takes that copy, and not one between            | opened · they k1 b=p · run · save k1 a=m | k1 a=m          |      | 1
takes that copy, and not one before             | they k1 a=x · run · open · they k1 a=y · run · they k2 b=p · run · save k2 a=m | k2 a=m | | 1
keeps it at each save, and adds a row once      | opened · save + a=x · run · save k1 a=m · run · save k1 a=1 | + a=x; k1 a=m; k1 a=1 | | 1
keeps a row that both added since               | open · they k3 a=p b=p · run · they k2 b=p · run · save k3 a=m b=m | | k3 a, k3 b | 1
keeps what the peer changed behind an edit      | open · edit k1 a=m · run · they k1 a=p · run · save | k1 a=m | k1 a | 1
keeps what the peer changed meanwhile           | open · save k1 a=m · they k2 b=p · run · save k1 b=m | k1 a=m; k1 b=m | | 1
tells it once, though not even told             | opened · save + a=x · save k1 a=m · crash intended | k1 a=m; + a=x | | 1
tells it once, cut short behind the file        | opened · save + a=x · save k1 a=m · crash written | k1 a=m; + a=x | | 1
takes a cell that both changed alike for no sign | open · they k3 a=p · they k2 b=x · save k2 b=x · run · save k1 a=m | k1 a=m | | 1
takes a row that both removed for no sign       | open · they k3 a=p · they k2 - · save k2 - · run · save k1 a=m | k1 a=m | | 1
takes a row that both added alike for no sign   | open · they k3 a=p · they k4 a=x · save k4 a=x · run · save k1 a=m | k1 a=m | | 1
notes it until another edit                     | opened · save k1 a=m · run · edit k2 a=m | k1 a=m; k2 a=m
notes it for a week                             | opened · save · run · wait 6.9        |                    |      | 1
notes it no longer                              | opened · save · run · wait 7.1
knows a copy for a week after the next          | wait 30 · opened · wait 6.9 · save k1 a=m | k1 a=m         |      | 1
knows a copy no longer                          | opened · wait 7.1 · save k1 a=m       | k1 a=m; k2 b=4

sets back a part of what the peer changed       | they k1 a=p b=p · run · edit k1 a=1   | k1 a=1
sets back an edit                               | open · save k1 a=m · run · save k1 a=1 | k1 a=m; k1 a=1
sets back an edit that was cut short            | open · save k1 a=m · crash told · run · save k1 a=1 | k1 a=m; k1 a=1
removes a row that was added                    | open · edit k3 a=m · run · save       | k3 a=m; -k3
takes the same once more for meant              | opened · save · run · save            | k2 b=4
takes it for meant up to the peer's next change | opened · save · run · they k1 b=p · run · save |           |      | 1
takes nothing for meant that it did not show    | opened · save · they k1 b=p · run · save |                    |      | 1
takes nothing for meant that was cut short      | opened · save · crash based · save    |                    |      | 1
takes nothing for meant behind the file         | opened · save · crash written · save  |                    |      | 1`;

describe('a two-way table of "k1 a=1 b=2; k2 a=3 b=4"', () => {
  const lines = CASES.split('\n').filter((line) => line !== '');
  it.each(lines.map((line) => line.split('|').map((part) => part.trim())))(
    '%s',
    async (_, script = '', ...expected) => {
      const [writes = '', conflicts = '', notes = '0'] = expected;
      const desk = await deskWith();
      const ended = await desk.play(script.replace('opened', 'open · they k2 b=theirs · run'));
      const told = [desk.writes.join('; '), desk.conflicts().join(', '), `${ended.notes?.length}`];
      expect(told).toEqual([writes, conflicts, notes]);
      expect(desk.content()).toEqual(desk.theirs());
      expect(desk.conflictFiles()).toHaveLength(conflicts === '' ? 0 : 1);
      const { mtimeMs, ino } = statSync(desk.file);
      expect(await desk.settled()).toMatchObject({ changed: false });
      expect(statSync(desk.file)).toMatchObject({ mtimeMs, ino });
      expect(desk.writes.join('; ')).toBe(writes);
    },
  );
});

describe('a two-way table', () => {
  it('says which edits it wrote to the peer, once', async () => {
    const desk = await deskWith();
    await desk.play('edit k1 a=x · edit k3 a=1 · run · run · edit k2 -');
    expect(desk.said).toEqual([
      'mirror T: wrote 2 rows of the table "T" to the peer (1 changed, 1 added)',
      'mirror T: wrote 1 row of the table "T" to the peer (1 removed)',
    ]);
  });

  it.each(FORMATS)('is edited as %s, whatever ends its lines', async (format) => {
    const desk = await deskWith(
      { k1: { a: 'before "x", ü' }, k2: { a: 'line\nbreak' } },
      { format },
    );
    desk.write(
      desk
        .text()
        .replace('before', 'after')
        .replace(/\n(?!break)/g, '\r\n'),
    );
    await desk.settled();
    expect(desk.theirs()).toEqual({ k1: { a: 'after "x", ü' }, k2: { a: 'line\nbreak' } });
    expect(desk.writes).toHaveLength(1);
    expect(desk.text()).not.toContain('\r');
    expect(await desk.settled()).toMatchObject({ changed: false });
  });

  it('has CRLF where that is asked for', async () => {
    const desk = await deskWith('k1 a=1', { format: 'csv', newline: 'crlf' });
    expect(desk.text()).toBe('pk,a\r\nk1,1\r\n');
  });

  it.each(FORMATS)('without rows is a file as %s that rows can be added to', async (format) => {
    const desk = await deskWith({}, { format });
    expect(await desk.settled()).toMatchObject({ changed: false });
    desk.write(
      { csv: 'pk,a\nk,1\n', json: '[{"pk":"k","a":"1"}]', ndjson: '{"pk":"k","a":"1"}' }[format],
    );
    await desk.settled();
    expect(desk.writes).toEqual(['k a=1']);
  });

  it('writes the keys of new rows into the file; a line in which nothing stands is none', async () => {
    const desk = await deskWith(TWO, { format: 'csv' });
    desk.write(`${desk.text()},new,\nmine,x,y\n,,\n`);
    await desk.settled();
    expect(desk.writes).toEqual(['mine a=x b=y', '+ a=new']);
    expect(desk.text()).toMatch(/\n[0-9a-z]{12},new,\n/);
  });

  it('sends many changes in groups that are read back together; a run that is stopped ends between two', async () => {
    const desk = await deskWith(
      Object.fromEntries(Array.from({ length: 2_500 }, (_, i) => [`k${i}`, { n: '1' }])),
    );
    desk.save(desk.rows().map((row) => ({ ...row, n: '2' })));
    const stopping = new AbortController();
    let sent = 0;
    desk.peer.onAsk = (what) => {
      sent += Number(what.startsWith('did'));
      if (sent === 1_500) stopping.abort(new Error('enough'));
    };
    await expect(desk.run({ signal: stopping.signal })).rejects.toThrow('enough');
    expect(sent).toBe(2_000);
    await desk.settled();
    expect(sent).toBe(2_500);
  });

  it('looks edited by a stat, once for each state of the file', async () => {
    const desk = await deskWith();
    const looksEdited = () => desk.table.wantsRun();
    expect(await looksEdited()).toBe(false);
    for (const edit of [
      () => desk.write('{'),
      () => symlinkSync('elsewhere', desk.file),
      () => {},
    ]) {
      edit();
      expect(await looksEdited()).toBe(true);
      await desk.run();
      expect(await looksEdited()).toBe(false);
      rmSync(desk.file);
    }
  });

  it('remembers earlier copies a cell, for the last hundred changes of the peer, and not where too much changed', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, i) => [`n${i}`, { a: 'x'.repeat(600) }]),
    );
    const desk = await deskWith({ ...TWO, ...many });
    const sizeOf = () => statSync(join(desk.bases, readdirSync(desk.bases)[0] ?? '')).size;
    await desk.play('they k2 b=x · run');
    const before = sizeOf();
    await desk.play('they k2 b=y · run');
    expect(sizeOf() - before).toBeLessThan(500);
    for (const pk of Object.keys(many)) desk.remote.set(pk, { a: 'y' });
    await desk.settled();
    expect(sizeOf()).toBeLessThan(before);
    const small = await deskWith();
    const copies = [small.rows()];
    for (let i = 1; i <= 101; i += 1) {
      await small.play(`they k1 a=new.${i}`);
      copies.push(small.rows());
    }
    const notesAfter = async (copy: number) => {
      small.save(
        (copies[copy] ?? []).map((row) => (row.pk === 'k2' ? { ...row, a: `m${copy}` } : row)),
      );
      return (await small.settled()).notes?.length;
    };
    expect(await notesAfter(0), 'the copy before a hundred and one').toBe(0);
    await small.play('they k1 a=last');
    expect(await notesAfter(3), 'the copy before a hundred').toBe(1);
  }, 60_000);
});

describe('what both sides changed', () => {
  it('is saved as it was, readable for whom it was, and listed for as long as that file stands', async () => {
    const desk = await deskWith();
    chmodSync(desk.file, 0o640);
    writeFileSync(desk.file, desk.text().replace('"1"', '"m"'));
    utimesSync(desk.file, 1, 1);
    const edited = desk.text();
    const { conflicts } = await desk.play('they k1 a=p');
    const [name = ''] = desk.conflictFiles();
    expect(name).toMatch(/^T\.ndjson\.conflict-\d{8}T\d{6}Z$/);
    expect(desk.conflictTexts()).toEqual([edited]);
    expect(statSync(join(dirname(desk.file), name)).mode & 0o777).toBe(0o640);
    expect(conflicts).toEqual([
      { pk: 'k1', column: 'a', file: `tables/${name}`, at: desk.clock.now() },
    ]);
    expect((await desk.play('run')).conflicts).toEqual(conflicts);
    rmSync(join(dirname(desk.file), name));
    expect((await desk.settled()).conflicts).toEqual([]);
  });

  it('in the same second is saved under a number, and never taken for saved by a link', async () => {
    const desk = await deskWith();
    const time = new Date(desk.clock.now()).toISOString().replace(/[-:]|\.\d+/g, '');
    const first = `${desk.file}.conflict-${time}`;
    writeFileSync(`${desk.root}/elsewhere`, desk.text().replace('"1"', '"one"'));
    symlinkSync(`${desk.root}/elsewhere`, `${first}-0`);
    await desk.play('they k1 a=p · edit k1 a=one');
    await desk.play('they k1 a=q · edit k1 a=two');
    const saved = (path: string) => /"a":"(\w+)"/.exec(readFileSync(path, 'utf8'))?.[1];
    expect([saved(first), saved(`${first}-2`)]).toEqual(['one', 'two']);
    expect(desk.conflicts()).toEqual(['k1 a', '', 'k1 a']);
  });

  it('is listed without its cells where no record knows of it, and by its first hundred cells of a file', async () => {
    const desk = await deskWith(
      Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`k${i}`, { a: '1' }])),
    );
    desk.save(desk.rows().map((row) => ({ ...row, a: 'mine' })));
    for (const pk of desk.remote.keys()) desk.remote.set(pk, { a: 'theirs' });
    await desk.settled();
    expect(desk.conflicts()).toHaveLength(100);
    for (const name of [
      'T.ndjson.old',
      'S.ndjson.conflict-1',
      'T.ndjson.conflict-20260101T000000Z',
    ])
      writeFileSync(join(dirname(desk.file), name), 'old');
    await desk.settled();
    expect([desk.conflicts()[0], desk.conflicts().length]).toEqual(['', 101]);
  });
});

describe('a row removed from the file', () => {
  const MANY = 'k0 a=0; k1 a=1; k2 a=2; k3 a=3';

  it('comes back where deletions are off, and that is said', async () => {
    const desk = await deskWith(TWO, { deletes: false });
    expect((await desk.play('edit k1 -')).notes).toEqual([expect.stringContaining('"k1"')]);
    expect([desk.content(), desk.writes]).toEqual([TWO, []]);
  });

  it('comes back where the peer changed what the file does not show', async () => {
    const desk = await deskWith('k1 a=1 hidden=x; k2 a=2', { columns: ['a'] });
    await desk.play('they k1 hidden=y · edit k1 -');
    expect([desk.writes, desk.conflicts()]).toEqual([[], ['k1']]);
  });

  it('waits for a person where there are more than maxDeletes, with everything else; other rows are not accepted', async () => {
    const desk = await deskWith(MANY, { maxDeletes: 1 });
    desk.save([
      { pk: 'k2', a: 'x' },
      { pk: 'k3', a: '3' },
    ]);
    const edited = desk.text();
    expect((await desk.run({ accept: 'EDIT_DELETES' })).kind, 'there was nothing to accept').toBe(
      'condition',
    );
    const condition = await desk.condition();
    expect(condition).toContain('2 rows were removed ("k0", "k1"), more than maxDeletes, 1');
    expect(condition).toContain('mirror accept T');
    expect(desk.text()).toBe(edited);
    desk.save([{ pk: 'k3', a: 'x' }]);
    expect((await desk.run({ accept: 'EDIT_DELETES' })).kind).toBe('condition');
    expect(desk.writes).toEqual([]);
    await desk.settled('EDIT_DELETES');
    expect(desk.writes).toEqual(['k3 a=x', '-k0', '-k1', '-k2']);
  });

  it('counts also where all were removed, and with them the columns', async () => {
    const desk = await deskWith(MANY, { format: 'json', maxDeletes: 3 });
    desk.write('[]');
    expect(await desk.condition()).toContain('EDIT_DELETES');
    expect(desk.writes).toEqual([]);
  });
});

describe('the columns of an edited file', () => {
  it('that are new are new in the peer; those that nothing stands in yet stay in the file', async () => {
    const desk = await deskWith('k1 a=1', { format: 'csv' });
    desk.write('pk,a,c,later\nk1,1,x,\n');
    await desk.play('run · they k1 a=2');
    expect([desk.text(), desk.writes]).toEqual(['pk,a,c,later\nk1,2,x,\n', ['k1 c=x']]);
    desk.write('pk,a,c\nk1,2,x\n');
    await desk.settled();
    expect([desk.text(), desk.writes]).toEqual(['pk,a,c\nk1,2,x\n', ['k1 c=x']]);
  });

  it('that stand in an earlier copy alone may be missing', async () => {
    const desk = await deskWith('k1 a=1 b=2');
    await desk.play('they k1 - · run');
    desk.save([{ pk: 'k1', a: 'm' }]);
    expect((await desk.settled()).notes).toEqual([]);
    expect(desk.writes).toEqual(['k1 a=m']);
  });
});

const KEY = 'k'.repeat(501);
describe('a file that cannot be taken as it is', () => {
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
  ])('as %s %j is left alone, and told: %s, %s', async (format, text, code, where, more = {}) => {
    const desk = await deskWith(TWO, { format, ...more });
    desk.write(text);
    const condition = await desk.condition();
    expect(condition).toContain(`${code}: ${desk.file}`);
    expect(condition).toContain(where);
    desk.remote.set('k1', { a: 'changed in the peer', b: '2' });
    await desk.condition();
    expect([desk.text(), desk.writes]).toEqual([text, []]);
  });

  it('needs no peer to be told, and goes on once it is mended', async () => {
    const desk = await deskWith();
    const good = desk.text();
    desk.peer.onAsk = () => Promise.reject(new Error('the peer is away'));
    desk.write('{');
    expect(await desk.condition()).toContain('EDIT_UNREADABLE');
    desk.peer.onAsk = () => {};
    desk.write(good.replace('"1"', '"mended"'));
    await desk.settled();
    expect(desk.writes).toEqual(['k1 a=mended']);
  });

  it('is one that is too large, or that a table of more than 100,000 rows would be written to', async () => {
    const desk = await deskWith();
    const before = desk.text();
    for (let i = 0; i < 100_000; i += 1) desk.remote.set(`n${i}`, {});
    expect(await desk.condition()).toContain('EDIT_TOO_LARGE');
    expect(desk.text()).toBe(before);
    truncateSync(desk.file, 64 * 2 ** 20 + 1);
    expect(await desk.condition()).toContain('EDIT_TOO_LARGE');
  });

  it('is anything that is no regular file; one that is missing is written anew, and no row is taken for removed', async () => {
    const desk = await deskWith();
    const elsewhere = join(temporaryDirectory(), 'elsewhere');
    writeFileSync(elsewhere, 'not ours');
    const inItsPlace = [
      () => symlinkSync(elsewhere, desk.file),
      () => execFileSync('mkfifo', [desk.file]),
      () => mkdirSync(desk.file),
    ];
    for (const make of inItsPlace) {
      rmSync(desk.file, { recursive: true });
      make();
      expect(await desk.condition()).toContain('EDIT_UNREADABLE');
    }
    expect(readFileSync(elsewhere, 'utf8')).toBe('not ours');
    rmSync(desk.file, { recursive: true });
    await desk.settled();
    expect([desk.content(), desk.writes]).toEqual([TWO, []]);
  });
});

describe('a file that is being written', () => {
  /** A run, half a second of which passes at a time. */
  async function runInTime(desk: Desk, meanwhile: () => void = () => {}) {
    let isOver = false;
    const began = desk.clock.now();
    const run = desk.run().finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await nextTurn();
      if (desk.clock.waiting === 0) continue;
      meanwhile();
      await desk.clock.advance(500);
    }
    return { kind: (await run).kind, isSoon: desk.clock.now() - began < 2_000 };
  }

  it.each([
    [
      'read once it is at rest for two seconds',
      'current',
      (desk: Desk) => desk.clock.now() / 1000,
      false,
    ],
    [
      'left for later where it does not come to rest',
      'busy',
      (desk: Desk) => desk.clock.now() / 1000,
      true,
    ],
    ['at rest also where its time lies in the future', 'current', () => 4_000_000_000, false],
  ])('is %s', async (_, kind, timeOf, isGoingOn) => {
    const desk = await deskWith();
    desk.write(desk.text().replace('"1"', '"m"'));
    const touch = () => utimesSync(desk.file, timeOf(desk), timeOf(desk));
    touch();
    expect(await runInTime(desk, isGoingOn ? touch : undefined)).toEqual({ kind, isSoon: false });
    expect(desk.writes).toEqual(isGoingOn ? [] : ['k1 a=m']);
    expect(await desk.table.wantsRun()).toBe(isGoingOn);
  });

  it('while the peer is told, or where none was, is not overwritten', async () => {
    const desk = await deskWith();
    desk.write(desk.text().replace('"1"', '"first"'));
    desk.peer.onAsk = (what) =>
      what.startsWith('did') && desk.write(desk.text().replace('"2"', '"second"'));
    expect(await desk.run()).toEqual({ kind: 'busy' });
    desk.peer.onAsk = () => {};
    await desk.settled();
    expect(desk.theirs().k1).toEqual({ a: 'first', b: 'second' });
    const text = desk.text();
    rmSync(desk.file);
    desk.peer.onAsk = () => desk.write(text.replace('first', 'mine'));
    expect(await desk.run()).toEqual({ kind: 'busy' });
    desk.peer.onAsk = () => {};
    await desk.settled();
    expect(desk.theirs().k1?.a).toBe('mine');
  });
});

describe('after a run that was cut short', () => {
  it('as it was stopped, edits reach the peer as ever', async () => {
    const desk = await deskWith();
    desk.remote.set('k1', { a: 'p', b: '2' });
    const stopping = new AbortController();
    desk.onStep = (step) => {
      if (step === 'the new base is prepared') stopping.abort(new Error('stopped'));
    };
    await expect(desk.run({ signal: stopping.signal })).rejects.toThrow('stopped');
    desk.onStep = () => {};
    await desk.play('edit k2 a=m');
    expect([desk.writes, desk.conflictFiles()]).toEqual([['k2 a=m'], []]);
    expect(desk.theirs()).toEqual(rowsOf('k1 a=p b=2; k2 a=m b=4'));
  });

  it('by the peer, the file is as it was, and the next run goes on', async () => {
    const desk = await deskWith();
    desk.save(desk.rows().map((row) => ({ ...row, a: 'm' })));
    const edited = desk.text();
    desk.peer.onAsk = (what) =>
      what.startsWith('set T k2') && Promise.reject(new Error('the peer is away'));
    await expect(desk.run()).rejects.toThrow('the peer is away');
    expect(desk.text()).toBe(edited);
    desk.peer.onAsk = () => {};
    desk.peer.asked.length = 0;
    await desk.settled();
    expect([desk.writes, desk.content()]).toEqual([['k2 a=m'], rowsOf('k1 a=m b=2; k2 a=m b=4')]);
  });
});

describe('without a base', () => {
  it.each([
    ['is gone', (path: string) => rmSync(path)],
    [
      'is damaged',
      (path: string) => writeFileSync(path, readFileSync(path, 'utf8').replace('"3"', '"9"')),
    ],
    ['is cut off', (path: string) => truncateSync(path, statSync(path).size - 10)],
  ])('that %s nothing is told, and the file is saved', async (_, spoil) => {
    const desk = await deskWith();
    desk.save([
      { pk: 'k1', a: 'm', b: '2' },
      { pk: 'k2', a: '3', b: '4' },
      { pk: 'new', a: 'x' },
    ]);
    const edited = desk.text();
    spoil(join(desk.bases, readdirSync(desk.bases)[0] ?? ''));
    desk.open();
    await desk.settled();
    expect([desk.writes, desk.content()]).toEqual([[], TWO]);
    expect([desk.conflictTexts(), desk.conflicts()]).toEqual([[edited], ['k1 a', 'new']]);
  });

  it('a file that is as it was mirrored follows the peer', async () => {
    const desk = await deskWith();
    rmSync(desk.bases, { recursive: true });
    await desk.play('they k1 a=p');
    expect([desk.content(), desk.conflictFiles()]).toEqual([desk.theirs(), []]);
  });

  it('that can be written nothing else is either; what a killed process left of one is removed', async () => {
    const desk = await deskWith();
    const [base = ''] = readdirSync(desk.bases);
    for (const name of [`${base}.next.tmp`, 'other.tmp'])
      writeFileSync(join(desk.bases, name), 'half');
    await desk.play('they k1 a=p');
    expect(readdirSync(desk.bases).sort()).toEqual([base, 'other.tmp'].sort());
    rmSync(desk.bases, { recursive: true });
    writeFileSync(desk.bases, 'in the way');
    const before = desk.text();
    await expect(desk.play('they k1 a=q')).rejects.toMatchObject({ code: 'MIRROR_BLOCKED' });
    expect(desk.text()).toBe(before);
  });
});

describe('a table that is gone, accepted', () => {
  it('takes its file along with all that is kept of it; what was edited is left as a conflict file', async () => {
    const desk = await deskWith();
    await desk.play('they k2 b=p · run');
    desk.write(desk.text().replace('"1"', '"m"'));
    const edited = desk.text();
    expect(await desk.table.retire(desk.record)).toMatchObject([{ pk: '' }]);
    expect(existsSync(desk.file)).toBe(false);
    expect([desk.conflictTexts(), readdirSync(desk.bases)]).toEqual([[edited], []]);
  });

  it('leaves a file that is saved in the last moment', async () => {
    const desk = await deskWith();
    desk.onStep = (step) => step === 'the file is about to be removed' && desk.save([{ pk: 'k2' }]);
    await expect(desk.table.retire(desk.record)).rejects.toMatchObject({ code: 'MIRROR_BLOCKED' });
    expect(desk.content()).toEqual({ k2: {} });
  });
});
