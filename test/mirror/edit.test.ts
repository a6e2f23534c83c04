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
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../support/temp.js';
import { crashAt, Desk, type DeskSettings, TableInMemory } from './edit-desk.js';

type Settings = DeskSettings;
type Rows = Record<string, Record<string, string>>;

/** A desk with a file that was written from the peer's table. */
async function deskWith(rows: Rows, settings: Settings = {}) {
  const peer = new TableInMemory(rows);
  const extension = settings.format ?? 'ndjson';
  const desk = new Desk(temporaryDirectory(), peer, settings, `tables/T.${extension}`);
  await desk.settled();
  peer.calls.length = 0;
  return { peer, desk };
}

const two = { k1: { a: '1', b: '2' }, k2: { a: '3', b: '4' } };

describe('a two-way table', () => {
  test('is written from the peer at first, and left alone while nothing differs', async () => {
    const { peer, desk } = await deskWith(two);
    expect(desk.content()).toEqual(two);
    const { mtimeMs, ino } = statSync(desk.file);
    expect(await desk.settled()).toMatchObject({
      changed: false,
      record: { rows: 2, conflicts: [], notes: [] },
    });
    expect(statSync(desk.file)).toMatchObject({ mtimeMs, ino });
    expect(peer.writes).toEqual([]);
  });

  test('tells the peer the cells that were changed, and no others', async () => {
    const { peer, desk } = await deskWith(two);
    desk.edit(([first = {}, ...rest]) => [{ ...first, b: 'new' }, ...rest]);
    peer.rows.set('k2', { a: '3', b: 'theirs' });
    const { written, record } = await desk.settled();
    expect(written).toEqual({ rows: 1, deleted: 0 });
    expect(record.sha256).toHaveLength(64);
    expect(peer.writes).toEqual(['set k1 {"b":"new"}']);
    expect(desk.content()).toEqual({ k1: { a: '1', b: 'new' }, k2: { a: '3', b: 'theirs' } });
  });

  test.each(['csv', 'json', 'ndjson'] as const)('is edited as %s', async (format) => {
    const { peer, desk } = await deskWith(
      { k1: { a: 'before "x", ü' }, k2: { a: 'line\nbreak' } },
      { format },
    );
    desk.write(desk.text().replace('before', 'after'));
    await desk.settled();
    expect(peer.content()).toEqual({ k1: { a: 'after "x", ü' }, k2: { a: 'line\nbreak' } });
    expect(peer.writes).toHaveLength(1);
    expect(await desk.settled()).toMatchObject({ changed: false });
  });

  test('gives new rows keys, and writes them into the file', async () => {
    const { peer, desk } = await deskWith(two, { format: 'csv' });
    desk.write(`${desk.text()},equal,\r\n,equal,\r\nmine,x,y\r\n,,\r\n`);
    await desk.settled();
    const added = [...peer.rows].filter(([pk]) => !Object.hasOwn(two, pk));
    expect(added).toContainEqual(['mine', { a: 'x', b: 'y' }]);
    const equal = added.filter(([, cells]) => cells.a === 'equal').map(([pk]) => pk);
    expect(equal).toHaveLength(2);
    for (const pk of equal) {
      expect(pk).toMatch(/^[0-9a-z]{12}$/);
      expect(desk.text()).toContain(`${pk},equal,`);
    }
    expect(peer.rows.size).toBe(5);
  });

  test('adds new rows once, though the run is cut short before the file has their keys', async () => {
    const { peer, desk } = await deskWith(two);
    desk.edit((rows) => [...rows, { pk: '', a: 'new' }, { pk: '', a: 'new' }]);
    await crashAt(desk, 'rows were committed');
    expect(peer.rows.size).toBe(4);
    await crashAt(desk, 'the new base is prepared');
    await crashAt(desk, 'the file is written');
    await desk.settled();
    expect(peer.rows.size).toBe(4);
    desk.edit((rows) => [...rows, { pk: '', a: 'new' }]);
    await desk.settled();
    expect(peer.rows.size).toBe(5);
  });

  test('keeps the value of the peer where both changed a cell, and saves the file', async () => {
    const { peer, desk } = await deskWith(two);
    desk.edit(([first = {}, ...rest]) => [{ ...first, a: 'mine', b: 'also mine' }, ...rest]);
    chmodSync(desk.file, 0o600);
    const edited = desk.text();
    peer.rows.set('k1', { a: 'theirs', b: '2' });
    const { record } = await desk.settled();
    expect(desk.content().k1).toEqual({ a: 'theirs', b: 'also mine' });
    expect(peer.content().k1).toEqual({ a: 'theirs', b: 'also mine' });
    expect(desk.conflictTexts()).toEqual([edited]);
    const [name = ''] = desk.conflictFiles();
    expect(name).toMatch(/^T\.ndjson\.conflict-\d{8}T\d{6}Z$/);
    expect(statSync(join(desk.file, '..', name)).mode & 0o777).toBe(0o600);
    const conflict = { pk: 'k1', column: 'a', file: `tables/${name}`, at: desk.clock.now() };
    expect(record.conflicts).toEqual([conflict]);
    expect((await desk.settled()).record.conflicts, 'as long as the file is there').toEqual([conflict]);
    rmSync(join(desk.file, '..', name));
    expect((await desk.settled()).record.conflicts).toEqual([]);
  });

  test('saves what clashes once, though the run is cut short behind it', async () => {
    const { peer, desk } = await deskWith(two);
    desk.edit(([first = {}, ...rest]) => [{ ...first, a: 'mine' }, ...rest]);
    peer.rows.set('k1', { a: 'theirs', b: '2' });
    await crashAt(desk, 'what clashes is saved');
    desk.clock.advance(60_000);
    await desk.settled();
    expect(desk.conflictFiles()).toHaveLength(1);
    expect(desk.conflicts()).toHaveLength(1);
  });

  test('lists a conflict file that no record knows of', async () => {
    const { desk } = await deskWith(two);
    writeFileSync(`${desk.file}.conflict-20260101T000000Z`, 'old');
    await desk.settled();
    expect(desk.conflicts()).toMatchObject([{ pk: '', file: 'tables/T.ndjson.conflict-20260101T000000Z' }]);
  });

  test('numbers conflict files of the same second', async () => {
    const { peer, desk } = await deskWith(two);
    for (const value of ['one', 'two']) {
      desk.edit(([first = {}, ...rest]) => [{ ...first, a: value }, ...rest]);
      peer.rows.set('k1', { a: `not ${value}`, b: '2' });
      await desk.settled();
    }
    expect(desk.conflictFiles()).toHaveLength(2);
    expect(desk.conflictTexts().join('')).toMatch(/"one"[\s\S]*"two"/);
    expect(desk.conflicts()).toHaveLength(2);
  });
});

