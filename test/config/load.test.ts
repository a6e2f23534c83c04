import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/config/config.js';
import { checkConfig, loadConfig } from '../../src/config/load.js';
import { temporaryDirectory } from '../support/temp.js';

/** Writes a configuration into a fresh directory. */
function written(config: unknown): { directory: string; file: string } {
  const directory = temporaryDirectory();
  const file = join(directory, 'peersync.json');
  writeFileSync(file, typeof config === 'string' ? config : JSON.stringify(config));
  return { directory, file };
}

async function load(config: unknown) {
  return (await loadConfig(written(config).file)).config;
}

async function errorOf(file: string): Promise<ConfigError> {
  const error: unknown = await loadConfig(file).catch((thrown: unknown) => thrown);
  if (error instanceof ConfigError) return error;
  throw new Error(`no ConfigError but ${String(error)}`);
}

/** The lines of problems of a configuration that is refused. */
async function problems(config: unknown): Promise<string[]> {
  const error = await errorOf(written(config).file);
  expect(error.code).toBe('CONFIG_INVALID');
  expect(error.exitCode).toBe(2);
  return error.message
    .split('\n')
    .slice(1)
    .map((line) => line.trim());
}

const inbox = { path: 'inbox', collection: 'inbox' };

describe('a configuration', () => {
  it('needs only a folder with a path and a collection', async () => {
    const { directory, file } = written({ folders: [inbox] });
    const { path, config } = await loadConfig(file);
    expect(path).toBe(file);
    expect(config.folders).toMatchObject([
      {
        name: 'inbox',
        path: join(directory, 'inbox'),
        collection: 'inbox',
        include: ['*'],
        rules: [],
        settle: 2000,
        maxFileSize: 20 * 2 ** 20,
        followSymlinks: false,
      },
    ]);
    expect(fileURLToPath(config.folders[0]?.url ?? '')).toBe(`${directory}/inbox/`);
    expect(config.folders[0]?.ignore).toEqual(expect.arrayContaining(['.git', '*~', '*.part', '\\#*#']));
    expect(config.peer).toEqual({
      url: 'embedded',
      dialect: 'auto',
      tls: {},
      timeouts: { connect: 10_000, headers: 30_000, body: 60_000, total: 300_000 },
      maxAnswer: 16 * 2 ** 20,
      embedded: { dir: join(directory, 'data/peer'), port: 8386, requireAuth: false },
    });
    expect(config.watch).toEqual({ hints: true, rescan: 3_600_000 });
    expect(config.state).toEqual({ dir: join(directory, 'data/state'), keepGone: 90 * 86_400_000 });
    expect(config.mirror).toEqual({
      root: join(directory, 'data/mirror'),
      shares: [],
      tables: [],
      citations: [],
    });
    expect(config.push).toMatchObject({ maxItems: 50, maxBytes: 8 * 2 ** 20, linger: 250, attempts: 5 });
    expect(config.push.backoff).toEqual({ min: 1000, max: 300_000 });
    expect(config.confirm).toMatchObject({ timeout: 600_000, maxInterval: 60_000 });
    expect(config.confirm.hold).toBeUndefined();
    expect(config.audit).toEqual({ every: 7 * 86_400_000 });
    expect(config.log).toEqual({ level: 'info' });
  });

  it('with all of its backbone is taken while its secret is nowhere to be found', async () => {
    const config = await load({
      peer: {
        url: 'embedded',
        dialect: 'standard',
        auth: { username: 'admin', password: { env: 'PEERSYNC_PASSWORD_THAT_IS_NOT_SET' } },
      },
      folders: [
        {
          name: 'inbox',
          path: './data/inbox',
          collection: 'inbox',
          url: 'https://files.example.org/inbox/',
        },
      ],
      state: { dir: './data/state' },
      mirror: { root: './data/mirror' },
      push: {
        maxItems: 50,
        maxBytes: '8 MiB',
        linger: '250ms',
        requestsPerSecond: 20,
        concurrency: 4,
        attempts: 5,
      },
      confirm: { timeout: '10m', requestsPerSecond: 200 },
    });
    expect(config.peer.auth?.password).toEqual({ env: 'PEERSYNC_PASSWORD_THAT_IS_NOT_SET' });
  });

  it('has its relative paths seen from the file, wherever the process stands', async () => {
    const { directory, file } = written({
      folders: [{ path: '../up/', collection: 'c' }],
      peer: { tls: { ca: 'ca.pem' }, auth: { username: 'u', password: { file: 'secret' } } },
      state: { dir: '/var/lib/peersync' },
    });
    const { path, config } = await loadConfig(relative(process.cwd(), file));
    expect(path).toBe(file);
    expect(config.folders[0]?.path).toBe(resolve(directory, '../up'));
    expect(config.peer.tls.ca).toBe(join(directory, 'ca.pem'));
    expect(config.peer.auth?.password).toEqual({ file: join(directory, 'secret') });
    expect(config.state.dir).toBe('/var/lib/peersync');
  });

  it('has its URLs in normal form', async () => {
    const config = await load({
      peer: { url: 'https://Peer.Example.org:443/sub/' },
      folders: [{ ...inbox, url: 'https://Files.example.org/in box' }],
    });
    expect(config.peer.url).toBe('https://peer.example.org/sub');
    expect(config.folders[0]?.url).toBe('https://files.example.org/in%20box/');
  });

  it('keeps its rules in order, each with a collection or a skip', async () => {
    const rules = [
      { match: '*.log', skip: true },
      { match: 'drafts/', collection: 'entwürfe' },
    ];
    expect((await load({ folders: [{ ...inbox, rules }] })).folders[0]?.rules).toEqual(rules);
  });

  it('cannot be changed once it is loaded', async () => {
    const config = await load({ folders: [inbox] });
    expect(() => Object.assign(config.folders[0] ?? {}, { settle: 0 })).toThrow(TypeError);
    expect(() => Object.assign(config.push.backoff, { min: 0 })).toThrow(TypeError);
  });

  it('may name its JSON Schema and begin with a byte order mark', async () => {
    const config = await load(`\ufeff${JSON.stringify({ $schema: './schema.json', folders: [inbox] })}`);
    expect(config).not.toHaveProperty('$schema');
  });
});

