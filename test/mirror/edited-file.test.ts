import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type AlarmCode, MirrorAlarm } from '../../src/mirror/errors.js';
import { EditedFile } from '../../src/mirror/two-way/edited-file.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

const alarm = (code: AlarmCode, detail: string) => new MirrorAlarm(code, 'T', 'tables/T.csv', detail);
const FIRST = 'tables/T.csv.conflict-20260101T000000Z';

/** The conflict files of `tables/T.csv`, at the first second of 2026. */
function conflictFiles() {
  const root = temporaryDirectory();
  mkdirSync(join(root, 'tables'));
  const clock = new FakeClock();
  const conflicts = new EditedFile({ root, path: 'tables/T.csv' }, clock, alarm);
  return {
    ...{ root, clock, conflicts },
    save: (text: string, mode = 0o600) => conflicts.saveConflict({ bytes: Buffer.from(text), mode }),
    read: (path: string) => readFileSync(join(root, path), 'utf8'),
    names: () => readdirSync(join(root, 'tables')).sort(),
  };
}

describe('a conflict file', () => {
  it('is a whole copy beside the file, named after the time, that who may read the file may read', async () => {
    const { root, save, read, names } = conflictFiles();
    expect(await save('mine', 0o640)).toBe(FIRST);
    expect(read(FIRST)).toBe('mine');
    expect(statSync(join(root, FIRST)).mode & 0o777).toBe(0o640);
    expect(names()).toEqual(['T.csv.conflict-20260101T000000Z']);
  });

  it('of the same second has a number', async () => {
    const { save, read } = conflictFiles();
    expect([await save('one'), await save('two'), await save('three')]).toEqual([
      FIRST,
      `${FIRST}-2`,
      `${FIRST}-3`,
    ]);
    expect(read(FIRST)).toBe('one');
  });

  it('is not written again where one has that content, whenever that was', async () => {
    const { clock, save, names } = conflictFiles();
    await save('same');
    await save('size');
    await clock.advance(60_000);
    expect(await save('same')).toBe(FIRST);
    expect(await save('size')).toBe(`${FIRST}-2`);
    expect(names()).toHaveLength(2);
    await clock.advance(60_000);
    expect(await save('more')).toBe('tables/T.csv.conflict-20260101T000200Z');
  });

  it('is not looked for behind a link', async () => {
    const { root, save, read } = conflictFiles();
    writeFileSync(join(root, 'elsewhere'), 'mine');
    symlinkSync(join(root, 'elsewhere'), join(root, `${FIRST}-0`));
    expect(await save('mine')).toBe(FIRST);
    expect(read(FIRST)).toBe('mine');
  });

  it('is no directory of such a name', async () => {
    const { root, save } = conflictFiles();
    mkdirSync(join(root, `${FIRST}-0`));
    const { size } = statSync(join(root, `${FIRST}-0`));
    expect(await save('x'.repeat(size))).toBe(FIRST);
  });

  it('that cannot be written is told of by its name, and leaves nothing', async () => {
    const { root, clock, names } = conflictFiles();
    // The name of the file is one that may be, and that of its copy is not.
    const conflicts = new EditedFile({ root, path: `tables/${'x'.repeat(240)}` }, clock, alarm);
    await expect(conflicts.saveConflict({ bytes: Buffer.from('mine'), mode: 0o600 })).rejects.toMatchObject({
      code: 'MIRROR_UNWRITABLE',
      message: expect.stringContaining('.conflict-20260101T000000Z'),
    });
    expect(names()).toEqual([]);
  });
});

describe('conflicts', () => {
  const clash = (pk: string) => ({ pk, column: 'a' });

  it('stand as long as their file does', async () => {
    const { root, clock, conflicts, save } = conflictFiles();
    const at = clock.now();
    const file = await save('mine');
    const standing = await conflicts.standing(undefined, file, [clash('k1'), clash('k2')]);
    expect(standing).toEqual([
      { pk: 'k1', column: 'a', file, at },
      { pk: 'k2', column: 'a', file, at },
    ]);
    await clock.advance(60_000);
    expect(await conflicts.standing(standing)).toEqual(standing);
    rmSync(join(root, file));
    expect(await conflicts.standing(standing)).toEqual([]);
  });

  it('of a file that is saved anew are those that clash now, beside those of other files', async () => {
    const { clock, conflicts, save } = conflictFiles();
    const [one, two] = [await save('one'), await save('two')];
    const before = [
      { ...clash('k1'), file: one, at: 1 },
      { ...clash('k2'), file: two, at: 2 },
    ];
    expect(await conflicts.standing(before, two, [clash('k3')])).toEqual([
      before[0],
      { ...clash('k3'), file: two, at: clock.now() },
    ]);
  });

  it('of a file that nobody knows of are one without a row; no other file is taken for one', async () => {
    const { root, clock, conflicts, save } = conflictFiles();
    const file = await save('mine');
    for (const name of ['T.csv', 'S.csv.conflict-20260101T000000Z', 'T.csv.old'])
      writeFileSync(join(root, 'tables', name), 'x');
    expect(await conflicts.standing(undefined)).toEqual([{ pk: '', file, at: clock.now() }]);
  });

  it('are listed by the first hundred of a file', async () => {
    const { conflicts, save } = conflictFiles();
    const file = await save('mine');
    const many = Array.from({ length: 150 }, (_, i) => clash(`k${i}`));
    const listed = await conflicts.standing(undefined, file, many);
    expect(listed.map(({ pk }) => pk)).toEqual(many.slice(0, 100).map(({ pk }) => pk));
  });
});

describe('the file', () => {
  const path = 'tables/T.csv';

  it('looks edited once where something that is no file stands in its place', async () => {
    const { root, conflicts: file } = conflictFiles();
    symlinkSync('elsewhere', join(root, path));
    expect(await file.looksEdited()).toBe(true);
    await expect(file.read(undefined)).rejects.toMatchObject({ code: 'EDIT_UNREADABLE' });
    expect(await file.looksEdited()).toBe(false);
  });
});
