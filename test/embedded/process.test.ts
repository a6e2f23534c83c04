import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { createServer } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { checkPeer } from '../../src/embedded/check-peer.js';
import { nodeDriver, wasmDriver } from '../../src/embedded/driver.js';
import type { EmbeddedPeer, EmbeddedPeerOptions } from '../../src/embedded/embedded-peer.js';
import type { PeersyncError } from '../../src/lib/errors.js';
import { silentLogger } from '../../src/lib/logger.js';
import { PeerClient } from '../../src/peer/client.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import {
  AskedTable,
  basic,
  builtStart,
  driver,
  FORM,
  peerdoc,
  push,
  search,
  send,
  spawnPeer,
} from './support.js';

async function start(
  dir: string,
  { log = silentLogger, port = 0, ...options }: Partial<EmbeddedPeerOptions> = {},
): Promise<EmbeddedPeer> {
  const peer = await (await builtStart())({ dir, port, log, driver: driver.name, ...options });
  afterwards('test', () => peer.close());
  return peer;
}

/** Why it does not start in a directory. */
async function failure(dir: string, options = {}): Promise<Partial<PeersyncError>> {
  return await start(dir, options).then(
    () => ({ message: 'it started' }),
    (error: PeersyncError) => error,
  );
}

describe('an embedded peer', () => {
  it('starts, answers, returns its password, and keeps documents and password across a restart', async () => {
    const dir = join(temporaryDirectory(), 'made', 'for it');
    const first = await start(dir);
    expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    await push(first, { 'http://h/': 'kept' });
    await first.close();
    expect(await first.exited).toBeUndefined();
    const second = await start(dir);
    expect(await peerdoc(second, 'http://h/')).toBeDefined();
    expect(second.credentials).toEqual(first.credentials);
    const path = join(dir, 'admin-password');
    expect(readFileSync(path, 'utf8')).toMatch(/^[\w-]{32}\n$/);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
  });

  it('is reachable by a socket in a private directory, also with a long path and after a kill', async () => {
    const dir = join(temporaryDirectory(), 'x'.repeat(150));
    await (await spawnPeer(dir)).kill();
    expect(existsSync(join(dir, 'local', 'socket'))).toBe(true);
    const { close, credentials, socketPath, url: baseUrl } = await start(dir);
    expect(statSync(join(dir, 'local')).mode & 0o777).toBe(0o700);
    const client = new PeerClient({ baseUrl, credentials, dialect: 'standard', socketPath });
    const item = { url: 'http://h/', collection: 'c', data: Buffer.from('by the socket') };
    expect(await client.push([item])).toMatchObject({ results: [{ ok: true }] });
    expect(await client.peerdoc({ url: item.url })).toBeDefined();
    const elsewhere = new PeerClient({
      baseUrl: 'http://127.0.0.1:9',
      dialect: 'standard',
      socketPath,
    });
    expect(await elsewhere.peerdoc({ url: item.url })).toBeDefined();
    await Promise.all([client.close(), elsewhere.close(), close()]);
    expect(existsSync(join(dir, 'local'))).toBe(false);
  });

  it('finishes requests on its socket before it closes', async () => {
    const peer = await start(temporaryDirectory());
    const body = 'url-0=http://h/&collection-0=c&data-0=slow';
    const headers = { ...FORM, authorization: basic(peer), 'content-length': body.length };
    const sent = request({
      socketPath: peer.socketPath,
      path: '/api/push_p.json',
      method: 'POST',
      headers: { ...headers, host: 'localhost', expect: '100-continue' },
      agent: false,
    });
    const answered = once(sent, 'response');
    sent.flushHeaders();
    await once(sent, 'continue');
    const closed = peer.close();
    await until(() => !existsSync(String(peer.socketPath)), 'it takes no more connections');
    sent.end(body);
    const [answer] = (await answered) as [IncomingMessage];
    expect([answer.statusCode, await json(answer)]).toEqual([
      200,
      expect.objectContaining({ successall: 'true' }),
    ]);
    await closed;
  });

  it('uses only its port, and logs a warning, if a link stands in place of its socket', async () => {
    const [dir, other] = [temporaryDirectory(), temporaryDirectory()];
    symlinkSync(other, join(dir, 'local'));
    const warnings: string[] = [];
    const log = {
      ...silentLogger,
      warn: (_: object, message: string) => void warnings.push(message),
    };
    const peer = await start(dir, { log });
    expect(peer.socketPath).toBeUndefined();
    expect(warnings).toEqual([
      expect.stringContaining(`No socket can be made in ${join(dir, 'local')} (`),
    ]);
    expect(readdirSync(other)).toEqual([]);
    expect((await send(peer, '/')).status).toBe(200);
  });

  it('takes the password that its owner wrote, warns if others can read it, and refuses a weak one', async () => {
    const dir = temporaryDirectory();
    const path = join(dir, 'admin-password');
    writeFileSync(path, 'my own password\n', { mode: 0o644 });
    chmodSync(path, 0o644);
    const warnings: string[] = [];
    const log = {
      ...silentLogger,
      warn: (_: object, message: string) => void warnings.push(message),
    };
    const peer = await start(dir, { log });
    expect(peer.credentials.password).toBe('my own password');
    expect(warnings.join()).toContain('chmod 600');
    expect(warnings.join()).not.toContain('my own password');
    await peer.close();
    writeFileSync(path, '\n');
    expect(await failure(dir)).toMatchObject({ code: 'EMBEDDED_PASSWORD_UNUSABLE' });
  });

  it.each([0o777, 0o1777, 0o775])(
    'refuses a directory that others can write in (mode %o)',
    async (mode) => {
      const dir = temporaryDirectory();
      chmodSync(dir, mode);
      expect(await failure(dir)).toMatchObject({
        code: 'EMBEDDED_DIR_OPEN_TO_OTHERS',
        message: expect.stringContaining(`(mode ${mode.toString(8)})`),
        hint: expect.stringContaining(`\`chmod go-w ${dir}\``),
        details: { dir },
      });
      expect(readdirSync(dir)).toEqual([]);
    },
  );

  it.runIf(process.geteuid?.() === 0)(
    'refuses a directory or a password of another user',
    async () => {
      const dir = temporaryDirectory();
      chownSync(dir, 65_534, 65_534);
      expect(await failure(dir)).toMatchObject({
        code: 'EMBEDDED_DIR_OF_ANOTHER_USER',
        hint: expect.stringContaining(`\`chown -R 0 ${dir}\``),
      });
      expect(readdirSync(dir)).toEqual([]);
      chownSync(dir, 0, 0);
      const password = join(dir, 'admin-password');
      writeFileSync(password, 'planted password\n', { mode: 0o600 });
      chownSync(password, 65_534, 65_534);
      const unusable = { code: 'EMBEDDED_PASSWORD_UNUSABLE' };
      expect(await failure(dir)).toMatchObject(unusable);
      chownSync(password, 0, 0);
      chmodSync(password, 0o666);
      expect(await failure(dir)).toMatchObject(unusable);
    },
  );

  it('keeps a second peer out of its directory until it is closed', async () => {
    const dir = temporaryDirectory();
    const first = await start(dir);
    expect(await failure(dir)).toMatchObject({
      code: 'EMBEDDED_DIR_LOCKED',
      message: expect.stringMatching(`Another embedded peer \\(pid ${process.pid}, since .*${dir}`),
      hint: 'Stop it, or name another directory.',
    });
    const lock = readFileSync(join(dir, 'peer.lock'), 'utf8');
    await first.close();
    await (await start(dir)).close();
    writeFileSync(join(dir, 'peer.lock'), lock.replace('"host":"', '"host":"not-'));
    expect(await failure(dir)).toMatchObject({
      code: 'EMBEDDED_DIR_LOCKED_ELSEWHERE',
      message: expect.stringContaining(`on not-${hostname()}, since `),
      hint: expect.stringContaining('a minute at most'),
    });
  });

  it.runIf(nodeDriver())(
    'keeps a second peer with the other driver out of its directory',
    async () => {
      const dir = temporaryDirectory();
      const [one, another] = ['node:sqlite', 'node-sqlite3-wasm'] as const;
      for (const [first, second] of [
        [one, another],
        [another, one],
      ] as const) {
        const peer = await start(dir, { driver: first });
        expect(await failure(dir, { driver: second })).toMatchObject({
          code: 'EMBEDDED_DIR_LOCKED',
        });
        await peer.close();
      }
    },
  );

  it('lets exactly one of many peers in, also after a dead one', async () => {
    const dir = temporaryDirectory();
    await (await spawnPeer(dir)).kill();
    const outcomes = await Promise.all(Array.from({ length: 12 }, () => failure(dir)));
    const codes = outcomes.map((outcome) => outcome.code ?? outcome.message).sort();
    expect(codes).toEqual([...Array(11).fill('EMBEDDED_DIR_LOCKED'), 'it started']);
  });

  it('names a port that is in use, and the setting that changes it', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await until(() => other.listening, 'listening');
    const { port } = other.address() as { port: number };
    expect(await failure(temporaryDirectory(), { port })).toMatchObject({
      code: 'EMBEDDED_PORT_IN_USE',
      exitCode: 1,
      message: expect.stringContaining(`127.0.0.1:${port}`),
      hint: expect.stringContaining('peer.embedded.port'),
    });
    other.close();
  });

  it('reports a directory that it cannot write', async () => {
    const dir = temporaryDirectory();
    writeFileSync(join(dir, 'file'), '');
    for (const path of ['file', 'file/below'])
      expect(await failure(join(dir, path))).toMatchObject({ code: 'EMBEDDED_DIR_UNWRITABLE' });
  });

  it('does not start on a database that is damaged or of a newer peersync, and does not change it', async () => {
    const dir = temporaryDirectory();
    const path = join(dir, 'peer.sqlite');
    writeFileSync(path, 'this is no database at all '.repeat(200));
    expect(await failure(dir)).toMatchObject({ code: 'EMBEDDED_DIR_DAMAGED' });
    expect(readFileSync(path, 'utf8')).toMatch(/^this is no database/);
    writeFileSync(path, '');
    await (await start(dir)).close();
    truncateSync(path, 20_000);
    expect(await failure(dir)).toMatchObject({ code: 'EMBEDDED_DIR_DAMAGED' });
    const newer = temporaryDirectory();
    const database = driver.open(join(newer, 'peer.sqlite'));
    database.exec('PRAGMA user_version = 99');
    database.close();
    expect(await failure(newer)).toMatchObject({ code: 'EMBEDDED_DIR_NEWER' });
  });

  it('loses nothing that it accepted, whenever it is killed', async () => {
    const dir = temporaryDirectory();
    const accepted = new Set<number>();
    const [kept, deleted] = [new Map<string, string>(), new Set<string>()];
    let next = 0;
    // Each driver continues after the kill of itself, and of the other one.
    const other = driver.name === 'node:sqlite' ? await wasmDriver() : (nodeDriver() ?? driver);
    for (const [round, killed] of [driver, driver, other, other].entries()) {
      const peer = await spawnPeer(dir, killed);
      const table = new AskedTable(peer);
      const rows = Array.from({ length: 2 }, async (_, writer) => {
        for (let n = 0; ; n += 1) {
          const value = `${round}.${writer}.${n} ${'x'.repeat((n % 10) * 1_000)}`;
          const pk = (await table.add({ col_a: value, col_b: value })) ?? '';
          if (n % 3 > 0) kept.set(pk, value);
          else if (await table.delete(pk)) deleted.add(pk);
        }
      });
      const writers = Array.from({ length: 3 }, async () => {
        for (;;) {
          const numbers = [next, next + 1, next + 2];
          next += 3;
          const text = 'filler '.repeat(200);
          const documents = numbers.map((n) => [`http://h/${n}.txt`, `unique${n} ${text}`]);
          const { successall } = await push(peer, Object.fromEntries(documents));
          if (successall === 'true') for (const n of numbers) accepted.add(n);
        }
      });
      const ended = Promise.allSettled([...writers, ...rows]);
      const enough = accepted.size + 1 + Math.floor(Math.random() * 150);
      const fewRows = kept.size + 1;
      await until(() => accepted.size >= enough && kept.size >= fewRows, 'some were accepted');
      await peer.kill();
      await ended;
    }
    const peer = await start(dir);
    const check = async (n: number): Promise<void> => {
      expect(await peerdoc(peer, `http://h/${n}.txt`), `document ${n}`).toBeDefined();
      if (n % 9 === 0)
        expect((await search(peer, { query: `"unique${n}"` })).total, `word of ${n}`).toBe(1);
    };
    const numbers = [...accepted];
    while (numbers.length > 0) await Promise.all(numbers.splice(0, 50).map(check));
    // Every row that was answered for is there, whole, and none that was deleted.
    const { rows } = await new AskedTable(peer).ask();
    const found = new Map(rows.map(({ pk, cells }) => [pk, cells]));
    for (const [pk, value] of kept) expect(found.get(pk)).toEqual({ a: value, b: value });
    for (const pk of deleted) expect(found.has(pk)).toBe(false);
    for (const { cells } of rows) expect(cells.a).toBe(cells.b);
    await peer.close();
    const { signal } = new AbortController();
    expect(await checkPeer(dir, signal, driver)).toMatchObject({ differences: [], found: 0 });
  }, 120_000);

  it('reports a full disk, accepts nothing meanwhile, and continues when there is space', async (context) => {
    const dir = join(temporaryDirectory(), 'small');
    mkdirSync(dir);
    const run = (command: string, ...args: string[]) =>
      spawnSync(command, args, { stdio: 'ignore' }).status;
    if (run('mount', '-t', 'tmpfs', '-o', 'size=3m,mode=0700', 'tmpfs', dir) !== 0)
      return context.skip('a small file system can be mounted by root only');
    try {
      const peer = await start(dir);
      const large = 'filler '.repeat(60_000);
      let taken = 0;
      const fill = async () => {
        for (; taken < 40; taken += 1)
          await push(peer, { [`http://h/${taken}`]: `${taken} ${large}` });
      };
      await expect(fill()).rejects.toThrow(/^507: .*disk/s);
      await peer.close();
      expect(run('mount', '-o', 'remount,size=64m', dir)).toBe(0);
      const again = await start(dir);
      expect((await send(again, '/')).body).toContain(`${taken} documents`);
      expect(await push(again, { 'http://h/more': large })).toMatchObject({ countsuccess: 1 });
      await again.close();
    } finally {
      run('umount', '-l', dir);
    }
    return undefined;
  });
});
