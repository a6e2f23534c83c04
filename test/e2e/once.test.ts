import { readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Ended, Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import type { PeerProcess } from '../support/peer-process.js';
import { answering, ScriptedPeer, well, when, whenPushed } from '../support/scripted-peer.js';
import { temporaryDirectory } from '../support/temp.js';
import {
  deepTexts,
  oddTexts,
  plainWords,
  realTexts,
  sha256,
  type TreeFile,
  writeTree,
} from '../support/tree.js';
import { peersync } from '../support/warm-cli.js';
import { remotePeer } from './at-peer.js';

/** Long enough for a first try on a machine that is busy, and not for `once` to give up by itself. */
const TIME_TO_BEGIN = '12s';

const BASE = 'https://files.example.org/inbox/';

/** The one object that `once --json` ends with. */
interface OnceReport {
  readonly items: Readonly<Record<string, number>>;
  readonly requests: { readonly push: number; readonly peerdoc: number };
  readonly durationMs: number;
}

function reportOf({ stdout }: Ended): OnceReport {
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as OnceReport;
}

/** The URL that stands for a path by the words of the manual: the base, and the escaped path in NFC. */
function urlOf(path: string): string {
  const names = path.normalize('NFC').split('/');
  const escaped = names.map((name) =>
    [...Buffer.from(name)]
      .map((byte) => {
        const character = String.fromCharCode(byte);
        const isPlain = /[A-Za-z0-9\-._~]/.test(character);
        return isPlain ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
      })
      .join(''),
  );
  return BASE + escaped.join('/');
}

/** Runs checks of many things, a few at once. */
async function forEachOf<T>(things: Iterable<T>, check: (thing: T) => Promise<void>): Promise<void> {
  const rest = things[Symbol.iterator]();
  const checkOn = async () => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) await check(next.value);
  };
  await Promise.all(Array.from({ length: 8 }, checkOn));
}

