import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, it, onTestFailed } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { CLI } from '../support/cli.js';
import { MarkedPrograms } from '../support/marked-programs.js';
import { NetworkNamespaces } from '../support/network-namespaces.js';
import { Random } from '../support/random.js';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { type Listed, Site } from '../support/site.js';
import { sha256 } from '../support/tree.js';
import { until } from '../support/wait.js';

if (!hasRedis) console.warn('redis-server is not installed: the fleet is not tried');

const numberOf = (name: string, usual: number) => Number(process.env[name] ?? usual);
/** Sizes. The full ones are 3,000 documents, 40 kills, 2 flushes, 5 restarts, a stop of 120 s. */
const DOCUMENTS = numberOf('PEERSYNC_FLEET_DOCUMENTS', 240);
const KILLS = numberOf('PEERSYNC_FLEET_KILLS', 8);
const FLUSHES = numberOf('PEERSYNC_FLEET_FLUSHES', 1);
const RESTARTS = numberOf('PEERSYNC_FLEET_RESTARTS', 2);
const CUTS = numberOf('PEERSYNC_FLEET_CUTS', 1);
const HANGS = numberOf('PEERSYNC_FLEET_HANGS', 1);
/** How long Redis hangs, in s. */
const HANG_S = 12;
/** How long a worker is stopped, and how long its cable is pulled, in s. */
const STOP_S = numberOf('PEERSYNC_FLEET_STOP_S', 25);
/** The work that is shared. */
const SHARE = (process.env.PEERSYNC_FLEET_SHARE ?? 'extract').split(',');
const WORKERS = 3;
/** Every third document is slow to extract. */
const SLOW_EACH = 3;
const SLOW_S = [0.1, 0.5, 2] as const;
/** The user creates or edits a file this often, in ms. */
const TICK_MS = 60;
/** The files that are looked at more closely after each of them. */
const SAMPLE = 15;

/** Creates documents and edits them. Each version has a word of its own. */
class Writer {
  /** The word of each version, by its sha256. */
  readonly words = new Map<string, string>();
  readonly #versions: number[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly site: Site,
    private readonly random: Random,
  ) {
    afterwards('test', () => this.rest());
  }

  get files(): number {
    return this.#versions.length;
  }

  work(): void {
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  rest(): void {
    clearInterval(this.#timer);
  }

  /** Creates the rest of the files. */
  finish(): void {
    while (this.files < DOCUMENTS) this.#write(this.files);
  }

  #tick(): void {
    // Twice as many files are created as edited, until there are enough.
    const mayCreate = this.files < DOCUMENTS && this.random.chance(2 / 3);
    this.#write(
      mayCreate || this.files === 0 ? this.files : this.random.between(0, this.files - 1),
    );
  }

  #write(file: number): void {
    const version = (this.#versions[file] ?? 0) + 1;
    this.#versions[file] = version;
    // A word is like no other: the peer would find a similar one in its place.
    const word = `w${sha256(Buffer.from(`${this.random.seed} ${file} ${version}`)).slice(0, 20)}`;
    const name = file % SLOW_EACH === 0 ? `${file}.slow` : `${file}.txt`;
    const content = `${this.random.pick(SLOW_S)}\n${word}\nversion ${version} of file ${file}\n`;
    this.words.set(sha256(Buffer.from(content)), word);
    this.site.drop(`inbox/${file % 10}/${name}`, content);
  }
}

/** The workers, each on a machine of its own where there are namespaces. */
class Workers {
  readonly #children: (ChildProcess | undefined)[] = [];
  readonly #logs: string[] = [];
  readonly #ended: Promise<unknown>[] = [];