test('many changes are sent in groups that are read back together, and a run that is stopped ends between two of them', async () => {
  const rows = Object.fromEntries(Array.from({ length: 2_500 }, (_, i) => [`k${i}`, { n: '1' }]));
  const { peer, desk } = await deskWith(rows);
  desk.edit((all) => all.map((row) => ({ ...row, n: '2' })));
  const stopping = new AbortController();
  let sent = 0;
  peer.onCall = (call) => {
    if (call.startsWith('set')) sent += 1;
    if (sent === 1_500) stopping.abort(new Error('enough'));
  };
  await expect(desk.run({ signal: stopping.signal })).rejects.toThrow('enough');
  expect(sent).toBe(2_000);
  peer.onCall = () => {};
  await desk.settled();
  expect(peer.writes).toHaveLength(2_500);
});

describe('a table without rows', () => {
  test.each(['csv', 'json', 'ndjson'] as const)(
    'is a file as %s that rows can be added to',
    async (format) => {
      const { peer, desk } = await deskWith({}, { format });
      expect(await desk.settled()).toMatchObject({ changed: false });
      desk.write({ csv: 'pk,a\nk,1\n', json: '[{"pk":"k","a":"1"}]', ndjson: '{"pk":"k","a":"1"}' }[format]);
      await desk.settled();
      expect(peer.content()).toEqual({ k: { a: '1' } });
    },
  );
});

