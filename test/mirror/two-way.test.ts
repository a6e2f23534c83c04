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

describe('a two-way table', () => {
  it('is written from the peer at first, and left alone while nothing differs', async () => {
    const desk = await deskWith();
    expect(desk.content()).toEqual(TWO);
    const { mtimeMs, ino } = statSync(desk.file);
    expect(await desk.settled()).toMatchObject({ changed: false, rows: 2, conflicts: [], notes: [] });
    expect(statSync(desk.file)).toMatchObject({ mtimeMs, ino });
    expect(desk.writes).toEqual([]);
  });

  /** What the last copy, the peer and the file have; what is told the peer, and what clashes. The peer's table is the file's afterwards. */
  it.each([
    ['a cell changed in the file', 'k a=1 b=2', 'k a=1 b=2', 'k a=1 b=x', 'set k {"b":"x"}', ''],
    ['a cell changed in the peer', 'k a=1', 'k a=2', 'k a=1', '', ''],
    ['cells of one row on either side', 'k a=1 b=2', 'k a=p b=2', 'k a=1 b=m', 'set k {"b":"m"}', ''],
    ['equal changes', 'k a=1', 'k a=2', 'k a=2', '', ''],
    ['different changes of a cell', 'k a=1', 'k a=p', 'k a=m', '', 'k a'],
    ['a cleared cell', 'k a=1', 'k a=1', 'k a=', 'set k {"a":""}', ''],
    ['an empty cell that is not there', 'k a=; l a=1', 'k; l a=1', 'k a= b=; l a=1', '', ''],
    ['a new row', '', '', 'k a=1 b=', 'set k {"a":"1"}', ''],
    ['a new row without anything in it', 'l a=1', 'l a=1', 'l a=1; k a=', 'set k {"a":""}', ''],
    ['a new row that the peer has just so', '', 'k a=1', 'k a=1', '', ''],
    ['two rows of the same new key', '', 'k a=p', 'k a=m b=m', '', 'k a, k b'],
    ['a row removed from the file', 'k a=1; l a=1', 'k a=1; l a=1', 'l a=1', 'delete k', ''],
    ['one that the peer changed', 'k a=1; l a=1', 'k a=2; l a=1', 'l a=1', '', 'k'],
    ['a row removed on both sides', 'k a=1; l a=1', 'l a=1', 'l a=1', '', ''],
    ['a row removed in the peer', 'k a=1; l a=1', 'l a=1', 'k a=1; l a=1', '', ''],
    ['one that was changed in the file', 'k a=1; l a=1', 'l a=1', 'k a=2; l a=1', '', 'k'],
  ])('takes %s', async (_, base, peer, mine, writes, conflicts) => {
    const desk = await deskWith(base);
    desk.remote.clear();
    for (const [pk, cells] of Object.entries(rowsOf(peer))) desk.remote.set(pk, cells);
    desk.save(Object.entries(rowsOf(mine)).map(([pk, cells]) => ({ pk, ...cells })));
    const edited = desk.text();
    await desk.settled();
    expect([desk.writes.join(), desk.conflicts().join(', ')]).toEqual([writes, conflicts]);
    expect(desk.content()).toEqual(desk.theirs());
    expect(desk.conflictTexts()).toEqual(conflicts === '' ? [] : [edited]);
    expect(await desk.settled()).toMatchObject({ changed: false });
    expect(desk.writes.join()).toBe(writes);
  });

  it.each(FORMATS)('is edited as %s, whatever ends its lines', async (format) => {
    const desk = await deskWith({ k1: { a: 'before "x", ü' }, k2: { a: 'line\nbreak' } }, { format });
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
    desk.write({ csv: 'pk,a\nk,1\n', json: '[{"pk":"k","a":"1"}]', ndjson: '{"pk":"k","a":"1"}' }[format]);
    await desk.settled();
    expect(desk.theirs()).toEqual({ k: { a: '1' } });
  });

  it('gives new rows keys, and writes them into the file; a line in which nothing stands is none', async () => {
    const desk = await deskWith(TWO, { format: 'csv' });
    desk.write(`${desk.text()},equal,\n,equal,\nmine,x,y\n,,\n`);
    await desk.settled();
    expect(desk.remote.get('mine')).toEqual({ a: 'x', b: 'y' });
    const added = [...desk.remote].filter(([, { a }]) => a === 'equal').map(([pk]) => pk);
    expect(added).toEqual([expect.stringMatching(/^[0-9a-z]{12}$/), expect.stringMatching(/^[0-9a-z]{12}$/)]);
    for (const pk of added) expect(desk.text()).toContain(`\n${pk},equal,\n`);
    expect(desk.remote.size).toBe(5);
  });

  it('adds new rows once, though runs are cut short before the file has their keys', async () => {
    const desk = await deskWith();
    desk.set('', { a: 'new' });
    desk.set('', { a: 'new' });
    await desk.crashAt('rows were committed');
    for (const step of ['the new base is prepared', 'the file is written']) await desk.crashAt(step);
    await desk.settled();
    expect(desk.remote.size).toBe(4);
    desk.set('', { a: 'new' });
    await desk.settled();
    expect(desk.remote.size).toBe(5);
  });

  it('sends many changes in groups that are read back together; a run that is stopped ends between two', async () => {
    const rows = Object.fromEntries(Array.from({ length: 2_500 }, (_, i) => [`k${i}`, { n: '1' }]));
    const desk = await deskWith(rows);
    desk.save(desk.rows().map((row) => ({ ...row, n: '2' })));
    const stopping = new AbortController();
    desk.peer.onAsk = () => desk.writes.length === 1_500 && stopping.abort(new Error('enough'));
    await expect(desk.run({ signal: stopping.signal })).rejects.toThrow('enough');
    expect(desk.writes).toHaveLength(2_000);
    desk.peer.onAsk = () => {};
    await desk.settled();
    expect(desk.writes).toHaveLength(2_500);
  });

  it('looks edited by a stat, once for each state of the file', async () => {
    const desk = await deskWith();
    const looksEdited = () => desk.table.wantsRun();
    expect(await looksEdited()).toBe(false);
    desk.set('k1', { a: 'x' });
    expect(await looksEdited()).toBe(true);
    await desk.settled();
    expect(await looksEdited()).toBe(false);
    desk.write('{');
    await desk.alarm();
    expect(await looksEdited(), 'an alarm was raised for this one').toBe(false);
    rmSync(desk.file);
    expect(await looksEdited()).toBe(true);
    symlinkSync('elsewhere', desk.file);
    expect(await looksEdited()).toBe(true);
    await desk.alarm();
    expect(await looksEdited()).toBe(false);
  });
});

