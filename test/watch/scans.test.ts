import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { FSWatcher } from 'chokidar';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { FolderConfig } from '../../src/config/config.js';
import { HashQueue } from '../../src/content/hash-queue.js';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { systemClock } from '../../src/lib/clock.js';
import type { Encoding } from '../../src/lib/file.js';
import { silentLogger } from '../../src/lib/logger.js';
import { WorkThread } from '../../src/lib/work-thread.js';
import { State } from '../../src/state/state.js';
import { accepted, read } from '../../src/state/transitions.js';
import { Committer } from '../../src/watch/committer.js';
import { WATCH_POLICY } from '../../src/watch/deps.js';
import { type FolderDeps, folderDeps } from '../../src/watch/folder-deps.js';
import { FolderGuard } from '../../src/watch/folder-guard.js';
import { DirectoryEvents, type EventListener, type FsEvents } from '../../src/watch/fs-events.js';
import { entriesOf, type List, type Listing, listIn, listsName } from '../../src/watch/lister.js';
import { Reconciler } from '../../src/watch/reconciler.js';
import { Renames } from '../../src/watch/renames.js';
import { command, OCR } from '../content/programs.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { busyIn, goesOn } from '../support/health.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import {
  folderOf,
  gate,
  Inbox,
  listHere,
  PEER,
  PROGRAMS,
  SETTLE_MS,
  skipAsUplink,
} from './inbox.js';

const HOUR = 3_600_000;

/** Lists, counts the entries that reach the event loop, and can be paused after a listing. */
class PlayedList {
  entries = 0;
  lists = 0;
  paused: Promise<void> | undefined;
  readonly list: List = async (order) => {
    const listing = await listHere(order);
    if (!('code' in listing)) this.entries += [...entriesOf(listing)].length;
    this.lists += 1;
    await this.paused;
    return listing;
  };

  /** Scans, and does some work after the folder was listed. */
  async during(inbox: Inbox, work: () => Promise<void>): Promise<void> {
    const { open, opened } = gate();
    this.paused = opened;
    const before = this.lists;
    const scan = inbox.rescan();
    await until(() => this.lists > before, 'the folder is listed');
    await work();
    this.paused = undefined;
    open();
    await scan;
  }
}

const TREE = [0, 1, 2, 3, 4].flatMap((d) => [0, 1, 2, 3].map((f) => `a/d${d}/f${f}`));

/** Scans a folder without fs events until nothing is left to compare. */
async function scanned(inbox: Inbox, options: Parameters<Inbox['start']>[0] = {}) {
  const played = new PlayedList();
  await inbox.start({ hints: false, list: played.list, ...options });
  // Files that were not at rest at first are compared once more.
  await inbox.rescan();
  /** Scans, and resolves to the number of entries that had to be compared. */
  const compared = async () => {
    played.entries = 0;
    await inbox.rescan();
    return played.entries;
  };
  return { inbox, compared, played };
}

