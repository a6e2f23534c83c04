import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { State } from '../../src/state/state.js';
import { pendingRecord } from '../state/records.js';
import { afterwards } from '../support/afterwards.js';
import { Running } from '../support/cli.js';
import { answering, type Behaviour, well, when } from '../support/scripted-peer.js';
import { Site } from '../support/site.js';
import { peersyncInPath, quoted } from '../support/system-tool.js';
import { temporaryDirectory } from '../support/temp.js';
import { fill } from './at-peer.js';

let site: Site;
beforeEach(async () => {
  site = await Site.begin();
});

/** The peer is another server from now on. */
function answers(behaviour: Behaviour): void {
  site.configure({ peer: { url: site.proxy.url, dialect: 'standard' } });
  site.proxy.behaviour = behaviour;
}

/** A file where commands run. */
const write = (name: string, content: string) => writeFileSync(site.path(name), content);
const read = (name: string) => readFileSync(site.path(name), 'utf8');
const failed = (code: number, part: string) => ({
  code,
  stderr: expect.stringContaining(part) as unknown,
});
const rowsOf = async (table: string) => (await site.json('table', 'get', table)).lines;

describe('table', () => {
  it('sets, adds, shows and lists', async () => {
    write('note.txt', 'two\nlines');
    await fill('woods', { oak: { price: '1', note: 'old' } });
    const set = await site.json('table', 'set', 'woods', '--pk', 'oak', 'note=@note.txt');
    expect(set.lines).toEqual([
      { table: 'woods', pk: 'oak', cells: { price: '1', note: 'two\nlines' } },
    ]);
    const added = await site.json<{ pk: string }>('table', 'add', 'woods', 'price=9');
    const pk = added.lines[0]?.pk ?? '';
    expect(pk).toMatch(/^[0-9a-z]{12}$/);
    const rows = [
      { pk: 'oak', price: '1', note: 'two\nlines' },
      { pk, price: '9', note: '' },
    ];
    expect(new Set(await rowsOf('woods'))).toEqual(new Set(rows));
    const found = await site.run('table', 'get', 'woods', '--search', 'lines', '--count', '1');
    expect(found.stdout).toBe('pk,price,note\noak,1,"two\nlines"\n');
    const shown = await site.run('table', 'get', 'woods', '--format', 'table');
    expect(shown.stdout).toContain('two\\nlines');
    const { lines } = await site.json<{ tables: string[] }>('table', 'list');
    expect(lines[0]?.tables).toContain('woods');
  });

  it('keeps keys and names unchanged: numbers, blanks, dashes and other scripts', async () => {
    await fill('0042', {
      '007': { a: '1' },
      '1e3': { a: '1' },
      ' blank ': { a: '1' },
      東京: { a: '1' },
    });
    const set = await site.run('table', 'set', '0042', '--pk=-x', 'a b==1', '--', '-c=2');
    expect(set.code).toBe(0);
    expect((await site.json('table', 'get', '0042', '--search', '=1')).lines).toEqual([
      { pk: '-x', a: '', 'a b': '=1', '-c': '2' },
    ]);
    const keys = ['007', ' blank ', '東京', '--', '-x'];
    const { stdout } = await site.run('table', 'delete-rows', '0042', '--yes', '--json', ...keys);
    expect(JSON.parse(stdout)).toEqual({
      table: '0042',
      deleted: ['007', ' blank ', '東京', '-x'],
    });
    expect(await rowsOf('0042')).toMatchObject([{ pk: '1e3' }]);
  });

  it('deletes nothing without --yes if there is no terminal, and shows what it would delete', async () => {
    const many = Array.from({ length: 25 }, (_, i) => [`k${i}`, { a: `value ${i}` }]);
    await fill('doomed', Object.fromEntries(many));
    const rows = await site.run('table', 'delete-rows', 'doomed', 'k1', 'k2');
    expect(rows).toMatchObject(failed(2, '--yes'));
    expect(rows.stdout).toMatch(/k1 +value 1\nk2 +value 2\n/);
    const drop = await site.run('table', 'drop', 'doomed');
    expect(drop.code).toBe(2);
    expect(drop.stdout).toMatch(/value 0[\s\S]*… and 5 rows more/);
    const asJson = await site.json('table', 'drop', 'doomed');
    expect(asJson).toMatchObject({ code: 2, lines: [{ table: 'doomed', wouldDelete: 25 }] });
    expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: 'NOT_CONFIRMED' } });
    expect(await rowsOf('doomed')).toHaveLength(25);
  });

  it('deletes exactly the named rows, and nothing if one of the keys does not exist', async () => {
    await fill('named', { a: { x: '1' }, b: { x: '1' }, c: { x: '1' } });
    const remove = (...keys: string[]) =>
      site.run('table', 'delete-rows', 'named', ...keys, '--yes');
    expect(await remove('a', 'd')).toMatchObject(failed(1, 'has no row "d"; nothing was deleted'));
    expect((await remove()).code).toBe(2);
    expect((await remove('a', 'c')).code).toBe(0);
    expect(await rowsOf('named')).toEqual([{ pk: 'b', x: '1' }]);
    const dropped = await site.json<{ tables: string[] }>('table', 'drop', 'named', '--yes');
    expect(dropped.code).toBe(0);
    expect(dropped.lines[0]?.tables).not.toContain('named');
    const again = await site.run('table', 'drop', 'named', '--yes');
    expect(again).toMatchObject(failed(1, 'has no table "named"'));
  });

  it('suggests similar names of tables and commands', async () => {
    await fill('addresses', { a: { x: '1' } });
    expect((await site.run('table', 'get', 'adresses')).stderr).toContain(
      'Did you mean "addresses"?',
    );
    expect(await site.run('table', 'lsit')).toMatchObject(
      failed(2, 'There is no command "table lsit". Did you mean "table list"?'),
    );
    expect((await site.run('table', 'get', '--help')).stdout).toMatch(
      /Examples:[\s\S]*--format csv/,
    );
    const completion = await site.run('--get-yargs-completions', 'peersync', 'table', '');
    expect(completion.stdout.split('\n')).toEqual(
      expect.arrayContaining(['delete-rows', 'drop', 'get']),
    );
  });

  it('fails if an answer is cut short', async () => {
    answers(({ response }) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const begin = '{"table":"t","columns":["a"],"rows":[\n{"pk":"k","cells":{"a":"x"}},\n';
      response.write(begin, () => response.destroy());
      return undefined;
    });
    const cut = await site.run('table', 'get', 't');
    expect(cut.code).not.toBe(0);
    expect(cut.stderr).toMatch(/^peersync: http/);
  });
});

