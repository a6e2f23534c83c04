import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  hashOf,
  removeWhole,
  replaceWhole,
  stampOfTarget,
  temporaryOf,
} from '../../src/mirror/whole-file.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';

const program = await compiledProgram('test/mirror/replacing-program.ts');

async function* pieces(
  ...content: (string | Uint8Array | Error)[]
): AsyncGenerator<string | Uint8Array> {
  for (const piece of content) {
    if (piece instanceof Error) throw piece;
    yield piece;
  }
}

function setting(path = 'a/b.csv') {
  const root = join(temporaryDirectory(), 'root');
  const [target, file] = [{ root, path }, join(root, path)];
  const names = () => readdirSync(dirname(file)).sort();
  const content = (name = basename(file)) => readFileSync(join(dirname(file), name), 'utf8');
  return {
    target,
    file,
    content,
    names,
    /** Returns the contents of all files beside it, hidden ones too, by name. */
    all: () => names().map((name) => content(name)),
    replace: (text: string, options: object = {}) => replaceWhole(target, pieces(text), options),
    mode: () => statSync(file).mode & 0o777,
  };
}

/** Lets a user who is not root, and may not do everything, work in a directory. */
async function asUserWithoutRights(directory: string, work: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return await work();
  const someUser = 65_534;
  chownSync(directory, someUser, someUser);
  process.seteuid?.(someUser);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}

describe('a file that is replaced whole', () => {
  it('is created with its directories, readable for all, and its content is reported', async () => {
    const { target, file, content, names, mode } = setting();
    const result = await replaceWhole(target, pieces('ab', Buffer.from('c')));
    expect([content(), names(), mode()]).toEqual(['abc', ['b.csv'], 0o644 & ~process.umask()]);
    const sha256 = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
    expect(result).toEqual({
      changed: true,
      path: file,
      bytes: 3,
      sha256,
      file: await stampOfTarget(target),
    });
    expect(await hashOf(file)).toBe(sha256);
  });

  it('keeps even its mtime if the content is the same', async () => {
    const { target, file, names, replace } = setting();
    const first = await replace('abc');
    utimesSync(file, 1000, 1000);
    const known = { sha256: first.sha256, file: (await stampOfTarget(target)) ?? first.file };
    for (const before of [undefined, first, known]) {
      const again = await replaceWhole(target, pieces('a', 'bc'), { before, versions: 3 });
      expect(again).toMatchObject({
        changed: false,
        sha256: first.sha256,
        bytes: 3,
        file: known.file,
      });
    }
    expect([statSync(file).mtimeMs, names()]).toEqual([1_000_000, ['b.csv']]);
  });

  it('keeps its mode, and neither it nor its temporary file is ever readable for more users', async () => {
    const { target, file, names, replace, mode } = setting();
    await replace('a');
    chmodSync(file, 0o660);
    const modes: number[] = [];
    async function* content(): AsyncGenerator<string> {
      for (const name of names()) modes.push(statSync(join(dirname(file), name)).mode & 0o777);
      yield 'b';
    }
    await replaceWhole(target, content());
    expect([modes.map((each) => each & 0o007), modes.length, mode()]).toEqual([[0, 0], 2, 0o660]);
  });

  it('is replaced even if it is read-only', async () => {
    const { target, file, all, replace, mode } = setting();
    await asUserWithoutRights(dirname(target.root), async () => {
      await replace('old');
      chmodSync(file, 0o444);
      expect(await replace('new', { versions: 1 })).toMatchObject({ changed: true });
    });
    expect([all(), mode()]).toEqual([['new', 'old'], 0o444]);
  });

  it('keeps the wanted number of versions, even after a kill between any two steps', async () => {
    const { file, content, names, all, replace } = setting();
    for (const text of ['0', '1', '2', '3']) await replace(text, { versions: 3 });
    expect(names()).toEqual(['b.csv', 'b.csv.1', 'b.csv.2', 'b.csv.3']);
    expect(all()).toEqual(['3', '2', '1', '0']);
    // Killed after .2 was moved on: .2 is free.
    writeFileSync(`${file}.3`, content('b.csv.2'));
    writeFileSync(`${file}.2`, content('b.csv.1'));
    // … and after the file was linked: it is its own version already.
    unlinkSync(`${file}.1`);
    linkSync(file, `${file}.1`);
    await replace('4', { versions: 3 });
    expect(all()).toEqual(['4', '3', '2', '1']);
    // Killed while versions moved on: nothing goes as long as there is a gap.
    unlinkSync(`${file}.2`);
    await replace('5', { versions: 3 });
    expect(all()).toEqual(['5', '4', '3', '1']);
    renameSync(`${file}.1`, `${file}.2`);
    await replace('6', { versions: 3 });
    expect(all()).toEqual(['6', '5', '4', '1']);
  });

  const fail = () => {
    throw new Error('changed');
  };
  it.each([
    ['the content ends in an error', () => pieces('new', new Error('torn')), {}],
    ['it would become too large', () => pieces('abc', 'd'), { maxBytes: 3 }],
    ['the last look finds it changed', () => pieces('new'), { lastLook: fail }],
    ['it is called off', () => pieces('new'), { signal: AbortSignal.abort(new Error('stop')) }],
  ])('is as it was if %s, and nothing else is left', async (_, fresh, options) => {
    const { target, names, all, replace } = setting();
    await replace('old');
    await expect(replaceWhole(target, fresh(), options)).rejects.toThrow(
      /torn|larger than 3 bytes|changed|stop/,
    );
    expect([names(), all()]).toEqual([['b.csv'], ['old']]);
  });

  it('is put back after somebody changed it, even to the same size', async () => {
    const { file, content, replace } = setting();
    const before = await replace('abc');
    writeFileSync(file, 'xyz');
    utimesSync(file, 1000, 1000);
    expect(await replace('abc', { before })).toMatchObject({ changed: true });
    expect(content()).toBe('abc');
  });

  it('reports whether there was a file to remove', async () => {
    const { target, replace } = setting();
    await replace('old');
    expect([await removeWhole(target), await removeWhole(target)]).toEqual([true, false]);
  });

  it('is freed from the temporary file of a killed process, and no other file is removed', async () => {
    const { file, names, replace } = setting();
    await replace('old');
    for (const left of [temporaryOf(file), temporaryOf(file, 'version')])
      writeFileSync(left, 'half');
    writeFileSync(join(dirname(file), '.peersync-0011.tmp'), 'of another');
    await replace('new', { versions: 1 });
    expect(names()).toEqual(['.peersync-0011.tmp', 'b.csv', 'b.csv.1']);
  });
});

