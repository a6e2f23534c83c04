import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
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
import { until } from '../support/wait.js';

const program = await compiledProgram('test/mirror/replacing-program.ts');

async function* pieces(...content: (string | Uint8Array)[]): AsyncGenerator<string | Uint8Array> {
  yield* content;
}

function setting(path = 'a/b.csv') {
  const root = join(temporaryDirectory(), 'root');
  const file = join(root, path);
  return {
    target: { root, path },
    file,
    content: (name = file) => readFileSync(name, 'utf8'),
    /** Everything beside the file, also what is hidden. */
    names: () => readdirSync(dirname(file)).sort(),
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
  it('is made with its directories, readable for all, and what it holds is told', async () => {
    const { target, file, content, names } = setting();
    const result = await replaceWhole(target, pieces('ab', Buffer.from('c')));
    expect(content()).toBe('abc');
    expect(names()).toEqual(['b.csv']);
    expect(statSync(file).mode & 0o777).toBe(0o644 & ~process.umask());
    expect(result).toEqual({
      changed: true,
      path: file,
      bytes: 3,
      sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
      file: await stampOfTarget(target),
    });
    expect(await hashOf(file)).toBe(result.sha256);
  });

  it('stays as it is, mtime and all, when the content is the same', async () => {
    const { target, file, names } = setting();
    const first = await replaceWhole(target, pieces('abc'));
    utimesSync(file, 1000, 1000);
    const known = { sha256: first.sha256, file: (await stampOfTarget(target)) ?? first.file };
    for (const before of [undefined, first, known]) {
      const again = await replaceWhole(target, pieces('a', 'bc'), { before, versions: 3 });
      expect(again).toMatchObject({ changed: false, sha256: first.sha256, bytes: 3, file: known.file });
    }
    expect(statSync(file).mtimeMs).toBe(1_000_000);
    expect(names()).toEqual(['b.csv']);
  });

  it('is put back when somebody changed it, also to as many bytes', async () => {
    const { target, file, content } = setting();
    const before = await replaceWhole(target, pieces('abc'));
    writeFileSync(file, 'xyz');
    utimesSync(file, 1000, 1000);
    expect(await replaceWhole(target, pieces('abc'), { before })).toMatchObject({ changed: true });
    expect(content()).toBe('abc');
  });

  it('keeps its mode', async () => {
    const { target, file } = setting();
    await replaceWhole(target, pieces('a'));
    chmodSync(file, 0o664);
    await replaceWhole(target, pieces('b'));
    expect(statSync(file).mode & 0o777).toBe(0o664);
  });

  it('is at no instant readable for others than before, nor is what is about to replace it', async () => {
    const { target, file } = setting();
    await replaceWhole(target, pieces('a'));
    chmodSync(file, 0o600);
    const modes: number[] = [];
    async function* content(): AsyncGenerator<string> {
      for (const name of readdirSync(dirname(file)))
        modes.push(statSync(join(dirname(file), name)).mode & 0o777);
      yield 'b';
    }
    await replaceWhole(target, content());
    expect(modes).toEqual([0o600, 0o600]);
  });

  it('is replaced where it may only be read', async () => {
    const { target, file, content } = setting();
    await asUserWithoutRights(dirname(target.root), async () => {
      await replaceWhole(target, pieces('old'));
      chmodSync(file, 0o444);
      expect(await replaceWhole(target, pieces('new'), { versions: 1 })).toMatchObject({ changed: true });
    });
    expect([content(), content(`${file}.1`)]).toEqual(['new', 'old']);
    expect(statSync(file).mode & 0o777).toBe(0o444);
  });

  it('keeps as many versions as asked for, the latest as NAME.1', async () => {
    const { target, file, content, names } = setting();
    for (const text of ['1', '2', '3', '4']) await replaceWhole(target, pieces(text), { versions: 2 });
    expect(names()).toEqual(['b.csv', 'b.csv.1', 'b.csv.2']);
    expect([content(), content(`${file}.1`), content(`${file}.2`)]).toEqual(['4', '3', '2']);
  });

  it('keeps all versions after a process was killed between any two steps', async () => {
    const { target, file, content, names } = setting();
    for (const text of ['1', '2', '3']) await replaceWhole(target, pieces(text), { versions: 3 });
    // Killed after .2 was moved on: .2 is free.
    const moved = join(dirname(file), 'b.csv.3');
    writeFileSync(moved, content(`${file}.2`));
    writeFileSync(`${file}.2`, content(`${file}.1`));
    // … and after the file was linked: it is its own version already.
    unlinkSync(`${file}.1`);
    linkSync(file, `${file}.1`);
    await replaceWhole(target, pieces('4'), { versions: 3 });
    expect(names()).toEqual(['b.csv', 'b.csv.1', 'b.csv.2', 'b.csv.3']);
    expect(names().map((name) => content(join(dirname(file), name)))).toEqual(['4', '3', '2', '1']);
    // Killed while versions moved on: nothing goes as long as there is a gap.
    unlinkSync(`${file}.2`);
    await replaceWhole(target, pieces('5'), { versions: 3 });
    expect(names().map((name) => content(join(dirname(file), name)))).toEqual(['5', '4', '3', '1']);
  });

  it.each([
    ['the content ends in an error', { content: failing() }],
    ['it would become too large', { content: pieces('abc', 'd'), maxBytes: 3 }],
    ['the last look finds it changed', { content: pieces('new'), lastLook: () => fail() }],
    ['it is called off', { content: pieces('new'), signal: AbortSignal.abort(new Error('stop')) }],
  ])('is as it was when %s, and nothing else is left', async (_, { content: fresh, ...options }) => {
    const { target, content, names } = setting();
    await replaceWhole(target, pieces('old'));
    await expect(replaceWhole(target, fresh, options)).rejects.toThrow(
      /torn|larger than 3 bytes|changed|stop/,
    );
    expect(content()).toBe('old');
    expect(names()).toEqual(['b.csv']);
  });

  it('is removed after a version of it was kept', async () => {
    const { target, file, content, names } = setting();
    await replaceWhole(target, pieces('old'));
    expect(await removeWhole(target, { versions: 1 })).toBe(true);
    expect(names()).toEqual(['b.csv.1']);
    expect(content(`${file}.1`)).toBe('old');
    expect(await removeWhole(target)).toBe(false);
  });
});

