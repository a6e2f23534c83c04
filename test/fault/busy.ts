import { EventEmitter, once } from 'node:events';
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFailed } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import type { Running } from '../support/cli.js';
import type { ConfigParts } from '../support/config.js';
import { Random } from '../support/random.js';
import type { Recorded, ScriptedPeer } from '../support/scripted-peer.js';
import { type Listed, Site } from '../support/site.js';

/** What the daemon of somebody busy has in its configuration. */
export const BUSY = {
  folders: [{ name: 'one' }, { name: 'two' }],
  push: { maxItems: 10 },
  confirm: { maxInterval: '200ms' },
} as const satisfies Partial<ConfigParts>;

/** A site with somebody who works in its folders; what is done by chance is noted, and told when the test fails. */
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

/** Lets the user rest, and a daemon run until every file is known as it is; then stops the daemon. @returns what is known */
export async function settle(site: Site, user: BusyUser): Promise<Listed[]> {
  user.rest();
  await site.start();
  await site.allConfirmed();
  await site.stop();
  expect(await site.differences()).toEqual([]);
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
 * Somebody who never rests: creates, rewrites, replaces, slowly appends to, renames, moves, removes and puts back files
 * in some folders, and knows what each file holds. What is written is new every time, but for what is put back.
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
    if (file === undefined || (share < 0.4 && this.#contents.size < MOST_FILES)) this.write(this.#newPath());
    else if (share < 0.55) this.write(file);
    else if (share < 0.7) this.#replace(file);
    else if (share < 0.78) this.#growing.set(file, random.between(2, 30));
    else if (share < 0.86) this.#move(file, this.#newPath());
    else if (share < 0.94) this.#remove(file);
    else this.#putBack();
  }

  #replace(path: string): void {
    const content = this.#newContent();
    const absolute = this.#absolute(path);
    writeFileSync(`${absolute}.part`, content);
    renameSync(`${absolute}.part`, absolute);
    this.#contents.set(path, content);
  }

  #append(path: string): void {
    const line = this.#newLine();
    appendFileSync(this.#absolute(path), line);
    this.#contents.set(path, (this.#contents.get(path) ?? '') + line);
  }

  #move(from: string, to: string): void {
    mkdirSync(dirname(this.#absolute(to)), { recursive: true });
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
      this.#removed.delete(path);
      this.#put(path, content);
      return;
    }
  }

  #put(path: string, content: string): void {
    const absolute = this.#absolute(path);
    mkdirSync(dirname(absolute), { recursive: true });
    writeFileSync(absolute, content);
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
 * Keeps the account of what each life of a daemon pushed, and says what should not have been: a version that went out
 * twice in one life, or once more after it was confirmed. So a version costs one push, and at most one more for each
 * crash that came before it was confirmed.
 */
export class Ledger {
  readonly #last = new Map<string, string>();
  readonly #pushed = new Set<string>();
  readonly #confirmed = new Set<string>();
  readonly #again = new Set<string>();
  #counted = 0;
  #lives = 0;

  /** How many versions went out. */
  get pushed(): number {
    return this.#pushed.size;
  }

  /** The versions that went out in more than one life, each as URL and digest. */
  get again(): ReadonlySet<string> {
    return this.#again;
  }

  /** A life ended: what it pushed, and what was known after it. Returns what is wrong with that, a sentence each. */
  close(requests: readonly Recorded[], listed: readonly Listed[]): string[] {
    this.#lives += 1;
    const wrong: string[] = [];
    const inThisLife = new Set<string>();
    const pushed = requests.slice(this.#counted).filter(({ status }) => status !== 401);
    for (const { url, digest } of pushed.flatMap(({ items }) => items)) {
      const version = `${url} ${digest}`;
      if (inThisLife.has(version)) wrong.push(`life ${this.#lives} pushed twice: ${version}`);
      if (this.#confirmed.has(version))
        wrong.push(`life ${this.#lives} pushed what was confirmed: ${version}`);
      if (this.#pushed.has(version)) this.#again.add(version);
      inThisLife.add(version);
      this.#pushed.add(version);
      this.#last.set(url, digest);
    }
    this.#counted = requests.length;
    for (const { url, sha256 = '' } of listed.filter(isConfirmed)) {
      if (this.#last.get(url) !== sha256)
        wrong.push(`confirmed, and last pushed was another: ${url} ${sha256}`);
      this.#confirmed.add(`${url} ${sha256}`);
    }
    return wrong;
  }
}

/** When something is done to a daemon: so many ms after something happened. */
export interface Moment {
  readonly after: 'spawned' | 'running' | 'push came' | 'push answered' | 'look-up answered';
  /** The how manieth of these, from 1. */
  readonly nth: number;
  readonly ms: number;
}

/** Where nothing of the kind happens, it is done all the same. */
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
    else if (after !== 'spawned') await Promise.race([this.#happens(after, nth), sleep(LONGEST_WAIT_MS)]);
    await sleep(ms);
  }

  async #happens(event: Moment['after'], times: number): Promise<void> {
    for (let time = 0; time < times; time += 1) await once(this.#events, event);
  }
}

function isPush({ items }: Recorded): boolean {
  return items.length > 0;
}