describe('a configuration file', () => {
  it('that is missing leads to init', async () => {
    const error = await errorOf(join(temporaryDirectory(), 'none.json'));
    expect(error.code).toBe('CONFIG_MISSING');
    expect(error.exitCode).toBe(2);
    expect(error.hint).toContain('peersync init');
  });

  it('that is a directory is unreadable and said to be one', async () => {
    const error = await errorOf(temporaryDirectory());
    expect(error.code).toBe('CONFIG_UNREADABLE');
    expect(error.message).toContain('it is a directory');
  });

  it('that cannot be reached is unreadable and says why', async () => {
    const file = join(temporaryDirectory(), 'loop.json');
    symlinkSync(file, file);
    const error = await errorOf(file);
    expect(error.code).toBe('CONFIG_UNREADABLE');
    expect(error.message).toContain('ELOOP');
  });

  it.skipIf(process.getuid?.() === 0)(
    'without permission is unreadable (not seen by root, who may read all)',
    async () => {
      const { file } = written({ folders: [inbox] });
      chmodSync(file, 0o000);
      const error = await errorOf(file);
      expect(error.code).toBe('CONFIG_UNREADABLE');
      expect(error.message).toContain('this user may not read it');
    },
  );

  it('that is huge is not read', async () => {
    const { file } = written(`{"folders": []${' '.repeat(2 ** 20)}}`);
    const error = await errorOf(file);
    expect(error.code).toBe('CONFIG_UNREADABLE');
    expect(error.message).toContain('larger than 1 MiB');
  });

  it('that is not UTF-8 is refused', async () => {
    const { file } = written('');
    writeFileSync(file, Buffer.from('{"folders": "\xe4"}', 'latin1'));
    expect((await errorOf(file)).message).toContain('not text in UTF-8');
  });

  it('that is not JSON is told its line and column', async () => {
    const error = await errorOf(written('{\n  "folders": [],\n}').file);
    expect(error.code).toBe('CONFIG_SYNTAX');
    expect(error.exitCode).toBe(2);
    expect(error.message).toContain('line 2, column 16: a comma before "}"');
    expect(error.details).toMatchObject({ line: 2, column: 16 });
  });

  it('may be a pipe', () => {
    const { directory, file } = written({ folders: [inbox] });
    const fifo = join(directory, 'fifo');
    expect(spawnSync('mkfifo', [fifo]).status).toBe(0);
    const loading = loadConfig(fifo);
    writeFileSync(fifo, readFileSync(file));
    return expect(loading).resolves.toMatchObject({ path: fifo });
  });
});

