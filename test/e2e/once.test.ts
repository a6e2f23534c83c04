import { readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Ended, Running } from '../support/cli.js';
import { answering, well, when, whenPushed } from '../support/scripted-peer.js';
import { Site } from '../support/site.js';
import {
  deepTexts,
  oddTexts,
  plainWords,
  realTexts,
  sha256,
  type TreeFile,
  writeTree,
} from '../support/tree.js';
import { deferred } from '../support/wait.js';

/**
 * Long enough for a first try on a machine that is busy, and not for `once` to give up by itself.
 */
const TIME_TO_BEGIN = '12s';

/** The one object that `once --json` ends with. */
interface OnceReport {
  readonly items: Readonly<Record<string, number>>;
  readonly requests: { readonly push: number; readonly peerdoc: number };
  readonly durationMs: number;
}

/** Runs it; `report` is what it ends with. */
async function onceAt(site: Site, timeout = '4m'): Promise<Ended & { report: OnceReport }> {
  const ended = await site.json<OnceReport>('once', '--timeout', timeout);
  return { ...ended, report: ended.lines.at(-1) as OnceReport };
}

/** The escaped path by the words of the manual: in NFC, and all but plain letters as bytes. */
function escaped(path: string): string {
  const asByte = (character: string) =>
    /[A-Za-z0-9\-._~/]/.test(character)
      ? character
      : Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&');
  return Array.from(path.normalize('NFC'), asByte).join('');
}

/** Runs checks of many things, a few at once. */
async function forEachOf<T>(
  things: Iterable<T>,
  check: (thing: T) => Promise<void>,
): Promise<void> {
  const rest = things[Symbol.iterator]();
  const checkOn = async () => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) await check(next.value);
  };
  await Promise.all(Array.from({ length: 8 }, checkOn));
}

