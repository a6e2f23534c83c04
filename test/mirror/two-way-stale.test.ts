import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Cells, type Desk, deskWith, rowsOf } from './edit-desk.js';

const TWO = rowsOf('k1 a=1 b=2; k2 a=3 b=4');
const DAY = 86_400_000;

/** Opens the file as it is now; what is saved later is this with the changes of the person. */
function editorOf(desk: Desk) {
  const rows = desk.rows();
  const save = () => desk.save(rows);
  const set = (pk: string, cells: Cells): void => {
    Object.assign(rows.find((row) => row.pk === pk) ?? {}, cells);
    save();
  };
  return { rows, save, set, openedAt: desk.clock.now() };
}

/** A desk with an editor in which the file is open; then others change `k2 b`, and that reaches the file. */
async function openedBefore() {
  const desk = await deskWith();
  const editor = editorOf(desk);
  await desk.change('k2', { b: 'theirs' });
  return { desk, ...editor };
}

const note = (openedAt: number) =>
  expect.stringContaining(
    `was saved from the copy of ${new Date(openedAt).toLocaleString('sv-SE').slice(0, 16)}: the peer's newer changes were kept`,
  );

describe('a file that was saved from an earlier copy', () => {
  it('tells the peer what was edited, if anything was, and takes back nothing that the peer changed since', async () => {
    for (const mine of [{ a: 'mine' }, {}]) {
      const { desk, set, openedAt } = await openedBefore();
      set('k1', mine);
      expect(await desk.settled()).toMatchObject({ notes: [note(openedAt)], conflicts: [] });
      expect(desk.writes).toEqual(Object.keys(mine).length > 0 ? ['set k1 {"a":"mine"}'] : []);
      expect(desk.theirs().k2).toEqual({ a: '3', b: 'theirs' });
      expect(desk.content()).toEqual(desk.theirs());
    }
  });

  it.each([
    ['a row that the peer added', 'k3', { a: 'theirs' }],
    ['a row that the peer removed', 'k2', undefined],
    ['a column that the peer added', 'k2', { c: 'theirs' }],
    ['a cell that the peer cleared', 'k2', { b: '' }],
  ])('leaves %s as the peer has it', async (_, pk, cells) => {
    const desk = await deskWith();
    const editor = editorOf(desk);
    await desk.change(pk, cells);
    const theirs = desk.theirs()[pk];
    editor.set('k1', { a: 'mine' });
    expect((await desk.settled()).notes).toHaveLength(1);
    expect(desk.writes).toEqual(['set k1 {"a":"mine"}']);
    expect(desk.theirs()[pk]).toEqual(theirs);
    expect(desk.content()).toEqual(desk.theirs());
  });

  it('keeps the value of the peer where both changed a cell, and the file is saved', async () => {
    const { desk, set } = await openedBefore();
    await desk.change('k2', { a: 'theirs too' });
    set('k2', { a: 'mine' });
    const mine = desk.text();
    await desk.settled();
    expect([desk.writes, desk.conflictTexts(), desk.conflicts()]).toEqual([[], [mine], ['k2 a']]);
    expect(desk.content().k2).toEqual({ a: 'theirs too', b: 'theirs' });
  });

  it('is merged with that copy, and not with one that came between', async () => {
    const { desk, set, openedAt } = await openedBefore();
    await desk.change('k1', { b: 'second' });
    set('k1', { a: 'mine' });
    expect((await desk.settled()).notes).toEqual([note(openedAt)]);
    expect(desk.writes).toEqual(['set k1 {"a":"mine"}']);
    expect(desk.content()).toEqual(rowsOf('k1 a=mine b=second; k2 a=3 b=theirs'));
  });

  it('is merged with that copy, and not with one before it', async () => {
    const desk = await deskWith();
    await desk.change('k1', { a: 'x' });
    const editor = editorOf(desk);
    await desk.change('k1', { a: 'y' });
    await desk.change('k2', { b: 'theirs' });
    editor.set('k2', { a: 'mine' });
    expect((await desk.settled()).notes).toEqual([note(editor.openedAt)]);
    expect([desk.writes, desk.conflictFiles()]).toEqual([['set k2 {"a":"mine"}'], []]);
  });

  it('and goes on being saved, goes on keeping what the peer changed, and adds a row without a key once', async () => {
    const { desk, set, rows } = await openedBefore();
    rows.push({ pk: '', a: 'new' });
    for (const a of ['m', 'mi', 'mine', '1']) {
      set('k1', { a });
      await desk.settled();
    }
    expect(desk.writes.filter((write) => write.includes('new'))).toHaveLength(1);
    expect(desk.writes.at(-1)).toBe('set k1 {"a":"1"}');
    expect(desk.theirs()).toMatchObject({ ...TWO, k2: { a: '3', b: 'theirs' } });
    expect([desk.rows().length, desk.conflictFiles()]).toEqual([3, []]);
  });

  it('has a row that the peer added as well: that is a conflict, and all else stays as the peer has it', async () => {
    const { desk, save, rows } = await openedBefore();
    await desk.change('k3', { a: 'theirs', b: 'theirs' });
    rows.push({ pk: 'k3', a: 'mine', b: 'mine' });
    save();
    await desk.settled();
    expect([desk.writes, desk.conflicts()]).toEqual([[], ['k3 a', 'k3 b']]);
    expect(desk.theirs()).toMatchObject(rowsOf('k2 a=3 b=theirs; k3 a=theirs b=theirs'));
  });

  it('shows what was there before another edit of the person and one of the peer: that is a conflict', async () => {
    const desk = await deskWith();
    const editor = editorOf(desk);
    desk.set('k1', { a: 'mine' });
    await desk.settled();
    await desk.change('k1', { a: 'theirs' });
    editor.save();
    await desk.settled();
    expect([desk.writes, desk.conflicts()]).toEqual([[], ['k1 a']]);
    expect(desk.content().k1).toEqual({ a: 'theirs', b: '2' });
  });

  it('keeps what the peer changed while the editor told something else', async () => {
    const desk = await deskWith();
    const editor = editorOf(desk);
    editor.set('k1', { a: 'mine' });
    desk.remote.set('k2', { a: '3', b: 'theirs' });
    await desk.settled();
    editor.set('k1', { b: 'also mine' });
    await desk.settled();
    expect(desk.writes.at(-1)).toBe('set k1 {"b":"also mine"}');
    expect(desk.theirs().k2).toEqual({ a: '3', b: 'theirs' });
  });

  it('is told of until the file is edited again, also after a restart and further changes', async () => {
    const { desk, set, openedAt } = await openedBefore();
    set('k1', { a: 'mine' });
    await desk.crashAt('the file is written');
    expect((await desk.settled()).notes).toEqual([note(openedAt)]);
    await desk.change('k2', { b: 'theirs again' });
    expect((await desk.settled()).notes).toEqual([note(openedAt)]);
    desk.set('k2', { a: 'later' });
    for (let i = 0; i < 2; i += 1) expect((await desk.settled()).notes).toEqual([]);
  });

  it('is told of for a week', async () => {
    const { desk, save } = await openedBefore();
    save();
    for (const [days, notes] of [
      [0, 1],
      [6.9, 1],
      [0.2, 0],
    ] as const) {
      await desk.clock.advance(days * DAY);
      expect((await desk.settled()).notes).toHaveLength(notes);
    }
  });

  it.each([
    'the intents are kept',
    'rows were committed',
    'the new base is prepared',
    'the file is written',
    'the new base holds',
  ])('is told once, though the run is cut short after this: %s', async (step) => {
    const { desk, set, rows } = await openedBefore();
    rows.push({ pk: '', a: 'new' });
    set('k1', { a: 'mine' });
    await desk.crashAt(step);
    await desk.settled();
    for (const value of ['mine', 'new'])
      expect(desk.writes.filter((write) => write.includes(value))).toHaveLength(1);
    expect(desk.theirs()).toMatchObject(rowsOf('k1 a=mine b=2; k2 a=3 b=theirs'));
    expect(desk.content()).toEqual(desk.theirs());
    expect([desk.rows().length, desk.conflictFiles()]).toEqual([3, []]);
  });
});