describe('a value that is wrong', () => {
  it('is told with its key, what stands there and what would be right, all at once', async () => {
    const config = {
      peer: { dialect: 'klingon', timeouts: { connect: 5 }, embedded: { port: 70_000 } },
      folders: [
        { ...inbox, settle: '2 parsecs' },
        { path: '', collection: 'a,b', include: [], rules: [{ match: 'x' }] },
      ],
      watch: { hints: 'yes' },
      push: { maxItems: 0, maxBytes: '1 B', attempts: 1.5 },
      confirm: { requestsPerSecond: -1 },
      mirror: null,
      log: { level: 'loud' },
    };
    expect(await problems(config)).toEqual([
      'peer.dialect: received "klingon"; expected "auto" or "standard" or "yacy"',
      'peer.timeouts.connect: received 5; expected a duration such as "2s" or "15m", from 100ms to 10m',
      'peer.embedded.port: received 70000; expected a whole number from 0 to 65535',
      'folders[0].settle: received "2 parsecs"; expected a duration such as "2s" or "15m", from 0s to 1d',
      'folders[1].path: received ""; expected the path of a folder to watch',
      expect.stringMatching(/^folders\[1\]\.collection: received "a,b"; expected a collection.*no commas/),
      'folders[1].include: received an empty list; expected a list of at least one pattern, such as ["*"]',
      'folders[1].rules[0]: received an object; expected either "collection" or "skip": true beside "match"',
      'watch.hints: received "yes"; expected true or false',
      'mirror: received null; expected an object',
      'push.maxItems: received 0; expected a whole number from 1 to 1000',
      'push.maxBytes: received "1 B"; expected a size such as "64 KiB" or "8 MiB", from 1 KiB to 1 GiB',
      'push.attempts: received 1.5; expected a whole number from 1 to 100',
      'confirm.requestsPerSecond: received -1; expected a number from 0.01 to 10000',
      'log.level: received "loud"; expected "debug" or "info" or "warn" or "error"',
    ]);
  });

  it('is told once, however many ways it is wrong', async () => {
    expect(await problems({ folders: [{ ...inbox, name: '' }] })).toHaveLength(1);
  });

  it('is left as it was given', async () => {
    const input = { folders: [{ ...inbox, settle: 3 }], unknown: 1 };
    await expect(checkConfig(input, '/etc/peersync.json')).rejects.toThrow(ConfigError);
    expect(input).toEqual({ folders: [{ ...inbox, settle: 3 }], unknown: 1 });
  });

  it('is there for machines too', async () => {
    const error = await errorOf(written({ folders: [{ ...inbox, settle: '2 parsecs' }] }).file);
    expect(error.details).toMatchObject({
      problems: [
        {
          path: 'folders[0].settle',
          received: '"2 parsecs"',
          expected: 'a duration such as "2s" or "15m", from 0s to 1d',
        },
      ],
    });
  });

  it.each([
    [{}, 'folders: received nothing; expected a list of at least one folder'],
    [{ folders: [] }, 'folders: received an empty list; expected a list of at least one folder'],
    [{ folders: {} }, 'folders: received an object; expected a list of at least one folder'],
    [[], 'the file: received an empty list; expected an object'],
    ['3', 'the file: received 3; expected an object'],
    [{ folders: ['inbox'] }, 'folders[0]: received "inbox"; expected an object'],
    [{ folders: [{ path: 'x' }] }, 'folders[0].collection: received nothing; expected a collection'],
    [{ folders: [{ collection: 'x' }] }, 'folders[0].path: received nothing; expected the path of a folder'],
    [
      { folders: [{ ...inbox, path: '~/x' }] },
      'folders[0].path: received "~/x"; expected the path of a folder to watch, written out',
    ],
    [{ folders: [{ ...inbox, path: 'a\0b' }] }, 'folders[0].path: received "a\\u0000b"; expected'],
    [
      { folders: [{ ...inbox, collection: 'my files' }] },
      'folders[0].collection: received "my files"; expected a collection',
    ],
    [
      { folders: [{ ...inbox, ignore: ['# note'] }] },
      'folders[0].ignore[0]: received "# note"; expected a pattern, not a comment',
    ],
    [
      { folders: [{ ...inbox, ignore: ['*.a', ' '] }] },
      'folders[0].ignore[1]: received " "; expected a pattern',
    ],
    [
      { folders: [{ ...inbox, ignore: ['a\0'] }] },
      'folders[0].ignore[0]: received "a\\u0000"; expected a pattern',
    ],
    [
      { folders: [{ ...inbox, ignore: ['a\\'] }] },
      'folders[0].ignore[0]: received "a\\\\"; expected a pattern that does not end',
    ],
    [
      { folders: [{ ...inbox, rules: [{ match: '!a', skip: true }] }] },
      'folders[0].rules[0].match: received "!a"; expected a pattern without "!"',
    ],
    [
      { folders: [{ ...inbox, rules: [{ match: 'a', skip: false }] }] },
      'folders[0].rules[0].skip: received false; expected true',
    ],
    [
      { folders: [{ ...inbox, rules: [{ match: 'a', skip: true, collection: 'b' }] }] },
      'folders[0].rules[0]: received an object; expected either',
    ],
    [
      { folders: [{ ...inbox, url: 'files.example.org' }] },
      'folders[0].url: received "files.example.org"; expected an http, https, ftp or file URL',
    ],
    [{ folders: [{ ...inbox, name: 'a/b' }] }, 'folders[0].name: received "a/b"; expected a name'],
    [
      { folders: [{ ...inbox, settle: '2d' }] },
      'folders[0].settle: received "2d"; expected a duration such as "2s" or "15m", from 0s to 1d',
    ],
    [{ folders: [{ collection: 'c', path: '/' }] }, 'folders[0].name: received ""; expected a name'],
    [
      { folders: [inbox], peer: { url: 'localhost:8090' } },
      'peer.url: received "localhost:8090"; expected "embedded" or',
    ],
    [
      { folders: [{ ...inbox, settle: 'x'.repeat(500) }] },
      `folders[0].settle: received "${'x'.repeat(80)}…"; expected`,
    ],
  ])('%j is answered by %j', async (config, start) => {
    expect((await problems(config)).map((line) => line.slice(0, start.length))).toContain(start);
  });

  it.each([
    [
      { folders: [inbox], push: { maxItms: 3 } },
      'push.maxItms: received an unknown key; expected "maxItems": did you mean that?',
    ],
    [
      { folders: [inbox], state: { dri: 'x' } },
      'state.dri: received an unknown key; expected "dir": did you mean that?',
    ],
    [
      { folders: [inbox], push: { max_items: 3 } },
      'push.max_items: received an unknown key; expected "maxItems": did you mean that?',
    ],
    [
      { folders: [{ ...inbox, settel: '1s' }] },
      'folders[0].settel: received an unknown key; expected "settle": did you mean that?',
    ],
    [{ folders: [inbox], settle: '1s' }, 'settle: received an unknown key; expected it at folders[].settle'],
    [
      { folders: [inbox], password: 'x' },
      'password: received an unknown key; expected it at peer.auth.password',
    ],
    [
      { folders: [inbox], state: { 'a b': 1 } },
      'state["a b"]: received an unknown key; expected one of "dir", "keepGone"',
    ],
    [
      '{"folders":[{"path":"x","collection":"x"}],"__proto__":{}}',
      '__proto__: received an unknown key; expected one of "$schema", "peer"',
    ],
  ])('an unknown key gets a suggestion: %j', async (config, start) => {
    expect((await problems(config)).map((line) => line.slice(0, start.length))).toEqual([start]);
  });
});

