import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../support/temp.js';
import { crashAt, Desk, type DeskSettings, TableInMemory } from './edit-desk.js';

type Cells = Record<string, string>;
type Rows = Record<string, Cells>;

const two: Rows = { k1: { a: '1', b: '2' }, k2: { a: '3', b: '4' } };
const MINUTE = 60_000;
const DAY = 86_400_000;

async function deskWith(rows: Rows = two, settings: DeskSettings = {}) {
  const peer = new TableInMemory(rows);
  const desk = new Desk(temporaryDirectory(), peer, settings);
  await desk.settled();
  /** Others change a row, and that reaches the file. */
  const change = async (pk: string, cells: Cells | undefined) => {
    await desk.clock.advance(MINUTE);
    if (cells === undefined) peer.rows.delete(pk);
    else peer.rows.set(pk, { ...peer.rows.get(pk), ...cells });
    await desk.settled();
    peer.calls.length = 0;
  };
  return { peer, desk, change };
}

/** Opens the file as it is now; what is saved later is this with the changes of the person. */
function editorOf(desk: Desk) {
  const rows = desk.rows();
  return {
    rows,
    save: () => desk.edit(() => rows),
    set: (pk: string, cells: Cells) => {
      Object.assign(rows.find((row) => row.pk === pk) ?? {}, cells);
      desk.edit(() => rows);
    },
  };
}

const note = (when: number) =>
  expect.stringContaining(
    `was saved from the copy of ${new Date(when).toLocaleString('sv-SE').slice(0, 16)}: the peer's newer changes were kept`,
  );

