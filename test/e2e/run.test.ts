import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { ask as askDaemon } from '../support/ask.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { PeerProcess } from '../support/peer-process.js';
import { ScriptedPeer } from '../support/scripted-peer.js';
import { temporaryDirectory } from '../support/temp.js';
import { sha256 } from '../support/tree.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';
import { ALL_WORK, type Workplace } from './work.js';

interface Listed {
  readonly folder: string;
  readonly path: string;
  readonly status: string;
  readonly sha256?: string;
  readonly url: string;
}

const FOLDERS = ['inbox', 'archive'];
/** The longest that `status` may take while everything happens at once. */
const PATIENCE_MS = 10_000;
/** How long thousands of files may take on a machine that does much else. */
const LIMIT_MS = 200_000;

describe('run, while people and programs work in two folders,', () => {
  let world: string;
  let config: string;
  let peer: PeerProcess;
  let proxy: ScriptedPeer;
  let daemon: Running;
  let place: Workplace;
  const answerTimes: number[] = [];
  const commands: { readonly command: string; readonly code: number | null; readonly stdout: string }[] = [];

  async function ask<T>(question: string, parameters: Record<string, unknown> = {}): Promise<T[]> {
    const lines = await askDaemon<T>(join(world, 'state'), question, parameters);
    if (lines === undefined) throw new Error(`the daemon does not run:\n${daemon.stdout.slice(-2_000)}`);
    return lines;
  }

  const fileOf = ({ folder, path }: Listed) => join(world, folder, path);

  /** What is on disk: the digest of each file. */
  function onDisk(): Map<string, string> {
    const files = new Map<string, string>();
    for (const folder of FOLDERS) {
      for (const entry of readdirSync(join(world, folder), { recursive: true, withFileTypes: true })) {
        const file = join(entry.parentPath, entry.name);
        if (entry.isFile()) files.set(file, sha256(readFileSync(file)));
      }
    }
    return files;
  }

  async function confirmed(file: string): Promise<void> {
    const digest = sha256(readFileSync(file));
    const isConfirmed = async () => {
      await sleep(50);
      const [report] = await ask<{ verdict: string; version?: { sha256?: string } }>('why', { path: file });
      return report?.verdict === 'confirmed' && report.version?.sha256 === digest;
    };
    await until(isConfirmed, `${file} is confirmed`, LIMIT_MS);
  }

  /** Asks the daemon again and again, as people would who do not trust it, until it is told to stop. */
  async function watchTheDaemon(over: AbortSignal): Promise<void> {
    const questions = [
      ['status'],
      ['list', '--folder', 'inbox'],
      ['why', join(world, 'inbox/drops/1/dropped 1.md')],
    ];
    for (let n = 0; !over.aborted; n += 1) {
      const asked = performance.now();
      await ask('status');
      answerTimes.push(performance.now() - asked);
      await sleep(100);
      if (n % 5 !== 0) continue;
      const [command = '', ...more] = questions[(n / 5) % questions.length] ?? [];
      const { code, stdout } = await peersync([command, '--config', config, '--json', ...more]);
      commands.push({ command, code, stdout });
    }
  }

  beforeAll(async () => {
    world = temporaryDirectory('file');
    peer = await PeerProcess.start(join(world, 'peer'), { life: 'file' });
    proxy = await ScriptedPeer.start(peer.url, 'file');
    config = writeConfig(world, {
      peer: peer.section(proxy.url),
      folders: FOLDERS.map((name) => ({ name, settle: '200ms' })),
    });
    const [inbox, archive, outside] = ['inbox', 'archive', 'outside'].map((name) => join(world, name));
    place = { inbox: inbox ?? '', archive: archive ?? '', outside: outside ?? '', confirmed, removed: [] };
    mkdirSync(place.outside);
    daemon = new Running(['run', '--config', config], { life: 'file' });
    await daemon.says('"event":"peer"');
    await until(
      () =>
        ask('status').then(
          () => true,
          () => false,
        ),
      'the daemon answers',
    );
    const over = new AbortController();
    const watching = watchTheDaemon(over.signal);
    await Promise.all(ALL_WORK.map((work) => work(place)));
    const disk = onDisk();
    const isDone = async () => {
      await sleep(200);
      const listed = await ask<Listed>('list');
      const known = new Map(
        listed.filter(({ status }) => status === 'confirmed').map((l) => [fileOf(l), l.sha256]),
      );
      return [...disk].every(([file, digest]) => known.get(file) === digest) && known.size === disk.size;
    };
    // Whether it came to that is for the tests to say, which name the files.
    await until(isDone, 'all is confirmed', LIMIT_MS).catch(() => {});
    over.abort();
    await watching;
  }, 3 * LIMIT_MS);

  it('confirms every file at rest in its last version, and forgets none', async () => {
    const disk = onDisk();
    expect(disk.size).toBeGreaterThan(5_000);
    const listed = new Map((await ask<Listed>('list')).map((entry) => [fileOf(entry), entry]));
    const wrong = [...disk].flatMap(([file, digest]) => {
      const entry = listed.get(file);
      return entry?.status === 'confirmed' && entry.sha256 === digest ? [] : [{ file, entry }];
    });
    expect(wrong).toEqual([]);
  });

  it('leaves in the peer what is on disk', async () => {
    const disk = onDisk();
    const wrong: string[] = [];
    const entries = (await ask<Listed>('list', { status: 'confirmed' })).values();
    const check = async () => {
      for (const entry of entries) {
        const shown = await peer.peerdoc(entry.url);
        const isRight =
          shown?.digest === disk.get(fileOf(entry)) && shown?.collections.join() === entry.folder;
        if (!isRight) wrong.push(fileOf(entry));
      }
    };
    await Promise.all([check(), check(), check(), check()]);
    expect(wrong).toEqual([]);
  });

  it('knows as gone what was removed, renamed or moved away, and nothing else', async () => {
    const disk = onDisk();
    const listed = await ask<Listed>('list');
    const absent = listed.filter((entry) => !disk.has(fileOf(entry)));
    expect(absent.filter(({ status }) => status !== 'gone')).toEqual([]);
    expect(place.removed.length).toBeGreaterThan(20);
    const gone = new Set(absent.map(fileOf));
    expect(place.removed.filter((file) => !gone.has(file))).toEqual([]);
  });

  it('pushes no version of a file twice', () => {
    const pushed = proxy.pushes.flatMap(({ items }) => items.map(({ url, digest }) => `${url} ${digest}`));
    const seen = new Set<string>();
    const twice = pushed.filter((each) => seen.size === seen.add(each).size);
    expect(twice).toEqual([]);
  });

  it('answers status, list and why all the while, within seconds', () => {
    expect(answerTimes.length).toBeGreaterThan(10);
    expect(Math.max(...answerTimes)).toBeLessThan(PATIENCE_MS);
    expect(new Set(commands.map(({ command }) => command))).toEqual(new Set(['status', 'list', 'why']));
    expect(commands.filter(({ code }) => code !== 0)).toEqual([]);
    for (const { command, stdout } of commands) {
      const [first = ''] = stdout.split('\n');
      if (command === 'status') expect(JSON.parse(first)).toMatchObject({ running: true });
      if (command === 'why') expect(JSON.parse(first)).toMatchObject({ folder: 'inbox' });
    }
  });

  it('has no trouble to tell of', () => {
    const lines = daemon.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { level: number });
    expect(lines.filter(({ level }) => level >= 40)).toEqual([]);
    expect(daemon.stderr).toBe('');
  });

  it('stops gently when asked, and leaves nothing for a scan to find', async () => {
    expect((await daemon.kill('SIGTERM')).code).toBe(0);
    const before = proxy.requests.length;
    const { code, stdout } = await peersync(['once', '--config', config, '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ items: { confirmed: onDisk().size }, requests: { push: 0 } });
    expect(proxy.requests.slice(before)).toEqual([]);
  });
});