describe('what both sides changed', () => {
  it('stays as the peer has it; the file is saved, readable for whom it was, and listed for as long as that stands', async () => {
    const desk = await deskWith();
    desk.set('k1', { a: 'mine', b: 'also mine' });
    chmodSync(desk.file, 0o640);
    const edited = desk.text();
    desk.remote.set('k1', { a: 'theirs', b: '2' });
    const { conflicts } = await desk.settled();
    expect(desk.content().k1).toEqual({ a: 'theirs', b: 'also mine' });
    expect(desk.theirs().k1).toEqual({ a: 'theirs', b: 'also mine' });
    expect(desk.conflictTexts()).toEqual([edited]);
    const [name = ''] = desk.conflictFiles();
    expect(name).toMatch(/^T\.ndjson\.conflict-\d{8}T\d{6}Z$/);
    expect(statSync(join(dirname(desk.file), name)).mode & 0o777).toBe(0o640);
    expect(conflicts).toEqual([{ pk: 'k1', column: 'a', file: `tables/${name}`, at: desk.clock.now() }]);
    await desk.clock.advance(60_000);
    expect((await desk.settled()).conflicts).toEqual(conflicts);
    rmSync(join(dirname(desk.file), name));
    expect((await desk.settled()).conflicts).toEqual([]);
  });

  it('is saved once, though the run is cut short behind it', async () => {
    const desk = await deskWith();
    desk.set('k1', { a: 'mine' });
    desk.remote.set('k1', { a: 'theirs', b: '2' });
    await desk.crashAt('what clashes is saved');
    await desk.clock.advance(60_000);
    await desk.settled();
    expect([desk.conflictFiles().length, desk.conflicts()]).toEqual([1, ['k1 a']]);
  });

  it('in the same second is saved under a number, beside whatever has such a name', async () => {
    const desk = await deskWith();
    const first = `${desk.file}.conflict-${new Date(desk.clock.now()).toISOString().replace(/[-:]|\.\d+/g, '')}`;
    writeFileSync(
      join(desk.root, 'elsewhere'),
      '{"pk":"k1","a":"one","b":"2"}\n{"pk":"k2","a":"3","b":"4"}\n',
    );
    symlinkSync(join(desk.root, 'elsewhere'), `${first}-0`);
    for (const a of ['one', 'two']) {
      desk.set('k1', { a });
      desk.remote.set('k1', { a: `not ${a}`, b: '2' });
      await desk.settled();
    }
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
    for (const name of ['T.ndjson.old', 'S.ndjson.conflict-1', `T.ndjson.conflict-20260101T000000Z`])
      writeFileSync(join(dirname(desk.file), name), 'old');
    await desk.settled();
    expect(desk.known.conflicts?.[0]).toMatchObject({
      pk: '',
      file: 'tables/T.ndjson.conflict-20260101T000000Z',
    });
    expect(desk.conflicts()).toHaveLength(101);
  });

  it('is said by the name of its file where that cannot be written, and nothing is lost', async () => {
    const desk = await deskWith('k1 a=1');
    Object.assign(desk, { path: `tables/${'x'.repeat(240)}` });
    desk.open();
    const file = join(desk.root, desk.path);
    writeFileSync(file, '{"pk":"k1","a":"mine"}\n');
    desk.remote.set('k1', { a: 'theirs' });
    await expect(desk.run()).rejects.toMatchObject({
      code: 'MIRROR_UNWRITABLE',
      message: expect.stringContaining('.conflict-'),
    });
    expect(readFileSync(file, 'utf8')).toContain('mine');
  });
});