describe('a file that was saved from an earlier copy', () => {
  test('tells the peer what was edited, and takes back nothing that the peer changed since', async () => {
    const { peer, desk, change } = await deskWith();
    const opened = desk.clock.now();
    const editor = editorOf(desk);
    await change('k2', { b: 'theirs' });
    editor.set('k1', { a: 'mine' });
    const { record, written } = await desk.settled();
    expect(peer.writes).toEqual(['set k1 {"a":"mine"}']);
    expect(written).toEqual({ rows: 1, deleted: 0 });
    expect(desk.content()).toEqual({ k1: { a: 'mine', b: '2' }, k2: { a: '3', b: 'theirs' } });
    expect(desk.content()).toEqual(peer.content());
    expect(record.notes).toEqual([note(opened)]);
    expect(record.conflicts).toEqual([]);
  });

  test('takes back nothing where nothing was edited', async () => {
    const { peer, desk, change } = await deskWith();
    const editor = editorOf(desk);
    await change('k2', { b: 'theirs' });
    editor.save();
    await desk.settled();
    expect(peer.writes).toEqual([]);
    expect(desk.content().k2).toEqual({ a: '3', b: 'theirs' });
  });

  test.each([
    ['a row that the peer added', 'k3', { a: 'theirs' }],
    ['a row that the peer removed', 'k2', undefined],
    ['a column that the peer added', 'k2', { c: 'theirs' }],
    ['a cell that the peer cleared', 'k2', { b: '' }],
  ])('leaves %s as the peer has it', async (_, pk, cells) => {
    const { peer, desk, change } = await deskWith();
    const editor = editorOf(desk);
    await change(pk, cells);
    const theirs = peer.content()[pk];
    editor.set('k1', { a: 'mine' });
    const { record } = await desk.settled();
    expect(peer.writes).toEqual(['set k1 {"a":"mine"}']);
    expect(peer.content()[pk]).toEqual(theirs);
    expect(desk.content()).toEqual(peer.content());
    expect(record.notes).toHaveLength(1);
  });

  test('keeps the value of the peer where both changed a cell, and the file is saved', async () => {
    const { peer, desk, change } = await deskWith();
    const editor = editorOf(desk);
    await change('k2', { a: 'theirs', b: 'theirs too' });
    editor.set('k2', { a: 'mine' });
    const mine = desk.text();
    await desk.settled();
    expect(peer.writes).toEqual([]);
    expect(desk.content().k2).toEqual({ a: 'theirs', b: 'theirs too' });
    expect(desk.conflictTexts()).toEqual([mine]);
    expect(desk.conflicts()).toMatchObject([{ pk: 'k2', column: 'a' }]);
  });

  test('is merged with that copy, and not with one that came between', async () => {
    const { peer, desk, change } = await deskWith();
    const opened = desk.clock.now();
    const editor = editorOf(desk);
    await change('k1', { b: 'first' });
    await change('k2', { b: 'second' });
    editor.set('k1', { a: 'mine' });
    expect((await desk.settled()).record.notes).toEqual([note(opened)]);
    expect(peer.writes).toEqual(['set k1 {"a":"mine"}']);
    expect(desk.content()).toEqual({ k1: { a: 'mine', b: 'first' }, k2: { a: '3', b: 'second' } });
  });

  test('is merged with that copy, and not with one before it', async () => {
    const { peer, desk, change } = await deskWith();
    await change('k1', { a: 'x' });
    const opened = desk.clock.now();
    const editor = editorOf(desk);
    await change('k1', { a: 'y' });
    await change('k2', { b: 'theirs' });
    editor.set('k2', { a: 'mine' });
    expect((await desk.settled()).record.notes).toEqual([note(opened)]);
    expect(peer.writes).toEqual(['set k2 {"a":"mine"}']);
    expect(desk.conflictFiles()).toEqual([]);
  });

  test('and goes on being saved, goes on keeping what the peer changed', async () => {
    const { peer, desk, change } = await deskWith();
    const editor = editorOf(desk);
    await change('k2', { b: 'theirs' });
    for (const a of ['m', 'mi', 'min', 'mine']) {
      editor.set('k1', { a });
      await desk.settled();
    }
    editor.set('k1', { a: '1' });
    await desk.settled();
    expect(peer.writes.at(-1)).toBe('set k1 {"a":"1"}');
    expect(peer.content()).toEqual({ ...two, k2: { a: '3', b: 'theirs' } });
    expect(desk.conflictFiles()).toEqual([]);
  });

  test('and holds a row without a key, adds it once', async () => {
    const { peer, desk, change } = await deskWith();
    const editor = editorOf(desk);
    await change('k2', { b: 'theirs' });
    editor.rows.push({ pk: '', a: 'new' });
    for (const a of ['mi', 'mine']) {
      editor.set('k1', { a });
      await desk.settled();
    }
    expect(peer.writes.filter((write) => write.includes('new'))).toHaveLength(1);
    expect(desk.rows()).toHaveLength(3);
  });

  test('has a row that the peer added as well: that is a conflict, and all else stays as the peer has it', async () => {
    const { peer, desk, change } = await deskWith();
    const editor = editorOf(desk);
    await change('k3', { a: 'theirs', b: 'theirs' });
    await change('k2', { b: 'theirs' });
    editor.rows.push({ pk: 'k3', a: 'mine', b: 'mine' });
    editor.save();
    await desk.settled();
    expect(peer.writes).toEqual([]);
    expect(peer.content()).toMatchObject({ k2: { a: '3', b: 'theirs' }, k3: { a: 'theirs', b: 'theirs' } });
    expect(desk.conflicts()).toMatchObject([
      { pk: 'k3', column: 'a' },
      { pk: 'k3', column: 'b' },
    ]);
  });

  test('shows what was there before another edit of the person and one of the peer: that is a conflict', async () => {
    const { peer, desk, change } = await deskWith();
    const editor = editorOf(desk);
    editorOf(desk).set('k1', { a: 'mine' });
    await desk.settled();
    await change('k1', { a: 'theirs' });
    editor.save();
    await desk.settled();
    expect(peer.writes).toEqual([]);
    expect(desk.content().k1).toEqual({ a: 'theirs', b: '2' });
    expect(desk.conflicts()).toMatchObject([{ pk: 'k1', column: 'a' }]);
  });

  test('keeps what the peer changed while the editor told something else', async () => {
    const { peer, desk } = await deskWith();
    const editor = editorOf(desk);
    editor.set('k1', { a: 'mine' });
    peer.rows.set('k2', { a: '3', b: 'theirs' });
    await desk.settled();
    peer.calls.length = 0;
    editor.set('k1', { b: 'also mine' });
    await desk.settled();
    expect(peer.writes).toEqual(['set k1 {"b":"also mine"}']);
    expect(peer.content().k2).toEqual({ a: '3', b: 'theirs' });
  });

  test('is told of until the file is edited again, also after a restart and further changes of the peer', async () => {
    const { desk, change } = await deskWith();
    const opened = desk.clock.now();
    const editor = editorOf(desk);
    await change('k2', { b: 'theirs' });
    editor.set('k1', { a: 'mine' });
    await crashAt(desk, 'the file is written');
    expect((await desk.settled()).record.notes).toEqual([note(opened)]);
    await change('k2', { b: 'theirs again' });
    expect((await desk.settled()).record.notes).toEqual([note(opened)]);
    editorOf(desk).set('k2', { a: 'later' });
    expect((await desk.settled()).record.notes).toEqual([]);
    expect((await desk.settled()).record.notes).toEqual([]);
  });

  test('is told of for a week', async () => {
    const { desk, change } = await deskWith();
    const editor = editorOf(desk);
    await change('k2', { b: 'theirs' });
    editor.save();
    await desk.settled();
    await desk.clock.advance(6.9 * DAY);
    expect((await desk.settled()).record.notes).toHaveLength(1);
    await desk.clock.advance(0.2 * DAY);
    expect((await desk.settled()).record.notes).toEqual([]);
  });

  test.each([
    'the intents are kept',
    'rows were committed',
    'the new base is prepared',
    'the file is written',
    'the new base holds',
  ])('is told once, though the run is cut short after this: %s', async (step) => {
    const { peer, desk, change } = await deskWith();
    const editor = editorOf(desk);
    await change('k2', { b: 'theirs' });
    editor.rows.push({ pk: '', a: 'new' });
    editor.set('k1', { a: 'mine' });
    await crashAt(desk, step);
    await desk.settled();
    expect(peer.writes.filter((write) => write.includes('mine'))).toHaveLength(1);
    expect(peer.writes.filter((write) => write.includes('new'))).toHaveLength(1);
    expect(peer.content()).toMatchObject({ k1: { a: 'mine', b: '2' }, k2: { a: '3', b: 'theirs' } });
    expect(Object.keys(peer.content())).toHaveLength(3);
    expect(desk.content()).toEqual(peer.content());
    expect(desk.conflictFiles()).toEqual([]);
  });
});