describe('push, doc and citation', () => {
  it('push a file, wait until the peer shows it, and show it', async () => {
    const sentence = 'A sentence of more than forty characters that two documents share.';
    write('one.md', `${sentence}\nAnd the first has one more that nobody else has at all.\n`);
    write('two.md', `${sentence}\n`);
    const base = site.url('');
    const pushed = await site.json(
      'push',
      'one.md',
      'two.md',
      '--collection',
      'byhand',
      '--url',
      base,
    );
    expect(pushed).toMatchObject({ code: 0, stderr: '' });
    expect(pushed.lines).toMatchObject([
      { file: 'one.md', url: `${base}one.md`, status: 'confirmed', evidence: { kind: 'digest' } },
      { file: 'two.md', url: `${base}two.md`, status: 'confirmed' },
    ]);
    expect(await site.peer.peerdoc(`${base}one.md`)).toMatchObject({ collections: ['byhand'] });

    const doc = await site.json<{ urlhash: string }>('doc', `${base}one.md`);
    const urlhash = doc.lines[0]?.urlhash ?? '';
    expect((await site.run('doc', '--hash', urlhash)).stdout).toContain(
      `document     ${base}one.md`,
    );
    expect((await site.json('citation', `${base}one.md`)).lines).toMatchObject([
      { sentences: [{ text: sentence, appearsIn: [`${base}two.md`] }, { appearsIn: [] }] },
    ]);
    const filtered = await site.run('citation', '--hash', urlhash, '--filter', '--ch', '1');
    expect(filtered.stdout).toContain(`also in ${base}two.md`);
    expect(filtered.stdout).not.toContain('nobody else');
  });

  it('remove a document by its file or its URL after a confirmation, and wait until the peer shows it no more', async () => {
    for (const name of ['x.md', 'y.md', 'z.md']) write(name, `Text of ${name}`);
    const base = site.url('');
    await site.run('push', 'x.md', 'y.md', 'z.md', '--collection', 'byhand', '--url', base);
    rmSync(site.path('x.md'));
    const unasked = await site.run('push', '--remove', 'x.md', '--url', base);
    expect(unasked).toMatchObject(failed(2, 'Nothing was removed'));
    const removed = await site.run(
      'push',
      '--remove',
      'x.md',
      '--url',
      base,
      `${base}y.md`,
      '--yes',
    );
    expect(removed).toMatchObject({ code: 0, stderr: '' });
    // Each is told when the peer does not show it any more, whichever that is first.
    expect(removed.stdout.trimEnd().split('\n').toSorted()).toEqual(
      ['x', 'y'].map((name) => `removed    ${base}${name}.md: the peer does not show it any more`),
    );
    for (const name of ['x.md', 'y.md'])
      expect(await site.peer.peerdoc(`${base}${name}`)).toBeUndefined();
    expect(await site.peer.peerdoc(`${base}z.md`)).toMatchObject({ collections: ['byhand'] });
    const again = await site.json('push', '--remove', `${base}z.md`, `${base}x.md`, '--yes');
    expect(JSON.parse(again.stderr)).toMatchObject({ error: { code: 'NOT_FOUND' } });
    expect(await site.peer.peerdoc(`${base}z.md`)).toBeDefined();
  });

  it('report that a peer without a page for removals keeps an empty document', async () => {
    write('e.md', 'Text of e');
    const url = site.url('e.md');
    await site.run('push', 'e.md', '--collection', 'byhand', '--url', url);
    site.proxy.behaviour = when(({ path }) => path === '/api/remove_p.html', answering(404));
    const emptied = await site.run('push', '--remove', url, '--yes');
    expect(emptied).toMatchObject({ code: 0, stderr: '' });
    expect(emptied.stdout).toMatch(
      /^emptied .*this peer cannot remove documents; an empty one stands in its/,
    );
    site.proxy.behaviour = well;
    expect(await site.peer.peerdoc(url)).toMatchObject({ size: 0, collections: ['removed'] });
  });

  it('do not wait for the document with --no-wait', async () => {
    write('a.md', 'not waited for');
    const pushed = await site.run('push', 'a.md', '--collection', 'c', '--no-wait');
    expect(pushed.code).toBe(0);
    const [, url = ''] = /^accepted {3}a\.md {2}(file:.*)\n$/.exec(pushed.stdout) ?? [];
    expect(fileURLToPath(url)).toBe(site.path('a.md'));
  });

  it('report documents that the peer does not show, and documents that it refuses', async () => {
    const push = ({ path }: { path: string }) => path.includes('push_p');
    const item = (answer: object) =>
      answering(200, JSON.stringify(answer), { 'content-type': 'application/json' });
    write('a.md', 'text');
    answers(answering(404));
    site.proxy.behaviour = (call) =>
      (push(call)
        ? item({ successall: 'true', 'item-0': { item: '0', success: 'true' } })
        : answering(404))(call);
    const unseen = await site.json('push', 'a.md', '--collection', 'c', '--timeout', '3s');
    expect(unseen).toMatchObject({ code: 1, lines: [{ status: 'unseen' }] });
    expect(JSON.parse(unseen.stderr)).toMatchObject({ error: { code: 'TIMEOUT' } });
    const refusal = { item: '0', success: 'false', message: 'blacklisted' };
    site.proxy.behaviour = when(push, item({ successall: 'false', 'item-0': refusal }));
    const refused = await site.run('push', 'a.md', '--collection', 'c');
    expect(refused).toMatchObject(failed(1, 'The peer refused it: blacklisted.'));
  });

  it('have different exit codes for a wrong usage (2), a missing document (1) and an unreachable peer (4)', async () => {
    write('binary', 'a\0b');
    expect((await site.run('citation', 'https://x.org/', '--ch', 'many')).code).toBe(2);
    expect((await site.run('push', 'binary', '--collection', 'a,b')).code).toBe(2);
    const binary = await site.run('push', 'binary', '--collection', 'c');
    expect(binary).toMatchObject(failed(1, 'this peer takes only text'));
    const missing = await site.json('doc', 'https://nowhere.example.org/');
    expect(missing.code).toBe(1);
    expect(JSON.parse(missing.stderr)).toMatchObject({ error: { code: 'NOT_FOUND' } });
    await site.proxy.goDown();
    expect((await site.run('table', 'list')).code).toBe(4);
  });
});

