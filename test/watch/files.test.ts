import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { EncodingDetector } from '../../src/content/encoding.js';
import { fingerprintNow, type ReadOrder } from '../../src/content/file-reader.js';
import type { Programs } from '../../src/content/helpers/programs.js';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import { State } from '../../src/state/state.js';
import { accepted, confirmed } from '../../src/state/transitions.js';
import { command, OCR } from '../content/programs.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { folderOf, gate, Inbox, PEER, PROGRAMS, SETTLE_MS, sentOf, skipAsUplink } from './inbox.js';

const HOUR = 3_600_000;
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** Drops the rights of root, so that a mode of 000 takes effect. */
function dropRights(path: string): void {
  if (!isRoot) return;
  for (let above = dirname(path); above !== '/tmp' && above !== '/'; above = dirname(above))
    chmodSync(above, 0o755);
  process.seteuid?.(NOBODY);
}

/** Restores the rights of root, and lets everybody read a path. */
function regainRights(path: string): void {
  if (isRoot) process.seteuid?.(0);
  chmodSync(path, 0o755);
}

/**
 * Makes a path readable. If the tests run as root, the file does not change: the reader gets the
 * right back.
 */
function regainRightsUnseen(path: string): void {
  if (isRoot) process.seteuid?.(0);
  else chmodSync(path, 0o600);
}

afterEach(() => {
  vi.restoreAllMocks();
  if (isRoot) process.seteuid?.(0);
});