describe('what is no earlier copy', () => {
  test('the newest one, of which a part is set back', async () => {
    const { peer, desk, change } = await deskWith();
    await change('k1', { a: 'theirs', b: 'theirs' });
    editorOf(desk).set('k1', { a: '1' });
    expect((await desk.settled()).record.notes).toEqual([]);
    expect(peer.writes).toEqual(['set k1 {"a":"1"}']);
  });

  test('one with columns that the file lacks', async () => {
    const { peer, desk, change } = await deskWith({ k1: { a: '1', b: '2' } });
    await change('k1', undefined);
    desk.write('{"pk":"k1","a":"mine"}\n');
    expect((await desk.settled()).record.notes).toEqual([]);
    expect(peer.writes).toEqual(['set k1 {"a":"mine"}']);
  });

  test('one that holds what the person changed since: that is undone', async () => {
    const { peer, desk } = await deskWith();
    const editor = editorOf(desk);
    editor.set('k1', { a: 'mine' });
    await desk.settled();
    editor.set('k1', { a: '1' });
    expect((await desk.settled()).record.notes).toEqual([]);
    expect(peer.writes).toEqual(['set k1 {"a":"mine"}', 'set k1 {"a":"1"}']);
  });

  test('one that holds what the person changed since, though the run that told it was cut short', async () => {
    const { peer, desk } = await deskWith();
    const editor = editorOf(desk);
    editor.set('k1', { a: 'mine' });
    await crashAt(desk, 'rows were committed');
    await desk.settled();
    editor.set('k1', { a: '1' });
    await desk.settled();
    expect(peer.writes.at(-1)).toBe('set k1 {"a":"1"}');
  });

  test('a row that the person added, and removes', async () => {
    const { peer, desk } = await deskWith();
    const editor = editorOf(desk);
    desk.edit(() => [...editor.rows, { pk: 'k3', a: 'mine' }]);
    await desk.settled();
    editor.save();
    await desk.settled();
    expect(peer.writes).toEqual(['set k3 {"a":"mine"}', 'delete k3']);
  });
});