describe('a row removed from the file', () => {
  const MANY = 'k0 a=0; k1 a=1; k2 a=2; k3 a=3; k4 a=4; k5 a=5';

  it('comes back where deletions are off, and that is said', async () => {
    const desk = await deskWith(TWO, { deletes: false });
    desk.remove('k1');
    expect((await desk.settled()).notes).toEqual([expect.stringContaining('"k1"')]);
    expect(desk.content()).toEqual(TWO);
    expect(desk.writes).toEqual([]);
  });

  it('comes back where the peer changed what the file does not show', async () => {
    const desk = await deskWith('k1 a=1 hidden=x; k2 a=2', { columns: ['a'] });
    desk.remote.set('k1', { a: '1', hidden: 'changed' });
    desk.remove('k1');
    await desk.settled();
    expect(desk.writes).toEqual([]);
    expect(desk.conflicts()).toEqual(['k1']);
  });

  it('waits for a person where there are more than maxDeletes, with everything else', async () => {
    const desk = await deskWith(MANY, { maxDeletes: 3 });
    desk.save(
      desk
        .rows()
        .slice(4)
        .map((row) => ({ ...row, a: 'changed' })),
    );
    const edited = desk.text();
    const alarm = await desk.alarm();
    expect(alarm).toMatch(
      /^EDIT_DELETES: .* 4 rows were removed \("k0", "k1", "k2", "k3"\), more than maxDeletes, 3/,
    );
    expect(alarm).toContain('mirror accept T');
    expect([desk.writes, desk.text()]).toEqual([[], edited]);
    await desk.settled('EDIT_DELETES');
    expect(desk.theirs()).toEqual(rowsOf('k4 a=changed; k5 a=changed'));
  });

  it('is not deleted when a person had accepted the removal of others', async () => {
    const desk = await deskWith(MANY, { maxDeletes: 1 });
    desk.remove('k0', 'k1');
    expect((await desk.run({ accept: 'EDIT_DELETES' })).kind, 'there was nothing to accept').toBe('alarm');
    desk.remove('k2');
    expect((await desk.run({ accept: 'EDIT_DELETES' })).kind).toBe('alarm');
    expect(desk.writes).toEqual([]);
    await desk.settled('EDIT_DELETES');
    expect([...desk.remote.keys()]).toEqual(['k3', 'k4', 'k5']);
  });

  it.each([
    ['csv', 'pk,a\n'],
    ['json', '[]'],
  ])('counts also where all were removed (%s)', async (format, text) => {
    const desk = await deskWith(MANY, { format, maxDeletes: 3 });
    desk.write(text);
    expect(await desk.alarm()).toContain('EDIT_DELETES');
    expect(desk.writes).toEqual([]);
  });
});

