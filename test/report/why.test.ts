import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { why } from '../../src/api/why.js';
import { whyText } from '../../src/commands/why.js';
import { loadConfig } from '../../src/config/load.js';
import type { ExtractedBy } from '../../src/lib/file.js';
import type { QueueStatus } from '../../src/queue/request-queue.js';
import { locate } from '../../src/report/items.js';
import type { Live } from '../../src/report/live.js';
import { explain } from '../../src/report/why.js';
import type { PendingItem } from '../../src/state/entry.js';
import { accepted, gone, read, removing, skipped } from '../../src/state/transitions.js';
import type { NextLookUp } from '../../src/uplink/confirm-loop.js';
import type { ReadersFailure } from '../../src/uplink/document-processes.js';
import type { ReadingProgress } from '../../src/uplink/extraction.js';
import type { PathProblem } from '../../src/watch/watcher.js';
import { queue } from '../commands/report.js';
import { pendingRecord, sentOf } from '../state/records.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { setUp } from './world.js';

interface Told {
  dialect?: 'standard' | undefined;
  circuit?: QueueStatus['circuit'];
  problems?: readonly PathProblem[];
  nextLookUp?: NextLookUp;
  readersFailure?: ReadersFailure;
  /** Of documents. */
  extraction?: 'waits' | ReadingProgress;
}

/** The parts of a daemon that decide about the next step of a path. */
function liveWith(told: Told): Live {
  const uplink = {
    isInFlight: () => false,
    nextLookUp: () => told.nextLookUp,
    status: () => told,
    extractionOf: ({ version }: PendingItem) =>
      version.encoding === 'document' ? told.extraction : undefined,
  };
  const watcher = { status: () => [], problems: () => told.problems ?? [] };
  const status = () => ({ ...queue, circuit: told.circuit ?? queue.circuit });
  return { parts: { client: told, queue: { status }, uplink, watcher } } as unknown as Live;
}

describe('what happens next to a file is told', () => {
  it('pushed, looked up, or looked up and pushed if it is not there', async () => {
    const { clock, config, inbox, state } = await setUp();
    const lastAnswer = 'the peer shows it in [blue], not in red';
    const live = liveWith({
      dialect: 'standard',
      nextLookUp: { at: clock.now() + 200, lastAnswer },
    });
    const next = async () => (await explain(join(inbox, 'a'), config, state, live)).next;
    writeFileSync(join(inbox, 'a'), 'a');
    const item = pendingRecord('a');
    const taken = accepted(item, sentOf(item), clock.now());
    state.put(item);
    expect(await next()).toBe('It is pushed.');
    state.put(taken);
    expect(await next()).toBe(`It is looked up in the peer (so far: ${lastAnswer}).`);
    state.put(read(gone(taken, clock.now()), taken, taken.version, clock.now()));
    expect(await next()).toBe(
      `The peer was sent this before: it is looked up (so far: ${lastAnswer}), and pushed if it is not there.`,
    );
  });

  it('waiting to be read or being read, where it is a document, and why none can be read', async () => {
    const { config, inbox, state } = await setUp();
    const message = 'The program that reads documents does not start: it ended with code 1.';
    const failure = { code: 'DOCUMENTS_UNREADABLE', message, hint: 'See why.', since: 0 };
    const told: Told = { dialect: 'standard', readersFailure: failure, extraction: 'waits' };
    const live = liveWith(told);
    const next = async (path: string) =>
      (await explain(join(inbox, path), config, state, live)).next;
    for (const path of ['a.pdf', 'a.txt']) writeFileSync(join(inbox, path), 'a');
    const document = pendingRecord('a.pdf');
    state.put({ ...document, version: { ...document.version, encoding: 'document' } });
    state.put(pendingRecord('a.txt'));
    expect(await next('a.pdf')).toBe(`It waits to be read. ${message} See why.`);
    expect(await next('a.txt')).toBe('It is pushed.');
    delete told.readersFailure;
    expect(await next('a.pdf')).toBe('It waits to be read, and is pushed after that.');
    told.extraction = { since: 0 };
    expect(await next('a.pdf')).toBe('It is being read at this moment, and is pushed after that.');
    told.extraction = { since: 0, page: 37, pages: 1_500 };
    expect(await explain(join(inbox, 'a.pdf'), config, state, live)).toMatchObject({
      next: 'It is being read at this moment (page 37 of 1,500), and is pushed after that.',
      reading: told.extraction,
    });
    delete told.extraction;
    expect(await next('a.pdf')).toBe('It is pushed.');
  });

  it('waiting for a file system below the folder that is not mounted, with and without a daemon', async () => {
    const { config, inbox, state } = await setUp();
    mkdirSync(join(inbox, 'disk'));
    writeFileSync(join(inbox, 'a'), 'a');
    for (const path of ['a', 'disk/a']) state.put(pendingRecord(path));
    state.setMeta('watch.mounts.inbox', {
      root: inbox,
      mounts: [{ path: 'disk', dev: 1, ino: 1 }],
    });
    for (const live of [undefined, liveWith({ dialect: 'standard' })]) {
      const next = async (path: string) =>
        (await explain(join(inbox, path), config, state, live)).next;
      const away = `The file system that was mounted on ${inbox}/disk is not there`;
      expect(await next('disk/a')).toContain(away);
      expect(await next('disk/unknown')).toContain(away);
      expect(await next('a')).toMatch(/^It is pushed/);
    }
  });

  it('waiting for a peer that is in trouble before its dialect is known, whatever asked for that', async () => {
    const { config, inbox, now, state } = await setUp();
    const reason = {
      kind: 'denied' as const,
      message: 'it asks for a password',
      hint: 'Check peer.auth.',
    };
    const held = { reason, held: ['confirm' as const], tries: 2, nextProbeAt: now + 6_000 };
    const told: Told = { circuit: { state: 'open', since: now, ...held } };
    writeFileSync(join(inbox, 'a'), 'a');
    state.put(pendingRecord('a'));
    const next = async () => (await explain(join(inbox, 'a'), config, state, liveWith(told))).next;
    expect(await next()).toBe(
      'It waits for the peer, which refuses the credentials: it asks for a password.',
    );
    told.dialect = 'standard';
    expect(await next()).toBe('It is pushed.');
  });

  it('waiting for space on the disk of the state', async () => {
    const { config, disk, inbox, state } = await setUp();
    writeFileSync(join(inbox, 'a'), 'a');
    disk.space = 0;
    state.put(pendingRecord('a'));
    await expect(state.commit()).rejects.toMatchObject({ code: 'STATE_FULL' });
    expect((await explain(join(inbox, 'a'), config, state, undefined)).next).toMatch(
      /^It waits\. The state in .* cannot grow: .* Free some space there;/,
    );
    disk.space = Number.POSITIVE_INFINITY;
  });
});

