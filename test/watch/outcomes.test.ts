import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { EncodingDetector } from '../../src/content/encoding.js';
import type { Encoding } from '../../src/lib/file.js';
import { until } from '../support/wait.js';
import { folderOf, WatchWorld } from './world.js';

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** From here on a mode of 000 means something, also where the tests run as root. */
function dropRights(path: string): void {
  if (!isRoot) return;
  for (let above = dirname(path); above !== '/tmp' && above !== '/'; above = dirname(above))
    chmodSync(above, 0o755);
  process.seteuid?.(NOBODY);
}

afterEach(() => {
  vi.restoreAllMocks();
  if (isRoot) process.seteuid?.(0);
});

describe('a file', () => {
  it('that is empty is passed over until something is in it', async () => {
    const world = new WatchWorld();
    world.write('empty.txt', '');
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect(inbox.get('empty.txt')).toMatchObject({ status: 'passed', trouble: { code: 'EMPTY' } });
    world.append('empty.txt', 'x');
    await until(() => inbox.status('empty.txt') === 'pending', 'it is pending');
    truncateSync(join(world.root, 'empty.txt'));
    await until(() => inbox.status('empty.txt') === 'passed', 'it is passed over again');
  });

  it('over the limit is passed over, and taken when the limit is raised', async () => {
    const world = new WatchWorld();
    world.write('large.txt', 'x'.repeat(2_000));
    const small = await world.start({ folders: [folderOf(world.root, { maxFileSize: 1_000 })] });
    await small.watcher.idle();
    expect(small.get('large.txt')).toMatchObject({
      status: 'passed',
      trouble: { code: 'TOO_LARGE', message: 'The file has 2 KiB; the limit of its folder is 1000 B.' },
    });
    await small.watcher.stop();
    const large = await world.start({ state: small.state });
    await large.watcher.idle();
    expect(large.status('large.txt')).toBe('pending');
    await large.watcher.stop();
    const again = await world.start({
      state: small.state,
      folders: [folderOf(world.root, { maxFileSize: 1_000 })],
    });
    await again.watcher.idle();
    expect(again.status('large.txt')).toBe('passed');
  });

  it('that the peer cannot take is passed over without being read again, until the peer can', async () => {
    const world = new WatchWorld();
    world.write('picture', Buffer.of(0x89, 0x50, 0x00));
    const first = await world.start();
    await first.watcher.idle();
    expect(first.get('picture')).toMatchObject({ status: 'passed', trouble: { code: 'NOT_TEXT' } });
    const entry = first.get('picture');
    await first.watcher.rescan();
    await first.watcher.idle();
    expect(first.get('picture')).toStrictEqual(entry);
    await first.watcher.stop();
    const second = await world.start({ state: first.state, accepts: () => undefined });
    await second.watcher.idle();
    expect(second.get('picture')).toMatchObject({ status: 'pending', version: { encoding: 'binary' } });
    await second.watcher.stop();
    const refusesAll = (encoding: Encoding) => ({ code: 'NO', message: `Not ${encoding}.`, hint: '' });
    const third = await world.start({ state: first.state, accepts: refusesAll });
    await third.watcher.idle();
    expect(third.get('picture')).toMatchObject({ status: 'passed', trouble: { message: 'Not binary.' } });
  });

  it('that cannot be read is quarantined, and taken as soon as it can', async () => {
    const world = new WatchWorld();
    const path = world.write('secret.txt');
    chmodSync(path, 0o000);
    dropRights(path);
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect(inbox.get('secret.txt')).toMatchObject({
      status: 'quarantined',
      trouble: { code: 'UNREADABLE', message: 'The file cannot be read (EACCES).' },
    });
    const entry = inbox.get('secret.txt');
    await inbox.watcher.rescan();
    await inbox.watcher.idle();
    expect(inbox.get('secret.txt')).toStrictEqual(entry);
    expect(world.said('quarantined inbox/secret.txt: The file cannot be read (EACCES). Give', 'warn')).toBe(
      1,
    );
    if (isRoot) process.seteuid?.(0);
    chmodSync(path, 0o644);
    await until(() => inbox.status('secret.txt') === 'pending', 'it is pending');
  });

  it("whose reading fails for a reason that is not the system's is quarantined with it", async () => {
    vi.spyOn(EncodingDetector.prototype, 'write').mockImplementationOnce(() => {
      throw new Error('no such luck');
    });
    const world = new WatchWorld();
    world.write('bad.txt');
    const inbox = await world.start({ hints: false });
    await inbox.watcher.idle();
    expect(inbox.get('bad.txt')).toMatchObject({
      status: 'quarantined',
      trouble: { code: 'UNREADABLE', message: 'The file cannot be read (no such luck).' },
    });
    await inbox.watcher.rescan();
    await inbox.watcher.idle();
    expect(inbox.status('bad.txt')).toBe('pending');
  });

  it('that cannot be read is tried again by every scan, and when it is asked for', async () => {
    const world = new WatchWorld();
    const path = world.write('secret.txt');
    chmodSync(path, 0o600);
    if (!isRoot) chmodSync(path, 0o000);
    dropRights(path);
    const inbox = await world.start({ hints: false });
    await inbox.watcher.idle();
    expect(inbox.status('secret.txt')).toBe('quarantined');
    if (isRoot) process.seteuid?.(0);
    else chmodSync(path, 0o600);
    // As root nothing of the file changes here: it is only the reader who may read it now.
    inbox.watcher.lookSoon({ folder: 'inbox', path: 'secret.txt' });
    await inbox.watcher.idle();
    expect(inbox.status('secret.txt')).toBe('pending');
  });

  it('that was touched keeps its status and gets its new times', async () => {
    const world = new WatchWorld();
    const path = world.write('a.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    const before = inbox.get('a.txt');
    utimesSync(path, new Date(1_700_000_000_000), new Date(1_700_000_000_000));
    await until(() => inbox.get('a.txt')?.version.mtimeMs === 1_700_000_000_000, 'the new time is known');
    expect(inbox.get('a.txt')).toMatchObject({ status: 'pending', history: before?.history });
  });

  it('gets another URL and collection with the configuration', async () => {
    const world = new WatchWorld();
    world.write('a.txt');
    const first = await world.start();
    await first.watcher.idle();
    await first.watcher.stop();
    chmodSync(join(world.root, 'a.txt'), 0o644);
    const second = await world.start({
      state: first.state,
      folders: [folderOf(world.root, { collection: 'other', url: 'https://other.example/' })],
    });
    await second.watcher.idle();
    expect(second.get('a.txt')).toMatchObject({
      status: 'pending',
      collection: 'other',
      url: 'https://other.example/a.txt',
      version: { sha256: first.sha('a.txt') },
    });
  });

  it('that a rule keeps out from now on leaves the index', async () => {
    const world = new WatchWorld();
    world.write('a.txt');
    world.write('d/e/b.txt');
    world.write('c.txt');
    const first = await world.start();
    await first.watcher.idle();
    await first.watcher.stop();
    const second = await world.start({
      state: first.state,
      folders: [folderOf(world.root, { ignore: ['a.txt', 'd/'] })],
    });
    await second.watcher.idle();
    expect([...second.state.entries.all()].map(({ path }) => path)).toEqual(['c.txt']);
    expect(
      world.said('a.txt is passed over from now on: ignore pattern "a.txt" of folder inbox', 'debug'),
    ).toBe(1);
  });

  it('that a directory took the place of is gone, and the other way round', async () => {
    const world = new WatchWorld();
    world.write('was-file');
    world.write('was-directory/a/b');
    const inbox = await world.start();
    await inbox.watcher.idle();
    rmSync(join(world.root, 'was-file'));
    world.write('was-file/x');
    rmSync(join(world.root, 'was-directory'), { recursive: true });
    world.write('was-directory');
    await until(
      () => inbox.status('was-file/x') === 'pending' && inbox.status('was-directory') === 'pending',
      'both are seen',
    );
    await inbox.watcher.idle();
    expect(inbox.status('was-file')).toBe('gone');
    expect(inbox.status('was-directory/a/b')).toBe('gone');
  });

  it('is only ever read', async () => {
    const world = new WatchWorld();
    const path = world.write('a.txt', 'content');
    const before = statSync(path);
    const inbox = await world.start();
    await inbox.watcher.idle();
    const { mtimeMs, ctimeMs, mode, size } = statSync(path);
    expect({ mtimeMs, ctimeMs, mode, size }).toEqual({
      mtimeMs: before.mtimeMs,
      ctimeMs: before.ctimeMs,
      mode: before.mode,
      size: before.size,
    });
    expect(readFileSync(path, 'utf8')).toBe('content');
  });
});

describe('a name', () => {
  it('of any kind is taken', async () => {
    const world = new WatchWorld();
    const names = [
      'with space',
      'ümläut',
      '\u{1f600}',
      '#hash',
      '100%',
      'what?',
      'new\nline',
      '-dash',
      'quo\'te"',
      'a\\b',
    ];
    for (const name of names) world.write(name);
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect(names.map((name) => inbox.status(name))).toEqual(names.map(() => 'pending'));
    for (const name of names) world.append(name, ' more');
    await until(
      () => names.every((name) => (inbox.get(name)?.version.size ?? 0) > Buffer.byteLength(name) + 11),
      'all changed',
    );
  });

  it('that is not valid UTF-8 is a problem that is named once, and over when it is gone', async () => {
    const world = new WatchWorld();
    const path = Buffer.concat([Buffer.from(`${world.root}/caf`), Buffer.of(0xe9), Buffer.from('.txt')]);
    writeFileSync(path, 'x');
    world.write('fine \ufffd.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    await inbox.watcher.rescan();
    expect(inbox.watcher.problems()).toMatchObject([
      { folder: 'inbox', path: join(world.root, 'caf\ufffd.txt'), trouble: { code: 'NAME_NOT_UTF8' } },
    ]);
    expect(inbox.status('fine \ufffd.txt')).toBe('pending');
    expect(world.said('The name is not valid UTF-8', 'warn')).toBe(1);
    rmSync(path);
    await inbox.watcher.rescan();
    expect(inbox.watcher.problems()).toEqual([]);
    writeFileSync(path, 'x');
    await until(() => inbox.watcher.problems().length === 1, 'a hint finds it too');
    rmSync(path);
  });

  it('that is a directory and not valid UTF-8 is a problem, too', async () => {
    const world = new WatchWorld();
    const path = Buffer.concat([Buffer.from(`${world.root}/caf`), Buffer.of(0xe9)]);
    mkdirSync(path);
    world.write('fine \ufffd/f');
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect(inbox.watcher.problems()).toMatchObject([
      { path: join(world.root, 'caf\ufffd'), trouble: { code: 'NAME_NOT_UTF8' } },
    ]);
    expect(inbox.status('fine \ufffd/f')).toBe('pending');
    rmdirSync(path);
  });

  it('200 levels deep is taken, and a path beyond what the system allows is a problem', async () => {
    const world = new WatchWorld();
    const deep = `${Array.from({ length: 200 }, (_, i) => `d${i}`).join('/')}/f`;
    world.write(deep);
    const name = 'n'.repeat(250);
    // The shell gives up where the path gets too long, which is far enough.
    const dig = `while mkdir ${name} && cd ${name}; do :; done`;
    execFileSync('sh', ['-c', dig], { cwd: world.root, stdio: 'ignore' });
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect(inbox.status(deep)).toBe('pending');
    expect(inbox.watcher.problems().map(({ trouble }) => trouble.code)).toEqual(['PATH_TOO_LONG']);
    execFileSync('rm', ['-rf', name], { cwd: world.root });
  });

  it('with a backslash in a directory is followed as any other', async () => {
    const world = new WatchWorld();
    world.write('back\\slash/a.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect(inbox.watcher.problems()).toEqual([]);
    for (const name of ['b.txt', 'c.txt']) {
      world.write(`back\\slash/${name}`);
      await until(() => inbox.status(`back\\slash/${name}`) === 'pending', `${name} is found`);
    }
  });
});

describe('what is no regular file', () => {
  it('is left alone: pipes, sockets, and links where they are not followed', async () => {
    const world = new WatchWorld();
    execFileSync('mkfifo', [join(world.root, 'pipe')]);
    world.write('real/a.txt');
    symlinkSync('real', join(world.root, 'link'));
    symlinkSync('real/a.txt', join(world.root, 'link.txt'));
    symlinkSync('loop', join(world.root, 'loop'));
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect([...inbox.state.entries.all()].map(({ path }) => path)).toEqual(['real/a.txt']);
    expect(inbox.watcher.problems()).toEqual([]);
    inbox.watcher.lookSoon({ folder: 'inbox', path: 'link/a.txt' });
    await inbox.watcher.idle();
    expect(inbox.get('link/a.txt')).toBeUndefined();
  });

  it('ends an item whose file it replaced', async () => {
    const world = new WatchWorld();
    world.write('a');
    world.write('d/b');
    const inbox = await world.start();
    await inbox.watcher.idle();
    rmSync(join(world.root, 'a'));
    execFileSync('mkfifo', [join(world.root, 'a')]);
    renameSync(join(world.root, 'd'), `${world.root}.elsewhere`);
    symlinkSync(`${world.root}.elsewhere`, join(world.root, 'd'));
    await until(() => inbox.status('a') === 'gone' && inbox.status('d/b') === 'gone', 'both are gone');
  });

  it('is followed if asked, where a link stays inside the folder and is no loop', async () => {
    const world = new WatchWorld();
    world.write('real/a.txt', 'a');
    world.write('real/sub/b.txt', 'b');
    mkdirSync(`${world.root}.outside`);
    writeFileSync(`${world.root}.outside/secret.txt`, 'x');
    const link = (target: string, path: string) => symlinkSync(target, join(world.root, path));
    link('real', 'link');
    link('real/a.txt', 'a-link.txt');
    link('..', 'real/up');
    link('.', 'self');
    link('link', 'real/sub/around');
    link('nowhere', 'dangling');
    link(`${world.root}.outside`, 'out');
    link(`${world.root}.outside/secret.txt`, 'out.txt');
    const inbox = await world.start({ folders: [folderOf(world.root, { followSymlinks: true })] });
    await inbox.watcher.idle();
    expect([...inbox.state.entries.all()].map(({ path }) => path).sort()).toEqual([
      'a-link.txt',
      'link/a.txt',
      'link/sub/b.txt',
      'real/a.txt',
      'real/sub/b.txt',
    ]);
    rmSync(join(world.root, 'link'));
    await until(() => inbox.status('link/sub/b.txt') === 'gone', 'what was seen through the link is gone');
    expect(inbox.status('real/sub/b.txt')).toBe('pending');
  });
});

describe('a directory', () => {
  it('that cannot be listed is a problem, and what is in it stays as it was', async () => {
    const world = new WatchWorld();
    const path = world.write('d/a.txt');
    const first = await world.start();
    await first.watcher.idle();
    await first.watcher.stop();
    chmodSync(dirname(path), 0o000);
    dropRights(dirname(path));
    const second = await world.start({ state: first.state });
    await second.watcher.idle();
    expect(second.watcher.problems()).toMatchObject([
      { path: dirname(path), trouble: { code: 'DIRECTORY_UNREADABLE' } },
    ]);
    expect(second.status('d/a.txt')).toBe('pending');
    if (isRoot) process.seteuid?.(0);
    chmodSync(dirname(path), 0o755);
    world.write('d/b.txt');
    await until(() => second.status('d/b.txt') === 'pending', 'it is seen as soon as it can be listed');
  });
});

it('rules that cannot be read for a while are read by a scan when they can, though their file did not change', async () => {
  const world = new WatchWorld();
  const rules = world.write('d/.peersyncignore', '*.log\n');
  world.write('d/a.log');
  world.write('d/b.txt');
  chmodSync(rules, isRoot ? 0o600 : 0o000);
  dropRights(rules);
  const inbox = await world.start({ hints: false });
  await inbox.watcher.idle();
  await inbox.watcher.rescan();
  expect(inbox.watcher.problems()).toMatchObject([
    { path: rules, trouble: { code: 'RULES_UNREADABLE', message: expect.stringContaining('EACCES') } },
  ]);
  expect(inbox.status('d/b.txt')).toBeUndefined();
  if (isRoot) process.seteuid?.(0);
  else chmodSync(rules, 0o600);
  await inbox.watcher.rescan();
  await inbox.watcher.idle();
  await inbox.watcher.rescan();
  expect(inbox.watcher.problems()).toEqual([]);
  expect([inbox.status('d/a.log'), inbox.status('d/b.txt')]).toEqual([undefined, 'pending']);
});
