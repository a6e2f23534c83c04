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
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { type Ended, Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { peersync } from '../support/warm-cli.js';
import { remotePeer } from './at-peer.js';

const EMBEDDED = { url: 'embedded', embedded: { dir: './peer', port: 0 } };

/** What every failure looks like to a person: a sentence what happened, a sentence what to do, no stack trace. */
function expectClear(ended: Ended, code: number, words: RegExp): void {
  expect(ended.stderr + ended.stdout).toMatch(words);
  expect(ended.stderr + ended.stdout).not.toMatch(/\n\s+at .*:\d+:\d+/);
  expect(ended.stderr + ended.stdout).not.toMatch(/should not have happened/);
  expect(ended.code).toBe(code);
}

function directoryWith(config: string): string {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'config.json'), config);
  return join(directory, 'config.json');
}

describe('a configuration', () => {
  it('that is missing names the file and the command that writes one', async () => {
    const ended = await peersync(['run', '-c', join(temporaryDirectory(), 'none.json')]);
    expectClear(ended, 2, /none\.json/);
    expect(ended.stderr).toContain('peersync init');
  });

  const folders = [{ path: './a', collection: 'a' }];
  const peerWith = (password: unknown) => ({
    url: 'http://127.0.0.1:1',
    auth: { username: 'admin', password },
  });
  const several = {
    ...{ folder: [], push: { maxItems: 0 } },
    folders: [{ path: './a', collection: 'a', settle: '2 parsecs' }],
  };
  it.each([
    ['is not JSON', '{\n  "folders": [,]\n}', [/line 2, column 15/]],
    [
      'has several mistakes',
      several,
      [/2 parsecs/, /folders\[0\]\.settle/, /push\.maxItems/, /"?folder"?.*folders/],
    ],
    [
      'has folders that overlap',
      { folders: [...folders, { path: './a/b', collection: 'b' }] },
      [/lie within/],
    ],
    ['has a password in it', { folders, peer: peerWith('hunter2secret') }, [/env|file|credential/]],
    [
      'has a password that is not there',
      { folders, peer: peerWith({ env: 'NO_SUCH_VARIABLE' }) },
      [/NO_SUCH_VAR/],
    ],
  ])('that %s is told with all that is wrong, and shows no password', async (_, config, words) => {
    const text = typeof config === 'string' ? config : JSON.stringify(config);
    const ended = await peersync(['once', '-c', directoryWith(text)]);
    for (const each of words) expectClear(ended, 2, each);
    expect(ended.stderr + ended.stdout).not.toContain('hunter2secret');
  });

  it('with a name that would act on a terminal shows it written out', async () => {
    const ended = await peersync(['status', '-c', join(temporaryDirectory(), '\u001b[31mnone\u202e.json')]);
    expectClear(ended, 2, /\\x1b\[31mnone\\u202e\.json/);
    const json = await peersync(['status', '--json', '-c', join(temporaryDirectory(), '\u009b31m.json')]);
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { message: expect.stringContaining('\u009b') } });
  });

  it.skipIf(process.getuid?.() === 0)(
    'that cannot be read says so (not shown as root, who reads everything)',
    async () => {
      const path = directoryWith('{}');
      chmodSync(path, 0);
      expectClear(await peersync(['status', '-c', path]), 2, /cannot be read/);
    },
  );
});

/** A configuration that goes to the peer of all tests here, where each has documents of its own. */
async function atPeer(): Promise<{ readonly directory: string; readonly path: string }> {
  const directory = temporaryDirectory();
  const folder = { name: 'inbox', url: `https://${basename(directory).toLowerCase()}.example.org/` };
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

  it('that is not there is named by status, as by reload: a daemon may go on with the one before', async () => {
    const directory = temporaryDirectory();
    const path = writeConfig(directory, { peer: { url: 'http://127.0.0.1:1' } });
    const missing = `No daemon runs with this configuration: its state would be in ${join(directory, 'state')}, where nothing is.\n  If state.dir was changed, `;
    const status = await peersync(['status', '-c', path]);
    expect(status.code).toBe(0);
    expect(status.stdout.slice(0, missing.length)).toBe(missing);
    expect(status.stdout).toContain('\npeer     http://127.0.0.1:1');
    expect((await peersync(['reload', '-c', path])).stderr).toContain(missing);
    expect(existsSync(join(directory, 'state'))).toBe(false);
    mkdirSync(join(directory, 'state'));
    expect((await peersync(['status', '-c', path])).stdout).toMatch(/^peersync does not run; /);
  });

  it('whose records are damaged is repaired from what is sound, and status says so', async () => {
    const { directory, path } = await atPeer();
    writeFileSync(join(directory, 'inbox', 'a.txt'), 'alpha');
    expect((await peersync(['once', '-c', path])).code).toBe(0);
    const state = join(directory, 'state');
    const journal =
      readdirSync(state)
        .filter((name) => name.startsWith('journal'))
        .at(-1) ?? '';
    const bytes = readFileSync(join(state, journal));
    bytes.fill(0x58, Math.floor(bytes.length / 2), Math.floor(bytes.length / 2) + 20);
    writeFileSync(join(state, journal), bytes);
    const status = await peersync(['status', '-c', path]);
    expect(status.code).toBe(0);
    expect(status.stdout).toMatch(/state: /);
    const again = await peersync(['once', '-c', path, '--json']);
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout.trim().split('\n').at(-1) ?? '').items.confirmed).toBe(1);
  });

  it('that is a file is told', async () => {
    const { directory, path } = await atPeer();
    writeFileSync(join(directory, 'state'), 'not a directory');
    expectClear(await peersync(['once', '-c', path]), 2, /state/);
  });

  const canMount = process.getuid?.() === 0 && process.platform === 'linux';
  it.runIf(canMount)('that is full is told, and nothing is lost (needs root, for a small disk)', async () => {
    const { directory, path } = await atPeer();
    const state = join(directory, 'state');
    mkdirSync(state, { mode: 0o700 });
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=96k', 'tmpfs', state], { stdio: 'pipe' });
    } catch {
      return; // no right to mount here either
    }
    afterwards('test', () => {
      execFileSync('umount', ['-l', state]);
    });
    for (let i = 0; i < 600; i += 1) writeFileSync(join(directory, 'inbox', `f${i}.txt`), `file ${i}`);
    const ended = await peersync(['once', '-c', path, '--timeout', '60s']);
    expectClear(ended, 1, /full|no space|space/i);
    execFileSync('mount', ['-o', 'remount,size=16m', state]);
    const again = await peersync(['once', '-c', path, '--json']);
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout.trim().split('\n').at(-1) ?? '').items.confirmed).toBe(600);
  });
});