describe('once, on 3,000 real texts, names of every oddity and 200 levels of directories,', () => {
  let files: TreeFile[];
  let site: Site;
  let inbox: string;
  let first: Awaited<ReturnType<typeof onceAt>>;

  const urlOf = (path: string) => `${site.url('inbox/')}${escaped(path)}`;
  const pushedSince = (before: number) =>
    site.proxy.pushes.slice(before).flatMap(({ items }) => items);

  beforeAll(async () => {
    site = await Site.begin({}, 'file');
    site.configure({ peer: site.section({ dialect: 'standard' }) });
    inbox = site.path('inbox');
    files = [...realTexts(3_000), ...oddTexts(), ...deepTexts(inbox, 200)];
    writeTree(inbox, files);
    first = await onceAt(site);
  });

  it('confirms every file, prints one object and ends with 0', () => {
    expect(first).toMatchObject({ code: 0, stderr: '' });
    const { items, requests, durationMs } = first.report;
    expect(items).toMatchObject({
      pending: 0,
      accepted: 0,
      confirmed: files.length,
      quarantined: 0,
    });
    expect(requests).toEqual({
      push: site.proxy.pushes.length,
      peerdoc: site.proxy.lookups.length,
    });
    expect(durationMs).toBeGreaterThan(0);
  });

  it('pushes each file once under its own URL, with its content', async () => {
    const pushed = pushedSince(0).map(({ url }) => url);
    expect(pushed.toSorted()).toEqual(files.map(({ path }) => urlOf(path)).toSorted());
    const wrong: string[] = [];
    await forEachOf(files, async ({ path, content }) => {
      const shown = await site.peer.peerdoc(urlOf(path));
      if (shown?.digest !== sha256(content) || shown.url !== urlOf(path)) wrong.push(path);
      else if (shown.collections.join() !== 'inbox') wrong.push(path);
    });
    expect(wrong).toEqual([]);
  });

  it('makes each file findable by a word of it', async () => {
    const notFound: string[] = [];
    await forEachOf(rarestWords(files), async ([word, paths]) => {
      const found = new Set<string>();
      for (let offset = 0, total = 1; offset < total; offset += 100) {
        const page = await site.peer.search(word, { offset });
        total = page.total;
        for (const { url } of page.items) found.add(url);
      }
      for (const path of paths) if (!found.has(urlOf(path))) notFound.push(`${word}: ${path}`);
    });
    expect(notFound).toEqual([]);
  });

  it('why explains how a file with an odd name was confirmed', async () => {
    for (const name of ['new\nline.md', 'back\\slash.md']) {
      const file = join(inbox, 'odd', name);
      const { code, lines } = await site.json('why', file);
      expect(code).toBe(0);
      const shown = expect.stringContaining(sha256(readFileSync(file))) as string;
      const evidence = { kind: 'digest', shown };
      expect(lines).toMatchObject([
        { status: 'confirmed', file, url: urlOf(`odd/${name}`), evidence },
      ]);
    }
  });

  it('sends no request if nothing changed, or files were touched or rewritten unchanged', async () => {
    const before = site.proxy.requests.length;
    const touch = () =>
      files.forEach(({ path, content }, i) => {
        const absolute = `${inbox}/${path}`;
        if (i % 3 === 0) utimesSync(absolute, new Date(), new Date());
        if (i % 7 === 0) writeFileSync(absolute, content);
        if (i % 11 === 0) {
          writeFileSync(join(inbox, 'anew.tmp'), content);
          renameSync(join(inbox, 'anew.tmp'), absolute);
        }
      });
    for (const change of [() => {}, touch]) {
      change();
      const report = { items: { confirmed: files.length }, requests: { push: 0 } };
      expect(await onceAt(site)).toMatchObject({ code: 0, report });
      expect(site.proxy.requests.slice(before)).toEqual([]);
    }
  });

  it('pushes and confirms only the changed file, even one of the same size', async () => {
    const before = site.proxy.pushes.length;
    const changed = 'odd/hash#tag.md';
    const content = readFileSync(join(inbox, changed)).reverse();
    writeFileSync(join(inbox, changed), content);
    const report = { items: { confirmed: files.length }, requests: { push: 1 } };
    expect(await onceAt(site)).toMatchObject({ code: 0, report });
    const [url, digest] = [urlOf(changed), sha256(content)];
    expect(pushedSince(before)).toEqual([{ url, collection: 'inbox', digest }]);
    expect(await site.peer.peerdoc(url)).toMatchObject({ digest });
  });
});

