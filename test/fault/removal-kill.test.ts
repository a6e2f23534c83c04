import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFailed } from 'vitest';
import { Random } from '../support/random.js';
import { type Call, ScriptedPeer } from '../support/scripted-peer.js';
import { Site } from '../support/site.js';
import { sha256 } from '../support/tree.js';
import { until } from '../support/wait.js';
import { timing } from '../wire/yacy/timing.js';
import { YacyModel } from '../wire/yacy/yacy-model.js';
import { SPEED } from '../wire/yacy/yacy-world.js';

const CRASHES = 6;
/** A life with removals has them within this. */
const LONGEST_LIFE_MS = 4_000;

/**
 * Longest time of a push or a removal, in ms. One can overtake the other, and a kill can come in
 * between.
 */
const SLOW_MS = 400;

/**
 * A site, what stands before its peer, and the sha256 of what that shows at a URL, now or for good.
 */
interface World {
  readonly site: Site;
  readonly proxy: ScriptedPeer;
  shows(url: string, forGood?: boolean): Promise<string | undefined>;
}

async function withEmbeddedPeer(): Promise<World> {
  const site = await Site.begin({ folders: [{ name: 'inbox', onDelete: 'remove' }] });
  return { site, proxy: site.proxy, shows: async (url) => (await site.peer.peerdoc(url))?.digest };
}

async function withYacy(): Promise<World> {
  const [site, yacy] = await Promise.all([
    Site.begin(),
    YacyModel.start({ timing: timing(SPEED) }),
  ]);
  const proxy = await ScriptedPeer.start(yacy.url);
  site.configure({
    peer: { url: proxy.url },
    folders: [{ name: 'inbox', onDelete: 'remove' }],
    confirm: { hold: `${20_000 / SPEED}ms`, timeout: '20s' },
  });
  const shows = async (url: string, forGood = false) => {
    const document = forGood ? yacy.kept(url) : yacy.shown(url);
    return document && sha256(Buffer.from(document.text));
  };
  return { site, proxy, shows };
}

function removedBy({ form, path }: Call): string[] {
  if (path === '/api/remove_p.html') return [...form].map(([, url]) => url);
  return form.has('urldelete') ? form.getAll('urlstring') : [];
}

/**
 * Somebody who removes half of the files, renames the others, and puts a tenth of the removed ones
 * back, the same or changed.
 */
class LeavingUser {
  /** Since when each file has been there, by `performance.now()`; those that were removed never. */
  readonly since = new Map<string, number>();
  readonly renamed = new Map<string, string>();
  readonly #removed: string[] = [];
  readonly #todo: (() => void)[] = [];

  constructor(
    readonly site: Site,
    readonly random: Random,
    files: number,
  ) {
    for (let i = 0; i < files; i += 1) {
      const file = `inbox/${i % 20}/${i}.txt`;
      this.#put(file, file);
      this.#later(i % 2 === 0 ? () => this.#remove(file) : () => this.#rename(file));
      if (i % 20 === 0) this.#later(() => this.putBack());
    }
  }

  /** Does a share of it, at random moments. */
  async work(share: number): Promise<void> {
    for (const act of this.#todo.splice(0, Math.ceil(this.#todo.length * share))) {
      act();
      await sleep(this.random.between(0, 15));
    }
  }

  #later(act: () => void): void {
    this.#todo.splice(this.random.between(0, this.#todo.length), 0, act);
  }

  #put(file: string, content: string): void {
    this.site.drop(file, content);
    this.since.set(file, performance.now());
  }

  #remove(file: string): void {
    rmSync(this.site.path(file));
    this.since.set(file, Number.POSITIVE_INFINITY);
    this.#removed.push(file);
  }

  #rename(file: string): void {
    const to = file.replace('inbox/', this.random.pick(['inbox/moved/', 'inbox/also-']));
    mkdirSync(dirname(this.site.path(to)), { recursive: true });
    renameSync(this.site.path(file), this.site.path(to));
    this.since.set(file, Number.POSITIVE_INFINITY).set(to, performance.now());
    this.renamed.set(file, to);
  }

  /** @param file where it was removed; default a random one of those */
  putBack(file = this.#removed[this.random.between(0, this.#removed.length - 1)] ?? ''): void {
    const at = this.#removed.indexOf(file);
    if (at === -1) return;
    this.#removed.splice(at, 1);
    this.#put(file, this.random.pick([file, `${file} changed`]));
  }
}