describe('a secret in the wrong place', () => {
  const auth = (password: unknown) => ({ folders: [inbox], peer: { auth: { username: 'admin', password } } });

  it.each([
    [auth('hunter2')],
    [auth(['hunter2'])],
    [auth({ env: 'hunter2 is mine' })],
    [auth({ plain: 'hunter2' })],
    [auth({ credential: '../hunter2' })],
    [{ folders: [inbox], peer: { auth: 'admin:hunter2' } }],
    [{ folders: [inbox], peer: { auth: { username: 'admin:hunter2' } } }],
    [{ folders: [inbox], peer: { url: 'https://admin:hunter2@example.org/' } }],
    [{ folders: [inbox], peer: { url: 'https://admin:hunt/er2@example.org/' } }],
    [{ folders: [inbox], peer: { url: 'https://example.org/?key=hunter2' } }],
    [{ folders: [inbox], password: 'hunter2' }],
    [`{"folders": [], "peer": {"auth": {"password": "hunter2\n"}}}`],
  ])('is refused and not shown: %j', async (config) => {
    const error = await errorOf(written(config).file);
    const everything = `${error.message}${error.hint}${error.stack}${JSON.stringify(error.details)}${String(error.cause)}`;
    expect(everything).not.toMatch(/hunter2|hunt\/er2/);
  });

  it('is told where it belongs', async () => {
    expect(await problems(auth('hunter2'))).toEqual([
      expect.stringMatching(
        /^peer\.auth\.password: received a string \(not shown here\); expected exactly one of \{ "env": "NAME" \}, \{ "file": "path" \}/,
      ),
    ]);
  });

  it('stands in exactly one place', async () => {
    expect(await problems(auth({ env: 'A', file: 'b' }))).toEqual([
      expect.stringContaining('peer.auth.password: received an object; expected exactly one of'),
    ]);
    expect(await problems(auth({}))).toHaveLength(1);
  });
});