describe('a scan', () => {
  it('compares only directories in which something changed, and counts all files; after a start too', async () => {
    const { inbox, compared, played } = await scanned(new Inbox(TREE));
    played.entries = 0;
    expect(await inbox.rescan()).toMatchObject({ files: 20, directories: 7 });
    expect(played.entries).toBe(0);
    inbox.append('a/d3/f1', 'more');
    inbox.remove('a/d4');
    inbox.write('a/d3/new');
    await inbox.long('a/d3/new');
    // By now d3 has five files, and a has four directories.
    expect(await compared()).toBe(5 + 4);
    inbox.expect({ 'a/d3/new': 'pending', 'a/d4/f0': 'gone' });
    expect(await compared()).toBe(0);
    const again = new PlayedList();
    await inbox.start({ hints: false, list: again.list });
    expect(again.entries).toBe(17 + 5);
    await inbox.rescan();
    expect(again.entries).toBe(17 + 5);
  });

  it.each([
    ['times', ({ root }: Inbox) => utimesSync(join(root, 'a/d0/f0'), 1, 1)],
    ['content', (inbox: Inbox) => inbox.append('a/d0/f0', 'more')],
    ['mode', ({ root }: Inbox) => chmodSync(join(root, 'a/d0/f0'), 0o600)],
    ['name', (inbox: Inbox) => inbox.rename('a/d0/f0', 'a/d0/other')],
  ])(
    'compares a directory if the %s of a file changed, and not if something below did',
    async (_, change) => {
      const { inbox, compared } = await scanned(new Inbox([...TREE, 'a/d0/e/f']));
      inbox.append('a/d0/e/f', 'more');
      await inbox.long('a/d0/e/f');
      // The one file of e is compared once.
      expect([await compared(), await compared()]).toEqual([1, 0]);
      change(inbox);
      expect(await compared()).toBe(5);
    },
  );

  it('gives the same result in threads, which share the work', async () => {
    const program = await compiledProgram('src/file-thread.ts');
    const thread = () => new WorkThread(pathToFileURL(program));
    const threads = [thread(), thread()] as const;
    afterwards('test', () => Promise.all(threads.map((each) => each.close())).then(() => {}));
    const most = [0, 0];
    const list = listIn(threads);
    const { inbox } = await scanned(new Inbox(TREE), {
      list: (order) => {
        const listing = list(order);
        for (const [i, { waiting }] of threads.entries()) most[i] = Math.max(most[i] ?? 0, waiting);
        return listing;
      },
    });
    expect(Math.min(...most)).toBeGreaterThan(1);
    inbox.write('a/d3/new');
    inbox.remove('a/d4');
    expect(await inbox.rescan()).toMatchObject({ files: 17, directories: 6 });
    inbox.expect({ 'a/d0/f0': 'pending', 'a/d3/new': 'pending', 'a/d4/f0': 'gone' });
  });

  it('finds files that are back unchanged, with their directory too, and applies the rules that came back', async () => {
    const rules = {
      'a/d0/.peersyncignore': 'secret',
      'a/d0/deep/open': 'x',
      'a/d0/deep/secret': 'x',
    };
    // State has no records of a directory that holds only an ignore file.
    const bare = { 'a/bare/.peersyncignore': '*' };
    const { inbox } = await scanned(new Inbox({ 'a/d0/f0': 'x', ...rules, ...bare }));
    for (const path of ['a/d0/f0', 'a']) {
      inbox.rename(path, '../away');
      await inbox.look(path);
      inbox.expect({ 'a/d0/f0': 'gone' });
      inbox.rename('../away', path);
      await inbox.rescan();
      inbox.expect({
        'a/d0/f0': 'pending',
        'a/d0/deep/open': 'pending',
        'a/d0/deep/secret': undefined,
      });
    }
    inbox.write('a/bare/late');
    await inbox.look('a/bare/late');
    inbox.expect({ 'a/bare/late': undefined });
  });

  it('takes a file that replaced a directory while that was listed', async () => {
    const { inbox, played } = await scanned(new Inbox(['d/in.txt']));
    await played.during(inbox, async () => {
      inbox.remove('d');
      inbox.write('d');
      inbox.watcher.lookSoon({ folder: 'inbox', path: 'd' });
      await inbox.becomes({ d: 'pending' });
    });
    inbox.expect({ d: 'pending', 'd/in.txt': 'gone' });
  });

  it.each<[string, (inbox: Inbox) => unknown, 'pending' | 'skipped' | undefined]>([
    ['a file', (inbox) => inbox.write('d'), 'pending'],
    ['an empty file', (inbox) => inbox.write('d', ''), 'skipped'],
    ['a link to a directory', (inbox) => inbox.link('kept', 'd'), undefined],
    ['a pipe', (inbox) => execFileSync('mkfifo', [inbox.at('d')]), undefined],
  ])(
    'finds that the files of a directory are gone if %s takes its place, and that they come back with it',
    async (_, replace, status) => {
      const files = ['d/in.txt', 'd/deep/in.txt', 'd.txt', 'kept/a'];
      const inbox = new Inbox(files);
      await scanned(inbox);
      for (const isAway of [false, true]) {
        if (isAway) await inbox.watcher.stop();
        inbox.rename('d', '../away');
        replace(inbox);
        // A file that is not at rest would be looked up by itself.
        await until(
          () => Date.now() - lstatSync(inbox.at('d')).ctimeMs > 2 * SETTLE_MS,
          'it is at rest',
        );
        if (isAway) await inbox.start({ hints: false });
        else await inbox.rescan();
        inbox.expect({
          d: status,
          'd/in.txt': 'gone',
          'd/deep/in.txt': 'gone',
          'd.txt': 'pending',
        });
        inbox.remove('d');
        inbox.rename('../away', 'd');
        await inbox.rescan();
        inbox.expect({ 'd/in.txt': 'pending', 'd/deep/in.txt': 'pending', 'kept/a': 'pending' });
        expect([undefined, 'gone']).toContain(inbox.status('d'));
      }
    },
  );

  it('does not skip a file that was empty or too large only when its directory was listed', async () => {
    const files = { empty: '', large: 'x'.repeat(101) };
    const options = { hints: true, folder: { maxFileSize: 100 } };
    const { inbox, played } = await scanned(new Inbox(files), options);
    inbox.expect({ empty: 'skipped', large: 'skipped' });
    // Without a change the directory would not be compared.
    inbox.write('new', 'words');
    await played.during(inbox, async () => {
      inbox.write('empty', 'words');
      inbox.write('large', 'words');
      await inbox.becomes({ empty: 'pending', large: 'pending' });
    });
    inbox.expect({ empty: 'pending', large: 'pending' });
  });

  it('finds that a file is gone if it was removed while its directory was listed', async () => {
    let vanishes = false;
    const list: List = async (order) => {
      const listing = await listHere(order);
      if (!vanishes || 'code' in listing || !order.directory.endsWith('/a/d0')) return listing;
      vanishes = false;
      rmSync(join(order.directory, 'f0'));
      // This is the listing of a directory that named f0, after which f0 was removed.
      const after = await listHere({ ...order, known: undefined });
      return 'code' in after ? after : { ...after, failed: [{ name: 'f0', code: 'ENOENT' }] };
    };
    const { inbox } = await scanned(new Inbox(TREE), { list });
    inbox.write('a/d0/f1', 'more');
    await inbox.long('a/d0/f1');
    vanishes = true;
    await inbox.rescan();
    await inbox.rescan();
    inbox.expect({ 'a/d0/f0': 'gone' });
  });

  it('takes files whose encoding the peer takes by now, even if they did not change', async () => {
    let refused: Encoding | undefined;
    const why = { code: 'NOT_TEXT', message: 'Not taken.', hint: 'None.' };
    const refusalOf = (encoding: Encoding) => (encoding === refused ? why : undefined);
    const { inbox, compared } = await scanned(new Inbox(TREE), { peer: { ...PEER, refusalOf } });
    refused = 'utf-8';
    await inbox.rescan();
    expect(inbox.state.counts()).toMatchObject({ pending: 0, skipped: 20 });
    expect(await compared()).toBe(0);
    refused = undefined;
    await inbox.rescan();
    expect(inbox.state.counts()).toMatchObject({ pending: 20, skipped: 0 });
  });

  it('takes files that a program reads by now, even if their directories did not change', async () => {
    const files = { 'a/plan.dwg': Uint8Array.of(0, 1, 2, 255), 'a/b/scan.pdf': '%PDF-1.7' };
    let current = NO_PROGRAMS;
    let begun = 0;
    const programs = {
      get current() {
        return current;
      },
      onScan: () => {
        begun += 1;
      },
    };
    const { inbox, compared } = await scanned(new Inbox(files), { programs });
    skipAsUplink(inbox, 'a/b/scan.pdf', 'NO_OCR');
    inbox.expect({ 'a/plan.dwg': 'skipped', 'a/b/scan.pdf': 'skipped' });
    expect(await compared()).toBe(0);
    current = { commands: { '.dwg': command('dwg2text') }, noOcr: 'missing' };
    await inbox.rescan();
    inbox.expect({ 'a/plan.dwg': 'pending', 'a/b/scan.pdf': 'skipped' });
    expect(inbox.get('a/plan.dwg')).toMatchObject({ version: { encoding: 'document' } });
    current = { commands: {}, ocr: OCR };
    await inbox.rescan();
    inbox.expect({ 'a/b/scan.pdf': 'pending' });
    const before = begun;
    expect(await compared()).toBe(0);
    expect(begun).toBe(before + 1);
  });

  const rule = { match: 'f1', collection: 'other' };
  it.each<[string, Partial<FolderConfig>, object | undefined]>([
    ['collection', { collection: 'other' }, { status: 'pending', collection: 'other' }],
    ['URL', { url: 'https://b.example/' }, { url: 'https://b.example/a/d0/f1' }],
    ['collection of a rule', { rules: [rule] }, { status: 'pending', collection: 'other' }],
    ['list of ignored files', { ignore: ['f1'] }, undefined],
    ['list of included files', { include: ['f0'] }, undefined],
    ['size limit', { maxFileSize: 1 }, { status: 'skipped' }],
  ])('at a start takes up that only the %s changed', async (_, folder, expected) => {
    const { inbox } = await scanned(new Inbox({ 'a/d0/f1': 'some text' }));
    await inbox.start({ hints: false, folder });
    if (expected === undefined) expect(inbox.get('a/d0/f1')).toBeUndefined();
    else expect(inbox.get('a/d0/f1')).toMatchObject(expected);
  });

  it('at a start takes up a file of rules that came meanwhile', async () => {
    const { inbox } = await scanned(new Inbox(TREE));
    await inbox.watcher.stop();
    utimesSync(inbox.write('a/.peersyncignore', 'f1\nd2/\n'), 1, 1);
    await inbox.start({ hints: false });
    expect(inbox.get('a/d0/f1')).toBeUndefined();
    inbox.expect({ 'a/d0/f0': 'pending' });
  });

  it('takes what a file of rules excluded, once that file has been absent for settle', async () => {
    const inbox = new Inbox({ 'a/.peersyncignore': 'f1\n', 'a/b/f1': 'some text' });
    await inbox.start({ hints: false });
    inbox.expect({ 'a/b/f1': undefined });
    inbox.remove('a/.peersyncignore');
    await inbox.rescan();
    await inbox.becomes({ 'a/b/f1': 'pending' });
  });

  it('applies changed rules to directories that did not change', async () => {
    const { inbox } = await scanned(new Inbox(TREE));
    utimesSync(inbox.write('.peersyncignore', 'f1\nd2/\n'), 1, 1);
    await inbox.rescan();
    expect(inbox.state.counts().pending).toBe(12);
    inbox.remove('.peersyncignore');
    // The rules apply until their file has been absent for `settle`.
    await inbox.rescan();
    expect(inbox.state.counts().pending).toBe(20);
  });

  it('applies rules that come to rest while their directory is being listed', async () => {
    const files = { 'd/.peersyncignore': '*.log', 'd/e/b.log': 'b' };
    const { inbox, played } = await scanned(new Inbox(files), {
      hints: true,
      folder: { settle: 500 },
    });
    const { open, opened } = gate();
    const before = played.lists;
    played.paused = opened;
    const written = inbox.write('d/.peersyncignore', '*.txt');
    await until(() => played.lists > before, 'an event has it listed');
    await until(() => Date.now() - statSync(written).ctimeMs > 600, 'the rules are at rest');
    open();
    await inbox.becomes({ 'd/e/b.log': 'pending' });
  });

  it('finds a change behind a followed link, which leaves no trace in the directory of the link', async () => {
    const inbox = new Inbox({ 'hidden/a.txt': 'one' });
    inbox.link('../hidden/a.txt', 'links/b.txt');
    await scanned(inbox, { folder: { followSymlinks: true } });
    const before = inbox.sha('links/b.txt');
    expect(before).toBeDefined();
    inbox.append('hidden/a.txt', 'two');
    await inbox.rescan();
    expect(inbox.sha('links/b.txt')).not.toBe(before);
  });

  it('opens another watch on a directory that grew large', async () => {
    const { played, openEvents } = playedEvents({});
    const inbox = await new Inbox(['d/a']).start({ openEvents });
    for (let i = 0; i < 2_000; i += 1) inbox.write(`d/a file of a large directory, ${i}`, '');
    await inbox.idle();
    const asked = played.events?.asked ?? 0;
    await inbox.rescan();
    expect(played.events?.asked).toBe(asked + 1);
  });

  it('takes up the removal of very many files a few at a time', async () => {
    const { inbox } = await scanned(new Inbox(Array.from({ length: 3_000 }, (_, i) => `d/${i}`)));
    inbox.remove('d');
    let [now, most] = [0, 0];
    inbox.state.onChange(() => {
      if (now === 0)
        setImmediate(() => {
          most = Math.max(most, now);
          now = 0;
        });
      now += 1;
    });
    await inbox.rescan();
    expect(inbox.state.counts().gone).toBe(3_000);
    expect(most).toBeLessThanOrEqual(200);
  });
});