describe('a row removed from the file', () => {
  const many = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`k${i}`, { a: `${i}` }]));

  test('comes back where deletions are off, and that is said', async () => {
    const { peer, desk } = await deskWith(two, { deletes: false });
    desk.edit((rows) => rows.slice(1));
    const { record } = await desk.settled();
    expect(record.notes).toEqual([expect.stringContaining('"k1"')]);
    expect(desk.content()).toEqual(two);
    expect(peer.writes).toEqual([]);
  });

  test('is deleted in the peer where they are on', async () => {
    const { peer, desk } = await deskWith(two, { deletes: true });
    desk.edit((rows) => rows.slice(1));
    expect((await desk.settled()).written).toEqual({ rows: 0, deleted: 1 });
    expect(peer.writes).toEqual(['delete k1']);
    expect(desk.content()).toEqual({ k2: two.k2 });
  });

  test('comes back where the peer changed it, and the file is saved', async () => {
    const { peer, desk } = await deskWith(two);
    desk.edit((rows) => rows.slice(1));
    peer.rows.set('k1', { a: 'theirs', b: '2' });
    await desk.settled();
    expect(desk.content().k1).toEqual({ a: 'theirs', b: '2' });
    expect(desk.conflicts()).toMatchObject([{ pk: 'k1' }]);
    expect(peer.writes).toEqual([]);
  });

  test('comes back where the peer changed what the file does not show', async () => {
    const { peer, desk } = await deskWith({ k1: { a: '1', hidden: 'x' }, k2: { a: '2', hidden: 'y' } });
    desk.known = {};
    peer.rows.set('k1', { a: '1', hidden: 'changed' });
    desk.edit((rows) => rows.filter(({ pk }) => pk !== 'k1'));
    await desk.settled();
    expect(peer.rows.has('k1')).toBe(true);
  });

  test('waits for a person where there are more than maxDeletes, with everything else', async () => {
    const { peer, desk } = await deskWith(many, { maxDeletes: 3 });
    desk.edit((rows) => rows.slice(4).map((row) => ({ ...row, a: 'changed' })));
    const edited = desk.text();
    const alarm = await desk.alarm();
    expect(alarm).toMatchObject({ code: 'EDIT_DELETES', hint: expect.stringContaining('mirror accept T') });
    expect(alarm.message).toContain('4 rows were removed ("k0", "k1", "k2", "k3"), more than maxDeletes, 3');
    expect(peer.writes).toEqual([]);
    expect(desk.text()).toBe(edited);
    await desk.settled({ accept: true });
    expect(peer.content()).toEqual({ k4: { a: 'changed' }, k5: { a: 'changed' } });
  });

  test('is not deleted when a person had accepted the removal of others', async () => {
    const { peer, desk } = await deskWith(many, { maxDeletes: 1 });
    desk.edit((rows) => rows.slice(2));
    expect(await desk.run({ accept: true }), 'nothing was there to be accepted').toMatchObject({
      kind: 'alarm',
    });
    desk.edit((rows) => rows.slice(1));
    expect(await desk.run({ accept: true })).toMatchObject({ kind: 'alarm' });
    expect(peer.writes).toEqual([]);
    await desk.settled({ accept: true });
    expect([...peer.rows.keys()]).toEqual(['k3', 'k4', 'k5']);
  });

  test('counts also where all of them were removed', async () => {
    const csv = await deskWith(many, { format: 'csv', maxDeletes: 3 });
    csv.desk.write('pk,a\r\n');
    expect(await csv.desk.alarm()).toMatchObject({ code: 'EDIT_DELETES' });
    const json = await deskWith(many, { format: 'json', maxDeletes: 3 });
    json.desk.write('[]');
    expect(await json.desk.alarm()).toMatchObject({ code: 'EDIT_DELETES' });
    expect([...csv.peer.writes, ...json.peer.writes]).toEqual([]);
  });
});