describe('what is no earlier copy', () => {
  it('the newest one, of which a part is set back', async () => {
    const desk = await deskWith();
    await desk.change('k1', { a: 'theirs', b: 'theirs' });
    desk.set('k1', { a: '1' });
    expect((await desk.settled()).notes).toEqual([]);
    expect(desk.writes).toEqual(['set k1 {"a":"1"}']);
  });

  it('one with columns that the file lacks', async () => {
    const desk = await deskWith('k1 a=1 b=2');
    await desk.change('k1', undefined);
    desk.save([{ pk: 'k1', a: 'mine' }]);
    expect((await desk.settled()).notes).toEqual([]);
    expect(desk.writes).toEqual(['set k1 {"a":"mine"}']);
  });

  it.each(['settled', 'cut short'])(
    'one that holds what the person changed since, in a run that was %s',
    async (how) => {
      const desk = await deskWith();
      const editor = editorOf(desk);
      editor.set('k1', { a: 'mine' });
      if (how === 'cut short') await desk.crashAt('rows were committed');
      await desk.settled();
      editor.set('k1', { a: '1' });
      expect((await desk.settled()).notes).toEqual([]);
      expect(desk.writes.at(-1)).toBe('set k1 {"a":"1"}');
    },
  );

  it('a row that the person added, and removes', async () => {
    const desk = await deskWith();
    const editor = editorOf(desk);
    desk.set('k3', { a: 'mine' });
    await desk.settled();
    editor.save();
    await desk.settled();
    expect(desk.writes).toEqual(['set k3 {"a":"mine"}', 'delete k3']);
  });
});

