import {
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/load.js';
import { openUnchanged } from '../../src/content/file-reader.js';
import { Originals } from '../../src/daemon/originals.js';
import type { OriginalAnswer } from '../../src/embedded/daemon-link.js';
import { fileStat } from '../../src/lib/file.js';
import type {
  ConfirmedItem,
  Entry,
  Failure,
  PendingItem,
  SkippedWithDocument,
} from '../../src/state/entry.js';
import { gone, quarantined, removing, skipped } from '../../src/state/transitions.js';
import { failures } from '../../src/watch/rules/failures.js';
import { lifeOf, opened, pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { deferred, until } from '../support/wait.js';

const TEXT = 'It is brewed at 70 degrees.\n';
const NOW = Date.UTC(2026, 0, 2);

/** A folder `inbox` with a file `sub/tea.txt`, whose record is confirmed unless one is given. */
async function setUp(
  recordOf: (item: PendingItem) => Entry = confirmedOf,
  more: {
    readonly folder?: object;
    readonly embedded?: object;
    readonly openFile?: typeof openUnchanged;
  } = {},
) {
  const directory = temporaryDirectory();
  const path = (name: string) => join(directory, name);
  const file = path('inbox/sub/tea.txt');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, TEXT);
  const url = 'https://files.example.org/inbox/';
  const folder = { name: 'inbox', path: path('inbox'), collection: 'inbox', url, ...more.folder };
  const peer = { url: 'embedded', embedded: { dir: path('peer'), ...more.embedded } };
  const config = await checkConfig({ folders: [folder], peer }, path('config.json'));
  const clock = new FakeClock();
  const state = await opened(path('state'), { clock });
  const put = async (entry: Entry) => {
    state.put(entry);
    await state.commit();
  };
  const item = { ...pendingRecord('sub/tea.txt'), version: versionOf(file) };
  const { dev, ino, uid } = statSync(path('inbox'));
  const root = { path: path('inbox'), real: path('inbox'), dev, ino, uid };
  state.setMeta('watch.root.inbox', root);
  await put(confirmedOf(item));
  await put(recordOf(item));
  const folders = { state: 'there' as 'there' | 'missing', isUnmounted: false };
  const originals = new Originals({
    state,
    watcher: { folderState: () => folders.state, isUnmounted: () => folders.isUnmounted },
    current: { config },
    clock,
    configFile: '/etc/peersync.json',
    ...(more.openFile !== undefined && { openFile: more.openFile }),
  });
  return { clock, file, folders, item, originals, path, put, state };
}
function confirmedOf(item: PendingItem): ConfirmedItem {
  return lifeOf(item)[2] as ConfirmedItem;
}

function versionOf(file: string): PendingItem['version'] {
  return { ...pendingRecord('x').version, ...fileStat(statSync(file)) };
}

/** Returns the text of the file that was opened, or the status and the reason of a refusal. */
async function answerText(answer: OriginalAnswer): Promise<string> {
  if (answer.kind === 'refused') return `${answer.status}: ${answer.message}`;
  try {
    return await answer.handle.readFile('utf8');
  } finally {
    await answer.handle.close();
  }
}

const URL_OF_IT = 'https://files.example.org/inbox/sub/tea.txt';

describe('the original of a document', () => {
  it('is the file of a confirmed document, as it is on disk', async () => {
    const { file, originals } = await setUp();
    expect(originals.has(URL_OF_IT)).toBe(true);
    const answer = await originals.open(URL_OF_IT);
    const { sha256 } = pendingRecord('x').version;
    const stat = expect.objectContaining(fileStat(statSync(file))) as object;
    expect(answer).toMatchObject({ name: 'tea.txt', encoding: 'utf-8', sha256, stat });
    expect(await answerText(answer)).toBe(TEXT);
  });

  const EMPTY = failures.empty();
  const SECRET = failures.privateKey('inbox');
  const keptOut = (item: PendingItem, failure: Failure) => {
    const file = skipped(confirmedOf(item), item, item.version, failure, NOW);
    return removing(file as SkippedWithDocument, NOW);
  };
  it.each<[string, (item: PendingItem) => Entry, string]>([
    ['pending', (item) => item, '409: The newest version of the file is not confirmed yet.'],
    ['accepted', (item) => lifeOf(item)[1], '409: The newest version of the file is not confirmed'],
    [
      'quarantined',
      (item) => quarantined(confirmedOf(item), item, item.version, EMPTY, NOW),
      '409: The file is quarantined: The file is empty. `peersync why ',
    ],
    [
      'skipped, with an older document',
      (item) => skipped(confirmedOf(item), item, item.version, EMPTY, NOW),
      '409: The file is skipped: The file is empty. `peersync why ',
    ],
    [
      'kept out, so that its document is removed',
      (item) => keptOut(item, EMPTY),
      '409: The file is kept out: The file is empty. `peersync why ',
    ],
    [
      'kept out as a secret',
      (item) => keptOut(item, SECRET),
      '409: The file is kept out: The file holds a private key. It is kept out because a peer may publish its documents. See `peersync status -c /etc/peersync.json`.',
    ],
    [
      'skipped as a secret',
      (item) => skipped(confirmedOf(item), item, item.version, SECRET, NOW),
      'publish its documents. See `peersync status -c /etc/peersync.json`.',
    ],
    [
      'quarantined because it cannot be read',
      (item) =>
        quarantined(confirmedOf(item), item, item.version, failures.unreadable('EACCES'), NOW),
      '409: The file is quarantined: The file cannot be read (EACCES). See `peersync status -c',
    ],
    ['gone', (item) => gone(confirmedOf(item), NOW), '404: The file was removed from its folder.'],
  ])('is not served while the file is %s', async (_, recordOf, refusal) => {
    const { originals } = await setUp(recordOf);
    expect(originals.has(URL_OF_IT)).toBe(false);
    expect(await answerText(await originals.open(URL_OF_IT))).toContain(refusal);
  });

  it('is not served before the confirmation is on disk', async () => {
    const { item, originals, state } = await setUp((item) => item);
    state.put(confirmedOf(item));
    expect(await answerText(await originals.open(URL_OF_IT))).toMatch(/^409: .*not confirmed yet/);
    await state.commit();
    expect(await answerText(await originals.open(URL_OF_IT))).toBe(TEXT);
  });

  type Site = Awaited<ReturnType<typeof setUp>>;
  it.each<[string, (site: Site) => void, RegExp]>([
    [
      'was written anew',
      ({ file }) => writeFileSync(file, TEXT),
      /^409: The file was changed or moved/,
    ],
    [
      'was replaced by one of the same size and time',
      ({ file, path }) => {
        const { atime, mtime } = statSync(file);
        writeFileSync(path('other'), TEXT);
        utimesSync(path('other'), atime, mtime);
        renameSync(path('other'), file);
      },
      /^409: The file was changed or moved/,
    ],
    ['was removed', ({ file }) => rmSync(file), /^404: The file is not there any more/],
    [
      'is a link to a file outside',
      ({ file, path }) => {
        renameSync(file, path('secret'));
        symlinkSync(path('secret'), file);
      },
      /^409: Something else than the file stands at its path/,
    ],
    [
      'stands behind a directory that is a link to outside now, and is the same file',
      ({ path }) => {
        renameSync(path('inbox/sub'), path('outside'));
        symlinkSync(path('outside'), path('inbox/sub'));
      },
      /^409: The file was changed or moved/,
    ],
    [
      'is a directory',
      ({ file }) => {
        rmSync(file);
        mkdirSync(file);
      },
      /^409: Something else than the file/,
    ],
    [
      'is in a folder whose root is a link to another place now',
      ({ path }) => {
        renameSync(path('inbox'), path('elsewhere'));
        symlinkSync(path('elsewhere'), path('inbox'));
      },
      /^409: The folder of the file is not there, or is another one/,
    ],
    [
      'is in a folder that is away',
      ({ path }) => renameSync(path('inbox'), path('elsewhere')),
      /^409: The folder of the file is not there/,
    ],
    [
      'is in a folder that the daemon misses',
      ({ folders }) => {
        folders.state = 'missing';
      },
      /^409: The folder of the file is not there/,
    ],
    [
      'is on a disk that is not mounted',
      ({ folders }) => {
        folders.isUnmounted = true;
      },
      /^409: The folder of the file is not there/,
    ],
    [
      'is kept out by a rule that no scan has applied yet',
      ({ path }) => writeFileSync(path('inbox/.peersyncignore'), '*.txt\n'),
      /^404: A rule keeps the file out: .*peersyncignore.* See `peersync status -c [^ ]+`\.$/,
    ],
  ])('is not served if it %s', async (_, change, refusal) => {
    const site = await setUp();
    change(site);
    expect(await answerText(await site.originals.open(URL_OF_IT))).toMatch(refusal);
  });

  it('is refused with a command that explains the file and works as printed', async () => {
    const { file, originals } = await setUp((item) => item);
    expect(await answerText(await originals.open(URL_OF_IT))).toContain(
      `\`peersync why ${file} -c /etc/peersync.json\` says more about it.`,
    );
  });

  it('is found by the URL of a document alone, and by no path', async () => {
    const { originals, path } = await setUp();
    writeFileSync(path('secret.txt'), 'secret');
    writeFileSync(path('inbox/unknown.txt'), 'unknown');
    for (const url of [
      'file:///etc/passwd',
      '/etc/passwd',
      path('inbox/sub/tea.txt'),
      `file://${path('secret.txt')}`,
      'https://files.example.org/inbox/unknown.txt',
      'https://files.example.org/inbox/../secret.txt',
      'https://files.example.org/inbox/..%2Fsecret.txt',
      'https://files.example.org/inbox/sub/../sub/tea.txt',
      'https://files.example.org/other/sub/tea.txt',
      `${URL_OF_IT}%00`,
      '',
    ]) {
      expect(originals.has(url), url).toBe(false);
      expect(await answerText(await originals.open(url)), url).toMatch(
        /^404: No folder has the file of this document/,
      );
    }
  });

  it('is not served once its folder has another URL, or left the configuration', async () => {
    const { originals, put, item } = await setUp();
    const url = 'https://old.example.org/sub/tea.txt';
    await put(confirmedOf({ ...item, url }));
    expect(originals.has(url)).toBe(false);
    expect(await answerText(await originals.open(url))).toMatch(/^409: The folder of the file/);
    const former = confirmedOf({ ...item, folder: 'former', path: 'a.txt' });
    await put({ ...former, url: 'https://files.example.org/former/a.txt' });
    expect(originals.has('https://files.example.org/former/a.txt')).toBe(false);
  });

  it('is not served if the configuration says so', async () => {
    const { originals } = await setUp(confirmedOf, { embedded: { originals: false } });
    expect(originals.has(URL_OF_IT)).toBe(false);
    expect(await answerText(await originals.open(URL_OF_IT))).toMatch(/originals` is false/);
  });

  it('may stand behind a link within its folder if the folder follows links', async () => {
    const site = await setUp(confirmedOf, { folder: { followSymlinks: true } });
    const { originals, path } = site;
    renameSync(path('inbox/sub'), path('inbox/moved'));
    symlinkSync(path('inbox/moved'), path('inbox/sub'));
    expect(await answerText(await originals.open(URL_OF_IT))).toBe(TEXT);
    renameSync(path('inbox/moved'), path('outside'));
    rmSync(path('inbox/sub'));
    symlinkSync(path('outside'), path('inbox/sub'));
    expect(await answerText(await originals.open(URL_OF_IT))).toMatch(/^409: Something else/);
  });

  it('is one of two that are opened at a time, and of the others each that waits less than ten seconds', async () => {
    const hung: ReturnType<typeof deferred<void>>[] = [];
    const openFile: typeof openUnchanged = async (order) => {
      const mount = deferred<void>();
      hung.push(mount);
      await mount.promise;
      return openUnchanged(order);
    };
    const { clock, originals } = await setUp(confirmedOf, { openFile });
    const open = async () => answerText(await originals.open(URL_OF_IT));
    const [first, second, third] = [open(), open(), open()];
    await until(() => hung.length === 2, 'two are being opened');
    await clock.advance(9_000);
    expect(hung.length).toBe(2);
    const fourth = open();
    hung[0]?.resolve();
    expect(await first).toBe(TEXT);
    await until(() => hung.length === 3, 'the third is opened');
    await clock.advance(10_000);
    expect(await fourth).toMatch(
      /^503: Other files are being opened, .* does not answer. Try again in a moment.$/,
    );
    expect(hung.length).toBe(3);
    for (const { resolve } of hung) resolve();
    expect(await Promise.all([second, third])).toEqual([TEXT, TEXT]);
    const [fifth, sixth] = [open(), open()];
    await until(() => hung.length === 5, 'two are opened again');
    for (const { resolve } of hung) resolve();
    expect(await Promise.all([fifth, sixth])).toEqual([TEXT, TEXT]);
  });

  it('is never the content of another place, whatever is swapped while it is opened', async () => {
    const { originals, path } = await setUp();
    mkdirSync(path('outside'));
    writeFileSync(path('outside/tea.txt'), 'secret');
    const link = path('inbox/link');
    let isSwapped = false;
    const swap = () => {
      if (isSwapped) {
        rmSync(path('inbox/sub'));
        renameSync(path('inbox/kept'), path('inbox/sub'));
      } else {
        symlinkSync(path('outside'), link);
        renameSync(path('inbox/sub'), path('inbox/kept'));
        renameSync(link, path('inbox/sub'));
      }
      isSwapped = !isSwapped;
    };
    const seen = new Set<string>();
    for (let n = 0; n < 150; n += 1) {
      const opened = originals.open(URL_OF_IT);
      for (let turn = 0; turn < n % 12; turn += 1)
        await new Promise((resolve) => setImmediate(resolve));
      swap();
      seen.add((await answerText(await opened)).slice(0, 4));
    }
    if (isSwapped) swap();
    expect([...seen].filter((text) => !/^(It i|409:|404:)$/.test(text))).toEqual([]);
    expect(lstatSync(path('inbox/sub')).isDirectory()).toBe(true);
  });
});