describe('the same, saved once more', () => {
  test('is meant, and takes back what the peer changed', async () => {
    const { peer, desk, change } = await deskWith();
    const editor = editorOf(desk);
    await change('k2', { b: 'theirs' });
    editor.save();
    await desk.settled();
    expect(desk.content().k2).toEqual({ a: '3', b: 'theirs' });
    editor.save();
    expect((await desk.settled()).record.notes).toEqual([]);
    expect(peer.writes).toEqual(['set k2 {"b":"4"}']);
    expect(desk.content()).toEqual(two);
  });

  test('is meant only for what the peer had changed by then', async () => {
    const { peer, desk, change } = await deskWith();
    const editor = editorOf(desk);
    await change('k2', { b: 'theirs' });
    editor.save();
    await desk.settled();
    await change('k1', { b: 'theirs as well' });
    editor.save();
    await desk.settled();
    expect(peer.writes).toEqual([]);
    expect(desk.content()).toEqual({ k1: { a: '1', b: 'theirs as well' }, k2: { a: '3', b: 'theirs' } });
  });

  test.each(['the new base is prepared', 'the file is written'])(
    'is not taken for meant because a run was cut short after this: %s',
    async (step) => {
      const { peer, desk, change } = await deskWith();
      const editor = editorOf(desk);
      await change('k2', { b: 'theirs' });
      editor.save();
      await crashAt(desk, step);
      editor.save();
      await desk.settled();
      expect(peer.writes).toEqual([]);
      expect(desk.content().k2).toEqual({ a: '3', b: 'theirs' });
    },
  );
});

describe('earlier copies', () => {
  test('are known for the last hundred changes of the peer', async () => {
    const { desk, change } = await deskWith();
    const first = editorOf(desk);
    for (let i = 0; i < 99; i += 1) await change('k1', { a: `${i}` });
    first.set('k2', { a: 'mine' });
    expect((await desk.settled()).record.notes).toHaveLength(1);
    const second = editorOf(desk);
    for (let i = 0; i < 101; i += 1) await change('k1', { b: `b${i}` });
    second.set('k2', { a: 'also mine' });
    expect((await desk.settled()).record.notes).toEqual([]);
  }, 60_000);

  test('are remembered a cell, and not where too much changed', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, i) => [`n${i}`, { a: 'x'.repeat(600) }]),
    );
    const { peer, desk, change } = await deskWith({ ...two, ...many });
    const editor = editorOf(desk);
    await change('k2', { b: 'theirs' });
    const [base = ''] = readdirSync(join(desk.root, '../state/mirrors'));
    const sizeOf = () => statSync(join(desk.root, '../state/mirrors', base)).size;
    const before = sizeOf();
    await change('k2', { b: 'theirs again' });
    expect(sizeOf() - before).toBeLessThan(500);
    editor.set('k1', { a: 'mine' });
    await desk.settled();
    expect(peer.writes).toEqual(['set k1 {"a":"mine"}']);
    for (const pk of Object.keys(many)) peer.rows.set(pk, { a: 'y' });
    await desk.settled();
    expect(sizeOf()).toBeLessThan(before);
  });

  test('are known for a week after the next one came, however long they held', async () => {
    const { peer, desk, change } = await deskWith();
    await desk.clock.advance(30 * DAY);
    const editor = editorOf(desk);
    await change('k2', { b: 'theirs' });
    await desk.clock.advance(6.9 * DAY);
    editor.set('k1', { a: 'mine' });
    await desk.settled();
    expect(peer.writes).toEqual(['set k1 {"a":"mine"}']);
    await desk.clock.advance(7.1 * DAY);
    editor.set('k1', { a: 'still mine' });
    await desk.settled();
    expect(peer.writes.slice(1)).toEqual(['set k1 {"a":"still mine"}', 'set k2 {"b":"4"}']);
  });

  test('go with the table', async () => {
    const { desk, change } = await deskWith();
    await change('k2', { b: 'theirs' });
    await desk.table.retire(desk.record);
    expect(readdirSync(join(desk.root, '../state/mirrors'))).toEqual([]);
  });
});