describe('a file that cannot be written', () => {
  it('because something is in the way of it or of its directory, is reported as blocked', async () => {
    const { target, file, replace } = setting();
    mkdirSync(file, { recursive: true });
    const message = `${file} cannot be written: a directory is in the way.`;
    await expect(replace('a')).rejects.toMatchObject({
      code: 'MIRROR_BLOCKED',
      message,
      details: { what: file, detail: 'a directory' },
    });
    const below = { ...target, path: 'a/mine/c.csv' };
    writeFileSync(join(target.root, 'a/mine'), 'mine');
    await expect(replaceWhole(below, pieces('a'))).rejects.toMatchObject({
      code: 'MIRROR_BLOCKED',
    });
    expect(readFileSync(join(target.root, 'a/mine'), 'utf8')).toBe('mine');
  });

  it('because the disk is full, is reported as that, and nothing is left', async () => {
    const { target, names } = setting('a/b');
    // The shell limits how large files may become, as a quota does.
    const limited = `trap '' XFSZ; ulimit -f 512; exec "$@"`;
    const arguments_ = [
      '-c',
      limited,
      'sh',
      process.execPath,
      program,
      target.root,
      '4000000',
      '1',
    ];
    expect(execFileSync('bash', arguments_, { encoding: 'utf8' })).toBe('MIRROR_FULL\n');
    expect(names()).toEqual([]);
  });
});

describe('a link within the mirror root', () => {
  it('is not followed out of it', async () => {
    const { target, replace } = setting('a/b/c.csv');
    const outside = temporaryDirectory();
    mkdirSync(target.root);
    for (const to of [outside, '..', '../root/../..']) {
      symlinkSync(to, join(target.root, 'a'));
      await expect(replace('x')).rejects.toMatchObject({ code: 'MIRROR_OUTSIDE' });
      expect(readdirSync(outside)).toEqual([]);
      unlinkSync(join(target.root, 'a'));
    }
  });

  it('is followed within it, and the root may be a link, and a dangling link is in the way', async () => {
    const { target, content, replace } = setting();
    const elsewhere = temporaryDirectory();
    symlinkSync(elsewhere, target.root);
    symlinkSync('real', join(elsewhere, 'a'));
    await expect(replace('x')).rejects.toMatchObject({ code: 'MIRROR_BLOCKED' });
    mkdirSync(join(elsewhere, 'real'));
    expect(await replace('x')).toMatchObject({ path: join(elsewhere, 'real/b.csv') });
    expect(content()).toBe('x');
  });

  it('is replaced itself if it has the path of the file', async () => {
    const { file, names, replace } = setting();
    const mine = join(temporaryDirectory(), 'mine');
    writeFileSync(mine, 'x');
    mkdirSync(dirname(file), { recursive: true });
    symlinkSync(mine, file);
    expect(await replace('y', { versions: 1 })).toMatchObject({ changed: true });
    expect([lstatSync(file).isFile(), names(), readFileSync(mine, 'utf8')]).toEqual([
      true,
      ['b.csv'],
      'x',
    ]);
  });
});

it.each(['../x', 'a/../../x', '/x', 'a//x', './x', 'a/.', '', '..'])(
  'a path like %j is refused before anything is made',
  async (path) => {
    const root = join(temporaryDirectory(), 'root');
    await expect(replaceWhole({ root, path }, pieces('x'))).rejects.toMatchObject({
      code: 'MIRROR_OUTSIDE',
    });
    expect(existsSync(root)).toBe(false);
  },
);