function shaOf(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

describe('a file', () => {
  it('that is there at the start becomes pending with its hash, collection and URL, and is only read', async () => {
    const inbox = new Inbox({ 'a.txt': 'one', 'deep/er/b.txt': 'two' });
    const stat = () => {
      const { mtimeMs, ctimeMs, mode, size } = statSync(inbox.at('a.txt'));
      return { mtimeMs, ctimeMs, mode, size };
    };
    const before = stat();
    await inbox.start();
    expect(inbox.get('a.txt')).toMatchObject({
      status: 'pending',
      collection: 'inbox',
      url: 'https://files.example.org/inbox/a.txt',
      version: { size: 3, sha256: shaOf('one'), encoding: 'utf-8' },
    });
    expect(inbox.sha('deep/er/b.txt')).toBe(shaOf('two'));
    expect(inbox.state.figures().unsaved).toBe(0);
    expect(stat()).toEqual(before);
    expect(readFileSync(inbox.at('a.txt'), 'utf8')).toBe('one');
  });

  it('is followed through rewrites of the same size, replacements and removals', async () => {
    const inbox = await new Inbox({
      a: '1111',
      b: '1111',
      c: 'c',
      'd/e/f': 'f',
      stays: 's',
    }).start();
    inbox.write('a', '2222');
    inbox.write('.b.new', '3333');
    inbox.rename('.b.new', 'b');
    inbox.remove('c', 'd');
    await until(
      () => inbox.sha('a') === shaOf('2222') && inbox.sha('b') === shaOf('3333'),
      'both are read',
    );
    await inbox.becomes({ c: 'gone', 'd/e/f': 'gone' });
    await inbox.idle();
    inbox.expect({ stays: 'pending', '.b.new': undefined });
  });

  it('is followed through a rename of its directory, which gets a watch at its new path', async () => {
    const inbox = await new Inbox(['old/sub/a.txt']).start();
    inbox.rename('old', 'new');
    await inbox.becomes({ 'old/sub/a.txt': 'gone', 'new/sub/a.txt': 'pending' });
    await inbox.idle();
    inbox.write('new/sub/b.txt');
    await inbox.becomes({ 'new/sub/b.txt': 'pending', 'old/sub/b.txt': undefined });
    expect(inbox.folder.directoriesWatched).toBe(3);
  });

  it('is followed from folder to folder', async () => {
    const inbox = new Inbox(['a.txt']);
    mkdirSync(inbox.at('../other'));
    const url = 'https://o.example/';
    const other = folderOf(inbox.at('../other'), { name: 'other', collection: 'other', url });
    await inbox.start({ folders: [folderOf(inbox.root), other] });
    inbox.rename('a.txt', '../other/a.txt');
    await inbox.becomes({ 'a.txt': 'gone' });
    await until(() => inbox.status('a.txt', 'other') === 'pending', 'it is new there');
    expect(inbox.get('a.txt', 'other')).toMatchObject({ url: `${url}a.txt`, collection: 'other' });
  });

  it('is found in each of 500 new nested directories with 5,000 files', async () => {
    const inbox = await new Inbox().start();
    let directory = '';
    for (let d = 0; d < 500; d += 1) {
      directory = d % 10 === 0 ? `d${d}` : `${directory}/d${d}`;
      for (let f = 0; f < 10; f += 1) inbox.write(`${directory}/f${f}.txt`, `${d} ${f}`);
      if (d % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => inbox.state.counts().pending === 5_000, 'all are pending');
    await inbox.idle();
    expect(inbox.folder.directoriesWatched).toBe(501);
  });

  it('is not read again after a restart if its stat is unchanged, and keeps its status at a touch', async () => {
    const inbox = await new Inbox(['a', 'b', 'c']).start();
    const changes: string[] = [];
    inbox.state.onChange((_after, _before, { path }) => void changes.push(path));
    await inbox.start();
    expect(changes).toEqual([]);
    expect(inbox.folder.lastScan).toMatchObject({ files: 3, directories: 1 });
    const { history } = inbox.get('a') ?? {};
    utimesSync(inbox.at('a'), 1_700_000_000, 1_700_000_000);
    await until(
      () => inbox.get('a')?.version.mtimeMs === 1_700_000_000_000,
      'the new time is known',
    );
    expect(inbox.get('a')).toMatchObject({ status: 'pending', history });
  });

  it('is gone when a directory takes its place, and a directory when a file does', async () => {
    const inbox = await new Inbox(['was-file', 'was-directory/a/b']).start();
    inbox.remove('was-file', 'was-directory');
    inbox.write('was-file/x');
    inbox.write('was-directory');
    await inbox.becomes({ 'was-file/x': 'pending', 'was-directory': 'pending' });
    await inbox.idle();
    inbox.expect({ 'was-file': 'gone', 'was-directory/a/b': 'gone' });
  });

  it('that comes back with its directory is as before at any depth, and so are the rules there', async () => {
    const inbox = await new Inbox({
      'a/b/c/x.txt': 'x',
      'a/b/.peersyncignore': '*.secret\n',
    }).start();
    await inbox.rescan();
    inbox.rename('a', '../away');
    await inbox.becomes({ 'a/b/c/x.txt': 'gone' });
    await inbox.idle();
    inbox.rename('../away', 'a');
    await inbox.becomes({ 'a/b/c/x.txt': 'pending' });
    await inbox.idle();
    inbox.write('a/b/x.secret');
    inbox.write('a/b/y.txt');
    await inbox.becomes({ 'a/b/y.txt': 'pending' });
    await inbox.idle();
    inbox.expect({ 'a/b/x.secret': undefined });
  });

  it('is committed together with others; a failed commit is logged once and repeated', async () => {
    const inbox = new Inbox(Array.from({ length: 100 }, (_, i) => `f${i}`));
    const state = await State.open(temporaryDirectory(), { clock: systemClock, log: inbox.log });
    let commits = 0;
    let isFull = true;
    let isSaved = false;
    const commit = state.commit.bind(state);
    state.commit = async () => {
      commits += 1;
      if (isFull) throw new Error('disk full');
      await commit();
      isSaved = true;
    };
    await inbox.begin({ state });
    await expect(inbox.idle()).rejects.toThrow('disk full');
    inbox.write('more');
    const before = commits;
    await until(() => commits > before, 'it is tried again');
    expect(inbox.logged('error: Changes of the folders cannot be recorded: disk full')).toBe(1);
    isFull = false;
    await until(() => isSaved, 'all is on disk');
    await inbox.idle();
    expect(state.figures().unsaved).toBe(0);
    inbox.expect({ more: 'pending' });
    expect(commits).toBeLessThan(50);
    inbox.write('last');
    void inbox.watcher.scanAll();
    await inbox.becomes({ last: 'pending' });
    await inbox.watcher.stop();
    expect(state.figures().unsaved).toBe(0);
  });
});

describe('a file that is being written', () => {
  it('is read once, when it is complete; a half-written ignore file lets nothing through', async () => {
    const inbox = new Inbox({ '.peersyncignore': 'secret*\n', 'secret.txt': 'x' });
    // However busy the machine is, the file is written again before it is at rest.
    await inbox.start({ folder: { settle: 3_000 } });
    const versions: unknown[] = [];
    inbox.state.onChange(
      (_after, _before, { path }) => void versions.push([path, inbox.sha(path)]),
    );
    for (let i = 0; i < 10; i += 1) {
      inbox.append('slow.log', `line ${i}\n`);
      inbox.write('.peersyncignore', '');
      await inbox.watcher.scanAll();
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    inbox.write('.peersyncignore', 'secret*\nother*\n');
    const whole = Array.from({ length: 10 }, (_, i) => `line ${i}\n`).join('');
    await inbox.becomes({ 'slow.log': 'pending' });
    await inbox.idle();
    expect(versions).toEqual([['slow.log', shaOf(whole)]]);
  });

  it('is read once more if it was written while the result of the first read was on its way', async () => {
    const answers = gate();
    let reads = 0;
    const inbox = new Inbox({ 'a.txt': 'one' });
    await inbox.begin({
      readGroup: async (orders) => {
        const found = orders.map(fingerprintNow);
        reads += 1;
        if (reads === 1) await answers.opened;
        return found;
      },
    });
    await until(() => reads === 1, 'it is read');
    inbox.write('a.txt', 'another');
    await inbox.long('a.txt');
    inbox.write('b.txt');
    await inbox.long('b.txt');
    answers.open();
    await until(() => inbox.get('a.txt')?.version.size === 7, 'the new content is known');
  });
});

describe('the history of a file says that it came to rest', () => {
  /** Returns when a file was unchanged for `settle`, at rest by its history, and found. */
  async function times(inbox: Inbox, path: string) {
    await inbox.becomes({ [path]: 'pending' });
    const { history = [], since = 0 } = inbox.get(path) ?? {};
    const settled = Math.round(statSync(inbox.at(path)).ctimeMs) + SETTLE_MS;
    return { settled, at: history.at(-1)?.at ?? 0, found: since };
  }

  it('when it was unchanged for settle, however late it was found', async () => {
    const inbox = await new Inbox().start({ hints: false });
    inbox.write('a.txt');
    await inbox.long('a.txt');
    await inbox.rescan();
    const { settled, at, found } = await times(inbox, 'a.txt');
    expect(Math.abs(at - settled)).toBeLessThanOrEqual(1);
    expect(found).toBeGreaterThan(at);
  });

  it('not before its watch began', async () => {
    const inbox = new Inbox(['a.txt']);
    await inbox.long('a.txt');
    const began = systemClock.now();
    await inbox.start();
    const { at, found } = await times(inbox, 'a.txt');
    expect(at).toBeGreaterThanOrEqual(began);
    expect(at).toBeLessThanOrEqual(found);
  });

  it('when it came with its directory; or by its own times, if the file itself was moved or written', async () => {
    const inbox = await new Inbox().start();
    for (const path of ['../made/deep/a.txt', '../moved.txt']) {
      inbox.write(path);
      await inbox.long(path);
    }
    const before = systemClock.now();
    inbox.rename('../made', 'made');
    inbox.rename('../moved.txt', 'moved.txt');
    const came = await times(inbox, 'made/deep/a.txt');
    expect(came.settled).toBeLessThan(before);
    expect(came.at).toBeGreaterThanOrEqual(before);
    expect(came.at).toBeLessThanOrEqual(came.found);
    inbox.write('made/deep/new.txt');
    for (const path of ['moved.txt', 'made/deep/new.txt']) {
      const { settled, at } = await times(inbox, path);
      expect(Math.abs(at - settled)).toBeLessThanOrEqual(1);
    }
  });

  it('when the rule that excluded it was removed', async () => {
    const inbox = await new Inbox({ '.peersyncignore': '*.txt\n', 'a.txt': 'a' }).start();
    await inbox.long('a.txt');
    await inbox.rescan();
    inbox.remove('.peersyncignore');
    const { settled, at } = await times(inbox, 'a.txt');
    expect(at).toBeGreaterThan(settled + SETTLE_MS);
  });

  it.each([HOUR, -HOUR])(
    'at the same time if somebody sets the clock by %d ms meanwhile',
    async (byMs) => {
      let aheadMs = 0;
      const clock: Clock = { ...systemClock, now: () => systemClock.now() - aheadMs };
      const inbox = await new Inbox().start({ clock });
      aheadMs = byMs;
      inbox.write('a.txt');
      const { settled, at } = await times(inbox, 'a.txt');
      // Time passes between reading the two clocks, but not an hour.
      expect(Math.abs(at + byMs - settled)).toBeLessThan(HOUR / 2);
    },
  );
});

describe('a file is skipped', () => {
  it('while it is empty', async () => {
    const inbox = await new Inbox({ 'a.txt': '' }).start();
    expect(inbox.get('a.txt')).toMatchObject({ status: 'skipped', failure: { code: 'EMPTY' } });
    inbox.append('a.txt', 'x');
    await inbox.becomes({ 'a.txt': 'pending' });
    inbox.truncate('a.txt');
    await inbox.becomes({ 'a.txt': 'skipped' });
  });

  it('while it is larger than the limit of its folder', async () => {
    const inbox = await new Inbox({ 'a.txt': 'x'.repeat(2_000) }).start({
      folder: { maxFileSize: 1_000 },
    });
    const message = 'The file has 2 KiB; the limit of its folder is 1000 B.';
    expect(inbox.get('a.txt')).toMatchObject({
      status: 'skipped',
      failure: { code: 'TOO_LARGE', message },
    });
    await inbox.start();
    inbox.expect({ 'a.txt': 'pending' });
    await inbox.start({ folder: { maxFileSize: 1_000 } });
    inbox.expect({ 'a.txt': 'skipped' });
  });

  it('while the peer does not take its encoding, and is not read again for that', async () => {
    const inbox = await new Inbox({
      picture: Buffer.from('GIF89a\0', 'latin1'),
    }).start();
    const entry = inbox.get('picture');
    const failure = { code: 'NOT_TEXT', message: 'It is a picture (GIF).' };
    expect(entry).toMatchObject({ status: 'skipped', failure });
    const reads: string[] = [];
    const readGroup = async (orders: readonly ReadOrder[]) => {
      reads.push(...orders.map(({ file }) => file));
      return orders.map(fingerprintNow);
    };
    await inbox.start({ readGroup });
    expect(inbox.get('picture')).toStrictEqual(entry);
    expect(reads).toEqual([]);
    await inbox.start({ peer: { ...PEER, refusalOf: () => undefined } });
    expect(inbox.get('picture')).toMatchObject({
      status: 'pending',
      version: { encoding: 'binary' },
    });
    await inbox.start({
      peer: {
        ...PEER,
        refusalOf: (encoding) => ({ code: 'NO', message: `Not ${encoding}.`, hint: '' }),
      },
    });
    expect(inbox.get('picture')).toMatchObject({
      status: 'skipped',
      failure: { message: 'Not binary.' },
    });
  });

  it.each([
    ['NO_OCR', 'scan.pdf', { commands: {}, ocr: OCR }],
    ['NO_HELPER', 'letter.doc', { commands: { '.doc': command('catdoc') } }],
  ])(
    'while there is no program for it, also after a restart, and no longer: %s',
    async (code, path, after) => {
      const inbox = await new Inbox({ [path]: '%PDF-1.7' }).start();
      skipAsUplink(inbox, path, code);
      const entry = inbox.get(path);
      await inbox.start();
      expect(inbox.get(path)).toStrictEqual(entry);
      await inbox.start({ programs: { ...PROGRAMS, current: after } });
      expect(inbox.get(path)).toMatchObject({
        status: 'pending',
        version: { encoding: 'document' },
      });
    },
  );

  it('by a new rule, which drops its record; a file with a new URL and collection is pending at once', async () => {
    const inbox = await new Inbox(['a.txt', 'd/e/b.txt', 'c.txt']).start();
    const sha256 = inbox.sha('c.txt');
    chmodSync(inbox.at('c.txt'), 0o644);
    const url = 'https://other.example/';
    await inbox.start({ folder: { ignore: ['a.txt', 'd/'], collection: 'other', url } });
    expect(inbox.paths()).toEqual(['c.txt']);
    expect(
      inbox.logged('inbox/a.txt is excluded from now on: ignore pattern "a.txt" of folder "inbox"'),
    ).toBe(1);
    const destination = { collection: 'other', url: `${url}c.txt` };
    expect(inbox.get('c.txt')).toMatchObject({
      status: 'pending',
      ...destination,
      version: { sha256 },
    });
  });
});

it.each(['accepted', 'confirmed'])(
  'a document that was read without a program is pushed again when that is there: %s',
  async (status) => {
    const path = 'a/message.eml';
    const inbox = await new Inbox({ [path]: 'From: a@b.c\nTo: d@e.f\n\nText.' }).start();
    const read = inbox.get(path);
    if (read?.status !== 'pending') throw new Error(`it is ${read?.status}`);
    const sent = accepted(read, { ...sentOf(read), lacks: ['ocr', '.doc'] }, 2);
    const shown = { kind: 'present', at: 3, shown: sent.url } as const;
    inbox.state.put(status === 'accepted' ? sent : confirmed(sent, shown, 3));
    const entry = inbox.get(path);
    const without = { commands: { '.dwg': command('dwg2text') } };
    await inbox.start({ programs: { ...PROGRAMS, current: without } });
    expect(inbox.get(path)).toStrictEqual(entry);
    let current: Programs = without;
    const programs = {
      ...PROGRAMS,
      get current() {
        return current;
      },
    };
    await inbox.start({ programs });
    current = { commands: { '.doc': command('catdoc') } };
    await inbox.rescan();
    expect(inbox.get(path)).toMatchObject({ status: 'pending', sent: { isUncertain: true } });
  },
);

describe('a file that cannot be read', () => {
  it('is quarantined, logged once, and taken as soon as it can be read', async () => {
    const inbox = new Inbox(['secret.txt']);
    const path = inbox.at('secret.txt');
    chmodSync(path, 0o000);
    dropRights(path);
    await inbox.start();
    const entry = inbox.get('secret.txt');
    const message = 'The file cannot be read (EACCES).';
    expect(entry).toMatchObject({
      status: 'quarantined',
      failure: { code: 'UNREADABLE', message },
    });
    await inbox.rescan();
    expect(inbox.get('secret.txt')).toStrictEqual(entry);
    expect(inbox.logged(`warn: quarantined inbox/secret.txt: ${message} Give`)).toBe(1);
    regainRights(path);
    await inbox.becomes({ 'secret.txt': 'pending' });
  });

  it('is read again on request, even if its stat did not change', async () => {
    const inbox = new Inbox(['secret.txt']);
    const path = inbox.at('secret.txt');
    chmodSync(path, isRoot ? 0o600 : 0o000);
    dropRights(path);
    await inbox.start({ hints: false });
    inbox.expect({ 'secret.txt': 'quarantined' });
    regainRightsUnseen(path);
    await inbox.look('secret.txt');
    inbox.expect({ 'secret.txt': 'pending' });
  });

  it('is quarantined for an error that is not of the system too, and read again by every scan', async () => {
    vi.spyOn(EncodingDetector.prototype, 'write').mockImplementationOnce(() => {
      throw new Error('no such luck');
    });
    const inbox = await new Inbox(['bad.txt']).start({ hints: false });
    const message = 'The file cannot be read (no such luck).';
    expect(inbox.get('bad.txt')).toMatchObject({ status: 'quarantined', failure: { message } });
    await inbox.rescan();
    inbox.expect({ 'bad.txt': 'pending' });
  });
});

describe('a directory', () => {
  it('that cannot be listed is a problem, and the records of its files stay', async () => {
    const inbox = await new Inbox(['d/a.txt']).start();
    const path = inbox.at('d');
    chmodSync(path, 0o000);
    dropRights(path);
    await inbox.start();
    expect(inbox.watcher.problems()).toMatchObject([
      { path, failure: { code: 'DIRECTORY_UNREADABLE' } },
    ]);
    inbox.expect({ 'd/a.txt': 'pending' });
    regainRights(path);
    inbox.write('d/b.txt');
    await inbox.becomes({ 'd/b.txt': 'pending' });
  });

  it('with an unreadable ignore file is entered once that can be read, even if its stat did not change', async () => {
    const inbox = new Inbox({ 'd/.peersyncignore': '*.log\n', 'd/a.log': 'a', 'd/b.txt': 'b' });
    const path = inbox.at('d/.peersyncignore');
    chmodSync(path, isRoot ? 0o600 : 0o000);
    dropRights(path);
    await inbox.start({ hints: false });
    await inbox.rescan();
    const message: unknown = expect.stringContaining('EACCES');
    expect(inbox.watcher.problems()).toMatchObject([
      { path, failure: { code: 'RULES_UNREADABLE', message } },
    ]);
    inbox.expect({ 'd/b.txt': undefined });
    regainRightsUnseen(path);
    await inbox.rescan();
    await inbox.rescan();
    expect(inbox.watcher.problems()).toEqual([]);
    inbox.expect({ 'd/a.log': undefined, 'd/b.txt': 'pending' });
  });
});

describe('a name', () => {
  it('with any characters is taken and followed', async () => {
    const odd = [
      'with space',
      'ümläut',
      '\u{1f600}',
      '#hash',
      '100%',
      'what?',
      'new\nline',
      '-dash',
    ];
    const names = [
      ...odd,
      'quo\'te"',
      'a\\b',
      'fine \ufffd.txt',
      'back\\slash/a.txt',
      'fine \ufffd/f',
    ];
    const inbox = await new Inbox(names).start();
    expect(inbox.paths()).toEqual(names.toSorted());
    const sizes = names.map((name) => inbox.get(name)?.version.size ?? 0);
    for (const name of names) inbox.append(name, ' more');
    const isLarger = (name: string, i: number) =>
      inbox.get(name)?.version.size === (sizes[i] ?? 0) + 5;
    await until(() => names.every(isLarger), 'all changed');
    expect(inbox.watcher.problems()).toEqual([]);
  });

  it.each([
    ['file', (path: Buffer) => writeFileSync(path, 'x')],
    ['directory', (path: Buffer) => mkdirSync(path)],
  ])(
    'of a %s that is not valid UTF-8 is a problem, logged once, until it is gone',
    async (_, make) => {
      const inbox = new Inbox();
      const path = Buffer.concat([Buffer.from(inbox.at('caf')), Buffer.of(0xe9)]);
      make(path);
      await inbox.start();
      await inbox.rescan();
      const problem = {
        folder: 'inbox',
        path: inbox.at('caf\ufffd'),
        failure: { code: 'NAME_NOT_UTF8' },
      };
      expect(inbox.watcher.problems()).toMatchObject([problem]);
      expect(inbox.logged('The name is not valid UTF-8')).toBe(1);
      rmSync(path, { recursive: true });
      await inbox.rescan();
      expect(inbox.watcher.problems()).toEqual([]);
      make(path);
      await until(() => inbox.watcher.problems().length === 1, 'an event finds it too');
      rmSync(path, { recursive: true });
    },
  );

  it('200 levels deep is taken, and a path longer than the system allows is a problem', async () => {
    const deep = `${Array.from({ length: 200 }, (_, i) => `d${i}`).join('/')}/f`;
    const inbox = new Inbox([deep]);
    const name = 'n'.repeat(250);
    // The shell stops when the path is too long, which is far enough.
    const dig = `while mkdir ${name} && cd ${name}; do :; done`;
    execFileSync('sh', ['-c', dig], { cwd: inbox.root, stdio: 'ignore' });
    await inbox.start();
    inbox.expect({ [deep]: 'pending' });
    expect(inbox.watcher.problems().map(({ failure }) => failure.code)).toEqual(['PATH_TOO_LONG']);
    execFileSync('rm', ['-rf', name], { cwd: inbox.root });
  });
});

describe('among files whose paths differ only in their Unicode form,', () => {
  const NFC = 'Größe/für alle.md'.normalize('NFC');
  const NFD = NFC.normalize('NFD');
  const MIXED = `${'Größe'.normalize('NFD')}/${'für alle.md'.normalize('NFC')}`;

  it('one owns the document, and the others are quarantined with a reason', async () => {
    const inbox = await new Inbox([NFC]).start();
    inbox.write(NFD);
    inbox.write(MIXED);
    await inbox.becomes({ [NFD]: 'quarantined', [MIXED]: 'quarantined', [NFC]: 'pending' });
    const message: unknown = expect.stringContaining(NFC);
    expect(inbox.get(NFD)).toMatchObject({ failure: { code: 'SAME_DOCUMENT', message } });
  });

  it('one is quarantined even if the names of both stand in a directory of a third form', async () => {
    const [above, below] = [NFC, NFD].map((path) => path.split('/')[0]);
    const [first, second] = [`${above}/${below}/${below}/a.md`, `${above}/${above}/${below}/a.md`];
    const inbox = await new Inbox([first]).start();
    inbox.write(second);
    await inbox.becomes({ [first]: 'pending', [second]: 'quarantined' });
  });

  it('one is quarantined if both came at the same time', async () => {
    const inbox = await new Inbox([NFD, NFC]).start({ hints: false });
    expect(inbox.state.counts()).toMatchObject({ pending: 1, quarantined: 1 });
  });

  it.each([
    ['is removed', (inbox: Inbox) => inbox.remove(NFD)],
    ['becomes empty', (inbox: Inbox) => inbox.truncate(NFD)],
    ['gets another name', (inbox: Inbox) => inbox.rename(NFD, `${NFD}.old`)],
  ])('a quarantined one is taken when the other %s', async (_, free) => {
    const inbox = await new Inbox([NFD]).start();
    inbox.write(NFC);
    await inbox.becomes({ [NFC]: 'quarantined' });
    free(inbox);
    await inbox.becomes({ [NFC]: 'pending' });
    expect(inbox.status(NFD)).not.toBe('pending');
  });

  it('a quarantined one is taken after a restart if the other was removed meanwhile', async () => {
    const inbox = await new Inbox([NFD]).start({ hints: false });
    inbox.write(NFC);
    await inbox.rescan();
    inbox.expect({ [NFC]: 'quarantined', [NFD]: 'pending' });
    await inbox.start({ hints: false });
    inbox.expect({ [NFC]: 'quarantined', [NFD]: 'pending' });
    inbox.remove(NFD);
    await inbox.start({ hints: false });
    inbox.expect({ [NFC]: 'pending', [NFD]: 'gone' });
  });
});

describe('a path that is no regular file', () => {
  it('is left alone if it is a pipe, or a link that is not followed', async () => {
    const inbox = new Inbox(['real/a.txt']);
    execFileSync('mkfifo', [inbox.at('pipe')]);
    inbox.link('real', 'link');
    inbox.link('real/a.txt', 'link.txt');
    inbox.link('loop', 'loop');
    await inbox.start();
    await inbox.look('link/a.txt');
    expect(inbox.paths()).toEqual(['real/a.txt']);
    expect(inbox.watcher.problems()).toEqual([]);
  });

  it('makes the file that it replaced gone', async () => {
    const inbox = await new Inbox(['a', 'd/b']).start();
    inbox.remove('a');
    execFileSync('mkfifo', [inbox.at('a')]);
    inbox.rename('d', '../elsewhere');
    inbox.link('../elsewhere', 'd');
    await inbox.becomes({ a: 'gone', 'd/b': 'gone' });
  });

  it('is followed with followSymlinks if it is a link that stays inside the folder and is no loop', async () => {
    const inbox = new Inbox(['real/a.txt', 'real/sub/b.txt', '../outside/secret.txt']);
    const outside = join(inbox.root, '../outside');
    for (const [target, path] of [
      ['real', 'link'],
      ['real/a.txt', 'a-link.txt'],
      ['..', 'real/up'],
      ['.', 'self'],
      ['link', 'real/sub/around'],
      ['nowhere', 'dangling'],
      [outside, 'out'],
      [`${outside}/secret.txt`, 'out.txt'],
    ] as const)
      inbox.link(target, path);
    await inbox.start({ folder: { followSymlinks: true } });
    const seen = ['a-link.txt', 'link/a.txt', 'link/sub/b.txt', 'real/a.txt', 'real/sub/b.txt'];
    expect(inbox.paths()).toEqual(seen);
    inbox.remove('link');
    await inbox.becomes({ 'link/sub/b.txt': 'gone', 'real/sub/b.txt': 'pending' });
  });
});