describe('the columns of an edited file', () => {
  it('that are new are new in the peer', async () => {
    const desk = await deskWith();
    desk.save(desk.rows().map((row, i) => ({ ...row, c: `${i}` })));
    await desk.settled();
    expect(desk.theirs()).toEqual(rowsOf('k1 a=1 b=2 c=0; k2 a=3 b=4 c=1'));
  });

  it('that nothing stands in yet stay in the file', async () => {
    const desk = await deskWith('k1 a=1', { format: 'csv' });
    desk.write('pk,a,later\nk1,1,\n');
    await desk.settled();
    await desk.change('k1', { a: '2' });
    expect(desk.text()).toBe('pk,a,later\nk1,2,\n');
    desk.write('pk,a\nk1,2\n');
    await desk.settled();
    expect(desk.text()).toBe('pk,a\nk1,2\n');
    expect(desk.writes).toEqual([]);
  });

  it.each([
    [
      'that it had must not be missing',
      {},
      '{"pk":"k1","a":"1"}\n{"pk":"k2","a":"3"}\n',
      'lacks columns that it had: "b"',
    ],
    [
      'must be among the configured ones',
      { columns: ['a'] },
      '{"pk":"k1","a":"1","c":"x"}\n',
      'cannot have: "c"',
    ],
    [
      'are no longer than any that a peer is sent',
      {},
      `{"pk":"k1","a":"1","b":"2","${'c'.repeat(501)}":"x"}\n`,
      'cannot have: "ccc',
    ],
  ])('%s', async (_, settings, text, told) => {
    const desk = await deskWith(TWO, settings);
    desk.write(text);
    const alarm = await desk.alarm();
    expect(alarm).toContain('EDIT_COLUMNS');
    expect(alarm).toContain(told);
    expect([desk.text(), desk.writes]).toEqual([text, []]);
  });
});

