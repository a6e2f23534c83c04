import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PeerClient } from '../../src/peer/client.js';
import { afterwards } from '../support/afterwards.js';
import { type Ended, peersync, Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { PeerProcess } from '../support/peer-process.js';
import { temporaryDirectory } from '../support/temp.js';

const CLI = resolve(import.meta.dirname, '../../dist/cli.js');
const directory = temporaryDirectory('file');
let peerOfAll: Promise<PeerProcess> | undefined;

/** One peer for all tests here; each uses documents and tables of its own. */
function remotePeer(): Promise<PeerProcess> {
  peerOfAll ??= PeerProcess.start(join(directory, 'peer'), { life: 'file' });
  return peerOfAll;
}

/** Sets rows without the command line, which the tests are about. */
async function fill(
  table: string,
  rows: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Promise<void> {
  const { url, data } = await remotePeer();
  const password = readFileSync(join(data, 'admin-password'), 'utf8').trim();
  const timeouts = { connect: 5_000, headers: 20_000, body: 20_000, total: 30_000 };
  const credentials = { username: 'admin', password };
  const client = new PeerClient({ baseUrl: url, credentials, timeouts, maxAnswer: 2 ** 20 });
  const all = Object.entries(rows).map(([pk, cells]) => ({ pk, cells: new Map(Object.entries(cells)) }));
  await client.tables.set(table, all).finally(() => client.close());
}

type Run = (...args: string[]) => Promise<Ended>;

/** Commands with a configuration that goes to the one peer, run in a directory of their own. */
async function atRemotePeer(): Promise<{ readonly run: Run; readonly config: string; readonly cwd: string }> {
  const cwd = temporaryDirectory();
  const config = writeConfig(cwd, { peer: (await remotePeer()).section() });
  return { cwd, config, run: (...args) => peersync(args, { cwd, env: { PEERSYNC_CONFIG: config } }) };
}

/** Commands that go to a server with a handler of its own. */
async function atServer(handler: RequestListener): Promise<{ readonly run: Run; readonly cwd: string }> {
  const server = createServer(handler);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  afterwards('test', () => {
    server.closeAllConnections();
    server.close();
  });
  const cwd = temporaryDirectory();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = writeConfig(cwd, { peer: { url } });
  return { cwd, run: (...args) => peersync(args, { cwd, env: { PEERSYNC_CONFIG: config } }) };
}

function valuesOf({ stdout }: Ended): unknown[] {
  return stdout
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

describe('push, doc and citation', () => {
  it('push a file, wait until the peer shows it, and show it', async () => {
    const { run, cwd } = await atRemotePeer();
    const sentence = 'A sentence of more than forty characters that two documents share.';
    writeFileSync(
      join(cwd, 'one.md'),
      `${sentence}\nAnd the first has one more that nobody else has at all.\n`,
    );
    writeFileSync(join(cwd, 'two.md'), `${sentence}\n`);
    const base = 'https://push.example.org/';
    const pushed = await run('push', 'one.md', 'two.md', '--collection', 'byhand', '--url', base, '--json');
    expect(pushed).toMatchObject({ code: 0, stderr: '' });
    expect(valuesOf(pushed)).toMatchObject([
      { file: 'one.md', url: `${base}one.md`, status: 'confirmed', evidence: { kind: 'digest' } },
      { file: 'two.md', url: `${base}two.md`, status: 'confirmed' },
    ]);
    const shown = await (await remotePeer()).peerdoc(`${base}one.md`);
    expect(shown?.collections).toEqual(['byhand']);

    const doc = await run('doc', `${base}one.md`, '--json');
    const [{ urlhash }] = valuesOf(doc) as [{ urlhash: string }];
    expect((await run('doc', '--hash', urlhash)).stdout).toContain(`document     ${base}one.md`);

    const citation = await run('citation', `${base}one.md`, '--json');
    expect(valuesOf(citation)).toMatchObject([
      { sentences: [{ text: sentence, appearsIn: [`${base}two.md`] }, { appearsIn: [] }] },
    ]);
    const filtered = await run('citation', '--hash', urlhash, '--filter', '--ch', '1');
    expect(filtered.stdout).toContain(`also in ${base}two.md`);
    expect(filtered.stdout).not.toContain('nobody else');
  });

  it('push again what changed, and confirm the new version and not the old one', async () => {
    const { run, cwd } = await atRemotePeer();
    const push = () =>
      run('push', 'a.md', '--collection', 'c', '--url', 'https://again.example.org/a.md', '--json');
    const digests = new Set<string>();
    for (const text of ['first', 'other']) {
      writeFileSync(join(cwd, 'a.md'), text);
      const [outcome] = valuesOf(await push()) as [{ status: string; evidence: { shown: string } }];
      expect(outcome.status).toBe('confirmed');
      digests.add(outcome.evidence.shown);
    }
    expect(digests.size).toBe(2);
  });

  it('leave it at the peer’s acceptance with --no-wait', async () => {
    const { run, cwd } = await atRemotePeer();
    writeFileSync(join(cwd, 'a.md'), 'not waited for');
    const pushed = await run('push', 'a.md', '--collection', 'c', '--no-wait');
    expect(pushed.code).toBe(0);
    expect(pushed.stdout).toBe(`accepted   a.md  file://${cwd}/a.md\n`);
  });

  it('say when the peer does not show what it took, and what it refuses', async () => {
    const { run, cwd } = await atServer((request, response) => {
      const isPush = request.url?.includes('push_p');
      request.resume().on('end', () => {
        if (isPush) response.setHeader('content-type', 'application/json').end(answer);
        else response.writeHead(404).end();
      });
    });
    let answer = '{"successall":"true","item-0":{"item":"0","success":"true"}}';
    writeFileSync(join(cwd, 'a.md'), 'text');
    const unseen = await run('push', 'a.md', '--collection', 'c', '--timeout', '500ms', '--json');
    expect(unseen.code).toBe(1);
    expect(valuesOf(unseen)).toMatchObject([{ status: 'unseen' }]);
    expect(JSON.parse(unseen.stderr)).toMatchObject({ error: { code: 'TIMEOUT' } });
    answer = '{"successall":"false","item-0":{"item":"0","success":"false","message":"blacklisted"}}';
    const refused = await run('push', 'a.md', '--collection', 'c');
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('The peer refused 1 of 1 file: blacklisted.');
  });

  it('tell a wrong usage (2), what is not there (1) and a peer that is away (4) apart', async () => {
    const { run, cwd } = await atRemotePeer();
    writeFileSync(join(cwd, 'binary'), 'a\0b');
    expect((await run('citation', 'https://x.org/', '--ch', 'many')).code).toBe(2);
    expect((await run('push', 'binary', '--collection', 'a,b')).code).toBe(2);
    const binary = await run('push', 'binary', '--collection', 'c');
    expect(binary).toMatchObject({ code: 1, stderr: expect.stringContaining('this peer takes only text') });
    const missing = await run('doc', 'https://nowhere.example.org/', '--json');
    expect(missing.code).toBe(1);
    expect(JSON.parse(missing.stderr)).toMatchObject({ error: { code: 'NOT_FOUND' } });
    const away = writeConfig(temporaryDirectory(), { peer: { url: 'http://127.0.0.1:9' } });
    expect((await peersync(['table', 'list', '-c', away])).code).toBe(4);
  });
});

describe('table', () => {
  it('sets, adds, shows and lists', async () => {
    const { run, cwd } = await atRemotePeer();
    writeFileSync(join(cwd, 'note.txt'), 'two\nlines');
    await fill('woods', { oak: { price: '1', note: 'old' } });
    const set = await run('table', 'set', 'woods', '--pk', 'oak', 'note=@note.txt', '--json');
    expect(valuesOf(set)).toEqual([{ table: 'woods', pk: 'oak', cells: { price: '1', note: 'two\nlines' } }]);
    const added = await run('table', 'add', 'woods', 'price=9', '--json');
    const [{ pk }] = valuesOf(added) as [{ pk: string }];
    expect(pk).toMatch(/^[0-9a-z]{12}$/);
    const rows = valuesOf(await run('table', 'get', 'woods', '--json')) as { pk: string }[];
    expect(rows.sort((a, b) => (a.pk === 'oak' ? -1 : b.pk === 'oak' ? 1 : 0))).toEqual([
      { pk: 'oak', price: '1', note: 'two\nlines' },
      { pk, price: '9', note: '' },
    ]);
    expect((await run('table', 'get', 'woods', '--search', 'lines', '--count', '1')).stdout).toBe(
      'pk,price,note\r\noak,1,"two\nlines"\r\n',
    );
    expect((await run('table', 'get', 'woods', '--format', 'table')).stdout).toContain('two\\nlines');
    const [{ tables }] = valuesOf(await run('table', 'list', '--json')) as [{ tables: string[] }];
    expect(tables).toContain('woods');
  });

  it('keeps keys and names as they are: numbers, blanks, dashes and other scripts', async () => {
    const { run } = await atRemotePeer();
    await fill('0042', { '007': { a: '1' }, '1e3': { a: '1' }, ' blank ': { a: '1' }, 東京: { a: '1' } });
    expect((await run('table', 'set', '0042', '--pk=-x', 'a b==1', '--', '-c=2')).code).toBe(0);
    expect(valuesOf(await run('table', 'get', '0042', '--json', '--search', '=1'))).toEqual([
      { pk: '-x', a: '', 'a b': '=1', '-c': '2' },
    ]);
    const keys = ['007', ' blank ', '東京', '--', '-x'];
    const { stdout } = await run('table', 'delete-rows', '0042', '--yes', '--json', ...keys);
    expect(JSON.parse(stdout)).toEqual({ table: '0042', deleted: ['007', ' blank ', '東京', '-x'] });
    expect(valuesOf(await run('table', 'get', '0042', '--json'))).toMatchObject([{ pk: '1e3' }]);
  });

  it('deletes nothing without --yes where nobody can be asked, and shows what would go', async () => {
    const { run } = await atRemotePeer();
    await fill(
      'doomed',
      Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`k${i}`, { a: `value ${i}` }])),
    );
    const rows = await run('table', 'delete-rows', 'doomed', 'k1', 'k2');
    expect(rows).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
    expect(rows.stdout).toMatch(/k1 +value 1\nk2 +value 2\n/);
    const drop = await run('table', 'drop', 'doomed');
    expect(drop.code).toBe(2);
    expect(drop.stdout).toContain('value 0');
    expect(drop.stdout).toContain('… and 5 rows more');
    const asJson = await run('table', 'drop', 'doomed', '--json');
    expect(asJson.code).toBe(2);
    expect(valuesOf(asJson)).toMatchObject([{ table: 'doomed', wouldDelete: 25 }]);
    expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: 'NOT_CONFIRMED' } });
    expect(valuesOf(await run('table', 'get', 'doomed', '--json'))).toHaveLength(25);
  });

  it('deletes exactly what was named, and nothing when one of the keys is not there', async () => {
    const { run } = await atRemotePeer();
    await fill('named', { a: { x: '1' }, b: { x: '1' }, c: { x: '1' } });
    const missing = await run('table', 'delete-rows', 'named', 'a', 'd', '--yes');
    expect(missing).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has no row "d"; nothing was deleted'),
    });
    expect((await run('table', 'delete-rows', 'named', '--yes')).code).toBe(2);
    expect((await run('table', 'delete-rows', 'named', 'a', 'c', '--yes')).code).toBe(0);
    expect(valuesOf(await run('table', 'get', 'named', '--json'))).toEqual([{ pk: 'b', x: '1' }]);
    const dropped = await run('table', 'drop', 'named', '--yes', '--json');
    expect(dropped.code).toBe(0);
    const [{ tables }] = valuesOf(dropped) as [{ tables: string[] }];
    expect(tables).not.toContain('named');
    const again = await run('table', 'drop', 'named', '--yes');
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('has no table "named"') });
  });

  it('suggests the table that was meant, and the command', async () => {
    const { run } = await atRemotePeer();
    await fill('addresses', { a: { x: '1' } });
    expect((await run('table', 'get', 'adresses')).stderr).toContain('Did you mean "addresses"?');
    const misspelt = await run('table', 'lsit');
    expect(misspelt).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean list?') });
    expect((await peersync(['table', 'get', '--help'])).stdout).toMatch(/Examples:[\s\S]*--format csv/);
    const completion = await peersync(['--get-yargs-completions', 'peersync', 'table', '']);
    expect(completion.stdout.split('\n')).toEqual(
      expect.arrayContaining(['delete-rows', 'drop', 'get', 'set']),
    );
  });

  it('ends with an error, and not as if that were all, when an answer is cut short', async () => {
    const { run } = await atServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"table":"t","columns":["a"],"rows":[\n{"pk":"k","cells":{"a":"x"}},\n', () =>
        response.destroy(),
      );
    });
    const cut = await run('table', 'get', 't');
    expect(cut.code).not.toBe(0);
    expect(cut.stderr).toMatch(/^peersync: http/);
  });
});

