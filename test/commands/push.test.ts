import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type Outcome, OwnUplink } from '../../src/commands/own-uplink.js';
import { readTarget, targetsOf, urlsToRemove } from '../../src/commands/push.js';
import type { FolderConfig } from '../../src/config/config.js';
import { checkConfig } from '../../src/config/load.js';
import { silentLogger } from '../../src/lib/logger.js';
import { standard } from '../../src/peer/dialects/standard.js';
import type { UplinkPeer } from '../../src/uplink/deps.js';
import { command } from '../content/programs.js';
import { temporaryDirectory } from '../support/temp.js';

const NO_FOLDERS: readonly FolderConfig[] = [];

describe('the document of a file that is pushed by hand', () => {
  it.each([
    ['/srv/a b/ü.md', undefined, 'file:///srv/a%20b/%C3%BC.md'],
    ['/srv/a b.md', 'https://x.org/docs/', 'https://x.org/docs/a%20b.md'],
    ['/srv/a b.md', 'HTTPS://X.org/other?id=3', 'https://x.org/other?id=3'],
  ])('%s with the URL %s is %s', (file, url, expected) => {
    expect(targetsOf([file], url, NO_FOLDERS)).toEqual([{ file, url: expected }]);
  });

  it.each([
    [['a'], 'nowhere', /--url: received "nowhere"/],
    [['a'], 'javascript:alert(1)', /--url/],
    [['a'], 'https://u:p@x.org/a', /--url/],
    [['a'], 'https://u:p@x.org/', /--url/],
    [['a', 'b'], 'https://x.org/a', /for 2 files/],
    [['x/a', 'y/a'], 'https://x.org/', /x\/a and y\/a would both become/],
  ])('%j with the URL %s is refused', (files, url, message) => {
    expect(() => targetsOf(files, url, NO_FOLDERS)).toThrow(message);
  });

  it('is never one that a watched folder keeps, however it is spelled', () => {
    const folder = {
      name: 'inbox',
      path: '/srv/inbox',
      url: 'https://x.org/in%20box/',
    } as FolderConfig;
    for (const url of [
      'https://x.org/in%20box/',
      'https://X.org:443/in box/a.md',
      'https://x.org/%69n%20box/a.md',
    ])
      expect(() => targetsOf(['a.md'], url, [folder])).toThrow(/belongs to the folder "inbox"/);
    expect(targetsOf(['a.md'], 'https://x.org/in%20boxes/', [folder])).toHaveLength(1);
  });
});

describe('the documents that are to be removed by hand', () => {
  it('are named by the files that were pushed, or by their URLs, each once', async () => {
    const named = ['/srv/a b.md', 'HTTPS://X.org/b', 'https://x.org/b'];
    expect(await urlsToRemove(named, undefined, NO_FOLDERS)).toEqual([
      'file:///srv/a%20b.md',
      'https://x.org/b',
    ]);
    expect(await urlsToRemove(['a.md', 'b.md'], 'https://x.org/', NO_FOLDERS)).toEqual([
      'https://x.org/a.md',
      'https://x.org/b.md',
    ]);
  });

  it('are none of a file that a watched folder has, or may have', async () => {
    const path = temporaryDirectory();
    writeFileSync(join(path, 'a b.md'), 'here');
    const folder = { name: 'inbox', path, url: 'https://x.org/in/' } as FolderConfig;
    const away = { ...folder, path: join(path, 'unmounted') };
    const of = (url: string, of = folder) => urlsToRemove([url], undefined, [of]);
    await expect(of('https://x.org/in/a%20b.md')).rejects.toThrow(
      /belongs to a file of the folder "inbox"/,
    );
    await expect(of('https://x.org/%69n/c.md')).rejects.toThrow(/belongs to a file/);
    await expect(of('https://x.org/in/c.md', away)).rejects.toThrow(/belongs to a file/);
    expect(await of('https://x.org/in/c.md')).toEqual(['https://x.org/in/c.md']);
  });

  it('are no others than were named', async () => {
    const url = 'https://x.org/';
    await expect(urlsToRemove([`${url}a`], url, NO_FOLDERS)).rejects.toThrow(/--url is for files/);
    await expect(urlsToRemove(['mailto://a'], undefined, NO_FOLDERS)).rejects.toThrow(
      /no URL of a document/,
    );
  });
});