describe('share', () => {
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7919) % 256));
  const get = (...more: string[]) => site.run('share', 'get', '--data', 'x', ...more);

  it('get writes the whole object to a file or into a pipe, and selects the group by --c', async () => {
    answers(answering(200, content, { 'content-type': 'application/octet-stream' }));
    writeFileSync(site.path('object'), 'before', { mode: 0o640 });
    const saved = await site.json('share', 'get', '--data', 'a b.bin', '--c', 'g', '-o', 'object');
    expect(saved).toMatchObject({ code: 0, stderr: '' });
    expect(saved.lines).toMatchObject([{ data: 'a b.bin', c: 'g', bytes: content.length }]);
    expect(readFileSync(site.path('object')).equals(content)).toBe(true);
    const env = { ...process.env, ...peersyncInPath(), PEERSYNC_CONFIG: site.config };
    const pipe = spawn('sh', ['-c', 'peersync share get --data x | (sleep 0.2; cat)'], { env });
    expect(Buffer.concat(await pipe.stdout.toArray()).equals(content)).toBe(true);
    expect(site.proxy.requests.map(({ form }) => form.toString())).toEqual([
      'data=a+b.bin&c=g',
      'data=x',
    ]);
  });

  it('get leaves the file unchanged if the answer is cut short, too large or missing', async () => {
    write('object', 'before');
    answers(({ response }) => {
      response.writeHead(200, { 'content-length': content.length });
      response.write(content.subarray(0, 100_000), () => response.destroy());
      return undefined;
    });
    expect((await get('-o', 'object')).code).not.toBe(0);
    site.proxy.behaviour = answering(200, content);
    const tooLarge = await get('-o', 'object', '--max-size', '10 KiB');
    expect(tooLarge.stderr).toMatch(/^peersync: http.*\n.*larger --max-size/);
    site.proxy.behaviour = answering(404);
    expect(await get('-o', 'object')).toMatchObject(failed(1, 'no shared object "x"'));
    expect(read('object')).toBe('before');
    expect(readdirSync(site.directory).filter((name) => name.includes('tmp'))).toEqual([]);
  });

  it('get fetches the objects that list names', async () => {
    const shares = join(site.peer.data, 'shares');
    for (const name of ['lists/a.csv', 'lists/b.csv', 'other/c.csv']) {
      mkdirSync(dirname(join(shares, name)), { recursive: true });
      writeFileSync(join(shares, name), name);
    }
    const list = async (group: string) =>
      (await site.run('share', 'list', '--group', group)).stdout;
    expect(await list('lists')).toBe('lists/a.csv\nlists/b.csv\n');
    expect(await list('x')).toBe('The peer has no such shared objects.\n');
    const all = { shares: ['lists/a.csv', 'lists/b.csv', 'other/c.csv'] };
    expect((await site.json('share', 'list')).lines).toEqual([all]);
    const got = await site.run('share', 'get', '--data', 'a.csv', '--group', 'lists');
    expect(got.stdout).toBe('lists/a.csv');
    answers(answering(404));
    expect((await site.run('share', 'list')).code).not.toBe(0);
  });

  it('get refuses a path that is not a file, and --json without a place for the object', async () => {
    mkdirSync(site.path('directory'));
    for (const wrong of [['-o', 'directory'], ['-o', '/dev/null'], ['--json']])
      expect((await get(...wrong)).code).toBe(2);
  });
});

