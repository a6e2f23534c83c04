import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { type Ended, Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { peersync } from '../support/warm-cli.js';
import { remotePeer } from './at-peer.js';

/**
 * Checks the form of a failure: a sentence about what happened, a sentence about what to do, no
 * stack trace.
 */
function expectClear(ended: Ended, code: number, words: RegExp): void {
  expect(ended.stderr + ended.stdout).toMatch(words);
  expect(ended.stderr + ended.stdout).not.toMatch(/\n\s+at .*:\d+:\d+/);
  expect(ended.stderr + ended.stdout).not.toMatch(/should not have happened/);
  expect(ended.code).toBe(code);
}

function directoryWith(config: unknown): string {
  const path = join(temporaryDirectory(), 'config.json');
  writeFileSync(path, typeof config === 'string' ? config : JSON.stringify(config));
  return path;
}

/** The last line of an answer in JSON. */
function lastOf({ stdout }: Ended) {
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
}

describe('a configuration', () => {
  it('that is missing names the file and the command that writes one', async () => {
    const ended = await peersync(['run', '-c', join(temporaryDirectory(), 'none.json')]);
    expectClear(ended, 2, /none\.json/);
    expect(ended.stderr).toContain('peersync init');
  });

  const folders = [{ path: './a', collection: 'a' }];
  const auth = { username: 'admin', password: 'hunter2secret' };
  it.each([
    ['is not JSON', '{\n  "folders": [,]\n}', [/line 2, column 15/]],
    [
      'has several mistakes',
      { folder: [], push: { maxItems: 0 }, folders: [{ ...folders[0], settle: '2 parsecs' }] },
      [/2 parsecs/, /folders\[0\]\.settle/, /push\.maxItems/, /"?folder"?.*folders/],
    ],
    [
      'has folders that overlap',
      { folders: [...folders, { path: './a/b', collection: 'b' }] },
      [/may contain the other/],
    ],
    [
      'has a password in it',
      { folders, peer: { url: 'http://127.0.0.1:1', auth } },
      [/env|file|credential/],
    ],
  ])(
    'that %s is reported with all of its errors, and without its passwords',
    async (_, config, words) => {
      const ended = await peersync(['once', '-c', directoryWith(config)]);
      for (const each of words) expectClear(ended, 2, each);
      expect(ended.stderr + ended.stdout).not.toContain('hunter2secret');
    },
  );

  it('with control characters in a name shows them as escapes', async () => {
    const ended = await peersync([
      'status',
      '-c',
      join(temporaryDirectory(), '\u001b[31mnone\u202e.json'),
    ]);
    expectClear(ended, 2, /\\x1b\[31mnone\\u202e\.json/);
    const json = await peersync([
      'status',
      '--json',
      '-c',
      join(temporaryDirectory(), '\u009b31m.json'),
    ]);
    expect(JSON.parse(json.stderr)).toMatchObject({
      error: { message: expect.stringContaining('\u009b') },
    });
  });

  it.skipIf(process.getuid?.() === 0)(
    'that cannot be read is reported (not as root, who can read everything)',
    async () => {
      const path = directoryWith({});
      chmodSync(path, 0);
      expectClear(await peersync(['status', '-c', path]), 2, /cannot be read/);
    },
  );
});

/** A configuration that goes to the peer of all tests here, where each has documents of its own. */
async function atPeer(): Promise<{ readonly directory: string; readonly path: string }> {
  const directory = temporaryDirectory();
  const folder = {
    name: 'inbox',
    url: `https://${basename(directory).toLowerCase()}.example.org/`,
  };
  const path = writeConfig(directory, { peer: (await remotePeer()).section(), folders: [folder] });
  return { directory, path };
}

describe('a state directory', () => {
  it('that another daemon uses names its process; the other goes on', async () => {
    const { path } = await atPeer();
    const first = new Running(['run', '-c', path]);
    await first.says('pushing to');
    const second = await peersync(['once', '-c', path]);
    expectClear(second, 1, new RegExp(`${first.child.pid}`));
    expect(first.child.exitCode).toBe(null);
    expect((await first.kill('SIGTERM')).code).toBe(0);
  });

  it('that does not exist is named by status and by reload, with the command that starts peersync', async () => {
    const directory = temporaryDirectory();
    const path = writeConfig(directory, { peer: { url: 'http://127.0.0.1:1' } });
    const missing = `Nothing has run with this configuration yet: there is no state in ${join(directory, 'state')}.\n  \`peersync run -c ${path}\` starts `;
    const status = await peersync(['status', '-c', path]);
    expect(status.code).toBe(0);
    expect((await peersync(['status', '--check', '-c', path])).code).toBe(1);
    expect(status.stdout.slice(0, missing.length)).toBe(missing);
    const [, ...next] = status.stdout.split('\n');
    expect(next.slice(0, 2)).toEqual([
      `  \`peersync run -c ${path}\` starts to sync 1 folder.`,
      expect.stringContaining('  If a daemon runs already, its state.dir was another'),
    ]);
    expect(status.stdout).toContain('\npeer     http://127.0.0.1:1');
    const { stderr } = await peersync(['reload', '-c', path]);
    expect(stderr).toContain('No daemon runs with this configuration: there is no state in ');
    expect(stderr).toContain('starts one. If a daemon runs already, ');
    expect(existsSync(join(directory, 'state'))).toBe(false);
    mkdirSync(join(directory, 'state'));
    expect((await peersync(['status', '-c', path])).stdout).toMatch(
      /^peersync does not run; `peersync run -c \S+` starts it\. /,
    );
  });

  it('whose records are damaged is repaired from the sound ones, and status reports it', async () => {
    const { directory, path } = await atPeer();
    writeFileSync(join(directory, 'inbox', 'a.txt'), 'alpha');
    expect((await peersync(['once', '-c', path])).code).toBe(0);
    const state = join(directory, 'state');
    const journal = join(
      state,
      readdirSync(state).findLast((name) => name.startsWith('journal')) ?? '',
    );
    const bytes = readFileSync(journal);
    const middle = Math.floor(bytes.length / 2);
    writeFileSync(journal, bytes.fill(0x58, middle, middle + 20));
    const status = await peersync(['status', '-c', path]);
    expect(status.code).toBe(0);
    expect(status.stdout).toMatch(/state: /);
    const again = await peersync(['once', '-c', path, '--json']);
    expect(again.code).toBe(0);
    expect(lastOf(again).items.confirmed).toBe(1);
  });

  it('that is a file is reported', async () => {
    const { directory, path } = await atPeer();
    writeFileSync(join(directory, 'state'), 'not a directory');
    expectClear(await peersync(['once', '-c', path]), 2, /state/);
  });

  const canMount = process.getuid?.() === 0 && process.platform === 'linux';
  it.runIf(canMount)(
    'that is full is reported, and nothing is lost (needs root, for a small disk)',
    async () => {
      const { directory, path } = await atPeer();
      const state = join(directory, 'state');
      mkdirSync(state, { mode: 0o700 });
      try {
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=96k,mode=700', 'tmpfs', state], {
          stdio: 'pipe',
        });
      } catch {
        return; // no right to mount here either
      }
      afterwards('test', () => {
        execFileSync('umount', ['-l', state]);
      });
      for (let i = 0; i < 600; i += 1)
        writeFileSync(join(directory, 'inbox', `f${i}.txt`), `file ${i}`);
      const ended = await peersync(['once', '-c', path, '--timeout', '60s']);
      expectClear(ended, 1, /full|no space|space/i);
      execFileSync('mount', ['-o', 'remount,size=16m', state]);
      const again = await peersync(['once', '-c', path, '--json']);
      expect(again.code).toBe(0);
      expect(lastOf(again).items.confirmed).toBe(600);
    },
  );
});