describe('on a terminal', () => {
  const hasScript = spawnSync('script', ['--version']).status === 0;

  /** Runs a command as on a terminal of 60 columns where something is typed once it asks. */
  async function onTerminal(args: readonly string[], typed: string) {
    const quoted = [process.execPath, CLI, ...args].map((word) => `'${word}'`).join(' ');
    const child = spawn('script', ['-qec', `stty cols 60; ${quoted}`, '/dev/null']);
    afterwards('test', () => void child.kill('SIGKILL'));
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
      if (/Type [^\n]*: $/.test(shown)) child.stdin.write(typed);
    });
    const code = await new Promise<number | null>((done) => void child.on('close', done));
    return { code, shown: shown.replaceAll('\r\n', '\n') };
  }

  it.skipIf(!hasScript)(
    'a table is aligned, and nothing goes before its name was typed (needs script)',
    async () => {
      const { config } = await atRemotePeer();
      await fill('asked', { k: { long: 'x'.repeat(200), escape: '\x1b[31mred' } });
      const got = await onTerminal(['table', 'get', 'asked', '-c', config], '');
      expect(got.shown).toMatch(/^pk {2}long +escape\n──.*\nk {3}x+… {2}\\x1b\[31mred\n1 row\n$/);
      for (const line of got.shown.split('\n')) expect(line.length).toBeLessThanOrEqual(60);

      const other = await onTerminal(['table', 'drop', 'asked', '-c', config], 'yes\n');
      expect(other).toMatchObject({ code: 1, shown: expect.stringContaining('Nothing was deleted') });
      const named = await onTerminal(['table', 'drop', 'asked', '-c', config], 'asked\n');
      expect(named).toMatchObject({ code: 0, shown: expect.stringContaining('Deleted the table asked') });
    },
  );

  it.skipIf(!hasScript)('a shared object that is not text is not put there (needs script)', async () => {
    const { cwd } = await atServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'text/plain' }).end('\x1b]0;gotcha\x07');
    });
    const got = await onTerminal(['share', 'get', '--data', 'x', '-c', join(cwd, 'config.json')], '');
    expect(got).toMatchObject({ code: 1, shown: expect.stringContaining('not plain text') });
    expect(got.shown).not.toContain('\x1b]0;gotcha');
  });
});

