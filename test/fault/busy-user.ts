import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterwards } from '../support/afterwards.js';
import type { Random } from '../support/random.js';

const TICK_MS = 10;
const MOST_FILES = 400;
/** Above what a daemon reads in one piece. */
const LARGE_LINES = 6_000;

/**
 * Somebody who never rests: creates, rewrites, replaces, slowly appends to, renames, moves, removes and puts back files
 * in some folders, and knows what each file holds. What is written is new every time, but for what is put back.
 */
export class BusyUser {
  readonly #directory: string;
  readonly #folders: readonly [string, ...string[]];
  readonly #random: Random;
  readonly #contents = new Map<string, string>();
  readonly #growing = new Map<string, number>();
  readonly #removed = new Map<string, string>();
  #written = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param folders names of directories in `directory`, which are there */
  constructor(directory: string, folders: readonly [string, ...string[]], random: Random) {
    this.#directory = directory;
    this.#folders = folders;
    this.#random = random;
    afterwards('test', () => this.rest());
  }

  work(): void {
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  rest(): void {
    clearInterval(this.#timer);
  }

  /** The sha256 of every file, by `FOLDER/PATH`. */
  files(): ReadonlyMap<string, string> {
    return new Map([...this.#contents].map(([path, content]) => [path, sha256(content)]));
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
    const random = this.#random;
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
    return paths[this.#random.between(0, paths.length - 1)];
  }

  #newPath(): string {
    this.#written += 1;
    const folder = this.#random.pick(this.#folders);
    const directory = this.#random.pick(['', 'a/', 'b/', `a/${this.#random.between(1, 20)}/`]);
    return `${folder}/${directory}${this.#written}.txt`;
  }

  #newContent(): string {
    const lines = this.#random.chance(0.02) ? LARGE_LINES : this.#random.between(1, 40);
    return this.#newLine().repeat(lines);
  }

  #newLine(): string {
    this.#written += 1;
    return `line ${this.#written} of somebody who never rests, ${this.#random.next()}\n`;
  }

  #absolute(path: string): string {
    return join(this.#directory, path);
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