describe('a file that is pushed by hand', () => {
  it('is read as files of folders are: with its encoding, also behind a link', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'latin.txt'), Buffer.from('Grüße', 'latin1'));
    symlinkSync('latin.txt', join(directory, 'link.txt'));
    const read = (file: string) =>
      readTarget({ file: join(directory, file), url: '' }, standard.content);
    expect(await read('latin.txt')).toMatchObject({
      version: { encoding: 'windows-1252', size: 5 },
    });
    expect((await read('link.txt')).path).toMatch(/latin\.txt$/);
  });

  it('is a document if the configuration names a program for it', async () => {
    const file = join(temporaryDirectory(), 'plan.dwg');
    writeFileSync(file, 'a\0b');
    const programs = { commands: { '.dwg': command('dwg2text') } };
    const read = await readTarget({ file, url: '' }, standard.content, programs);
    expect(read).toMatchObject({ version: { encoding: 'document', size: 3 } });
  });

  it.each([
    ['binary', 'NOT_TEXT'],
    ['dos', 'UNKNOWN_ENCODING'],
    ['empty', 'EMPTY'],
    ['directory', 'NOT_A_FILE'],
    ['missing', 'NO_SUCH_FILE'],
  ])('is refused where it cannot go: %s', async (name, code) => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'binary'), 'a\0b');
    // Russian in the encoding of DOS.
    writeFileSync(
      join(directory, 'dos'),
      Buffer.from('82e1a520abeea4a820e0aea6a4a0eee2e1ef20e1a2aea1aea4adebaca8', 'hex'),
    );
    writeFileSync(join(directory, 'empty'), '');
    mkdirSync(join(directory, 'directory'));
    const file = join(directory, name);
    const message = expect.stringContaining(`${file}: `);
    await expect(readTarget({ file, url: '' }, standard.content)).rejects.toMatchObject({
      code,
      message,
    });
  });
});