describe('share get', () => {
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7919) % 256));

  it('writes the object whole, to a file or into a pipe, and asks for the group by --c', async () => {
    const asked: string[] = [];
    const { run, cwd } = await atServer((request, response) => {
      let form = '';
      request.on('data', (chunk: Buffer) => {
        form += chunk.toString();
      });
      request.on('end', () => {
        asked.push(form);
        response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(content);
      });
    });
    writeFileSync(join(cwd, 'object'), 'before', { mode: 0o640 });
    const saved = await run('share', 'get', '--data', 'a b.bin', '--c', 'g', '-o', 'object', '--json');
    expect(saved).toMatchObject({ code: 0, stderr: '' });
    expect(valuesOf(saved)).toMatchObject([{ data: 'a b.bin', c: 'g', bytes: content.length }]);
    expect(readFileSync(join(cwd, 'object')).equals(content)).toBe(true);
    expect([...new URLSearchParams(asked[0])]).toEqual([
      ['data', 'a b.bin'],
      ['c', 'g'],
    ]);
    const pipe = spawn('sh', ['-c', `'${process.execPath}' '${CLI}' share get --data x | (sleep 0.2; cat)`], {
      cwd,
      env: { ...process.env, PEERSYNC_CONFIG: join(cwd, 'config.json') },
    });
    const piped = Buffer.concat(await pipe.stdout.toArray());
    expect(piped.equals(content)).toBe(true);
    expect([...new URLSearchParams(asked[1])]).toEqual([['data', 'x']]);
  });

  it('leaves the file as it was when the answer is cut short, too large, or there is none', async () => {
    let behave: RequestListener = () => {};
    const { run, cwd } = await atServer((request, response) => {
      request.resume().on('end', () => behave(request, response));
    });
    writeFileSync(join(cwd, 'object'), 'before');
    const get = (...more: string[]) => run('share', 'get', '--data', 'x', '-o', 'object', ...more);
    behave = (_, response) => {
      response.writeHead(200, { 'content-length': content.length });
      response.write(content.subarray(0, 100_000), () => response.destroy());
    };
    expect((await get()).code).not.toBe(0);
    behave = (_, response) => void response.end(content);
    expect((await get('--max-size', '10 KiB')).stderr).toMatch(/^peersync: http/);
    behave = (_, response) => void response.writeHead(404).end();
    expect(await get()).toMatchObject({ code: 1, stderr: expect.stringContaining('no shared object "x"') });
    expect(readFileSync(join(cwd, 'object'), 'utf8')).toBe('before');
    expect(readdirSync(cwd).filter((name) => name.includes('tmp'))).toEqual([]);
  });

  it('is a wrong usage where the file is none, or --json has no place for the object', async () => {
    const { run, cwd } = await atServer((_, response) => void response.end('x'));
    mkdirSync(join(cwd, 'directory'));
    for (const wrong of [['-o', 'directory'], ['-o', '/dev/null'], ['--json']])
      expect((await run('share', 'get', '--data', 'x', ...wrong)).code).toBe(2);
  });
});

describe('the embedded peer', () => {
  const peer = { url: 'embedded', embedded: { dir: './peer', port: 0 } };

  it('is the one of the running daemon, and without a daemon one that is there for the command', async () => {
    const cwd = temporaryDirectory();
    const config = writeConfig(cwd, { peer });
    const run: Run = (...args) => peersync(args, { cwd, env: { PEERSYNC_CONFIG: config } });
    expect((await run('table', 'set', 't', '--pk', 'k', 'before=the daemon')).code).toBe(0);
    const daemon = new Running(['run', '-c', config]);
    await daemon.says('pushing to');
    expect((await run('table', 'set', 't', '--pk', 'k', 'beside=the daemon')).code).toBe(0);
    expect((await daemon.kill('SIGTERM')).code).toBe(0);
    expect(valuesOf(await run('table', 'get', 't', '--json'))).toEqual([
      { pk: 'k', before: 'the daemon', beside: 'the daemon' },
    ]);
  });

  it('says who has it when another process does', async () => {
    const cwd = temporaryDirectory();
    const other = await PeerProcess.start(join(cwd, 'peer'));
    const ended = await peersync(['table', 'list', '-c', writeConfig(cwd, { peer })]);
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining(`${other.running.child.pid}`) });
  });
});
