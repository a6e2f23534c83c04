import { EventEmitter, once } from 'node:events';
import { appendFileSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFailed } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import type { Running } from '../support/cli.js';
import type { ConfigParts } from '../support/config.js';
import { Random } from '../support/random.js';
import type { PushedItem, Recorded, ScriptedPeer } from '../support/scripted-peer.js';
import { type Listed, Site } from '../support/site.js';

/** The configuration of a daemon with busy folders. */
export const BUSY = {
  folders: [{ name: 'one' }, { name: 'two' }],
  push: { maxItems: 10 },
  confirm: { maxInterval: '200ms' },
} as const satisfies Partial<ConfigParts>;

/**
 * A site with somebody who works in its folders; what is done by chance is noted, and told when the
 * test fails.
 */
export async function busySite(folders: readonly [string, ...string[]] = ['one', 'two']) {
  const site = await Site.begin({ ...BUSY, folders: folders.map((name) => ({ name })) });
  const random = Random.seeded();
  // Numbers of its own: how many the user takes hangs on the speed of the machine.
  const user = new BusyUser(site.directory, folders, new Random(random.seed + 1));
  const noted: string[] = [];
  onTestFailed(() => {
    console.error([`PEERSYNC_TEST_SEED=${random.seed} repeats this:`, ...noted].join('\n'));
  });
  return { site, user, random, note: (what: string) => void noted.push(what) };
}

/**
 * Lets the user rest, and a daemon run until every file is known as it is; then stops the daemon.
 * @returns what is known
 */
export async function settle(site: Site, user: BusyUser): Promise<Listed[]> {
  user.rest();
  await site.start();
  await site.allConfirmed();
  await site.stop();
  // A scan right before the stop may have begun to remove the documents of files that are gone.
  const isBeingRemoved = (difference: string) => difference.includes('"status":"removing"');
  expect((await site.differences()).filter((each) => !isBeingRemoved(each))).toEqual([]);
  return site.list();
}

export function isConfirmed({ status }: Listed): boolean {
  return status === 'confirmed';
}

const TICK_MS = 10;
const MOST_FILES = 400;
/** Above what a daemon reads in one piece. */
const LARGE_LINES = 6_000;

/**
 * Somebody who never rests: creates, rewrites, replaces, slowly appends to, renames, moves, removes
 * and puts back files in some folders, puts files in the place of directories and the other way
 * round, and knows what each file holds. What is written is new every time, but for what is put
 * back.
 */
export class BusyUser {
  readonly #contents = new Map<string, string>();
  readonly #growing = new Map<string, number>();
  readonly #removed = new Map<string, string>();
  #written = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param folders names of directories in `directory`, which are there */
  constructor(
    readonly directory: string,
    readonly folders: readonly [string, ...string[]],
    readonly random: Random,
  ) {
    afterwards('test', () => this.rest());
  }

