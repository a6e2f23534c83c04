import { mkdirSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { checkConfig, loadConfig } from '../../src/config/load.js';
import { temporaryDirectory } from '../support/temp.js';
import { configErrorOf, inbox, load, problems, withValue, written } from './setup.js';

describe('a configuration', () => {
  it('needs only a folder with a path and a collection', async () => {
    const { directory, file } = written({ folders: [inbox] });
    const { path, config } = await loadConfig(file);
    const at = (name: string) => join(directory, name);
    expect(path).toBe(file);
    expect(config).toMatchObject({
      folders: [
        { ...inbox, name: 'inbox', path: at('inbox'), include: ['*'], settle: 2000, rules: [] },
      ],
      peer: {
        url: 'embedded',
        dialect: 'auto',
        tls: {},
        embedded: { dir: at('data/peer'), port: 8386, requireAuth: false, originals: true },
      },
      state: { dir: at('data/state'), keepGone: 90 * 86_400_000 },
      mirror: { root: at('data/mirror'), shares: [], tables: [], citations: [] },
      push: {
        maxItems: 50,
        maxBytes: 8 * 2 ** 20,
        linger: 250,
        backoff: { min: 1000, max: 300_000 },
      },
      confirm: { timeout: 600_000, maxInterval: 60_000 },
    });
    expect(config.confirm.hold).toBeUndefined();
    expect(fileURLToPath(config.folders[0]?.url ?? '')).toBe(`${directory}/inbox/`);
    expect(config.folders[0]).toMatchObject({ ignore: [], ignoreDefaults: true });
  });

  it('gets absolute paths and normalised URLs when it is loaded, and no secret is read', async () => {
    const rules = [{ match: 'drafts/', collection: 'entwürfe' }];
    const folder = {
      path: '../up/',
      collection: 'c',
      url: 'https://Files.example.org/in box',
      rules,
    };
    const auth = { username: 'u', password: { file: 'secret' } };
    const peer = { url: 'https://Peer.Example.org:443/sub/', tls: { ca: 'ca.pem' }, auth };
    const state = { dir: '/var/lib/peersync' };
    const { directory, file } = written({ folders: [folder], peer, state });
    const loaded = await loadConfig(relative(process.cwd(), file));
    expect(loaded.path).toBe(file);
    const [path, url] = [resolve(directory, '../up'), 'https://files.example.org/in%20box/'];
    const password = { file: join(directory, 'secret') };
    expect(loaded.config).toMatchObject({
      folders: [{ path, url, rules }],
      state,
      peer: {
        url: 'https://peer.example.org/sub',
        tls: { ca: join(directory, 'ca.pem') },
        auth: { username: 'u', password },
      },
    });
  });

  it('may have paths in the home directory, and in directories whose names begin with a tilde', async () => {
    const folders = [
      { path: '~/notes', collection: 'c' },
      { path: '~else/x', collection: 'c' },
    ];
    const password = { file: '~/.secret' };
    const peer = {
      url: 'https://peer.example.org',
      auth: { username: 'u', password },
      tls: { ca: '~/ca.pem' },
    };
    const { directory, file } = written({
      folders,
      peer,
      state: { dir: '~/state' },
      mirror: { root: '~/m' },
    });
    const home = (name: string) => join(homedir(), name);
    expect((await loadConfig(file)).config).toMatchObject({
      folders: [{ path: home('notes') }, { path: join(directory, '~else/x') }],
      peer: { auth: { password: { file: home('.secret') } }, tls: { ca: home('ca.pem') } },
      state: { dir: home('state') },
      mirror: { root: home('m') },
    });
  });

  it('is frozen after loading', async () => {
    const config = await load({ folders: [inbox] });
    expect(() => Object.assign(config.folders[0] ?? {}, { settle: 0 })).toThrow(TypeError);
    expect(() => Object.assign(config.push.backoff, { min: 0 })).toThrow(TypeError);
  });

  it('may name its JSON Schema and begin with a byte order mark', async () => {
    const config = await load(
      `\ufeff${JSON.stringify({ $schema: './schema.json', folders: [inbox] })}`,
    );
    expect(config).not.toHaveProperty('$schema');
  });
});

describe('a configuration file', () => {
  function link(): string {
    const file = join(temporaryDirectory(), 'loop.json');
    symlinkSync(file, file);
    return file;
  }
  const latin1 = () => written(Buffer.from('{"folders": "\xe4"}', 'latin1')).file;
  const missing = () => join(temporaryDirectory(), 'none.json');
  const huge = () => written(`{"folders": []${' '.repeat(2 ** 20)}}`).file;
  const broken = () => written('{\n  "folders": [],\n}').file;

  it.each<[string, () => string, string, string]>([
    ['is missing', missing, 'CONFIG_MISSING', 'does not exist'],
    ['is a directory', temporaryDirectory, 'CONFIG_UNREADABLE', 'it is a directory'],
    ['cannot be reached', link, 'CONFIG_UNREADABLE', 'ELOOP'],
    ['is huge', huge, 'CONFIG_UNREADABLE', 'larger than 1 MiB'],
    ['is not UTF-8', latin1, 'CONFIG_UNREADABLE', 'not text in UTF-8'],
    ['is not JSON', broken, 'CONFIG_SYNTAX', 'line 2, column 16: a comma before "}"'],
  ])('that %s is reported with the reason', async (_, make, code, words) => {
    const error = await configErrorOf(loadConfig(make()));
    expect(error).toMatchObject({ code, exitCode: 2, message: expect.stringContaining(words) });
    if (code === 'CONFIG_MISSING') expect(error.hint).toContain('peersync init');
    if (code === 'CONFIG_SYNTAX') expect(error.details).toMatchObject({ line: 2, column: 16 });
  });
});

describe('an invalid value', () => {
  it('is reported with its key, the value found and a valid one, together with all others', async () => {
    const config = {
      folders: [
        { ...inbox, settle: '2 parsecs' },
        { path: '', collection: 'a,b' },
      ],
      push: { maxItems: 0 },
      log: { level: 'loud' },
    };
    expect(await problems(config)).toEqual([
      'folders[0].settle: received "2 parsecs"; expected a duration such as "2s" or "15m", from 0s to 1d',
      'folders[1].path: received ""; expected the path of a folder to watch',
      expect.stringMatching(
        /^folders\[1\]\.collection: received "a,b"; expected a collection.*no commas/,
      ),
      'push.maxItems: received 0; expected a whole number from 1 to 1000',
      'log.level: received "loud"; expected "debug" or "info" or "warn" or "error"',
    ]);
  });

  it('is reported once, also in the details for programs, and the input is not changed', async () => {
    expect(await problems(withValue('folders[0].name', ''))).toHaveLength(1);
    const input = { folders: [{ ...inbox, settle: '2d' }] };
    const before = structuredClone(input);
    const { details } = await configErrorOf(checkConfig(input, '/etc/peersync.json'));
    const expected = 'a duration such as "2s" or "15m", from 0s to 1d';
    expect(details).toMatchObject({
      problems: [{ path: 'folders[0].settle', received: '"2d"', expected }],
    });
    expect(input).toEqual(before);
  });

  it.each([
    [{}, 'folders: received nothing; expected a list of at least one folder'],
    [[], 'the file: received an empty list; expected an object'],
    [
      { folders: [{ path: 'x' }] },
      'folders[0].collection: received nothing; expected a collection',
    ],
    [
      { folders: [{ collection: 'c', path: '/' }] },
      'folders[0].name: received ""; expected a name',
    ],
  ])('in the file %j is reported as %j', async (config, start) => {
    expect((await problems(config)).map((line) => line.slice(0, start.length))).toContain(start);
  });

  it.each([
    ['folders', [], ': received an empty list; expected a list of at least one folder'],
    [
      'folders[0].path',
      'a\0b',
      ': received "a\\u0000b"; expected the path of a folder to watch, without',
    ],
    ['folders[0].ignore', [' '], '[0]: received " "; expected a pattern that is not blank'],
    [
      'folders[0].ignore',
      ['a\0'],
      '[0]: received "a\\u0000"; expected a pattern that is not blank',
    ],
    ['folders[0].ignore', ['# note'], '[0]: received "# note"; expected a pattern, not a comment'],
    ['folders[0].ignore', ['a\\'], '[0]: received "a\\\\"; expected a pattern that does not end'],
    [
      'folders[0].rules',
      [{ match: '!a', skip: true }],
      '[0].match: received "!a"; expected a pattern',
    ],
    ['folders[0].rules', [{ match: 'a', skip: false }], '[0].skip: received false; expected true'],
    [
      'folders[0].rules',
      [{ match: 'a', skip: true, collection: 'b' }],
      '[0]: received an object; expected',
    ],
    [
      'folders[0].include',
      [],
      ': received an empty list; expected a list of at least one pattern, such as',
    ],
    [
      'folders[0].rules',
      [{ match: 'x' }],
      '[0]: received an object; expected either "collection" or "skip"',
    ],
    ['folders[0].collection', 'my files', ': received "my files"; expected a collection'],
    ['folders[0].name', 'a/b', ': received "a/b"; expected a name'],
    ['folders[0].url', 'files.example.org', ': received "files.example.org"; expected an http'],
    ['push.maxBytes', '1 B', ': received "1 B"; expected a size such as'],
    ['confirm.requestsPerSecond', -1, ': received -1; expected a number from 0.01 to 10000'],
    ['peer.embedded.port', 65_536, ': received 65536; expected a whole number from 0 to 65535'],
    ['watch.hints', 'yes', ': received "yes"; expected true or false'],
    ['mirror', null, ': received null; expected an object'],
    ['push.attempts', 1.5, ': received 1.5; expected a whole number from 1 to 100'],
    ['status.token', { env: 'A', file: 'b' }, ': received an object; expected exactly one of'],
    ['folders[0].settle', 'x'.repeat(500), `: received "${'x'.repeat(80)}…"; expected`],
    ['peer.url', 'localhost:8090', ': received "localhost:8090"; expected "embedded" or'],
    ['push.maxItms', 3, ': received an unknown key; expected "maxItems"'],
    ['folders[0].settel', '1s', ': received an unknown key; expected "settle"'],
    ['settle', '1s', ': received an unknown key; expected that key at folders[].settle'],
    ['status.port', 8395, ': received an unknown key; expected "listen"'],
    ['peer.host', 'h', ': received an unknown key; expected "url"'],
    ['folders[0].dir', 'x', ': received an unknown key; expected "path"'],
    ['password', 'x', ': received an unknown key; expected that key at peer.auth.password'],
    ['state', { 'a b': 1 }, '["a b"]: received an unknown key; expected one of "dir", "keepGone"'],
  ])('in %s, %j, is reported as %j', async (key, value, rest) => {
    const start = `${key}${rest}`;
    expect(
      (await problems(withValue(key, value))).map((line) => line.slice(0, start.length)),
    ).toEqual([start]);
  });

  it('may be an unknown key whose name has a meaning in JavaScript', async () => {
    const lines = await problems('{"folders":[{"path":"x","collection":"x"}],"__proto__":{}}');
    expect(lines).toEqual([
      expect.stringMatching(/^__proto__: received an unknown key; expected one of/),
    ]);
  });
});

describe('a secret in the wrong place', () => {
  const auth = (password: unknown) => withValue('peer.auth', { username: 'admin', password });

  it.each([
    [auth('hunter2')],
    [withValue('status', { token: 'hunter2' })],
    [auth(['hunter2'])],
    [auth({ env: 'hunter2 is mine' })],
    [auth({ plain: 'hunter2' })],
    [auth({ credential: '../hunter2' })],
    [withValue('peer.auth', 'admin:hunter2')],
    [withValue('peer.auth', { username: 'admin:hunter2' })],
    [withValue('peer.url', 'https://admin:hunter2@example.org/')],
    [withValue('peer.url', 'https://admin:hunt/er2@example.org/')],
    [withValue('peer.url', 'https://example.org/?key=hunter2')],
    [withValue('peer.url', 'admin:hunter2@example.org')],
    [withValue('peer.url', 'admin:hunt/er2@example.org')],
    [withValue('status', { listen: '127.0.0.1:8385/?token=hunter2' })],
    [withValue('password', 'hunter2')],
    [`{"folders": [], "peer": {"auth": {"password": "hunter2\n"}}}`],
  ])('is refused and not shown: %j', async (config) => {
    const { cause, details, hint, message, stack } = await configErrorOf(load(config));
    const everything = `${message}${hint}${stack}${JSON.stringify(details)}${String(cause)}`;
    expect(everything).not.toMatch(/hunter2|hunt\/er2/);
  });
});

describe('a contradiction', () => {
  const two = (a: object, b: object) => ({
    folders: [
      { collection: 'a', ...a },
      { collection: 'b', ...b },
    ],
  });
  const named = (a: string, b: string) => two({ path: a, name: 'x' }, { path: b, name: 'y' });
  const urls = (a: string, b: string) => two({ path: 'a', url: a }, { path: 'b', url: b });

  it.each([
    [
      'name',
      two({ path: 'a/docs' }, { path: 'b/docs' }),
      'received "docs"; expected another name than that of folders[0]',
    ],
    ['path', named('a', './b/../a'), 'does not overlap with folders[0].path'],
    ['path', named('a', 'a/b'), 'does not overlap with folders[0].path'],
    ['path', named('a/b/c', 'a'), 'does not overlap with folders[0].path'],
    ['url', urls('https://x.org/a/', 'https://X.org/a'), 'does not overlap with folders[0].url'],
    ['url', urls('https://x.org/', 'https://x.org/a/'), 'does not overlap with folders[0].url'],
    [
      'url',
      urls('https://x.org/%61/b/', 'https://x.org/a/'),
      'does not overlap with folders[0].url',
    ],
  ])('between the %s of two folders is reported: %j', async (key, config, words) => {
    const [line, second] = await problems(config);
    expect(line?.startsWith(`folders[1].${key}: received `)).toBe(true);
    expect(line).toContain(words);
    expect(second).toBeUndefined();
  });

  const pushed = { username: 'admin', password: { file: 'inbox/password' } };
  it.each([
    ['state.dir', 'inbox/state', 'state.dir', 'neither may contain the other'],
    ['state.dir', '/', 'state.dir', 'neither may contain the other'],
    ['mirror.root', 'inbox', 'mirror.root', 'neither may contain the other'],
    ['mirror.root', './data/state/mirror', 'mirror.root', 'neither may contain the other'],
    ['peer.embedded.dir', 'inbox/peer', 'peer.embedded.dir', 'neither may contain the other'],
    [
      'peer.auth',
      pushed,
      'peer.auth.password.file',
      'outside of folders[0].path: files there are pushed',
    ],
    ['peer.dialect', 'yacy', 'peer.dialect', 'for a YaCy, give its URL in peer.url'],
    [
      'confirm.hold',
      '10m',
      'confirm.hold',
      'less than confirm.timeout ("10m" by default): otherwise nothing',
    ],
    ['push.backoff.min', '1h', 'push.backoff.min', 'at most push.backoff.max ("5m" by default)'],
  ])('with another key is reported: %s is %j', async (key, value, where, words) => {
    const [line] = await problems(withValue(key, value));
    expect(line?.startsWith(`${where}: received `)).toBe(true);
    expect(line).toContain(words);
  });

  it('between two folders that overlap through a symbolic link is reported', async () => {
    const { directory, file } = written(two({ path: 'real' }, { path: 'link/sub' }));
    mkdirSync(join(directory, 'real'));
    symlinkSync('real', join(directory, 'link'));
    expect((await configErrorOf(loadConfig(file))).message).toMatch(
      /folders\[1\]\.path: received ".*link\/sub" \(which is ".*real\/sub"\); expected a directory that does not overlap/,
    );
  });

  it('between pushes by workers and a peer that only this machine reaches is reported', async () => {
    const fleet = { redis: 'redis://127.0.0.1', share: ['extract', 'push'] };
    const [line] = await problems({ folders: [inbox], fleet });
    expect(line).toMatch(/^fleet\.share: received .*; expected only "extract" with "peer.url"/);
    const peer = { url: 'http://localhost:8090' };
    expect((await load({ folders: [inbox], fleet, peer })).fleet?.share).toContain('push');
  });

  it('is not seen in names that begin alike, or in an embedded peer that is not used', async () => {
    expect((await load(two({ path: 'docs' }, { path: 'docs2' }))).folders).toHaveLength(2);
    expect((await load(urls('https://x/a', 'https://x/ab'))).folders).toHaveLength(2);
    const peer = { url: 'http://localhost:8090', embedded: { dir: 'inbox/peer' } };
    expect((await load({ folders: [inbox], peer })).peer.url).toBe('http://localhost:8090');
  });
});