/** A guard of a folder that may be looked at, and is or is not certainly the folder. */
class PlayedGuard extends FolderGuard {
  constructor(
    deps: FolderDeps,
    private readonly certain: boolean,
  ) {
    super(deps);
  }

  override get mayLook(): boolean {
    return true;
  }

  override async isCertain(): Promise<boolean> {
    return this.certain;
  }
}

describe('the absence of a file', () => {
  const to = {
    folder: 'inbox',
    path: 'a',
    url: 'https://files.example.org/inbox/a',
    collection: 'inbox',
  };
  const version = {
    size: 1,
    mtimeMs: 1,
    ctimeMs: 1,
    ino: 1,
    sha256: 'aa',
    encoding: 'utf-8',
  } as const;
  const item = read(undefined, to, version, 0);
  const again = read(item, to, { ...version, sha256: 'bb' }, 0);
  const taken =
    item.status === 'pending'
      ? accepted(item, { ...to, sha256: 'aa', digest: 'aa', size: 1, at: 0 }, 0)
      : item;

  it.each([
    ['makes it gone', true, item, { status: 'gone' }],
    ['is dropped if the file was found again meanwhile', true, again, { status: 'pending' }],
    [
      'makes it gone if the peer took it meanwhile',
      true,
      taken,
      { status: 'gone', sent: { sha256: 'aa' } },
    ],
    ['proves nothing while the root is not certain', false, item, { status: 'pending' }],
  ])('%s', async (_, isCertain, meanwhile, outcome) => {
    const [clock, log] = [new FakeClock(), silentLogger];
    const state = await State.open(temporaryDirectory(), { clock, log });
    afterwards('test', () => state.close());
    const hashQueue = new HashQueue(async () => [], 1, 1);
    const shared = { state, clock, log, hashQueue, list: listHere };
    const renames = new Renames(state, clock, log);
    const all = {
      ...shared,
      renames,
      peer: { ...PEER, isEmbedded: () => false },
      programs: PROGRAMS,
      committer: new Committer(state, clock, log),
      policy: WATCH_POLICY,
    };
    const deps = folderDeps(folderOf(temporaryDirectory()), all, undefined);
    const guard = new PlayedGuard(deps, isCertain);
    state.put(item);
    const removing = new Reconciler({ ...deps, guard }).removed([item]);
    state.put(meanwhile);
    await removing;
    expect(state.get('inbox', 'a')).toMatchObject(outcome);
  });
});