  work(): void {
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  rest(): void {
    clearInterval(this.#timer);
  }

  /** Writes something new into a file. @param path `FOLDER/PATH` @returns the path */
  write(path: string): string {
    this.#put(path, this.#newContent());
    return path;
  }

  #tick(): void {
    for (const [path, left] of this.#growing) {
      this.#append(path);
      if (left === 1) this.#growing.delete(path);
      else this.#growing.set(path, left - 1);
    }
    this.#act();
  }

  #act(): void {
    const random = this.random;
    const share = random.next();
    const file = this.#someFile();
    if (file === undefined || (share < 0.4 && this.#contents.size < MOST_FILES))
      this.write(this.#newPath());
    else if (share < 0.55) this.write(file);
    else if (share < 0.7) this.#replace(file);
    else if (share < 0.78) this.#growing.set(file, random.between(2, 30));
    else if (share < 0.84) this.#move(file, this.#newPath());
    else if (share < 0.93) this.#remove(file);
    else if (share < 0.95) this.#replaceDirectory(file);
    else this.#putBack();
  }

  #replace(path: string): void {
    const content = this.#newContent();
    const absolute = this.#absolute(path);
    writeFileSync(`${absolute}.part`, content);
    renameSync(`${absolute}.part`, absolute);
    this.#contents.set(path, content);
  }

  /** Puts a file in the place of the directory of a file, unless that is a whole folder. */
  #replaceDirectory(file: string): void {
    const directory = dirname(file);
    if (directory.includes('/')) this.#put(directory, this.#newContent());
  }

  /**
   * Makes the directory of a path; a file that stands in its place is removed, and so is a
   * directory at the path itself.
   */
  #makeWay(path: string): void {
    for (let above = dirname(path); above !== '.'; above = dirname(above))
      if (this.#contents.has(above)) this.#remove(above);
    mkdirSync(dirname(this.#absolute(path)), { recursive: true });
    if (statSync(this.#absolute(path), { throwIfNoEntry: false })?.isDirectory())
      this.#removeDirectory(path);
  }

  #removeDirectory(directory: string): void {
    for (const path of [...this.#contents.keys()].filter((path) =>
      path.startsWith(`${directory}/`),
    )) {
      this.#removed.set(path, this.#contents.get(path) ?? '');
      this.#forget(path);
    }
    rmSync(this.#absolute(directory), { recursive: true });
  }

  #append(path: string): void {
    const line = this.#newLine();
    appendFileSync(this.#absolute(path), line);
    this.#contents.set(path, (this.#contents.get(path) ?? '') + line);
  }

  #move(from: string, to: string): void {
    this.#makeWay(to);
    // The way may have been made by removing it.
    if (!this.#contents.has(from)) return;
    renameSync(this.#absolute(from), this.#absolute(to));
    this.#contents.set(to, this.#contents.get(from) ?? '');
    this.#forget(from);
  }

  #remove(path: string): void {
    rmSync(this.#absolute(path));
    this.#removed.set(path, this.#contents.get(path) ?? '');
    this.#forget(path);
  }

  #putBack(): void {
    for (const [path, content] of this.#removed) {
      this.#put(path, content);
      return;
    }
  }

  #put(path: string, content: string): void {
    this.#makeWay(path);
    // Only a file that is missing is put back, so that no URL goes back to an older version.
    this.#removed.delete(path);
    writeFileSync(this.#absolute(path), content);
    this.#contents.set(path, content);
  }

  #forget(path: string): void {
    this.#contents.delete(path);
    this.#growing.delete(path);
  }

  #someFile(): string | undefined {
    const paths = [...this.#contents.keys()];
    return paths[this.random.between(0, paths.length - 1)];
  }

  #newPath(): string {
    this.#written += 1;
    const folder = this.random.pick(this.folders);
    const directory = this.random.pick(['', 'a/', 'b/', `a/${this.random.between(1, 20)}/`]);
    return `${folder}/${directory}${this.#written}.txt`;
  }

  #newContent(): string {
    const lines = this.random.chance(0.02) ? LARGE_LINES : this.random.between(1, 40);
    return this.#newLine().repeat(lines);
  }

  #newLine(): string {
    this.#written += 1;
    return `line ${this.#written} of somebody who never rests, ${this.random.next()}\n`;
  }

  #absolute(path: string): string {
    return join(this.directory, path);
  }
}

/**
 * Keeps the account of what each life of a daemon pushed, and says what should not have been: a
 * version that went out twice in one life, or once more after it was confirmed. So a version costs
 * one push, and at most one more for each crash that came before it was confirmed.
 */
export class Ledger {
  readonly #last = new Map<string, string>();
  readonly #pushed = new Set<string>();
  readonly #confirmed = new Set<string>();
  readonly #again = new Set<string>();
  #counted = 0;
  #lives = 0;

  /** Number of pushed versions. */
  get pushed(): number {
    return this.#pushed.size;
  }

  /** The versions that went out in more than one life, each as URL and digest. */
  get again(): ReadonlySet<string> {
    return this.#again;
  }