describe('a file on its way', () => {
  const peer = (answers: Partial<UplinkPeer>): UplinkPeer => ({
    push: async (items) => ({ results: items.map(() => ({ ok: true as const })) }),
    peerdoc: async () => undefined,
    commitIndex: async () => {},
    remove: async () => [],
    ...answers,
  });

  async function delivered(
    of: UplinkPeer,
    change = (_file: string) => {},
  ): Promise<Outcome | undefined> {
    const file = join(temporaryDirectory(), 'a.txt');
    writeFileSync(file, 'before');
    const ready = await readTarget({ file, url: 'https://x.org/a' }, standard.content);
    change(file);
    const config = await checkConfig(
      { folders: [{ path: '/srv/a', collection: 'c' }] },
      '/srv/config.json',
    );
    const { signal } = new AbortController();
    const uplink = await OwnUplink.open(of, standard, {
      config,
      timeoutMs: 1_500,
      log: silentLogger,
      signal,
    });
    let became: Outcome | undefined;
    await uplink.push([ready], { collection: 'c' }, (_, outcome) => {
      became = outcome;
    });
    await uplink.close();
    return became;
  }

  it('is not sent when it changes', async () => {
    const pushed: unknown[] = [];
    const push: UplinkPeer['push'] = async (items) => {
      pushed.push(...items);
      return { results: [] };
    };
    const outcome = await delivered(peer({ push }), (file) => writeFileSync(file, 'after it'));
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'FILE_CHANGING' } });
    expect(pushed).toEqual([]);
  });

  it('is confirmed by this version, and not by the one before', async () => {
    const { hash } = await import('node:crypto');
    const doc = (text: string) => ({
      url: 'https://x.org/a',
      at: 0,
      fields: {},
      collections: ['c'],
      digest: hash('sha256', text, 'hex'),
    });
    const old = await delivered(peer({ peerdoc: async () => doc('old') }));
    expect(old).toMatchObject({
      status: 'unseen',
      message: expect.stringContaining('other content'),
    });
    const shown = await delivered(peer({ peerdoc: async () => doc('before') }));
    expect(shown).toMatchObject({ status: 'confirmed', evidence: { kind: 'digest' } });
  });

  it('has as long as it may take, however many were sent before it', async () => {
    const directory = temporaryDirectory();
    const targets = Array.from({ length: 60 }, (_, i) => {
      const file = join(directory, `${i}.txt`);
      writeFileSync(file, `file ${i}`);
      return { file, url: `https://x.org/${i}` };
    });
    const files = await Promise.all(targets.map((target) => readTarget(target, standard.content)));
    const config = await checkConfig(
      { peer: { url: 'https://x.org' }, folders: [{ path: '/srv/a', collection: 'c' }] },
      '/srv/config.json',
    );
    const { signal } = new AbortController();
    const how = { config, timeoutMs: 2_000, log: silentLogger, signal };
    const uplink = await OwnUplink.open(peer({}), standard, how);
    const became = new Set<string>();
    // At 20 requests a second.
    await uplink.push(
      files,
      { collection: 'c', wait: false },
      (_, { status }) => void became.add(status),
    );
    await uplink.close();
    expect([...became]).toEqual(['accepted']);
  });

  describe('that is a document which no program reads', () => {
    async function deliverDocument(
      timeoutMs: number,
      signal: AbortSignal,
      tell: (outcome: Outcome) => void,
    ) {
      const directory = temporaryDirectory();
      const [file, program] = [join(directory, 'a.rtf'), join(directory, 'program.mjs')];
      writeFileSync(file, '{\\rtf1 hello}');
      writeFileSync(program, 'throw new TypeError("no such library");');
      const ready = await readTarget({ file, url: 'https://x.org/a' }, standard.content);
      expect(ready.version.encoding).toBe('document');
      const config = await checkConfig(
        { folders: [{ path: '/srv/a', collection: 'c' }] },
        '/srv/config.json',
      );
      const said: unknown[] = [];
      const log = { ...silentLogger, error: (...words: unknown[]) => void said.push(words) };
      const documentProgram = pathToFileURL(program);
      const how = { config, timeoutMs, log, signal, documentProgram };
      const uplink = await OwnUplink.open(peer({}), standard, how);
      try {
        await uplink.push([ready], { collection: 'c' }, (_, outcome) => tell(outcome));
      } finally {
        await uplink.close();
        expect(said).toEqual([]);
      }
    }

    it('does not keep a person who stops the command', async () => {
      const stopping = new AbortController();
      const delivering = deliverDocument(600_000, stopping.signal, () => {});
      setTimeout(() => stopping.abort(new Error('stopped')), 500);
      await expect(delivering).rejects.toThrow('stopped');
    });

    it('is given up when the time is over, and the person is told why', async () => {
      const outcomes: Outcome[] = [];
      const { signal } = new AbortController();
      await deliverDocument(1_500, signal, (outcome) => void outcomes.push(outcome));
      const message = expect.stringContaining(
        'does not start: it ended with code 1 (TypeError: no such',
      );
      expect(outcomes).toMatchObject([
        { status: 'failed', error: { code: 'DOCUMENTS_UNREADABLE', message } },
      ]);
    });
  });

  it('that the peer refuses is told in its words', async () => {
    const push: UplinkPeer['push'] = async () => ({
      results: [{ ok: false, message: 'blacklisted' }],
    });
    expect(await delivered(peer({ push }))).toMatchObject({
      status: 'failed',
      error: { code: 'REFUSED', message: 'The peer refused it: blacklisted.' },
    });
  });
});