describe('a folder', () => {
  it('that is missing is reported by run, which waits for it, and by check', async () => {
    const { directory, path } = await atPeer();
    rmSync(join(directory, 'inbox'), { recursive: true });
    const check = await peersync(['check', '-c', path]);
    expectClear(check, 1, /^FAILED .*inbox does not exist\n +Make it with `mkdir -p .*inbox`/m);
    expect(check.stdout).toMatch(/start with `peersync run --create -c [^`]+`/);
    const run = new Running(['run', '-c', path]);
    await run.says(/inbox.*(does not exist|is not there|missing|vanished)/);
    mkdirSync(join(directory, 'inbox'));
    writeFileSync(join(directory, 'inbox', 'a.txt'), 'alpha');
    await run.says('confirmed inbox/a.txt');
    expect((await run.kill('SIGTERM')).code).toBe(0);
    renameSync(join(directory, 'inbox'), join(directory, 'away'));
    const again = await peersync(['check', '-c', path]);
    expectClear(again, 1, /inbox does not exist\n +Mount it or bring it back/);
    expect(again.stdout).not.toMatch(/create/i);
  });

  it('that was replaced by another directory is reported by check, and held by run', async () => {
    const { directory, path } = await atPeer();
    writeFileSync(join(directory, 'inbox', 'a.txt'), 'alpha');
    expect((await peersync(['once', '-c', path])).code).toBe(0);
    renameSync(join(directory, 'inbox'), join(directory, 'away'));
    mkdirSync(join(directory, 'inbox'));
    expectClear(
      await peersync(['check', '-c', path]),
      1,
      /inbox is not the one it was .*\n +Mount what belongs/,
    );
  });

  it('that is missing makes once fail', async () => {
    const { directory, path } = await atPeer();
    rmSync(join(directory, 'inbox'), { recursive: true });
    expectClear(await peersync(['once', '-c', path, '--timeout', '60s']), 1, /inbox/);
  });
});

it('a port in use is reported with the setting that changes it', async () => {
  const blocker = createServer();
  await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
  afterwards('test', () => void blocker.close());
  const { port } = blocker.address() as AddressInfo;
  const path = writeConfig(temporaryDirectory(), {
    peer: { url: 'embedded', embedded: { dir: './peer', port } },
  });
  const ended = await peersync(['run', '-c', path]);
  expectClear(ended, 1, new RegExp(`${port}`));
  expect(ended.stderr).toContain('peer.embedded.port');
});

describe('a wrong command line', () => {
  it.each([
    [['staus'], /Did you mean status\?/],
    [['foo'], /There is no command "foo"\.\n/],
    [
      ['once', '--tiemout'],
      /no option --tiemout\. Did you mean --timeout\?\n.*See `peersync once --help`/,
    ],
    [['--helo'], /no option --helo\. Did you mean --help\?\n.*See `peersync --help`/],
    [['table', 'get', 'prices', '--out', 'a.csv'], /See `peersync table get --help`/],
    [['table', 'set', 'prices', 'price=1'], /--pk is missing\.\n.*`peersync table set --help`/],
    [['search', 'tea', '--milk'], /no option --milk\.\n.*`peersync search --help`\.\n$/],
    [['once', '--timeout', 'soon'], /soon/],
    [['list', '--status', 'lost'], /--status: received "lost"; give pending, .* or skipped\.\n/],
    [['pause', '--for', '0s'], /--for: received "0s"/],
    [['pause', '--for', '4000d'], /--for: received "4000d"/],
    [['why'], /The argument <path> is missing\.\n.*`peersync why --help`/],
    [['why', 'a', 'b'], /"b" is an argument too many: the command is peersync why <path>\./],
    [['status', 'now'], /"now" is an argument too many: status takes none\./],
    [['list', '--status'], /A value is missing after --status\.\n/],
    [['list', '-c'], /A value is missing after -c\.\n/],
    [['table', 'gte'], /There is no command "table gte"\. Did you mean "table get"\?/],
    [['table', 'set', 'p', '--pk'], /--pk\.\n.*`peersync table set --help`/],
    [['retry'], /--all/],
    [['--json'], /Name a command/],
  ])('%j is reported in a sentence, with exit code 2', async (args, words) => {
    const ended = await peersync(args, { cwd: dirname(directoryWith({})) });
    expectClear(ended, 2, words);
    expect(ended.stderr.trim().split('\n').length).toBeLessThanOrEqual(2);
  });

  it('a reader that closes the pipe early is no error', async () => {
    const help = spawn('sh', ['-c', `"${process.execPath}" dist/cli.js --help | head -1`], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let errors = '';
    help.stderr.on('data', (data: Buffer) => {
      errors += data.toString();
    });
    await new Promise((resolve) => help.on('close', resolve));
    expect(errors).toBe('');
  });
});

describe('init', () => {
  it('writes a configuration for a folder that works unchanged', async () => {
    const directory = temporaryDirectory();
    const notes = join(directory, 'My notes!');
    mkdirSync(notes);
    writeFileSync(join(notes, 'plan.md'), 'a plan');
    expect((await peersync(['init', notes], { cwd: directory })).stdout).toContain('"My-notes-"');
    const ended = await peersync(['why', 'My notes!/plan.md'], {
      cwd: temporaryDirectory(),
      env: { PEERSYNC_CONFIG: join(directory, 'config.json') },
    });
    expect(ended.stdout).toContain(`file        ${join(notes, 'plan.md')}`);
    expect(await peersync(['help', 'init'], { cwd: directory })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('peersync init [folder]'),
    });
    expect((await peersync(['-V'], { cwd: directory })).stdout).toMatch(/^peersync \d/);
    const json = await peersync(['-V', '--json'], { cwd: directory });
    expect(JSON.parse(json.stdout)).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d/),
      node: process.versions.node,
    });
  });

  it('writes a configuration that check accepts, and never overwrites one', async () => {
    const directory = temporaryDirectory();
    const made = await peersync(['init'], { cwd: directory });
    expect(made.code).toBe(0);
    const before = readFileSync(join(directory, 'config.json'), 'utf8');
    mkdirSync(join(directory, 'data', 'inbox'), { recursive: true });
    // The ports that it comes with may be in use here.
    const ports = {
      peer: { url: 'embedded', embedded: { port: 0 } },
      status: { listen: '127.0.0.1:0' },
    };
    const config = { ...JSON.parse(before), ...ports };
    writeFileSync(join(directory, 'quiet.json'), JSON.stringify(config));
    expect((await peersync(['check', '-c', 'quiet.json'], { cwd: directory })).code).toBe(0);
    expectClear(await peersync(['init'], { cwd: directory }), 2, /is there already/);
    expect(readFileSync(join(directory, 'config.json'), 'utf8')).toBe(before);
    expect(existsSync(join(directory, 'data', 'state'))).toBe(false);
  });

  it('reports that a missing folder must be created', async () => {
    const made = await peersync(['init', 'notes'], { cwd: temporaryDirectory() });
    expect(made.stdout).toContain(
      'does not exist yet: create it, or start with `peersync run --create',
    );
  });

  it.each([
    ['.', /holds .*data, where peersync keeps its own files/],
    ['..', /outside of the folder/],
    ['plan.md', /plan\.md is no directory/],
  ])('writes no configuration for %s, which check would refuse', async (folder, words) => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'plan.md'), 'a plan');
    expectClear(await peersync(['init', folder], { cwd: directory }), 2, words);
    expect(existsSync(join(directory, 'config.json'))).toBe(false);
  });
});