describe('the columns of an edited file', () => {
  test('that are new are new in the peer', async () => {
    const { peer, desk } = await deskWith(two);
    desk.edit((rows) => rows.map((row, i) => ({ ...row, c: `${i}` })));
    await desk.settled();
    expect(peer.content()).toEqual({ k1: { ...two.k1, c: '0' }, k2: { ...two.k2, c: '1' } });
  });

  test('that nothing stands in yet stay in the file', async () => {
    const { peer, desk } = await deskWith({ k1: { a: '1' } }, { format: 'csv' });
    desk.write('pk,a,later\r\nk1,1,\r\n');
    await desk.settled();
    peer.rows.set('k1', { a: '2' });
    await desk.settled();
    expect(desk.text()).toBe('pk,a,later\r\nk1,2,\r\n');
    desk.write('pk,a\r\nk1,2\r\n');
    await desk.settled();
    expect(desk.text()).toBe('pk,a\r\nk1,2\r\n');
    expect(peer.writes).toEqual([]);
  });

  test('that it had must not be missing', async () => {
    const { peer, desk } = await deskWith(two);
    desk.edit((rows) => rows.map(({ b: _, ...row }) => row));
    const edited = desk.text();
    const alarm = await desk.alarm();
    expect(alarm).toMatchObject({ code: 'EDIT_COLUMNS', message: expect.stringContaining('"b"') });
    expect(desk.text()).toBe(edited);
    expect(peer.writes).toEqual([]);
  });

  test('must be among those of the mirror where such are configured', async () => {
    const { peer, desk } = await deskWith(two, { columns: ['a'] });
    desk.edit((rows) => rows.map((row) => ({ ...row, c: '1' })));
    expect(await desk.alarm()).toMatchObject({
      code: 'EDIT_COLUMNS',
      message: expect.stringContaining('"c"'),
    });
    expect(peer.writes).toEqual([]);
  });
});