describe('what is no file that is taken', () => {
  it.each([
    [
      'sub',
      'directory',
      'a directory: ',
      'No rule keeps it out: .* rules of folder "inbox"',
      /peersync list/,
    ],
    [
      'old',
      'directory',
      'a directory: ',
      'A rule keeps it out .*: ignore pattern "old" of folder "inbox"',
      /rule/,
    ],
    [
      'old/sub',
      'directory',
      'a directory: ',
      'A rule keeps it out .*: ignore pattern "old" of',
      /rule/,
    ],
    [
      'link.md',
      'link',
      'a symbolic link, ',
      '.*followSymlinks of folder "inbox" is false',
      /set to true/,
    ],
    ['pipe.md', 'other', 'no regular file, ', 'Only regular files ', /Nothing/],
  ])(
    'is told as what it is, with what holds for what is in it: %s',
    async (name, kind, is, rule, next) => {
      const { config, inbox, state } = await setUp({ include: ['*.md'], ignore: ['old'] });
      for (const directory of ['sub', 'old', 'old/sub']) mkdirSync(join(inbox, directory));
      symlinkSync(join(inbox, 'sub'), join(inbox, 'link.md'));
      execFileSync('mkfifo', [join(inbox, 'pipe.md')]);
      const report = await explain(join(inbox, name), config, state, undefined);
      const lines = whyText(report, 0);
      expect(report.kind).toBe(kind);
      expect(lines.find((line) => line.startsWith('status'))).toMatch(new RegExp(`^status +${is}`));
      expect(lines.find((line) => line.startsWith('rule'))).toMatch(new RegExp(`^rule +${rule}`));
      expect(lines.find((line) => line.startsWith('next'))).toMatch(next);
    },
  );

  it('is not called ignored by a rule where it cannot be looked at', async () => {
    const { config, inbox, state } = await setUp();
    symlinkSync('loop', join(inbox, 'loop'));
    expect(await explain(join(inbox, 'loop/a'), config, state, undefined)).toMatchObject({
      status: 'unknown',
      failure: { code: 'UNREADABLE', message: 'The file cannot be read (ELOOP).' },
      next: 'It is taken up by the next scan after it can be read.',
    });
  });

  it('is not said to be absent, nor to become a document, where its name has no URL', async () => {
    const { config, inbox, now: since, state } = await setUp();
    const path = join(inbox, 'bad\ufffd.txt');
    const failure = {
      code: 'NAME_NOT_UTF8',
      message: 'The name is not valid UTF-8.',
      hint: 'Rename it.',
    };
    const live = liveWith({ problems: [{ folder: 'inbox', path, failure, since }] });
    const report = await explain(path, config, state, live);
    const next = 'It is taken up by the next scan after that is mended.';
    expect(report).toMatchObject({ status: 'unknown', failure, next });
    expect(report.url).toBeUndefined();
  });
});