describe('a file that cannot be taken as it is', () => {
  it.each([
    ['csv', 'pk,a\nk1,1\nk2,"2\n', 'line 3, column 4'],
    ['json', '[\n{"pk":"k1","a":"1"}\n{"pk":"k2","a":"2"}\n]\n', 'line 3, column 1'],
    ['ndjson', '{"pk":"k1","a":"1"}\n{"pk":"k1","a":"2"}\n', 'line 2, column 7'],
    ['csv', '', 'line 1, column 1'],
    ['json', ' \n', 'line 1, column 1'],
    ['ndjson', '', 'line 1, column 1'],
    ['ndjson', '{"pk":"k1","a":"1"}\n{"pk":"k\\u0000","a":"1"}\n', 'line 2: the key'],
    ['ndjson', `{"pk":"${'k'.repeat(501)}","a":"1"}\n`, 'line 1: the key'],
  ] as const)('as %s %j is left alone, and told by its place', async (format, text, where) => {
    const desk = await deskWith('k1 a=1; k2 a=2', { format });
    desk.write(text);
    const alarm = await desk.alarm();
    expect(alarm).toContain(`EDIT_UNREADABLE: ${desk.file} cannot be read`);
    expect(alarm).toContain(where);
    desk.remote.set('k1', { a: 'changed in the peer' });
    await desk.alarm();
    expect([desk.text(), desk.writes]).toEqual([text, []]);
  });

  it('needs no peer to be told, and goes on once it is mended', async () => {
    const desk = await deskWith();
    const good = desk.text();
    desk.peer.onAsk = () => Promise.reject(new Error('the peer is away'));
    desk.write('{');
    expect(await desk.alarm()).toContain('EDIT_UNREADABLE');
    desk.peer.onAsk = () => {};
    desk.write(good.replace('"1"', '"mended"'));
    await desk.settled();
    expect(desk.theirs().k1).toEqual({ a: 'mended', b: '2' });
  });

  it('is one that is too large, or that a table of more than 100,000 rows would be written to', async () => {
    const desk = await deskWith();
    const before = desk.text();
    for (let i = 0; i < 100_000; i += 1) desk.remote.set(`n${i}`, {});
    expect(await desk.alarm()).toContain('EDIT_TOO_LARGE');
    expect(desk.text()).toBe(before);
    truncateSync(desk.file, 64 * 2 ** 20 + 1);
    expect(await desk.alarm()).toContain('EDIT_TOO_LARGE');
  });

  it('is anything that is no regular file', async () => {
    const desk = await deskWith();
    const elsewhere = join(temporaryDirectory(), 'elsewhere');
    writeFileSync(elsewhere, 'not ours');
    for (const make of [
      () => symlinkSync(elsewhere, desk.file),
      () => execFileSync('mkfifo', [desk.file]),
      () => mkdirSync(desk.file),
    ]) {
      rmSync(desk.file, { recursive: true });
      make();
      expect(await desk.alarm()).toContain('EDIT_UNREADABLE');
    }
    expect(readFileSync(elsewhere, 'utf8')).toBe('not ours');
    expect(desk.writes).toEqual([]);
  });

  it('is none that is missing: it is written anew, and no row is taken for removed', async () => {
    const desk = await deskWith();
    rmSync(desk.file);
    await desk.settled();
    expect([desk.content(), desk.writes]).toEqual([TWO, []]);
  });
});

describe('a file that is being written', () => {
  /** A run, half a second of which passes at a time. */
  async function runInTime(desk: Desk, meanwhile: () => void = () => {}) {
    let isOver = false;
    const run = desk.run().finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await nextTurn();
      if (desk.clock.waiting === 0) continue;
      meanwhile();
      await desk.clock.advance(500);
    }
    return await run;
  }
  const touch = (desk: Desk, at = desk.clock.now() / 1000) => utimesSync(desk.file, at, at);

  it('is read once it is at rest for two seconds', async () => {
    const desk = await deskWith();
    writeFileSync(desk.file, desk.text().replace('"1"', '"edited"'));
    touch(desk);
    const writtenAt = desk.clock.now();
    let toldAt = 0;
    desk.peer.onAsk = (what) => {
      if (what.startsWith('set')) toldAt = desk.clock.now();
    };
    expect((await runInTime(desk)).kind).toBe('followed');
    expect(desk.theirs().k1?.a).toBe('edited');
    expect(toldAt - writtenAt).toBeGreaterThanOrEqual(2_000);
  });

  it('is left for later where it does not come to rest', async () => {
    const desk = await deskWith();
    touch(desk);
    expect(await runInTime(desk, () => touch(desk))).toEqual({ kind: 'later' });
    expect(await desk.table.wantsRun()).toBe(true);
    expect(desk.peer.asked).toEqual([]);
  });

  it('is at rest also where its time lies in the future, when it looks the same for two seconds', async () => {
    const desk = await deskWith();
    touch(desk, 4_000_000_000);
    const before = desk.clock.now();
    expect((await runInTime(desk)).kind).toBe('followed');
    expect(desk.clock.now() - before).toBeGreaterThanOrEqual(2_000);
  });

  it('while the peer is told, or where none was, is not overwritten', async () => {
    const desk = await deskWith();
    desk.set('k1', { a: 'first' });
    desk.peer.onAsk = (what) => what.startsWith('did') && desk.set('k1', { b: 'second' });
    expect(await desk.run()).toEqual({ kind: 'later' });
    desk.peer.onAsk = () => {};
    expect(desk.content().k1).toEqual({ a: 'first', b: 'second' });
    await desk.settled();
    expect(desk.theirs().k1).toEqual({ a: 'first', b: 'second' });
    const text = desk.text();
    rmSync(desk.file);
    desk.peer.onAsk = () => desk.write(text.replace('first', 'mine'));
    expect(await desk.run()).toEqual({ kind: 'later' });
    desk.peer.onAsk = () => {};
    await desk.settled();
    expect(desk.theirs().k1?.a).toBe('mine');
  });
});