describe('a file that cannot be taken as it is', () => {
  test.each([
    ['csv', 'pk,a\r\nk1,1\r\nk2,"2\r\n', 'line 3, column 4'],
    ['csv', 'pk,a\r\nk1,1,extra\r\n', 'line 2'],
    ['csv', 'pk;a\r\nk1;1\r\n', 'line 1'],
    ['json', '[\n{"pk":"k1","a":"1"}\n{"pk":"k2","a":"2"}\n]\n', 'line 3, column 1'],
    ['json', '[{"pk":"k1","a":{"deep":1}}]', 'line 1'],
    ['ndjson', '{"pk":"k1","a":"1"}\n{"pk":"k2","a":"2"\n', 'line 2'],
    ['ndjson', '{"pk":"k1","a":"1"}\n{"pk":"k1","a":"2"}\n', 'line 2'],
    ['csv', '', 'line 1, column 1'],
    ['json', ' \n', 'line 1, column 1'],
    ['ndjson', '', 'line 1, column 1'],
  ] as const)('as %s %j says where: %s', async (format, text, where) => {
    const { peer, desk } = await deskWith({ k1: { a: '1' }, k2: { a: '2' } }, { format });
    desk.write(text);
    const alarm = await desk.alarm();
    expect(alarm).toMatchObject({ code: 'EDIT_UNREADABLE', message: expect.stringContaining(where) });
    expect(alarm.message).toContain(desk.file);
    expect(alarm.message).toMatch(/line \d+, column \d+/);
    peer.rows.set('k1', { a: 'changed in the peer' });
    await desk.alarm();
    expect(desk.text(), 'is left alone').toBe(text);
    expect(peer.writes).toEqual([]);
  });

  test('where a key ends with NUL, which a peer would take for padding', async () => {
    const { peer, desk } = await deskWith(two);
    desk.edit((rows) => [...rows, { pk: 'k\0', a: 'new' }]);
    const alarm = await desk.alarm();
    expect(alarm).toMatchObject({
      code: 'EDIT_UNREADABLE',
      message: expect.stringMatching(/line \d+: the key/),
    });
    expect(peer.writes).toEqual([]);
  });

  test.each([
    [
      'key',
      (rows: Record<string, string>[]) => [...rows, { pk: 'k'.repeat(501), a: 'new' }],
      'EDIT_UNREADABLE',
    ],
    [
      'column',
      (rows: Record<string, string>[]) => rows.map((row) => ({ ...row, ['c'.repeat(501)]: 'x' })),
      'EDIT_COLUMNS',
    ],
  ])('where a %s is longer than any that a peer is sent', async (_, edit, code) => {
    const { peer, desk } = await deskWith(two);
    desk.edit(edit);
    expect(await desk.alarm()).toMatchObject({ code });
    expect(peer.writes).toEqual([]);
  });

  test('goes on once it is mended', async () => {
    const { peer, desk } = await deskWith(two);
    const good = desk.text();
    desk.write('{');
    await desk.alarm();
    desk.write(good.replace('"1"', '"mended"'));
    await desk.settled();
    expect(peer.content().k1).toEqual({ a: 'mended', b: '2' });
  });

  test('does not need the peer to say so', async () => {
    const { peer, desk } = await deskWith(two);
    peer.onCall = () => {
      throw new Error('the peer is away');
    };
    desk.write('{');
    expect(await desk.alarm()).toMatchObject({ code: 'EDIT_UNREADABLE' });
  });

  test('is not even read where it is too large', async () => {
    const { desk } = await deskWith(two);
    truncateSync(desk.file, 64 * 2 ** 20 + 1);
    expect(await desk.alarm()).toMatchObject({ code: 'EDIT_TOO_LARGE' });
  });

  test('is none that a table of more than 100,000 rows would be written to', async () => {
    const { peer, desk } = await deskWith(two);
    const before = desk.text();
    for (let i = 0; i < 100_000; i += 1) peer.rows.set(`n${i}`, {});
    expect(await desk.alarm()).toMatchObject({ code: 'EDIT_TOO_LARGE' });
    expect(desk.text()).toBe(before);
  });

  test('is anything that is no regular file', async () => {
    const { peer, desk } = await deskWith(two);
    const elsewhere = join(temporaryDirectory(), 'elsewhere');
    writeFileSync(elsewhere, 'not ours');
    for (const make of [
      () => symlinkSync(elsewhere, desk.file),
      () => execFileSync('mkfifo', [desk.file]),
      () => mkdirSync(desk.file),
    ]) {
      rmSync(desk.file, { recursive: true });
      make();
      expect(await desk.alarm()).toMatchObject({ code: 'EDIT_UNREADABLE' });
    }
    expect(readFileSync(elsewhere, 'utf8')).toBe('not ours');
    expect(peer.writes).toEqual([]);
  });

  test('that is missing is written anew, and no row is taken for removed', async () => {
    const { peer, desk } = await deskWith(two);
    rmSync(desk.file);
    await desk.settled();
    expect(desk.content()).toEqual(two);
    expect(peer.writes).toEqual([]);
  });
});