describe.skipIf(spawnSync('script', ['--version']).status !== 0)(
  'on a terminal (needs script)',
  () => {
    /** Runs a command as on a terminal of 60 columns where something is typed once it asks. */
    async function onTerminal(args: readonly string[], typed = '') {
      const line = ['peersync', ...args, '-c', site.config].map(quoted).join(' ');
      const env = { ...process.env, ...peersyncInPath() };
      const child = spawn('script', ['-qec', `stty cols 60; ${line}`, '/dev/null'], { env });
      afterwards('test', () => void child.kill('SIGKILL'));
      let shown = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        shown += text;
        if (/Type [^\n]*: $/.test(shown)) child.stdin.write(typed);
      });
      const code = await new Promise<number | null>((done) => void child.on('close', done));
      return { code, shown: shown.replaceAll('\r\n', '\n') };
    }

    it('a table is aligned, and is deleted only after its name was typed', async () => {
      await fill('asked', { k: { long: 'x'.repeat(200), escape: '\x1b[31mred' } });
      const got = await onTerminal(['table', 'get', 'asked']);
      expect(got.shown).toMatch(/^pk {2}long +escape\n──.*\nk {3}x+… {2}\\x1b\[31mred\n1 row\n$/);
      for (const line of got.shown.split('\n')) expect(line.length).toBeLessThanOrEqual(60);
      const csv = await onTerminal(['table', 'get', 'asked', '--format', 'csv']);
      expect(csv.shown).toContain('\\x1b[31mred');
      const drop = ['table', 'drop', 'asked'];
      expect(await onTerminal(drop, 'yes\n')).toMatchObject({
        code: 1,
        shown: expect.stringContaining('Nothing was deleted'),
      });
      expect(await onTerminal(drop, 'asked\n')).toMatchObject({
        code: 0,
        shown: expect.stringContaining('Deleted the table asked'),
      });
    });

    it('control characters of a shared object are shown as escapes', async () => {
      answers(answering(200, '\x1b]0;gotcha\x07', { 'content-type': 'text/plain' }));
      const got = await onTerminal(['share', 'get', '--data', 'x']);
      expect(got).toMatchObject({ code: 0, shown: expect.stringContaining('\\x1b]0;gotcha\\x07') });
      expect(got.shown).not.toContain('\x1b]0;gotcha');
    });
  },
);