it.each([
  ['the embedded peer', 500, withEmbeddedPeer],
  ['YaCy', 100, withYacy],
] as const)(
  '%s loses the documents of removed and renamed files, and no others, however often the daemon is killed',
  async (_, files, begin) => {
    const random = Random.seeded();
    const noted: string[] = [];
    onTestFailed(() => {
      console.error([`PEERSYNC_TEST_SEED=${random.seed} repeats this:`, ...noted].join('\n'));
    });
    const { site, proxy, shows } = await begin();
    // Numbers of its own: when the daemon is killed hangs on the speed of the machine.
    const user = new LeavingUser(site, new Random(random.seed + 1), files);
    const delays = new Random(random.seed + 2);
    await site.start();
    await site.allConfirmed();
    await site.stop();

    let [began, asked] = [performance.now(), 0];
    const wrong: string[] = [];
    const isShown = async (file = '') => (await shows(site.url(file))) !== undefined;
    proxy.behaviour = async (call) => {
      const urls = new Set(removedBy(call));
      asked += urls.size;
      for (const [file, since] of urls.size === 0 ? [] : user.since) {
        if (!urls.has(site.url(file))) continue;
        if (since < began) wrong.push(`asked to remove ${file}, which has long been there`);
        const to = user.renamed.get(file);
        if (to !== undefined && !(await isShown(to)))
          wrong.push(`asked to remove ${file} before ${to} is found`);
      }
      if (urls.size + call.items.length > 0) await sleep(delays.between(0, SLOW_MS));
      return call.forward();
    };

    let work = Promise.resolve();
    for (let left = CRASHES; left > 0; left -= 1) {
      const isIdle = random.chance(0.3);
      const end = asked + random.between(1, files / 10);
      const longest = isIdle ? random.between(0, 1_000) : LONGEST_LIFE_MS;
      const daemon = site.spawn();
      began = performance.now();
      work = work.then(() => user.work(1 / left));
      await until(() => asked >= end || performance.now() > began + longest, 'the end of its life');
      await sleep(random.between(0, SLOW_MS));
      expect((await daemon.kill('SIGKILL')).signal).toBe('SIGKILL');
      noted.push(
        `killed after ${Math.round(performance.now() - began)} ms, ${asked} removals asked for`,
      );
      for (const { path } of (await site.list())
        .filter(({ status }) => status === 'removing')
        .slice(-2))
        user.putBack(`inbox/${path}`);
    }
    await work;

    began = performance.now();
    await site.start();
    const disk = site.onDisk();
    let others: string[] = [];
    const isSettled = async () => {
      const { folders, items } = await site.status();
      if (folders[0]?.massDeletion !== undefined)
        await site.run('approve-deletes', 'inbox', '--yes');
      if (items.gone + items.removing > 0) return false;
      others = [];
      for (const file of user.since.keys()) {
        const [shown, digest] = [await shows(site.url(file), true), disk.get(file)?.digest];
        if (shown !== digest) others.push(`${file}: ${shown}, and not ${digest}`);
      }
      return others.length === 0;
    };
    await until(isSettled, 'the peer has what is on disk', 60_000).catch(async (error: unknown) => {
      const left = (await site.list()).filter(({ status }) => /^(gone|removing)$/.test(status));
      throw new Error(JSON.stringify([...others, ...left], undefined, 1), { cause: error });
    });
    await site.allConfirmed();
    await site.stop();
    expect(wrong).toEqual([]);
  },
);