/**
 * fs events that watch a limited number of directories, as the system does, and can be paused
 * before each watch opens.
 */
class PlayedEvents extends DirectoryEvents {
  limit = Number.POSITIVE_INFINITY;
  paused: Promise<void> | undefined;
  asked = 0;
  readonly #granted = new Set<string>();

  override async watch(directory: string): Promise<string> {
    this.asked += 1;
    await this.paused;
    if (this.#granted.size >= this.limit && !this.#granted.has(directory)) return 'ENOSPC';
    this.#granted.add(directory);
    return await super.watch(directory);
  }
}

/** Returns such events, and the option of the watcher that opens them. */
function playedEvents(changes: Partial<Pick<PlayedEvents, 'limit' | 'paused'>>) {
  const played = { events: undefined as PlayedEvents | undefined };
  const openEvents = (listener: EventListener) => {
    played.events = Object.assign(new PlayedEvents(listener, systemClock), changes);
    return played.events;
  };
  return { played, openEvents };
}

/** Resolves when a condition is met, while time passes. */
async function passes(clock: FakeClock, isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 1_000 && !isSo(); i += 1) await clock.advance(1_000);
  expect(isSo()).toBe(true);
}

afterEach(() => void vi.restoreAllMocks());

/** Blocks the event loop, as a long computation does. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe('fs events are lost', () => {
  it('at the limit of watches: the folder is rescanned, and logged once, until all can be watched', async () => {
    const inbox = new Inbox([0, 1, 2, 3, 4].map((d) => `d${d}/a.txt`));
    const { played, openEvents } = playedEvents({ limit: 3 });
    await inbox.start({ policy: { degradedRescanMs: 200 }, openEvents });
    const hint: unknown = expect.stringContaining('fs.inotify.max_user_watches');
    const failure = { code: 'WATCH_LIMIT', hint };
    expect(inbox.folder).toMatchObject({ state: 'degraded', directoriesWatched: 3, failure });
    for (let d = 0; d < 5; d += 1) inbox.write(`d${d}/b.txt`);
    inbox.remove('d4/a.txt');
    await inbox.becomes({ 'd0/b.txt': 'pending', 'd4/b.txt': 'pending', 'd4/a.txt': 'gone' });
    await until(() => inbox.state.counts().pending === 9, 'all are found');
    expect(inbox.logged(`warn: ${inbox.root}: The system's limit of watched directories`)).toBe(1);
    expect(inbox.watcher.problems()).toEqual([]);
    Object.assign(played.events ?? {}, { limit: 100 });
    await inbox.reaches('watching');
    expect(inbox.folder.directoriesWatched).toBe(6);
  });

  it('when the queue of the system overflows: a rescan finds the changes', async () => {
    const inbox = await new Inbox().start();
    // Create, open, write and close make four events for each file. The queue holds 16,384.
    for (let i = 0; i < 5_000; i += 1) inbox.write(`f${i}`, 'x');
    block(300);
    await until(() => inbox.state.counts().pending === 5_000, 'none is lost');
    expect(inbox.logged('info: Very many changes came at once')).toBeGreaterThan(0);
  });

  it('but not while the event loop is blocked: nothing is scanned again', async () => {
    const inbox = await new Inbox(['a.txt']).start();
    const { lastScan } = inbox.folder;
    inbox.write('b.txt');
    block(1_000);
    inbox.write('c.txt');
    await inbox.becomes({ 'b.txt': 'pending', 'c.txt': 'pending' });
    await inbox.idle();
    expect(inbox.folder.lastScan).toBe(lastScan);
  });

  it('but not of a directory whose watch chokidar never opens: another watch is opened, and logged', async () => {
    const clock = new FakeClock(Date.now() + HOUR);
    vi.spyOn(FSWatcher.prototype, 'add').mockImplementation(function (this: FSWatcher) {
      return this;
    });
    const inbox = new Inbox(['a.txt', 'd/b.txt']);
    // A check of the root would request a second scan, which drops the problem.
    await inbox.begin({ clock, policy: { rootCheckMs: HOUR } });
    await passes(clock, () => inbox.status('d/b.txt') === 'pending');
    expect(inbox.folder).toMatchObject({ directoriesWatched: 2 });
    const failure = { code: 'WATCH_LATE' };
    expect(inbox.watcher.problems()).toMatchObject([
      { path: inbox.root, failure },
      { path: inbox.at('d'), failure },
    ]);
    inbox.write('d/later.txt');
    await passes(clock, () => inbox.status('d/later.txt') === 'pending');
    expect(inbox.logged('warn:')).toBe(2);
    const scan = inbox.watcher.scanAll();
    await passes(clock, () => inbox.watcher.problems().length === 0);
    await scan;
  });

  it('but not of a file that appears while a watch opens', async () => {
    const inbox = new Inbox(['d/early.txt']);
    const watched: string[] = [];
    const silent: FsEvents = {
      watch: async (directory) => {
        await new Promise((resolve) => setTimeout(resolve, 30));
        writeFileSync(join(directory, 'late.txt'), 'x');
        watched.push(directory);
        return 'watched';
      },
      unwatch() {},
      watches: (directory) => watched.includes(directory),
      watched: 0,
      close: async () => {},
    };
    await inbox.start({ openEvents: () => silent });
    inbox.expect({ 'late.txt': 'pending', 'd/late.txt': 'pending' });
  });
});

describe('the health checks of the watcher', () => {
  it('are not busy when all is in state, while a folder is held, and after a stop; names are unique', async () => {
    const inbox = await new Inbox(['d/a', 'e/b']).start();
    const names = inbox.watcher.health.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    inbox.write('later');
    await inbox.becomes({ later: 'pending' });
    await until(() => busyIn(inbox.watcher).length === 0, 'nothing is busy');
    rmSync(inbox.root, { recursive: true });
    await inbox.reaches('held', 'FOLDER_MISSING');
    await until(() => busyIn(inbox.watcher).length === 0, 'nothing is busy');
    await inbox.watcher.stop();
    expect(busyIn(inbox.watcher)).toEqual([]);
  });

  it('are busy without progress while a scan is blocked', async () => {
    const inbox = new Inbox(['a.txt']);
    const { open, opened } = gate();
    const { played, openEvents } = playedEvents({ paused: opened });
    await inbox.begin({ openEvents });
    await until(() => played.events?.asked === 1, 'the scan waits for a watch');
    expect(busyIn(inbox.watcher)).toContain('the scan of folder "inbox" does not go on');
    goesOn(inbox.watcher.health, 'folder inbox');
    expect(goesOn(inbox.watcher.health, 'folder inbox')).toBe(false);
    // This check has the limit of the watchdog, 90 s at most, and not that of a slow disk.
    const opening = inbox.watcher.health.find(({ name }) => name === 'watches of inbox');
    expect(opening).toMatchObject({ busy: true, options: {} });
    goesOn(inbox.watcher.health, 'watches of inbox');
    expect(goesOn(inbox.watcher.health, 'watches of inbox')).toBe(false);
    open();
    await inbox.becomes({ 'a.txt': 'pending' });
    expect(goesOn(inbox.watcher.health, 'folder inbox')).toBe(true);
    await until(() => busyIn(inbox.watcher).length === 0, 'nothing is busy');
  });
});

it('shows a file of rules in any spelling, because some file systems open it so', () => {
  const listing = { failed: [], names: 'a\0.PeerSyncIgnore\0' } as unknown as Listing;
  expect(listsName(listing, '.peersyncignore')).toBe(true);
  expect(listsName({ ...listing, names: 'a\0x.peersyncignore\0' }, '.peersyncignore')).toBe(false);
});