describe('a file that is being written', () => {
  /** A run, half a second of which passes at a time. */
  async function runInTime(desk: Desk, meanwhile: () => void = () => {}) {
    let outcome: Awaited<ReturnType<typeof desk.run>> | undefined;
    const run = desk.run().then((ended) => {
      outcome = ended;
    });
    while (outcome === undefined) {
      await new Promise((resolve) => setImmediate(resolve));
      if (desk.clock.waiting === 0) continue;
      meanwhile();
      await desk.clock.advance(500);
    }
    await run;
    return outcome;
  }

  function touch(desk: Desk): void {
    utimesSync(desk.file, desk.clock.now() / 1000, desk.clock.now() / 1000);
  }

  test('is read once it is at rest', async () => {
    const { peer, desk } = await deskWith(two);
    writeFileSync(desk.file, desk.text().replace('"1"', '"edited"'));
    touch(desk);
    const writtenAt = desk.clock.now();
    let readAt = 0;
    peer.onCall = (call) => {
      if (call.startsWith('set')) readAt = desk.clock.now();
    };
    expect(await runInTime(desk)).toMatchObject({ kind: 'settled' });
    expect(peer.content().k1).toEqual({ a: 'edited', b: '2' });
    expect(readAt - writtenAt).toBeGreaterThanOrEqual(2_000);
  });

  test('is left for later where it does not come to rest', async () => {
    const { peer, desk } = await deskWith(two);
    touch(desk);
    expect(await runInTime(desk, () => touch(desk))).toEqual({ kind: 'later' });
    expect(await desk.table.wantsRun()).toBe(true);
    expect(peer.calls).toEqual([]);
  });

  test('is at rest also where its time lies in the future, when it looks the same for two seconds', async () => {
    const { desk } = await deskWith(two);
    utimesSync(desk.file, 4_000_000_000, 4_000_000_000);
    const before = desk.clock.now();
    expect(await runInTime(desk)).toMatchObject({ kind: 'settled' });
    expect(desk.clock.now() - before).toBeGreaterThanOrEqual(2_000);
  });

  test('while the peer is told is not overwritten', async () => {
    const { peer, desk } = await deskWith(two);
    desk.edit(([first = {}, ...rest]) => [{ ...first, a: 'first' }, ...rest]);
    peer.onCall = (call) => {
      if (call === 'was set') desk.edit(([first = {}, ...rest]) => [{ ...first, b: 'second' }, ...rest]);
    };
    expect(await desk.run()).toEqual({ kind: 'later' });
    peer.onCall = () => {};
    expect(desk.content().k1).toEqual({ a: 'first', b: 'second' });
    await desk.settled();
    expect(peer.content().k1).toEqual({ a: 'first', b: 'second' });
  });

  test('where a file was missing is not overwritten', async () => {
    const { peer, desk } = await deskWith(two);
    rmSync(desk.file);
    peer.onCall = () => desk.write('{"pk":"k1","a":"mine","b":"2"}\n{"pk":"k2","a":"3","b":"4"}\n');
    expect(await desk.run()).toEqual({ kind: 'later' });
    peer.onCall = () => {};
    await desk.settled();
    expect(peer.content().k1).toEqual({ a: 'mine', b: '2' });
  });
});

describe('whether a file looks edited', () => {
  test('is told by a stat, after a run', async () => {
    const { desk } = await deskWith(two);
    expect(await desk.table.wantsRun()).toBe(false);
    desk.edit(([first = {}, ...rest]) => [{ ...first, a: 'x' }, ...rest]);
    expect(await desk.table.wantsRun()).toBe(true);
    await desk.settled();
    expect(await desk.table.wantsRun()).toBe(false);
    desk.write('{');
    await desk.alarm();
    expect(await desk.table.wantsRun(), 'an alarm was raised for this one').toBe(false);
    rmSync(desk.file);
    expect(await desk.table.wantsRun()).toBe(true);
  });
});