describe('once, on 3,000 real texts, names of every oddity and 200 levels of directories,', {
  timeout: 240_000,
}, () => {
  let files: TreeFile[];
  let inbox: string;
  let config: string;
  let peer: PeerProcess;
  let proxy: ScriptedPeer;
  let first: Ended;

  const once = () => peersync(['once', '--config', config, '--json', '--timeout', '4m']);
  const pushedSince = (before: number) => proxy.pushes.slice(before).flatMap(({ items }) => items);

  beforeAll(async () => {
    const world = temporaryDirectory('file');
    inbox = join(world, 'inbox');
    files = [...realTexts(3_000), ...oddTexts(), ...deepTexts(inbox, 200)];
    writeTree(inbox, files);
    peer = await remotePeer();
    proxy = await ScriptedPeer.start(peer.url, 'file');
    config = writeConfig(world, { peer: { ...peer.section(proxy.url), dialect: 'standard' } });
    first = await once();
  }, 300_000);

  it('confirms every file, says so in one object and ends with 0', () => {
    expect(first.stderr).toBe('');
    expect(first.code).toBe(0);
    const { items, requests, durationMs } = reportOf(first);
    expect(items).toEqual({ pending: 0, accepted: 0, confirmed: files.length, quarantined: 0, gone: 0 });
    expect(requests).toEqual({ push: proxy.pushes.length, peerdoc: proxy.lookups.length });
    expect(durationMs).toBeGreaterThan(0);
  });

  it('pushes each file once, under its own URL', () => {
    const pushed = pushedSince(0).map(({ url }) => url);
    expect(pushed.toSorted()).toEqual(files.map(({ path }) => urlOf(path)).toSorted());
  });

  it('leaves each file in the peer as it is on disk', async () => {
    const wrong: string[] = [];
    await forEachOf(files, async ({ path, content }) => {
      const shown = await peer.peerdoc(urlOf(path));
      if (shown?.digest !== sha256(content) || shown.url !== urlOf(path)) wrong.push(path);
      else if (shown.collections.join() !== 'inbox') wrong.push(path);
    });
    expect(wrong).toEqual([]);
  });

  it('makes each file findable by a word of it', async () => {
    const notFound: string[] = [];
    await forEachOf(rarestWords(files), async ([word, urls]) => {
      const found = new Set<string>();
      for (let offset = 0, total = 1; offset < total; offset += 100) {
        const page = await peer.search(word, { offset });
        total = page.total;
        for (const { url } of page.items) found.add(url);
      }
      for (const url of urls) if (!found.has(url)) notFound.push(`${word}: ${url}`);
    });
    expect(notFound).toEqual([]);
  }, 300_000);

  it('lets why tell of a file with an odd name how it was confirmed', async () => {
    for (const name of ['new\nline.md', 'back\\slash.md']) {
      const path = join(inbox, 'odd', name);
      const { stdout, code } = await peersync(['why', '--config', config, '--json', path]);
      const report = JSON.parse(stdout) as Record<string, unknown>;
      expect(code).toBe(0);
      expect(report).toMatchObject({ verdict: 'confirmed', file: path, url: urlOf(`odd/${name}`) });
      expect(report.evidence).toMatchObject({
        kind: 'digest',
        shown: expect.stringContaining(sha256(readFileSync(path))) as string,
      });
    }
  });

  it('asks the peer for nothing when nothing changed', async () => {
    const before = proxy.requests.length;
    const again = await once();
    expect(again.code).toBe(0);
    expect(proxy.requests.slice(before)).toEqual([]);
    expect(reportOf(again)).toMatchObject({ items: { confirmed: files.length }, requests: { push: 0 } });
  });

  it('asks the peer for nothing when files were touched, or written anew just as they were', async () => {
    const before = proxy.requests.length;
    files.forEach(({ path, content }, i) => {
      const absolute = `${inbox}/${path}`;
      if (i % 3 === 0) utimesSync(absolute, new Date(), new Date());
      if (i % 7 === 0) writeFileSync(absolute, content);
      if (i % 11 === 0) {
        writeFileSync(join(inbox, 'anew.tmp'), content);
        renameSync(join(inbox, 'anew.tmp'), absolute);
      }
    });
    const again = await once();
    expect(again.code).toBe(0);
    expect(proxy.requests.slice(before)).toEqual([]);
    expect(reportOf(again)).toMatchObject({ items: { confirmed: files.length }, requests: { push: 0 } });
  });

  it('pushes and confirms just the file that changed, also one of the same size', async () => {
    const before = proxy.pushes.length;
    const changed = 'odd/hash#tag.md';
    const content = readFileSync(join(inbox, changed)).reverse();
    writeFileSync(join(inbox, changed), content);
    const again = await once();
    expect(again.code).toBe(0);
    expect(pushedSince(before)).toEqual([
      { url: urlOf(changed), collection: 'inbox', digest: sha256(content) },
    ]);
    expect(reportOf(again)).toMatchObject({ items: { confirmed: files.length }, requests: { push: 1 } });
    expect((await peer.peerdoc(urlOf(changed)))?.digest).toBe(sha256(content));
  });
});