describe('the embedded peer', () => {
  const embedded = (more: object = {}) => ({
    peer: { embedded: { dir: './peer', port: 0, ...more } },
  });

  async function statuses(url: string, dir?: string): Promise<number[]> {
    const password =
      dir === undefined ? '' : readFileSync(join(dir, 'admin-password'), 'utf8').trim();
    const authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`;
    const headers = dir === undefined ? {} : { authorization };
    const paths = ['/', '/search.json', '/api/peerdoc.json?url=http://h/'];
    return Promise.all(paths.map(async (path) => (await fetch(url + path, { headers })).status));
  }

  it('is that of the running daemon, or one that the command starts for itself', async () => {
    site.configure(embedded());
    const set = async (cell: string) =>
      expect((await site.run('table', 'set', 't', '--pk', 'k', cell)).code).toBe(0);
    await set('before=the daemon');
    await site.start();
    await set('beside=the daemon');
    await site.stop();
    expect(await rowsOf('t')).toEqual([{ pk: 'k', before: 'the daemon', beside: 'the daemon' }]);
  });

  it('looks up many documents in one request, and receives the times of their files', async () => {
    site.configure(embedded());
    for (let i = 0; i < 200; i += 1) {
      site.drop(`inbox/${i}.txt`, `tea ${i}`);
      utimesSync(site.path(`inbox/${i}.txt`), 1_000_040_000 + i, 1_000_040_000 + i);
    }
    const { code, lines } = await site.json<{ items: object; requests: { peerdoc: number } }>(
      'once',
    );
    expect([code, lines.at(-1)?.items]).toMatchObject([0, { confirmed: 200 }]);
    expect(lines.at(-1)?.requests.peerdoc).toBeLessThan(100);
    const found = await site.run('search', 'tea', '--sort', 'date', '--limit', '3');
    const shown = [...found.stdout.matchAll(/^tea (\d+)$|2001-09-09 \d\d:\d\d:\d\d/gm)];
    expect(shown.map(([text, n]) => n ?? text.slice(0, 10))).toEqual(
      ['199', '198', '197'].flatMap((n) => [n, '2001-09-09']),
    );
    const without = await site.json<{ query: string; items: { title: string }[] }>(
      'search',
      '-199',
      'tea',
      '-tea198',
      '--sort',
      'date',
      '--limit',
      '1',
    );
    expect(without.lines[0]).toMatchObject({
      query: '-199 tea -tea198',
      items: [{ title: 'tea 198' }],
    });
    const year = ['--after', '2001', '--before', '2001-09'];
    for (const [options, total] of [
      [[...year, '--type', 'txt'], 200],
      [[...year, '--type', 'pdf'], 0],
      [['--before', '2000'], 0],
    ] as const)
      expect((await site.json<{ total: number }>('search', 'tea', ...options)).lines).toMatchObject(
        [{ total }],
      );
    expect(await site.run('search', 'tea', '--after', 'May')).toMatchObject(failed(2, 'a month'));
  });

  it('does not stop a command whose port another program uses', async () => {
    site.configure(embedded({ port: Number(new URL(site.peer.url).port) }));
    for (const command of ['pause', 'resume', 'verify'])
      expect(await site.run(command)).toMatchObject({ code: 0, stderr: '' });
  });

  it('reports the process that uses its directory', async () => {
    site.configure(embedded({ dir: site.peer.data }));
    expect(await site.run('table', 'list')).toMatchObject(
      failed(1, `${site.peer.running.child.pid}`),
    );
  });

  it('answers only its administrator with --require-auth or requireAuth', async () => {
    for (const [options, expected] of [
      [['--require-auth'], [401, 401, 401]],
      [[], [200, 200, 404]],
    ] as const) {
      const dir = temporaryDirectory();
      const running = new Running(['peer', '--data', dir, '--port', '0', ...options]);
      const listens = /the peer listens on (http:\/\/[^/"]+)\//;
      await running.says(listens);
      const url = listens.exec(running.stdout)?.[1] ?? '';
      expect(await statuses(url)).toEqual(expected);
      expect(await statuses(url, dir)).toEqual([200, 200, 404]);
    }
    site.configure(embedded({ requireAuth: true }));
    site.drop('inbox/a.txt', 'for one reader');
    expect((await site.run('once')).code).toBe(0);
    const daemon = site.spawn();
    const search = /search it at (http:\/\/[^/"]+)\//;
    await daemon.says(search);
    expect(await statuses(search.exec(daemon.stdout + daemon.stderr)?.[1] ?? '')).toEqual([
      401, 401, 401,
    ]);
  });
});

describe('without a daemon', () => {
  /** A state with these files, and a peer whose password nobody knows. */
  async function knows(...paths: readonly string[]): Promise<void> {
    const auth = { username: 'admin', password: { env: 'NO_SUCH_VARIABLE' } };
    site.configure({ peer: { url: 'http://127.0.0.1:1', auth } });
    const state = await State.open(site.stateDirectory, { clock: systemClock, log: silentLogger });
    const notBefore = systemClock.now() + 3_600_000;
    for (const path of paths) state.put({ ...pendingRecord(path), notBefore });
    await state.close();
  }

  const PENDING_AGAIN = /^1 item is pending again\. No daemon runs now: the next `peersync run/;

  it('pause, resume and retry work without the password of the peer', async () => {
    await knows('a.txt');
    expect(await site.run('pause')).toMatchObject({ code: 0, stderr: '' });
    expect((await site.run('status', '--json')).stdout).toContain('"paused":{"since"');
    expect((await site.run('resume')).stdout).toMatch(/^The pause is over\. No daemon runs now: /);
    expect((await site.run('retry', '--all')).stdout).toMatch(PENDING_AGAIN);
  });

  it('the bare name of a file is enough if it is unique', async () => {
    await knows('deep/one.md', 'x/two.md', 'y/two.md');
    expect((await site.run('why', 'one.md')).stdout).toContain(site.path('inbox/deep/one.md'));
    expect((await site.run('retry', 'one.md')).stdout).toMatch(PENDING_AGAIN);
    const both = await site.run('why', 'two.md');
    expect(both.code).toBe(2);
    expect(both.stderr).toMatch(/2 files are named "two\.md": .*x\/two\.md, .*y\/two\.md\./);
    expect((await site.run('retry', 'none.md')).stderr).toContain(
      'No known file is named "none.md".',
    );
  });
});

it('the help of a command begins with its own options', async () => {
  const { stdout } = await site.run('help', 'once');
  expect(stdout.indexOf('--timeout')).toBeLessThan(stdout.indexOf('General options:'));
  expect(stdout.indexOf('General options:')).toBeLessThan(stdout.indexOf('--config'));
});