describe('what contradicts itself', () => {
  const two = (a: object, b: object) => ({
    folders: [
      { collection: 'a', ...a },
      { collection: 'b', ...b },
    ],
  });

  it('two folders of one name', async () => {
    const lines = await problems(two({ path: 'a/docs' }, { path: 'b/docs' }));
    expect(lines).toEqual([
      'folders[1].name: received "docs"; expected a name that folders[0] does not have: give one of the two a "name"',
    ]);
  });

  it.each([
    ['the same', 'a', './b/../a'],
    ['one in the other', 'a', 'a/b'],
    ['the other in the one', 'a/b/c', 'a'],
  ])('two folders that overlap: %s', async (_, a, b) => {
    const lines = await problems(two({ path: a, name: 'x' }, { path: b, name: 'y' }));
    expect(lines).toEqual([expect.stringMatching(/^folders\[1\]\.path: .*apart from folders\[0\]\.path/)]);
  });

  it('two folders that overlap through a symbolic link', async () => {
    const { directory, file } = written(two({ path: 'real' }, { path: 'link/sub' }));
    mkdirSync(join(directory, 'real'));
    symlinkSync('real', join(directory, 'link'));
    expect((await errorOf(file)).message).toMatch(
      /folders\[1\]\.path: received ".*link\/sub" \(which is ".*real\/sub"\); expected a directory apart/,
    );
  });

  it('but not two folders of which one name begins with the other', async () => {
    const config = await load(two({ path: 'docs' }, { path: 'docs2' }));
    expect(config.folders).toHaveLength(2);
  });

  it.each([
    ['https://x.org/a/', 'https://X.org/a'],
    ['https://x.org/', 'https://x.org/a/'],
    ['https://x.org/%61/b/', 'https://x.org/a/'],
  ])('two folders whose URLs overlap: %s and %s', async (a, b) => {
    const lines = await problems(two({ path: 'a', url: a }, { path: 'b', url: b }));
    expect(lines).toEqual([expect.stringMatching(/^folders\[1\]\.url: .*apart from folders\[0\]\.url/)]);
  });

  it('but not URLs of which only a name begins with the other', async () => {
    const config = await load(two({ path: 'a', url: 'https://x/a' }, { path: 'b', url: 'https://x/ab' }));
    expect(config.folders).toHaveLength(2);
  });

  it.each([
    ['state.dir', { state: { dir: 'inbox/state' } }],
    ['state.dir', { state: { dir: '.' } }],
    ['mirror.root', { mirror: { root: 'inbox' } }],
    ['mirror.root', { mirror: { root: './data/state/mirror' } }],
    ['peer.embedded.dir', { peer: { embedded: { dir: 'inbox/peer' } } }],
  ])('a %s that overlaps with another place: %j', async (key, part) => {
    const lines = await problems({ folders: [inbox], ...part });
    expect(lines[0]).toMatch(
      new RegExp(`^${key.replaceAll('.', '\\.')}: .*neither may lie within the other`),
    );
  });

  it('but not the directory of an embedded peer that is not used', async () => {
    const peer = { url: 'http://localhost:8090', embedded: { dir: 'inbox/peer' } };
    expect((await load({ folders: [inbox], peer })).peer.url).toBe('http://localhost:8090');
  });

  it('a password file that would be pushed', async () => {
    const peer = { auth: { username: 'admin', password: { file: 'inbox/password' } } };
    expect(await problems({ folders: [inbox], peer })).toEqual([
      expect.stringMatching(
        /^peer\.auth\.password\.file: .*outside of folders\[0\]\.path: it would be pushed/,
      ),
    ]);
  });

  it('limits that exclude each other', async () => {
    const config = {
      folders: [inbox],
      push: { backoff: { min: '1h', max: '1m' } },
      confirm: { hold: '10m', timeout: '10m' },
    };
    expect(await problems(config)).toEqual([
      'push.backoff.min: received "1h"; expected at most push.backoff.max, "5m" unless given',
      'confirm.hold: received "10m"; expected less than confirm.timeout, "10m" unless given: nothing could be confirmed',
    ]);
  });

  it('the embedded peer in another dialect than its own', async () => {
    expect(await problems({ peer: { dialect: 'yacy' }, folders: [inbox] })).toEqual([
      'peer.dialect: received "yacy"; expected "auto" or "standard", which the embedded peer speaks: give the URL of your YaCy peer in peer.url',
    ]);
  });

  it('a folder that is the whole disk', async () => {
    const lines = await problems({ folders: [{ path: '/', name: 'all', collection: 'c' }], log: {} });
    expect(lines.map((line) => line.split(':')[0])).toEqual([
      'state.dir',
      'mirror.root',
      'peer.embedded.dir',
    ]);
  });

  it('is told once every value is right by itself', async () => {
    const folders = [
      { path: 'a', collection: 'a,b', ignore: [''] },
      { path: 'a/b', settle: 'soon', rules: [{ match: 3, skip: true }] },
    ];
    const lines = await problems({ folders, peer: { auth: 'x' }, watch: { rescann: 1 } });
    expect(lines.map((line) => line.split(':')[0])).toEqual([
      'peer.auth',
      'folders[0].collection',
      'folders[0].ignore[0]',
      'folders[1].collection',
      'folders[1].rules[0].match',
      'folders[1].settle',
      'watch.rescann',
    ]);
    const right = folders.map(({ path }) => ({ path, collection: 'c' }));
    expect((await problems({ folders: right })).map((line) => line.split(':')[0])).toEqual([
      'folders[1].path',
    ]);
  });

  it.each([
    [
      { path: 'data' },
      { state: { dir: 3 }, mirror: 4, peer: { url: '' } },
      ['peer.url', 'state.dir', 'mirror'],
    ],
    [{ path: 'x/docs', name: 'a/b' }, { folders: [{ path: 'docs', collection: 'c' }] }, ['folders[1].name']],
    [
      { path: 'a' },
      { state: { dir: 3 }, mirror: { root: 'data' }, peer: { url: 'http://x' } },
      ['state.dir'],
    ],
  ])('is not looked for in values that are wrong by themselves: %j with %j', async (folder, others, keys) => {
    const before = 'folders' in others ? others.folders : [];
    const lines = await problems({ ...others, folders: [...before, { collection: 'c', ...folder }] });
    expect(lines.map((line) => line.split(':')[0])).toEqual(keys);
  });
});