describe('a path', () => {
  it.each([
    ['linked/sub/a.md', 'notes: sub/a.md', 'as the configuration names it'],
    ['linked', 'notes: ', 'the folder itself'],
    ['real/sub/a.md', 'notes: sub/a.md', 'by its real path'],
    ['real/gone/for/good.md', 'notes: gone/for/good.md', 'by the real path of nothing'],
    ['another/sub/a.md', 'notes: sub/a.md', 'through another link'],
    ['another', 'notes: ', 'the folder through another link'],
    ['another/link.md', 'notes: link.md', 'a link in the folder'],
    ['linked/out', 'notes: out', 'a link that leads out'],
    ['linked/back/a.md', 'notes: back/a.md', 'what a link leads back to'],
    ['linked/out/a.md', undefined, 'what a link leads out to'],
    ['inbox-of-others/a.md', undefined, 'where a name only begins as that of a folder'],
  ])('%s is found in %s: %s', async (path, found, _what) => {
    const directory = temporaryDirectory();
    const at = (name: string) => join(directory, name);
    for (const name of ['real/sub', 'elsewhere']) mkdirSync(at(name), { recursive: true });
    writeFileSync(at('real/sub/a.md'), 'a');
    const links = { linked: 'real', another: 'real', 'real/link.md': 'real/sub/a.md' };
    for (const [link, to] of Object.entries({
      ...links,
      'real/out': 'elsewhere',
      'real/back': 'real/sub',
    }))
      symlinkSync(at(to), at(link));
    const folders = [{ name: 'notes', path: at('linked') }, { name: 'inbox' }];
    const { config } = await loadConfig(
      writeConfig(directory, { peer: { url: 'embedded' }, folders }),
    );
    const located = await locate(config, at(path));
    expect(located && `${located.folder.name}: ${located.path}`).toBe(found);
  });
});

describe('the rule of a file that is skipped', () => {
  it.each([
    ['EMPTY', 'Folder "inbox" takes its name; empty files are skipped.'],
    ['TOO_LARGE', 'maxFileSize of folder "inbox" keeps it out.'],
    ['PRIVATE_KEY', 'ignoreDefaults of folder "inbox" keeps private keys out.'],
    [
      'NO_OCR',
      'Folder "inbox" takes its name; scans and pictures are skipped while there is no OCR.',
    ],
    [
      'NO_HELPER',
      'Folder "inbox" takes its name; files that only a program reads are skipped while it is not installed.',
    ],
    [
      'NO_HELPER_BY_CONTENT',
      'Folder "inbox" takes its name; files that only a program reads are skipped while it is not installed.',
    ],
    ['OTHER', 'Its content keeps it out: It is so.'],
  ])(
    'is the one that keeps its content out, and not the one that takes its name: %s',
    async (code, rule) => {
      const { clock, config, inbox, state } = await setUp();
      const at = { folder: 'inbox', path: 'a.md' };
      const failure = { code, message: 'It is so.', hint: 'Change it.' };
      writeFileSync(join(inbox, 'a.md'), '');
      state.put(
        skipped(undefined, at, { size: 0, mtimeMs: 1, ctimeMs: 1, ino: 1 }, failure, clock.now()),
      );
      const report = await explain(join(inbox, 'a.md'), config, state, undefined);
      expect(report).toMatchObject({ status: 'skipped', rule });
    },
  );

  it('is one of the configuration where that keeps its name out', async () => {
    const { clock, config, inbox, state } = await setUp({ ignore: ['*.tmp'] });
    const at = { folder: 'inbox', path: 'a.tmp' };
    const failure = { code: 'EXCLUDED', message: 'A rule keeps it out.', hint: 'Change it.' };
    writeFileSync(join(inbox, 'a.tmp'), 'a');
    state.put(
      skipped(undefined, at, { size: 1, mtimeMs: 1, ctimeMs: 1, ino: 1 }, failure, clock.now()),
    );
    const { rule } = await explain(join(inbox, 'a.tmp'), config, state, undefined);
    expect(rule).toBe('Ignore pattern "*.tmp" of folder "inbox".');
  });

  it('is named with its reason also while the older version of the file is removed from the peer', async () => {
    const { clock, config, inbox, state } = await setUp();
    const file = join(inbox, 'a.md');
    writeFileSync(file, '');
    const failure = { code: 'EMPTY', message: 'The file is empty.', hint: 'Write something.' };
    const before = pendingRecord('a.md');
    const stat = { size: 0, mtimeMs: 1, ctimeMs: 1, ino: 1 };
    const kept = skipped(accepted(before, sentOf(before), 1), before, stat, failure, clock.now());
    if (kept.sent === undefined) throw new Error('it was not sent');
    state.put(removing({ ...kept, sent: kept.sent }, clock.now()));
    const rule = 'Folder "inbox" takes its name; empty files are skipped.';
    const report = await explain(file, config, state, undefined);
    expect(report).toMatchObject({ status: 'removing', rule, failure });
  });
});

