import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { Site } from '../support/site.js';
import { ALL_WORK } from './work.js';

/** Maximum processor time of the daemon until it answers while it is busy, in ms. */
const PATIENCE_MS = 10_000;
/** Time limit for thousands of files on a busy machine, in ms. */
const LIMIT_MS = 200_000;

/** Returns the processor time of a process, in ms. A busy machine makes it little longer. */
function cpuMsOf(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  // Ticks of 10 ms.
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

describe('run, while people and programs work in two folders,', () => {
  let site: Site;
  const removed: string[] = [];
  const answerTimes: number[] = [];
  const commands: {
    readonly command: string;
    readonly code: number | null;
    readonly first: unknown;
  }[] = [];

  /**
   * Asks the daemon again and again, as people would who do not trust it, until it is told to stop.
   */
  async function watchTheDaemon(over: AbortSignal): Promise<void> {
    const questions = [
      ['status'],
      ['list', '--folder', 'inbox'],
      ['why', 'inbox/drops/1/dropped 1.md'],
    ] as const;
    for (let n = 0; !over.aborted; n += 1) {
      const { pid } = site.daemon.child;
      const before = cpuMsOf(pid);
      await site.ask('status');
      answerTimes.push(cpuMsOf(pid) - before);
      await sleep(100);
      if (n % 5 !== 0) continue;
      const [command, ...more] = questions[(n / 5) % questions.length] ?? questions[0];
      const { code, lines } = await site.json(command, ...more);
      commands.push({ command, code, first: lines[0] });
    }
  }

  beforeAll(async () => {
    const folders = ['inbox', 'archive'].map((name) => ({
      name,
      settle: '200ms',
      onDelete: 'keep',
    }));
    site = await Site.begin({ folders }, 'file');
    await site.start();
    const over = new AbortController();
    const watching = watchTheDaemon(over.signal);
    await Promise.all(ALL_WORK.map((work) => work(site, removed)));
    // Whether it came to that is for the tests to say, which name the files.
    await site.allConfirmed(LIMIT_MS).catch(() => {});
    over.abort();
    await watching;
  }, 3 * LIMIT_MS);

  it('confirms every file at rest in its last version, and loses none', async () => {
    expect(site.onDisk().size).toBeGreaterThan(5_000);
    expect(await site.differences()).toEqual([]);
    await site.expectAllInPeer();
  });

  it('records removed, renamed and moved files as gone', async () => {
    const gone = (await site.list()).filter(({ status }) => status === 'gone');
    expect(removed.length).toBeGreaterThan(20);
    expect(gone.map(({ folder, path }) => `${folder}/${path}`)).toEqual(
      expect.arrayContaining(removed),
    );
  });

  it('pushes no version of a file twice', () => {
    const pushed = site.proxy.pushes.flatMap(({ items }) =>
      items.map(({ url, digest }) => `${url} ${digest}`),
    );
    const seen = new Set<string>();
    const twice = pushed.filter((each) => seen.size === seen.add(each).size);
    expect(twice).toEqual([]);
  });

  it('answers status, list and why within seconds meanwhile', () => {
    expect(answerTimes.length).toBeGreaterThan(10);
    expect(Math.max(...answerTimes)).toBeLessThan(PATIENCE_MS);
    expect(new Set(commands.map(({ command }) => command))).toEqual(
      new Set(['status', 'list', 'why']),
    );
    expect(commands.filter(({ code }) => code !== 0)).toEqual([]);
    for (const { command, first } of commands) {
      if (command === 'status') expect(first).toMatchObject({ running: true });
      if (command === 'why') expect(first).toMatchObject({ folder: 'inbox' });
    }
  });

  it('logs no failures, stops cleanly, and leaves nothing for a scan to find', async () => {
    expect(site.daemon.lines.filter(({ level }) => level >= 40)).toEqual([]);
    await site.stop();
    const before = site.proxy.requests.length;
    const { code, lines } = await site.json('once');
    expect(code).toBe(0);
    expect(lines).toMatchObject([
      { items: { confirmed: site.onDisk().size }, requests: { push: 0 } },
    ]);
    expect(site.proxy.requests.slice(before)).toEqual([]);
  });
});