describe('a file that cannot be written', () => {
  it('because a directory stands there is told as that', async () => {
    const { target, file } = setting();
    mkdirSync(file, { recursive: true });
    await expect(replaceWhole(target, pieces('a'))).rejects.toMatchObject({
      code: 'MIRROR_BLOCKED',
      message: `${file} cannot be written: a directory stands there.`,
    });
    expect(readdirSync(dirname(file))).toEqual(['b.csv']);
  });

  it('because a file stands where its directory should is told as that', async () => {
    const { target } = setting('a/b/c.csv');
    mkdirSync(target.root, { recursive: true });
    writeFileSync(join(target.root, 'a'), 'mine');
    await expect(replaceWhole(target, pieces('a'))).rejects.toMatchObject({ code: 'MIRROR_BLOCKED' });
    expect(readFileSync(join(target.root, 'a'), 'utf8')).toBe('mine');
  });

  it('because the disk takes no more is told as that, and nothing is left', async () => {
    const { target, file } = setting('a/b');
    // The shell limits how large files may become, as a quota does.
    const limited = `trap '' XFSZ; ulimit -f 512; exec "$@"`;
    const arguments_ = ['-c', limited, 'sh', process.execPath, program, target.root, '4000000', '1'];
    expect(execFileSync('bash', arguments_, { encoding: 'utf8' })).toBe('MIRROR_FULL\n');
    expect(readdirSync(dirname(file))).toEqual([]);
  });
});

