import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { answers } from '../support/ask.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { peersyncInPath } from '../support/system-tool.js';
import { temporaryDirectory } from '../support/temp.js';
import { peersync } from '../support/warm-cli.js';
import { atRemotePeer, atServer, type Run, remotePeer, valuesOf } from './at-peer.js';

// Many processes, one after the other: on a busy machine each takes seconds.
vi.setConfig({ testTimeout: 240_000 });

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
    const [, url = ''] = /^accepted {3}a\.md {2}(file:.*)\n$/.exec(pushed.stdout) ?? [];
    expect(fileURLToPath(url)).toBe(join(cwd, 'a.md'));
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
    const unseen = await run('push', 'a.md', '--collection', 'c', '--timeout', '3s', '--json');
    expect(unseen.code).toBe(1);
    expect(valuesOf(unseen)).toMatchObject([{ status: 'unseen' }]);
    expect(JSON.parse(unseen.stderr)).toMatchObject({ error: { code: 'TIMEOUT' } });
    answer = '{"successall":"false","item-0":{"item":"0","success":"false","message":"blacklisted"}}';
    const refused = await run('push', 'a.md', '--collection', 'c');
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('The peer refused it: blacklisted.');
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
    const pipe = spawn('sh', ['-c', 'peersync share get --data x | (sleep 0.2; cat)'], {
      cwd,
      env: { ...process.env, ...peersyncInPath() },
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
    expect((await get('--max-size', '10 KiB')).stderr).toMatch(/^peersync: http.*\n.*larger --max-size/);
    behave = (_, response) => void response.writeHead(404).end();
    expect(await get()).toMatchObject({ code: 1, stderr: expect.stringContaining('no shared object "x"') });
    expect(readFileSync(join(cwd, 'object'), 'utf8')).toBe('before');
    expect(readdirSync(cwd).filter((name) => name.includes('tmp'))).toEqual([]);
  });

  it('fetches what `share list` names', async () => {
    const { run } = await atRemotePeer();
    const shares = join((await remotePeer()).data, 'shares');
    for (const name of ['lists/a.csv', 'lists/b.csv', 'other/c.csv']) {
      mkdirSync(dirname(join(shares, name)), { recursive: true });
      writeFileSync(join(shares, name), name);
    }
    expect((await run('share', 'list', '--group', 'lists')).stdout).toBe('lists/a.csv\nlists/b.csv\n');
    expect(valuesOf(await run('share', 'list', '--json'))).toEqual([
      { shares: ['lists/a.csv', 'lists/b.csv', 'other/c.csv'] },
    ]);
    expect((await run('share', 'list', '--group', 'x')).stdout).toBe(
      'The peer has no such shared objects.\n',
    );
    const got = await run('share', 'get', '--data', 'a.csv', '--group', 'lists');
    expect(got.stdout).toBe('lists/a.csv');
    const silent = await atServer((_, response) => void response.writeHead(404).end());
    expect((await silent.run('share', 'list')).code).not.toBe(0);
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
    await answers(join(cwd, 'state'));
    expect((await run('table', 'set', 't', '--pk', 'k', 'beside=the daemon')).code).toBe(0);
    expect((await daemon.kill('SIGTERM')).code).toBe(0);
    expect(valuesOf(await run('table', 'get', 't', '--json'))).toEqual([
      { pk: 'k', before: 'the daemon', beside: 'the daemon' },
    ]);
  });

  it('keeps no command from its work by a port that another program uses', async () => {
    const { port } = new URL((await remotePeer()).url);
    const config = writeConfig(temporaryDirectory(), {
      peer: { embedded: { dir: './peer', port: Number(port) } },
    });
    for (const command of ['pause', 'resume', 'verify'])
      expect(await peersync([command, '-c', config])).toMatchObject({ code: 0, stderr: '' });
  });

  it('says who has it when another process does', async () => {
    const other = await remotePeer();
    const config = writeConfig(temporaryDirectory(), { peer: { embedded: { dir: other.data, port: 0 } } });
    const ended = await peersync(['table', 'list', '-c', config]);
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining(`${other.running.child.pid}`) });
  });
});