describe('a folder', () => {
  it('that is missing is named by run, which waits for it, and by check', async () => {
    const { directory, path } = await atPeer();
    rmSync(join(directory, 'inbox'), { recursive: true });
    const check = await peersync(['check', '-c', path]);
    expectClear(check, 0, /^ok .*inbox does not exist yet: .*`peersync run --create`$/m);
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

  it('that is missing makes once end with failure, not with an empty success', async () => {
    const { directory, path } = await atPeer();
    rmSync(join(directory, 'inbox'), { recursive: true });
    expectClear(await peersync(['once', '-c', path, '--timeout', '60s']), 1, /inbox/);
  });
});

describe('a port in use', () => {
  it('is told with the setting that changes it', async () => {
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
    afterwards('test', () => void blocker.close());
    const address = blocker.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const path = writeConfig(temporaryDirectory(), {
      peer: { url: 'embedded', embedded: { dir: './peer', port } },
    });
    const ended = await peersync(['run', '-c', path]);
    expectClear(ended, 1, new RegExp(`${port}`));
    expect(ended.stderr).toContain('peer.embedded.port');
  });
});

describe('a wrong command line', () => {
  it.each([
    [['staus'], /Did you mean status\?/],
    [['foo'], /There is no command "foo"\.\n/],
    [['once', '--tiemout'], /See `peersync once --help`/],
    [['once', '--tiemout', '5s'], /tiemout/],
    [['once', '--timeout', 'soon'], /soon/],
    [['list', '--status', 'lost'], /lost/],
    [['pause', '--for', 'soon'], /--for: received "soon"/],
    [['pause', '--for', '0s'], /--for: received "0s"/],
    [['pause', '--for', '4000d'], /--for: received "4000d"/],
    [['why'], /Not enough|path/],
    [['retry'], /--all/],
    [[], /command/],
  ])('%j is told in a sentence, with exit code 2', async (args, words) => {
    const directory = temporaryDirectory();
    writeConfig(directory, { peer: EMBEDDED });
    const ended = await peersync(args, { cwd: directory });
    expectClear(ended, 2, words);
    expect(ended.stderr.trim().split('\n').length).toBeLessThanOrEqual(2);
  });

  it('a reader that goes away early is no error', async () => {
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
  it('writes one for a folder that runs as it is, and names its files by where they are', async () => {
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
  });

  it('writes a configuration that check accepts, and never over another one', async () => {
    const directory = temporaryDirectory();
    const made = await peersync(['init'], { cwd: directory });
    expect(made.code).toBe(0);
    const before = readFileSync(join(directory, 'config.json'), 'utf8');
    mkdirSync(join(directory, 'data', 'inbox'), { recursive: true });
    // The ports that it comes with may be in use here.
    const quiet = JSON.parse(before);
    quiet.peer.embedded = { ...quiet.peer.embedded, port: 0 };
    quiet.status = { ...quiet.status, listen: '127.0.0.1:0' };
    writeFileSync(join(directory, 'quiet.json'), JSON.stringify(quiet));
    expect((await peersync(['check', '-c', 'quiet.json'], { cwd: directory })).code).toBe(0);
    expectClear(await peersync(['init'], { cwd: directory }), 2, /is there already/);
    expect(readFileSync(join(directory, 'config.json'), 'utf8')).toBe(before);
    expect(existsSync(join(directory, 'data', 'state'))).toBe(false);
  });
});