describe('the same, saved once more', () => {
  it('is meant, and takes back what the peer changed', async () => {
    const { desk, save } = await openedBefore();
    save();
    await desk.settled();
    expect(desk.content().k2).toEqual({ a: '3', b: 'theirs' });
    save();
    expect((await desk.settled()).notes).toEqual([]);
    expect(desk.writes).toEqual(['set k2 {"b":"4"}']);
    expect(desk.content()).toEqual(TWO);
  });

  it('is meant only for what the peer had changed by then', async () => {
    const { desk, save } = await openedBefore();
    save();
    await desk.settled();
    await desk.change('k1', { b: 'also' });
    save();
    await desk.settled();
    expect([desk.writes, desk.content()]).toEqual([[], rowsOf('k1 a=1 b=also; k2 a=3 b=theirs')]);
  });

  it.each(['the new base is prepared', 'the file is written'])(
    'is not taken for meant because a run was cut short after this: %s',
    async (step) => {
      const { desk, save } = await openedBefore();
      save();
      await desk.crashAt(step);
      save();
      await desk.settled();
      expect([desk.writes, desk.content().k2]).toEqual([[], { a: '3', b: 'theirs' }]);
    },
  );
});

describe('earlier copies', () => {
  it('are known for the last hundred changes of the peer', async () => {
    const desk = await deskWith();
    for (const [changes, notes] of [
      [99, 1],
      [101, 0],
    ] as const) {
      const editor = editorOf(desk);
      for (let i = 0; i < changes; i += 1) await desk.change('k1', { a: `${changes} ${i}` });
      editor.set('k2', { a: `mine ${changes}` });
      expect((await desk.settled()).notes).toHaveLength(notes);
    }
  }, 60_000);

  it('are remembered a cell, and not where too much changed', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, i) => [`n${i}`, { a: 'x'.repeat(600) }]),
    );
    const desk = await deskWith({ ...TWO, ...many });
    const editor = editorOf(desk);
    await desk.change('k2', { b: 'theirs' });
    const sizeOf = () => statSync(join(desk.bases, readdirSync(desk.bases)[0] ?? '')).size;
    const before = sizeOf();
    await desk.change('k2', { b: 'theirs again' });
    expect(sizeOf() - before).toBeLessThan(500);
    editor.set('k1', { a: 'mine' });
    await desk.settled();
    expect(desk.writes).toEqual(['set k1 {"a":"mine"}']);
    for (const pk of Object.keys(many)) desk.remote.set(pk, { a: 'y' });
    await desk.settled();
    expect(sizeOf()).toBeLessThan(before);
  });

  it('are known for a week after the next one came, however long they held', async () => {
    const desk = await deskWith();
    await desk.clock.advance(30 * DAY);
    const editor = editorOf(desk);
    await desk.change('k2', { b: 'theirs' });
    await desk.clock.advance(6.9 * DAY);
    editor.set('k1', { a: 'mine' });
    await desk.settled();
    expect(desk.writes).toEqual(['set k1 {"a":"mine"}']);
    await desk.clock.advance(7.1 * DAY);
    editor.set('k1', { a: 'still mine' });
    await desk.settled();
    expect(desk.writes.slice(1)).toEqual(['set k1 {"a":"still mine"}', 'set k2 {"b":"4"}']);
  });
});