describe('after a run that was cut short', () => {
  it('an edit that was told and is taken back is taken back in the peer, row or cell', async () => {
    const desk = await deskWith();
    const before = desk.text();
    for (const edit of [() => desk.set('k1', { a: 'told' }), () => desk.remove('k1')]) {
      edit();
      await desk.crashAt(desk.rows().length === 2 ? 'rows were committed' : 'rows were deleted');
      expect(desk.theirs()).not.toEqual(TWO);
      desk.write(before);
      await desk.settled();
      expect([desk.theirs(), desk.content()]).toEqual([TWO, TWO]);
    }
  });

  it('edits are taken back step by step, also where each run is cut short', async () => {
    const desk = await deskWith();
    desk.set('k1', { a: 'one' });
    await desk.crashAt('rows were committed');
    desk.set('k1', { a: 'two' });
    await desk.crashAt('rows are about to be committed');
    desk.set('k1', { a: '1' });
    await desk.settled();
    expect(desk.theirs()).toEqual(TWO);
  });

  it('a change of the peer that reached the file, and is taken back there, is not told as an edit', async () => {
    const desk = await deskWith();
    desk.remote.set('k1', { a: 'for a moment', b: '2' });
    await desk.crashAt('the file is written');
    expect(desk.content().k1?.a).toBe('for a moment');
    desk.remote.set('k1', { a: '1', b: '2' });
    await desk.settled();
    expect([desk.writes, desk.content()]).toEqual([[], TWO]);
  });

  it('what was once told is not taken for told again', async () => {
    const desk = await deskWith();
    const before = desk.text();
    desk.set('k1', { a: 'x' });
    await desk.crashAt('rows were committed');
    desk.write(before);
    desk.remote.set('k1', { a: '1', b: '2' });
    await desk.settled();
    await desk.change('k1', { a: 'x' });
    expect(desk.writes).toEqual([]);
    expect(desk.content().k1?.a).toBe('x');
  });

  it.each(['the new base is prepared', 'the file is written'])(
    'behind "%s", what is edited before the next is saved: nobody knows which of two files that was',
    async (step) => {
      const desk = await deskWith();
      desk.remote.set('k1', { a: 'of the peer', b: '2' });
      await desk.crashAt(step);
      desk.set('k1', { a: 'mine' });
      const edited = desk.text();
      await desk.settled();
      expect(desk.writes).toEqual([]);
      expect(desk.content()).toEqual(desk.theirs());
      expect([desk.conflictTexts(), desk.conflicts()]).toEqual([[edited], ['k1 a']]);
      desk.set('k1', { a: 'mine' });
      await desk.settled();
      expect(desk.theirs().k1).toEqual({ a: 'mine', b: '2' });
    },
  );

  it.each(['overtaken by an editor', 'stopped'])(
    'as it was %s, edits reach the peer as ever',
    async (how) => {
      const desk = await deskWith();
      desk.remote.set('k1', { a: 'of the peer', b: '2' });
      const stopping = new AbortController();
      desk.onStep = (step) => {
        if (step !== 'the new base is prepared') return;
        if (how === 'stopped') stopping.abort(new Error('stopped'));
        else desk.write(desk.text());
      };
      const run = desk.run({ signal: stopping.signal });
      if (how === 'stopped') await expect(run).rejects.toThrow('stopped');
      else expect(await run).toEqual({ kind: 'later' });
      desk.onStep = () => {};
      desk.set('k2', { a: 'mine' });
      await desk.settled();
      expect(desk.theirs()).toEqual({ k1: { a: 'of the peer', b: '2' }, k2: { a: 'mine', b: '4' } });
      expect(desk.conflictFiles()).toEqual([]);
    },
  );

  it('by the peer, the file is as it was, and the next run goes on', async () => {
    const desk = await deskWith();
    desk.save(desk.rows().map((row) => ({ ...row, a: 'edited' })));
    const edited = desk.text();
    desk.peer.onAsk = (what) => {
      if (what.startsWith('set T k2')) throw new Error('the peer is away');
    };
    await expect(desk.run()).rejects.toThrow('the peer is away');
    expect(desk.text()).toBe(edited);
    desk.peer.onAsk = () => {};
    desk.peer.asked.length = 0;
    await desk.settled();
    expect(desk.writes).toEqual(['set k2 {"a":"edited"}']);
    expect(desk.content()).toEqual(rowsOf('k1 a=edited b=2; k2 a=edited b=4'));
  });
});