describe('once ends with', () => {
  const small: readonly TreeFile[] = [
    { path: 'good.md', content: Buffer.from('A good one.\n') },
    { path: 'bad.md', content: Buffer.from('A bad one.\n') },
  ];

  /** A folder with two files, whose documents no other test has, and a peer behind a proxy. */
  async function smallWorld(mirror: object = {}) {
    const world = temporaryDirectory();
    writeTree(join(world, 'inbox'), small);
    const peer = await remotePeer();
    const base = `https://${basename(world).toLowerCase()}.example.org/`;
    const proxy = await ScriptedPeer.start(peer.url);
    const config = writeConfig(world, {
      peer: { ...peer.section(proxy.url), dialect: 'standard' },
      folders: [{ name: 'inbox', url: base }],
      push: { attempts: 2 },
      mirror: { root: join(world, 'mirror'), ...mirror },
    });
    const once = (...more: string[]) => peersync(['once', '--config', config, '--json', ...more]);
    return { base, config, peer, proxy, once, world };
  }

  it('0 when all is confirmed, and with 3 when the peer refuses one file for good, which keeps its reason', async () => {
    const { base, proxy, once, config } = await smallWorld();
    proxy.behaviour = whenPushed(`${base}bad.md`, answering(500, 'this one breaks me'));
    const quarantined = await once();
    expect(quarantined.code).toBe(3);
    expect(reportOf(quarantined).items).toMatchObject({ confirmed: 1, quarantined: 1, pending: 0 });
    expect(
      JSON.parse((await peersync(['list', '-c', config, '--json', '--status', 'quarantined'])).stdout),
    ).toMatchObject({
      path: 'bad.md',
      code: 'PEER_FAILED',
    });
    proxy.behaviour = well;
    expect((await once()).code).toBe(3);
    expect((await peersync(['retry', '-c', config, '--all'])).code).toBe(0);
    const mended = await once();
    expect(mended.code).toBe(0);
    expect(reportOf(mended).items).toMatchObject({ confirmed: 2, quarantined: 0 });
  });

  it('1 when its time is over before all is confirmed, and the next one goes on from there without a push', async () => {
    const { proxy, once } = await smallWorld();
    proxy.behaviour = when(({ path }) => path.startsWith('/api/peerdoc'), answering(404));
    const late = await once('--timeout', TIME_TO_BEGIN);
    expect(late.code).toBe(1);
    expect(late.stderr).toContain('TIMEOUT');
    expect(late.stderr).toContain('0 files still to be pushed and 2 to be confirmed after');
    expect(reportOf(late).items).toMatchObject({ accepted: 2, confirmed: 0 });
    proxy.behaviour = well;
    const next = await once();
    expect(next.code).toBe(0);
    expect(reportOf(next)).toMatchObject({ items: { confirmed: 2 }, requests: { push: 0 } });
  });

  it('2 for a configuration or an option that is wrong', async () => {
    const world = temporaryDirectory();
    const config = writeConfig(world, { peer: {}, push: { maxItmes: 3 } });
    const misspelt = await peersync(['once', '--config', config]);
    expect(misspelt.code).toBe(2);
    expect(misspelt.stderr).toContain('maxItems');
    const mended = writeConfig(world, { peer: { embedded: { dir: join(world, 'peer'), port: 0 } } });
    const wrongOption = await peersync(['once', '--config', mended, '--timeout', 'soon']);
    expect(wrongOption.code).toBe(2);
    expect(wrongOption.stderr).toContain('soon');
  });

  it('0 after a mirror that takes its time, and says meanwhile that it waits for that one', async () => {
    const { config, proxy } = await smallWorld({ shares: [{ name: 'feed', data: 'feed.xml' }] });
    let answer = () => {};
    const isTime = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const feed = answering(200, '<feed/>', { 'content-type': 'text/xml' });
    proxy.behaviour = when(
      ({ path }) => path.startsWith('/api/share'),
      (call) => isTime.then(() => feed(call)),
    );
    const once = new Running(['once', '--config', config]);
    await once.says('% waiting for 1 mirror (feed), 2/2 confirmed');
    expect(once.stdout).not.toContain('100%');
    answer();
    const { code, stdout } = await once.ended;
    expect(stdout).toContain('1 mirror current (1 written)');
    expect(code).toBe(0);
  });

  it('4 when no peer is there, and says where it looked; a folder that is renamed meanwhile waits for nothing', async () => {
    const { base, config, peer, proxy, once, world } = await smallWorld();
    await proxy.goDown();
    const away = await once('--timeout', TIME_TO_BEGIN);
    expect(away.code).toBe(4);
    expect(away.stderr).toContain(proxy.url);
    expect(reportOf(away).items).toMatchObject({ pending: 2, confirmed: 0 });
    const why = await peersync(['why', '-c', config, join(config, '../inbox/good.md')]);
    expect(why.stdout).toContain('pending');
    const folder = { name: 'renamed', path: join(world, 'inbox'), url: base };
    writeConfig(world, { peer: peer.section(), folders: [folder] });
    const back = await once();
    expect(back).toMatchObject({ code: 0, stderr: '' });
    expect(reportOf(back).items).toMatchObject({ pending: 0, confirmed: 2, gone: 2 });
  });
});

/** A word to find each file by: the one that the fewest files have. */
function rarestWords(files: readonly TreeFile[]): Map<string, string[]> {
  const words = files.map(({ content }) => [...plainWords(content)]);
  const count = new Map<string, number>();
  for (const word of words.flat()) count.set(word, (count.get(word) ?? 0) + 1);
  const searches = new Map<string, string[]>();
  for (const [i, { path }] of files.entries()) {
    const [first = '', ...others] = words[i] ?? [];
    const rarest = others.reduce((a, b) => ((count.get(b) ?? 0) < (count.get(a) ?? 0) ? b : a), first);
    searches.set(rarest, [...(searches.get(rarest) ?? []), urlOf(path)]);
  }
  return searches;
}