describe.concurrent('once ends with', () => {
  /** Two files in the inbox. */
  async function small(mirror: Readonly<Record<string, unknown>> = {}): Promise<Site> {
    const site = await Site.begin({}, 'file');
    site.configure({ peer: site.section({ dialect: 'standard' }), push: { attempts: 2 }, mirror });
    for (const file of ['inbox/good.md', 'inbox/bad.md']) site.drop(file);
    return site;
  }

  it('0 if all is confirmed, and with 3 if the peer refuses a file, which keeps its reason', async () => {
    const site = await small();
    const broken = answering(500, 'java.lang.StackOverflowError');
    site.proxy.behaviour = whenPushed(site.url('inbox/bad.md'), broken);
    const once = await site.run('once');
    expect(once.code).toBe(3);
    expect(once.stdout).toContain('1 confirmed, 0 waiting, 1 quarantined');
    expect(once.stderr).not.toContain('The peer answers with errors');
    expect(once.stderr).toMatch(
      /quarantined inbox\/bad.md: .* failed \(500\); the answer begins with: java.lang.StackOverflowError\./,
    );
    expect((await site.json('list', '--status', 'quarantined')).lines).toMatchObject([
      { path: 'bad.md', code: 'PEER_FAILED' },
    ]);
    const why = await site.run('why', 'bad.md');
    expect(why.stdout).toMatch(
      /^status +in quarantine[\s\S]*^reason .*java.lang.StackOverflowError/m,
    );
    site.proxy.behaviour = well;
    expect((await onceAt(site)).code).toBe(3);
    expect((await site.run('retry', 'bad.md')).stdout).toContain('1 item is pending again.');
    const mended = { items: { confirmed: 2, quarantined: 0 } };
    expect(await onceAt(site)).toMatchObject({ code: 0, report: mended });
    await site.expectAllInPeer();
  });

  it('1 if its time is over before all is confirmed, and the next run continues without a push', async () => {
    const site = await small();
    site.proxy.behaviour = when(({ path }) => path.startsWith('/api/peerdoc'), answering(404));
    const late = await onceAt(site, TIME_TO_BEGIN);
    expect(late).toMatchObject({ code: 1, report: { items: { accepted: 2, confirmed: 0 } } });
    expect(late.stderr).toContain('TIMEOUT');
    expect(late.stderr).toContain('0 files still to be pushed and 2 to be confirmed after');
    expect(late.stderr).toContain('list --status accepted');
    site.proxy.behaviour = well;
    const next = { items: { confirmed: 2 }, requests: { push: 0 } };
    expect(await onceAt(site)).toMatchObject({ code: 0, report: next });
  });

  it('2 for a wrong configuration or option', async () => {
    const site = await small();
    const wrongOption = await site.run('once', '--timeout', 'soon');
    expect(wrongOption).toMatchObject({ code: 2, stderr: expect.stringContaining('soon') });
    site.configure({ push: { maxItmes: 3 } });
    const misspelt = await site.run('once');
    expect(misspelt).toMatchObject({ code: 2, stderr: expect.stringContaining('maxItems') });
  });

  it('0 after a slow mirror, and shows meanwhile that it waits for it', async () => {
    const site = await small({ shares: [{ name: 'feed', data: 'feed.xml' }] });
    const isTime = deferred();
    const feed = answering(200, '<feed/>', { 'content-type': 'text/xml' });
    site.proxy.behaviour = when(
      ({ path }) => path.startsWith('/api/share'),
      (call) => isTime.promise.then(() => feed(call)),
    );
    const once = new Running(['once', '--config', site.config], { life: 'file' });
    await once.says('% waiting for 1 mirror (feed), 2/2 confirmed');
    expect(once.stdout).not.toContain('100%');
    isTime.resolve();
    const { code, stdout } = await once.ended;
    expect(stdout).toContain('1 mirror current (1 written)');
    expect(code).toBe(0);
  });

  it('4 if there is no peer, and names its address; a folder that is renamed meanwhile has nothing pending', async () => {
    const site = await small();
    await site.proxy.goDown();
    const away = await onceAt(site, TIME_TO_BEGIN);
    expect(away).toMatchObject({ code: 4, report: { items: { pending: 2, confirmed: 0 } } });
    expect(away.stderr).toContain(site.proxy.url);
    expect((await site.run('why', 'inbox/good.md')).stdout).toContain('pending');
    const folder = { name: 'renamed', path: site.path('inbox'), url: site.url('inbox/') };
    site.configure({ peer: site.peer.section(), folders: [folder] });
    const report = { items: { pending: 0, confirmed: 2, gone: 2 } };
    expect(await onceAt(site)).toMatchObject({ code: 0, stderr: '', report });
  });
});

/** A word to find each file by, the one that the fewest files have: the paths of each. */
function rarestWords(files: readonly TreeFile[]): Map<string, string[]> {
  const words = files.map(({ content }) => [...plainWords(content)]);
  const count = new Map<string, number>();
  for (const word of words.flat()) count.set(word, (count.get(word) ?? 0) + 1);
  const searches = new Map<string, string[]>();
  for (const [i, { path }] of files.entries()) {
    const [first = '', ...others] = words[i] ?? [];
    const rarest = others.reduce(
      (a, b) => ((count.get(b) ?? 0) < (count.get(a) ?? 0) ? b : a),
      first,
    );
    searches.set(rarest, [...(searches.get(rarest) ?? []), path]);
  }
  return searches;
}