describe('without a base', () => {
  it.each([
    ['is gone', (path: string) => rmSync(path)],
    ['is damaged', (path: string) => writeFileSync(path, readFileSync(path, 'utf8').replace('"3"', '"9"'))],
    ['is cut off', (path: string) => truncateSync(path, statSync(path).size - 10)],
  ])('that %s nothing is told, and the file is saved', async (_, spoil) => {
    const desk = await deskWith();
    desk.set('k1', { a: 'mine' });
    desk.set('new', { a: 'x' });
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
    await desk.change('k1', { a: 'theirs' });
    expect(desk.content()).toEqual(desk.theirs());
    expect(desk.conflictFiles()).toEqual([]);
  });

  it('that can be written nothing else is either; what a killed process left of one is removed', async () => {
    const desk = await deskWith();
    const [base = ''] = readdirSync(desk.bases);
    writeFileSync(join(desk.bases, `${base}.next.tmp`), 'half');
    writeFileSync(join(desk.bases, 'other.tmp'), 'of somebody else');
    await desk.change('k1', { a: 'theirs' });
    expect(readdirSync(desk.bases).sort()).toEqual([base, 'other.tmp'].sort());
    rmSync(desk.bases, { recursive: true });
    writeFileSync(desk.bases, 'in the way');
    const before = desk.text();
    desk.remote.set('k1', { a: 'theirs again', b: '2' });
    await expect(desk.run()).rejects.toMatchObject({ code: 'MIRROR_BLOCKED' });
    expect(desk.text()).toBe(before);
  });
});

describe('a table that is gone, accepted', () => {
  it('takes its file along with all that is kept of it; what was edited is left as a conflict file', async () => {
    const desk = await deskWith();
    await desk.change('k2', { b: 'theirs' });
    desk.remove('k1');
    const edited = desk.text();
    expect(await desk.table.retire(desk.record)).toMatchObject([{ pk: '' }]);
    expect(existsSync(desk.file)).toBe(false);
    expect(desk.conflictTexts()).toEqual([edited]);
    expect(readdirSync(desk.bases)).toEqual([]);
  });

  it('leaves a file that is saved in the last moment', async () => {
    const desk = await deskWith();
    desk.onStep = (step) => {
      if (step === 'the file is about to be removed') desk.remove('k1');
    };
    await expect(desk.table.retire(desk.record)).rejects.toMatchObject({ code: 'MIRROR_BLOCKED' });
    expect(desk.content()).toEqual({ k2: TWO.k2 });
  });
});