describe('after a run that was cut short', () => {
  test('an edit that was told and is taken back is taken back in the peer', async () => {
    const { peer, desk } = await deskWith(two);
    const before = desk.text();
    desk.edit(([first = {}, ...rest]) => [{ ...first, a: 'told' }, ...rest]);
    await crashAt(desk, 'rows were committed');
    expect(peer.content().k1).toEqual({ a: 'told', b: '2' });
    desk.write(before);
    await desk.settled();
    expect(peer.content()).toEqual(two);
  });

  test('a row that was deleted and is put back comes back', async () => {
    const { peer, desk } = await deskWith(two);
    const before = desk.text();
    desk.edit((rows) => rows.slice(1));
    await crashAt(desk, 'rows were deleted');
    expect(peer.content()).toEqual({ k2: two.k2 });
    desk.write(before);
    await desk.settled();
    expect(peer.content()).toEqual(two);
    expect(desk.content()).toEqual(two);
  });

  test('edits are taken back step by step, also where each run is cut short', async () => {
    const { peer, desk } = await deskWith(two);
    const set = (a: string) => desk.edit(([first = {}, ...rest]) => [{ ...first, a }, ...rest]);
    set('one');
    await crashAt(desk, 'rows were committed');
    set('two');
    await crashAt(desk, 'rows are about to be committed');
    set('1');
    await desk.settled();
    expect(peer.content()).toEqual(two);
  });

  test('a change of the peer that reached the file, and is taken back there, is not told as an edit', async () => {
    const { peer, desk } = await deskWith(two);
    peer.rows.set('k1', { a: 'for a moment', b: '2' });
    await crashAt(desk, 'the file is written');
    expect(desk.content().k1).toEqual({ a: 'for a moment', b: '2' });
    peer.rows.set('k1', { ...two.k1 });
    await desk.settled();
    expect(peer.writes).toEqual([]);
    expect(desk.content()).toEqual(two);
  });

  test.each(['the new base is prepared', 'the file is written'])(
    'of which %s, what a person edits before the next is saved: nobody knows which of two files that was',
    async (step) => {
      const { peer, desk } = await deskWith(two);
      peer.rows.set('k1', { a: 'of the peer', b: '2' });
      await crashAt(desk, step);
      desk.edit((rows) => rows.map((row) => (row.pk === 'k1' ? { ...row, a: 'mine' } : row)));
      const edited = desk.text();
      await desk.settled();
      expect(peer.writes).toEqual([]);
      expect(desk.content()).toEqual(peer.content());
      expect(desk.conflictTexts()).toEqual([edited]);
      expect(desk.conflicts()).toMatchObject([{ pk: 'k1', column: 'a' }]);
      desk.edit((rows) => rows.map((row) => (row.pk === 'k1' ? { ...row, a: 'mine' } : row)));
      await desk.settled();
      expect(peer.content().k1).toEqual({ a: 'mine', b: '2' });
    },
  );

  test('of which nothing is left, edits reach the peer as ever', async () => {
    const { peer, desk } = await deskWith(two);
    peer.rows.set('k1', { a: 'of the peer', b: '2' });
    peer.onCall = () => desk.write(desk.text());
    expect(await desk.run()).toEqual({ kind: 'later' });
    peer.onCall = () => {};
    desk.edit((rows) => rows.map((row) => (row.pk === 'k2' ? { ...row, a: 'mine' } : row)));
    await desk.settled();
    expect(peer.content().k2).toEqual({ a: 'mine', b: '4' });
    expect(desk.conflictTexts()).toEqual([]);
  });

  test('by a stop while its file was written, edits reach the peer as ever', async () => {
    const { peer, desk } = await deskWith(two);
    peer.rows.set('k1', { a: 'of the peer', b: '2' });
    const stopping = new AbortController();
    desk.onStep = (step) => {
      if (step === 'the new base is prepared') stopping.abort(new Error('stopped'));
    };
    await expect(desk.run({ signal: stopping.signal })).rejects.toThrow('stopped');
    desk.onStep = () => {};
    desk.edit((rows) => rows.map((row) => (row.pk === 'k2' ? { ...row, a: 'mine' } : row)));
    await desk.settled();
    expect(peer.content()).toEqual({ k1: { a: 'of the peer', b: '2' }, k2: { a: 'mine', b: '4' } });
    expect(desk.conflictFiles()).toEqual([]);
  });

  test('what was once told is not taken for told again', async () => {
    const { peer, desk } = await deskWith(two);
    const before = desk.text();
    desk.edit(([first = {}, ...rest]) => [{ ...first, a: 'x' }, ...rest]);
    await crashAt(desk, 'rows were committed');
    desk.write(before);
    peer.rows.set('k1', { ...two.k1 });
    await desk.settled();
    peer.calls.length = 0;
    peer.rows.set('k1', { a: 'x', b: '2' });
    await desk.settled();
    expect(peer.writes).toEqual([]);
    expect(desk.content().k1).toEqual({ a: 'x', b: '2' });
  });

  test('by the peer, the file is as it was, and the next run goes on', async () => {
    const { peer, desk } = await deskWith(two);
    desk.edit((rows) => rows.map((row) => ({ ...row, a: 'edited' })));
    const edited = desk.text();
    peer.onCall = (call) => {
      if (call.startsWith('set k2')) throw new Error('the peer is away');
    };
    await expect(desk.run()).rejects.toThrow('the peer is away');
    expect(desk.text()).toBe(edited);
    peer.onCall = () => {};
    peer.calls.length = 0;
    await desk.settled();
    expect(peer.writes).toEqual(['set k2 {"a":"edited"}']);
    expect(desk.content()).toEqual({ k1: { a: 'edited', b: '2' }, k2: { a: 'edited', b: '4' } });
  });
});