  /**
   * A life ended: what it pushed, and what was known after it. Returns what is wrong with that, a
   * sentence each.
   */
  close(requests: readonly Recorded[], listed: readonly Listed[]): string[] {
    this.#lives += 1;
    const wrong: string[] = [];
    const inThisLife = new Set<string>();
    const sent = requests.slice(this.#counted).filter(({ status }) => status !== 401);
    for (const request of sent) {
      if (request.path === REMOVALS)
        for (const url of request.form.values()) this.#forget(url, inThisLife);
      for (const item of request.items) this.#push(item, inThisLife, wrong);
    }
    this.#counted = requests.length;
    for (const { url, sha256 = '' } of listed.filter(isConfirmed)) {
      if (this.#last.get(url) !== sha256)
        wrong.push(`confirmed, and last pushed was another: ${url} ${sha256}`);
      this.#confirmed.add(`${url} ${sha256}`);
    }
    return wrong;
  }

  /** The document at a URL is removed: whatever it was, it may be pushed again. */
  #forget(url: string, inThisLife: Set<string>): void {
    for (const versions of [this.#pushed, this.#confirmed, inThisLife])
      for (const version of versions) if (version.startsWith(`${url} `)) versions.delete(version);
  }

  #push({ url, digest }: PushedItem, inThisLife: Set<string>, wrong: string[]): void {
    const version = `${url} ${digest}`;
    if (inThisLife.has(version)) wrong.push(`life ${this.#lives} pushed twice: ${version}`);
    if (this.#confirmed.has(version))
      wrong.push(`life ${this.#lives} pushed what was confirmed: ${version}`);
    if (this.#pushed.has(version)) this.#again.add(version);
    inThisLife.add(version);
    this.#pushed.add(version);
    this.#last.set(url, digest);
  }
}

/** Path of the page that removes documents. */
export const REMOVALS = '/api/remove_p.html';

/** When something is done to a daemon: so many ms after something happened. */
export interface Moment {
  readonly after: 'spawned' | 'running' | 'push came' | 'push answered' | 'look-up answered';
  /** The how manieth of these, from 1. */
  readonly nth: number;
  readonly ms: number;
}

/** Longest wait for a matching moment, in ms. */
const LONGEST_WAIT_MS = 1_500;

const KINDS = [
  ['spawned', 1, 400],
  ['running', 1, 500],
  ['push came', 12, 12],
  ['push answered', 12, 12],
  ['look-up answered', 30, 6],
] as const satisfies readonly (readonly [Moment['after'], number, number])[];

export function randomMoment(random: Random): Moment {
  const [after, most, longest] = random.pick(KINDS);
  return { after, nth: random.between(1, most), ms: random.between(0, longest) };
}

export function inWords({ after, nth, ms }: Moment): string {
  return `${ms} ms after ${after}${nth === 1 ? '' : ` (${nth})`}`;
}

/** Tells of what passes a proxy, and remembers what the peer has shown. */
export class Passing {
  /** Every version that a look-up was answered with, as URL and digest. */
  readonly shown = new Set<string>();
  readonly #events = new EventEmitter().setMaxListeners(0);

  /** @param holdMs how long the answer to a push is held back, once the peer has taken it */
  constructor(proxy: ScriptedPeer, holdMs: () => number = () => 0) {
    proxy.behaviour = async (call) => {
      if (isPush(call)) this.#events.emit('push came');
      const answer = await call.forward();
      const [digest] = /\b[0-9a-f]{64}\b/.exec(answer.body.toString()) ?? [];
      if (digest !== undefined) this.shown.add(`${call.form.get('url')} ${digest}`);
      this.#events.emit(isPush(call) ? 'push answered' : 'look-up answered');
      if (isPush(call)) await sleep(holdMs());
      return answer;
    };
  }

  /** Resolves when the moment is there in the life of a daemon that was just started. */
  async comes({ after, nth, ms }: Moment, daemon: Running): Promise<void> {
    if (after === 'running') await daemon.says('pushing to');
    else if (after !== 'spawned')
      await Promise.race([this.#happens(after, nth), sleep(LONGEST_WAIT_MS)]);
    await sleep(ms);
  }

  async #happens(event: Moment['after'], times: number): Promise<void> {
    for (let time = 0; time < times; time += 1) await once(this.#events, event);
  }
}

function isPush({ items }: Recorded): boolean {
  return items.length > 0;
}