  constructor(
    private readonly site: Site,
    private readonly env: NodeJS.ProcessEnv,
    private readonly machines: NetworkNamespaces | undefined,
  ) {
    afterwards('test', () => {
      for (const child of this.#children) child?.kill('SIGKILL');
    });
  }

  start(index: number): void {
    const command = [process.execPath, CLI, 'worker', '-c', this.site.config];
    const [program, ...args] = [...(this.machines?.prefix(index) ?? []), ...command];
    const env = { ...process.env, ...this.env };
    const child = spawn(program ?? '', args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const log = (text: Buffer) => {
      this.#logs[index] = `${this.log(index)}${text}`;
    };
    child.stdout?.on('data', log);
    child.stderr?.on('data', log);
    this.#children[index] = child;
    this.#ended[index] = new Promise((resolve) => child.once('exit', (...how) => resolve(how)));
  }

  signal(index: number, signal: NodeJS.Signals): void {
    this.#children[index]?.kill(signal);
  }

  /** @returns how it ended: its exit code and the signal */
  async kill(index: number, signal: NodeJS.Signals): Promise<unknown> {
    this.signal(index, signal);
    return await this.#ended[index];
  }

  log(index: number): string {
    return this.#logs[index] ?? '';
  }
}

async function freePort(host: string): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('there is no free port');
  return address.port;
}

it.skipIf(!hasRedis)(
  `an owner and ${WORKERS} workers lose nothing and confirm nothing wrongly, whatever is killed, emptied, stopped or cut off`,
  async () => {
    const random = Random.seeded();
    console.log(`PEERSYNC_TEST_SEED=${random.seed} repeats this`);
    const noted: string[] = [];
    const beganAt = performance.now();
    const note = (what: string) =>
      noted.push(`${((performance.now() - beganAt) / 1_000).toFixed(1)} s: ${what}`);
    const pushesAreShared = SHARE.includes('push');
    const site = await Site.begin();
    mkdirSync(site.path('tmp'));
    mkdirSync(site.path('redis'));
    // A worker that pushes needs the peer, which is on the loopback of this machine.
    const machines = pushesAreShared ? undefined : NetworkNamespaces.create(WORKERS);
    const host = machines?.address ?? '127.0.0.1';
    const port = await freePort(host);
    const redis = new RedisServer(site.path('redis'), { isDurable: true, tcp: { host, port } });
    await redis.start();
    afterwards('test', () => redis.kill());

    const programs = new MarkedPrograms(site.directory);
    // The readers of a worker have another PATH than those of the owner.
    const slow = programs.add(
      'slow',
      `case $PATH in *:worker) who=worker ;; *) who=owner ;; esac
      echo "$1" >> '${site.directory}'/$who.calls
      read -r seconds < "$1"
      sleep "$seconds"
      cat "$1"`,
    );
    const callsOf = (who: string) =>
      readFileSync(site.path(`${who}.calls`), 'utf8')
        .trimEnd()
        .split('\n').length;
    const parts = {
      documents: { commands: { '.slow': [slow, '{file}'] }, concurrency: 2 },
      fleet: { redis: `redis://${host}:${port}`, share: SHARE },
    };
    site.configure(parts);
    // Every process of this test is found by its environment.
    const mark = site.path('mark');
    site.daemonEnv = { PATH: `${process.env.PATH}:${mark}`, TMPDIR: site.path('tmp') };
    const env = { ...site.daemonEnv, PATH: `${site.daemonEnv.PATH}:worker` };
    const workers = new Workers(site, env, machines);
    const writer = new Writer(site, random);
    onTestFailed(() => {
      const logs = Array.from({ length: WORKERS }, (_, i) => workers.log(i).slice(-3_000));
      console.error([`PEERSYNC_TEST_SEED=${random.seed}`, ...noted, ...logs].join('\n'));
    });

    let ownerKills = 0;
    const restartOwner = async () => {
      ownerKills += 1;
      await site.daemon.kill('SIGKILL');
      site.spawn();
    };
    const restartWorker = async (index: number, signal: NodeJS.Signals) => {
      await workers.kill(index, signal);
      workers.start(index);
    };
    /** Everything that is still under way. */
    const later: Promise<void>[] = [];
    /** A worker that is stopped or cut off is not killed meanwhile. */
    const busy = new Set<number>();
    const freeWorker = () => {
      const free = [0, 1, 2].filter((index) => !busy.has(index));
      return free.length === 0 ? undefined : free[random.between(0, free.length - 1)];
    };
    const during = (index: number, begin: () => void, end: () => void) => {
      busy.add(index);
      begin();
      later.push(
        sleep(STOP_S * 1_000).then(() => {
          end();
          busy.delete(index);
        }),
      );
    };
    const acts: (() => Promise<void>)[] = [
      ...Array.from({ length: KILLS }, () => async () => {
        const index = random.chance(0.25) ? undefined : freeWorker();
        if (index === undefined) {
          note('kill -9 of the owner');
          return await restartOwner();
        }
        const signal = random.pick(['SIGKILL', 'SIGKILL', 'SIGTERM']);
        note(`${signal} of worker ${index}`);
        await restartWorker(index, signal);
      }),
      ...Array.from({ length: FLUSHES }, () => async () => {
        note('FLUSHALL');
        await flush(redis.socket);
      }),
      ...Array.from({ length: RESTARTS }, (_, i) => async () => {
        const isKept = i % 2 === 0;
        note(`Redis is killed${isKept ? '' : ', and forgets everything'}`);
        await redis.kill();
        if (!isKept) rmSync(site.path('redis/appendonlydir'), { recursive: true, force: true });
        await sleep(random.between(0, 3_000));
        await redis.start();
      }),
      ...Array.from({ length: HANGS }, () => async () => {
        note(`Redis hangs for ${HANG_S} s`);
        redis.signal('SIGSTOP');
        later.push(sleep(HANG_S * 1_000).then(() => redis.signal('SIGCONT')));
      }),
      ...Array.from({ length: machines === undefined ? 0 : CUTS }, () => async () => {
        const index = freeWorker();
        if (index === undefined) return;
        note(`worker ${index} is cut off for ${STOP_S} s`);
        during(
          index,
          () => machines?.cut(index, true),
          () => machines?.cut(index, false),
        );
      }),
    ];
    for (let i = acts.length - 1; i > 0; i -= 1) {
      const j = random.between(0, i);
      const [a, b] = [acts[i], acts[j]];
      if (a && b) [acts[i], acts[j]] = [b, a];
    }
    const stopped = random.between(0, WORKERS - 1);
    acts.unshift(async () => {
      note(`SIGSTOP of worker ${stopped} for ${STOP_S} s`);
      during(
        stopped,
        () => workers.signal(stopped, 'SIGSTOP'),
        () => workers.signal(stopped, 'SIGCONT'),
      );
    });

    /** The files of a list whose words the peer does not find. */
    const unfindable = async (files: readonly Listed[]) => {
      const wrong: Listed[] = [];
      for (const file of files) {
        const word = writer.words.get(file.sha256 ?? '');
        const found = word === undefined ? [] : (await site.peer.search(word)).items;
        if (found.length !== 1 || found[0]?.url !== file.url) wrong.push(file);
      }
      return wrong;
    };
    const checkSample = async () => {
      const confirmed = (await site.list()).filter(({ status }) => status === 'confirmed');
      const sample = Array.from({ length: Math.min(SAMPLE, confirmed.length) }, () =>
        confirmed.splice(random.between(0, confirmed.length - 1), 1),
      ).flat();
      const wrong = await unfindable(sample);
      if (wrong.length === 0) return;
      // A file whose newer version is pushed is not listed as confirmed any more.
      const listed = new Map((await site.list()).map((each) => [each.path, each]));
      const still = wrong.filter(({ path, sha256: digest }) => {
        const now = listed.get(path);
        return now?.status === 'confirmed' && now.sha256 === digest;
      });
      expect(still).toEqual([]);
    };

    await site.start();
    for (let index = 0; index < WORKERS; index += 1) workers.start(index);
    for (let index = 0; index < WORKERS; index += 1)
      await until(() => workers.log(index).includes('takes jobs'), `worker ${index} takes jobs`);
    writer.work();
    for (const act of acts) {
      // On average, all of it takes as long as a worker is stopped.
      await sleep(random.between(0, (2_000 * STOP_S) / acts.length));
      await act();
      await checkSample();
    }
    await Promise.all(later);
    writer.rest();
    writer.finish();
    note('peace');
    await until(
      async () => (await site.status().catch(() => undefined)) !== undefined,
      'the owner answers',
    );
    await site.allConfirmed(60_000 + DOCUMENTS * 500);
    note('all are confirmed');

    const listed = await site.list();
    expect(listed).toHaveLength(DOCUMENTS);
    expect(await unfindable(listed)).toEqual([]);
    // Nothing is searchable any more but the last version of each file.
    const last = new Set(listed.map(({ sha256: digest = '' }) => writer.words.get(digest)));
    const older = [...writer.words.values()].filter((word) => !last.has(word));
    for (const word of older.slice(0, DOCUMENTS))
      expect((await site.peer.search(word)).total, word).toBe(0);

    // A version is pushed once, and at most once more for each time that its push is interrupted.
    const interruptions = pushesAreShared ? acts.length : ownerKills;
    const pushes = new Map<string, number>();
    for (const { items, status } of site.proxy.requests)
      if (status === 200)
        for (const { digest, url } of items)
          pushes.set(`${url} ${digest}`, (pushes.get(`${url} ${digest}`) ?? 0) + 1);
    expect(Math.max(...pushes.values())).toBeLessThanOrEqual(1 + interruptions);

    // The workers still help: the fleet did not end up as its owner alone.
    const readBefore = callsOf('worker');
    for (let round = 0; round < 10 && callsOf('worker') === readBefore; round += 1) {
      for (let file = 0; file < 30; file += 1)
        site.drop(`inbox/last/${file}.slow`, `0.2\nround ${round}, ${random.seed}, ${file}\n`);
      await site.allConfirmed();
    }
    expect(callsOf('worker')).toBeGreaterThan(readBefore);

    expect((await site.daemon.kill('SIGTERM')).code).toBe(0);
    for (let index = 0; index < WORKERS; index += 1)
      expect(await workers.kill(index, 'SIGTERM'), workers.log(index)).toEqual([0, null]);
    await until(() => programs.running().length === 0, 'no program is left', 20_000);
    await until(() => marked(mark).length === 0, 'no process is left', 20_000);
    // A worker that starts removes what those left that were killed.
    const left = readdirSync(site.path('tmp')).filter((name) =>
      existsSync(site.path(`tmp/${name}/lock`)),
    );
    expect(left).toEqual([]);
    const again = [...pushes.values()].filter((times) => times > 1).length;
    console.log(
      [
        `${DOCUMENTS} files, ${writer.words.size} versions, ${pushes.size} pushed, ${again} more than once;`,
        `readings of slow documents: ${callsOf('worker')} by workers, ${callsOf('owner')} by the owner;`,
        `${ownerKills} kills of the owner; ${machines === undefined ? 'one machine' : 'namespaces'}`,
        ...noted,
      ].join('\n'),
    );
  },
  300_000 + DOCUMENTS * 1_000 + (KILLS + RESTARTS) * 10_000 + STOP_S * 2_000,
);

it.skipIf(!hasRedis)(
  'an owner that is killed takes what a worker reads meanwhile, and that is read once',
  async () => {
    const site = await Site.begin();
    mkdirSync(site.path('redis'));
    const redis = new RedisServer(site.path('redis'));
    await redis.start();
    afterwards('test', () => redis.kill());
    const programs = new MarkedPrograms(site.directory);
    const slow = programs.add(
      'slow',
      `case $PATH in *:worker) who=worker ;; *) who=owner ;; esac
      echo "$1" >> '${site.directory}'/$who.calls
      until [ -e '${site.path('go')}' ]; do sleep 0.1; done
      cat "$1"`,
    );
    const callsOf = (who: string) => {
      const log = site.path(`${who}.calls`);
      return existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n').length : 0;
    };
    site.configure({
      documents: { commands: { '.slow': [slow, '{file}'] }, concurrency: 1 },
      fleet: { redis: redis.url },
    });
    const workers = new Workers(site, { PATH: `${process.env.PATH}:worker` }, undefined);
    await site.start();
    workers.start(0);
    await until(() => workers.log(0).includes('helps'), 'a worker takes jobs');
    site.drop('inbox/a.slow', 'the first\n');
    site.drop('inbox/b.slow', 'the second\n');
    await until(() => callsOf('owner') === 1 && callsOf('worker') === 1, 'each reads one');
    await site.daemon.kill('SIGKILL');
    site.spawn();
    await until(() => callsOf('owner') === 2, 'the owner reads its document again');
    await until(() => workers.log(0).split('helps').length === 3, 'the worker knows the new run');
    site.drop('go', '');
    await site.allConfirmed();
    expect([callsOf('owner'), callsOf('worker')]).toEqual([2, 1]);
    await site.daemon.kill('SIGKILL');
  },
);

it.skipIf(!hasRedis)(
  'a worker that reads ends at a second signal or by kill -9 while Redis hangs, and nothing of it is left',
  async () => {
    const site = await Site.begin();
    mkdirSync(site.path('tmp'));
    mkdirSync(site.path('redis'));
    const redis = new RedisServer(site.path('redis'));
    await redis.start();
    afterwards('test', () => redis.kill());
    const programs = new MarkedPrograms(site.directory);
    const slow = programs.add('slow', 'sleep 1000 & sleep 1000');
    site.configure({
      documents: { commands: { '.slow': [slow, '{file}'] }, concurrency: 1 },
      fleet: { redis: redis.url },
    });
    const env = { PATH: `${process.env.PATH}:${site.path('mark')}`, TMPDIR: site.path('tmp') };
    const workers = new Workers(site, env, undefined);
    await site.start();
    // The owner reads the first document, and a worker the second.
    for (const [i, end] of ['signals', 'kill'].entries()) {
      workers.start(i);
      await until(() => workers.log(i).includes('takes jobs'), 'a worker takes jobs');
      for (const name of ['a', 'b']) site.drop(`inbox/${name}.slow`, `${name} ${end}\n`);
      await until(() => marked(site.path('mark'), 'sleep').length >= 2, 'the worker reads');
      redis.signal('SIGSTOP');
      if (end === 'kill') await workers.kill(i, 'SIGKILL');
      else {
        workers.signal(i, 'SIGTERM');
        await until(() => workers.log(i).includes('once more to stop at once'), 'it stops');
        expect(await workers.kill(i, 'SIGTERM')).toEqual([null, 'SIGTERM']);
      }
      await until(() => marked(site.path('mark')).length === 0, 'nothing is left', 20_000);
      redis.signal('SIGCONT');
    }
    await site.daemon.kill('SIGKILL');
  },
);

async function flush(path: string): Promise<void> {
  // It may hang: then it is emptied when it goes on.
  const redis = new Redis({ path, commandTimeout: 2 * HANG_S * 1_000 });
  await redis.flushall();
  redis.disconnect();
}

/** The command lines of the processes whose environment has a mark, and that contain a word. */
function marked(mark: string, word = ''): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const environment = readFileSync(join('/proc', pid, 'environ'), 'utf8');
      const command = readFileSync(join('/proc', pid, 'cmdline'), 'utf8').replaceAll('\0', ' ');
      return environment.includes(mark) && command !== '' && command.includes(word)
        ? [`${pid} ${command}`]
        : [];
    } catch {
      return [];
    }
  });
}