describe('without a base', () => {
  const bases = (desk: Desk) => join(desk.root, '../state/mirrors');
  const mine = ([first = {}, ...rest]: Record<string, string>[]) => [
    { ...first, a: 'mine' },
    ...rest.slice(1),
    { pk: 'new', a: 'x' },
  ];

  test.each([
    ['is gone', (path: string) => rmSync(path)],
    ['is damaged', (path: string) => writeFileSync(path, readFileSync(path, 'utf8').replace('"3"', '"9"'))],
    ['is cut off', (path: string) => truncateSync(path, statSync(path).size - 10)],
  ])('that %s nothing is told, and the file is saved', async (_, spoil) => {
    const { peer, desk } = await deskWith(two);
    desk.edit(mine);
    const edited = desk.text();
    const [base = ''] = readdirSync(bases(desk));
    spoil(join(bases(desk), base));
    desk.open();
    await desk.settled();
    expect(peer.writes).toEqual([]);
    expect(desk.content()).toEqual(two);
    expect(desk.conflictTexts()).toEqual([edited]);
    expect(desk.conflicts()).toMatchObject([{ pk: 'k1', column: 'a' }, { pk: 'new' }]);
  });

  test('a file that is as it was mirrored follows the peer', async () => {
    const { peer, desk } = await deskWith(two);
    rmSync(bases(desk), { recursive: true });
    peer.rows.set('k1', { a: 'theirs', b: '2' });
    await desk.settled();
    expect(desk.content()).toEqual(peer.content());
    expect(desk.conflictFiles()).toEqual([]);
  });

  test('that cannot be written nothing else is either', async () => {
    const { peer, desk } = await deskWith(two);
    rmSync(bases(desk), { recursive: true });
    writeFileSync(bases(desk), 'in the way');
    const before = desk.text();
    peer.rows.set('k1', { a: 'theirs', b: '2' });
    await expect(desk.run()).rejects.toMatchObject({ code: 'MIRROR_BLOCKED' });
    expect(desk.text()).toBe(before);
  });

  test('what a killed process left of one is removed', async () => {
    const { peer, desk } = await deskWith(two);
    const [base = ''] = readdirSync(bases(desk));
    writeFileSync(join(bases(desk), `${base}.next.tmp`), 'half');
    writeFileSync(join(bases(desk), 'other.tmp'), 'of somebody else');
    peer.rows.set('k1', { a: 'theirs', b: '2' });
    await desk.settled();
    expect(readdirSync(bases(desk)).sort()).toEqual([base, 'other.tmp'].sort());
  });
});

describe('a table that is gone, accepted', () => {
  test('takes its file along', async () => {
    const { desk } = await deskWith(two);
    expect(await desk.table.retire(desk.record)).toEqual([]);
    expect(existsSync(desk.file)).toBe(false);
    expect(readdirSync(join(desk.root, '../state/mirrors'))).toEqual([]);
  });

  test('leaves a file that is saved in the last moment', async () => {
    const { desk } = await deskWith(two);
    desk.onStep = (step) => {
      if (step === 'the file is about to be removed') desk.edit((rows) => rows.slice(1));
    };
    await expect(desk.table.retire(desk.record)).rejects.toMatchObject({ code: 'MIRROR_BLOCKED' });
    expect(desk.content()).toEqual({ k2: two.k2 });
  });

  test('leaves what was edited as a conflict file', async () => {
    const { desk } = await deskWith(two);
    desk.edit((rows) => rows.slice(1));
    const edited = desk.text();
    expect(await desk.table.retire(desk.record)).toMatchObject([{ pk: '' }]);
    expect(existsSync(desk.file)).toBe(false);
    expect(desk.conflictTexts()).toEqual([edited]);
  });
});