describe('a process that is killed while it replaces a file', () => {
  it('leaves the old content or the new at every instant, and versions that are whole', async () => {
    const { target, file, names } = setting('a/b');
    const bytes = 400_000;
    await replaceWhole(target, pieces('a'.repeat(bytes)));
    let looks = 0;
    const look = (path = file) => {
      const content = readFileSync(path, 'latin1');
      if (content !== (content[0] ?? '').repeat(bytes)) throw new Error(`a part, of ${content.length} bytes`);
      looks += 1;
    };
    for (let killed = 0; killed < 12; killed += 1) {
      const child = spawn(process.execPath, [program, target.root, `${bytes}`, '100000'], { stdio: 'pipe' });
      const ended = once(child, 'exit');
      let said = 0;
      child.stdout.on('data', () => {
        said += 1;
      });
      await until(() => {
        look();
        return said > killed;
      }, 'the process works');
      child.kill('SIGKILL');
      await ended;
      look();
      for (const version of names().filter((name) => /^b\.[12]$/.test(name)))
        look(join(dirname(file), version));
    }
    expect(looks).toBeGreaterThan(30);
    // It may have been killed while no file was the latest version; the next one goes on from there.
    await replaceWhole(target, pieces('z'.repeat(bytes)), { versions: 2 });
    expect(names()).toEqual(['b', 'b.1', 'b.2']);
    for (const name of names()) look(join(dirname(file), name));
  });

  it('between two versions leaves a gap that the next one fills', async () => {
    const { target, file, names } = setting('a/b');
    for (const content of ['1', '2', '3']) await replaceWhole(target, pieces(content), { versions: 2 });
    renameSync(`${file}.1`, `${file}.2`);
    await replaceWhole(target, pieces('4'), { versions: 2 });
    expect(names().map((name) => readFileSync(join(dirname(file), name), 'utf8'))).toEqual(['4', '3', '2']);
  });
});

describe('a link within the mirror root', () => {
  it('is not followed out of it', async () => {
    const { target } = setting('a/b/c.csv');
    const outside = temporaryDirectory();
    mkdirSync(target.root);
    for (const [link, to] of [
      ['a', outside],
      ['a', '..'],
      ['a', '../root/../..'],
    ] as const) {
      symlinkSync(to, join(target.root, link));
      await expect(replaceWhole(target, pieces('x'))).rejects.toMatchObject({ code: 'MIRROR_OUTSIDE' });
      expect(readdirSync(outside)).toEqual([]);
      unlinkSync(join(target.root, link));
    }
  });

  it('is followed within it, and the root itself may be one', async () => {
    const { target, file } = setting('a/b.csv');
    const elsewhere = temporaryDirectory();
    symlinkSync(elsewhere, target.root);
    mkdirSync(join(elsewhere, 'real'));
    symlinkSync('real', join(elsewhere, 'a'));
    expect(await replaceWhole(target, pieces('x'))).toMatchObject({ path: join(elsewhere, 'real/b.csv') });
    expect(readFileSync(file, 'utf8')).toBe('x');
  });

  it('that stands where the file should be is replaced itself', async () => {
    const { target, file, names } = setting();
    const mine = join(temporaryDirectory(), 'mine');
    writeFileSync(mine, 'x');
    mkdirSync(dirname(file), { recursive: true });
    symlinkSync(mine, file);
    expect(await replaceWhole(target, pieces('y'), { versions: 1 })).toMatchObject({ changed: true });
    expect(lstatSync(file).isFile()).toBe(true);
    expect(names()).toEqual(['b.csv']);
    expect(readFileSync(mine, 'utf8')).toBe('x');
  });

  it('that leads nowhere is in the way', async () => {
    const { target } = setting();
    mkdirSync(target.root);
    symlinkSync('nowhere', join(target.root, 'a'));
    await expect(replaceWhole(target, pieces('x'))).rejects.toMatchObject({ code: 'MIRROR_BLOCKED' });
  });
});

it.each(['../x', 'a/../../x', '/x', 'a//x', './x', 'a/.', '', '..'])(
  'a path like %j is refused before anything is made',
  async (path) => {
    const root = join(temporaryDirectory(), 'root');
    await expect(replaceWhole({ root, path }, pieces('x'))).rejects.toMatchObject({ code: 'MIRROR_OUTSIDE' });
    expect(existsSync(root)).toBe(false);
  },
);

it('what a killed process left goes with the next try, and nothing else', async () => {
  const { target } = setting();
  await replaceWhole(target, pieces('old'));
  const directory = join(target.root, dirname(target.path));
  const left = [
    temporaryOf(join(target.root, target.path)),
    temporaryOf(join(target.root, target.path), 'version'),
  ];
  for (const path of left) writeFileSync(path, 'half');
  writeFileSync(join(directory, '.peersync-0011.tmp'), 'of another');
  await replaceWhole(target, pieces('new'), { versions: 1 });
  expect(readdirSync(directory).sort()).toEqual(
    ['.peersync-0011.tmp', basename(target.path), `${basename(target.path)}.1`].sort(),
  );
});

async function* failing(): AsyncGenerator<string> {
  yield 'new';
  throw new Error('torn');
}

function fail(): never {
  throw new Error('changed');
}