it.each(['NO_OCR', 'NO_HELPER', 'NO_HELPER_BY_CONTENT'])(
  'a file that lacks a program is told to come back by itself: %s',
  async (code) => {
    const { clock, config, inbox, state } = await setUp();
    const at = { folder: 'inbox', path: 'a.pdf' };
    writeFileSync(join(inbox, 'a.pdf'), 'a');
    const failure = { code, message: 'The file is a scan.', hint: 'Install it.' };
    const stat = { size: 1, mtimeMs: 1, ctimeMs: 1, ino: 1 };
    state.put(skipped(undefined, at, stat, failure, clock.now()));
    const { next } = await explain(join(inbox, 'a.pdf'), config, state, undefined);
    expect(next).toMatch(/^Nothing, until .* is there: then it is taken up by the next scan, or/);
  },
);

describe('the text of a document', () => {
  async function textOf(extracted: ExtractedBy | undefined, lacks?: readonly string[]) {
    const { config, inbox, state } = await setUp();
    writeFileSync(join(inbox, 'a.pdf'), 'a');
    const plain = pendingRecord('a.pdf');
    const item: PendingItem = { ...plain, version: { ...plain.version, encoding: 'document' } };
    state.put(
      accepted(
        item,
        { ...sentOf(item), ...(extracted && { extracted }), ...(lacks && { lacks }) },
        1,
      ),
    );
    const report = await explain(join(inbox, 'a.pdf'), config, state, undefined);
    const line = whyText(report, 0).find((text) => text.startsWith('text'));
    const sent = why.line.parse(JSON.parse(JSON.stringify(report)));
    return { line: line?.replace(/^text +/, ''), extracted: sent.extracted };
  }

  it('is told with its reader, and how it was found', async () => {
    const scan = {
      reader: 'PDF',
      words: 12_044,
      ms: 78_000,
      pages: 30,
      ocrPages: 3,
      confidence: 91,
      unreadPages: '3, 7-9',
      leftOut: 'Pages after the first 1,000 are left out',
    };
    expect(await textOf(scan)).toEqual({
      line: 'Its text travels: the PDF reader found 12,044 words. Reading 30 pages took 1m 18s. OCR read 3 pages, with a mean confidence of 91 %. Pages that could not be read: 3, 7-9. Pages after the first 1,000 are left out.',
      extracted: scan,
    });
  });

  it('is told with its reader and words alone, if no more is known', async () => {
    const { line } = await textOf({ reader: 'RTF', words: 1 });
    expect(line).toBe('Its text travels: the RTF reader found 1 word.');
    expect((await textOf({ reader: 'RTF', words: 1, ms: 40 })).line).toBe(
      'Its text travels: the RTF reader found 1 word. Reading it took 40ms.',
    );
  });

  it('is told with what another reading may find', async () => {
    const found = 'Its text travels: the PDF reader found 2 words.';
    const program =
      'A program that reads more of it was missing. It is read again by itself when that is there.';
    const retry = '`peersync retry PATH` has the rest read again.';
    const pdf = { reader: 'PDF', words: 2 };
    expect((await textOf(pdf, ['ocr', '.doc'])).line).toBe(`${found} ${program}`);
    expect((await textOf(pdf, ['time'])).line).toBe(`${found} ${retry}`);
    expect((await textOf(pdf, ['time', '.doc'])).line).toBe(`${found} ${program} ${retry}`);
    // A picture that the peer got as it is.
    expect((await textOf(undefined, ['ocr'])).line).toBe(program);
  });
});

it('a file that is not there, and never was, is called absent', async () => {
  const { config, inbox, state } = await setUp();
  const report = await explain(join(inbox, 'none.md'), config, state, undefined);
  expect(report).toMatchObject({ status: 'unknown', kind: 'absent' });
});
