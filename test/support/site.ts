import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { StatusReport } from '../../src/report/status.js';
import type { WhyReport } from '../../src/report/why.js';
import { ask } from './ask.js';
import { type Ended, Running } from './cli.js';
import { writeConfig } from './config.js';
import type { PeerProcess } from './peer-process.js';
import { ScriptedPeer } from './scripted-peer.js';
import { temporaryDirectory } from './temp.js';
import { until } from './wait.js';
import { peersync } from './warm-cli.js';

/** Longer than a peer takes that is well, also on a machine that is busy. */
export const TIMEOUTS = { connect: '20s', headers: '20s', body: '20s', total: '40s' };

/** A dozen names of files. */
export const some = (prefix: string) => Array.from({ length: 12 }, (_, i) => `${prefix}${i}.txt`);

/** Before each question to the daemon, in ms: where many are asked, asking is not to be most of the work. */
const ASK_AGAIN_MS = 30;

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly event?: string;
  /** What a count of lines is about. */
  readonly of?: string;
  /** For how long the process stood still. */
  readonly lateMs?: number;
}

/** A folder, a configuration, and a troublesome peer before the real one. */
export class Site {
  readonly directory = temporaryDirectory('file');
  readonly contents = new Map<string, string>();
  readonly config: string;

  private constructor(
    readonly name: string,
    readonly real: PeerProcess,
    readonly peer: ScriptedPeer,
    auth: Readonly<Record<string, unknown>>,
  ) {
    this.config = writeConfig(this.directory, {
      peer: { url: peer.url, timeouts: TIMEOUTS, ...auth },
      folders: [{ name: 'inbox', url: `https://${name}.example.org/` }],
    });
  }

  /** @param name also the host of the documents' URLs, so that many sites can share one peer */
  static async make(real: PeerProcess, name: string, auth = real.section()): Promise<Site> {
    const { url: _, ...access } = auth;
    return new Site(name, real, await ScriptedPeer.start(real.url, 'file'), access);
  }

  path(file: string): string {
    return join(this.directory, 'inbox', file);
  }

  url(file: string): string {
    return `https://${this.name}.example.org/${file}`;
  }

  drop(...files: readonly string[]): void {
    for (const file of files) {
      const content = `${file} of ${this.name}\n`;
      this.contents.set(file, content);
      writeFileSync(this.path(file), content);
    }
  }

  command(...args: readonly string[]): Promise<Ended> {
    return peersync([...args, '-c', this.config]);
  }

  async status(): Promise<StatusReport> {
    return (await this.#ask('status', {})) as StatusReport;
  }

  async why(file: string): Promise<WhyReport> {
    return (await this.#ask('why', { path: this.path(file) })) as WhyReport;
  }

  /** Another try for everything, as `peersync retry --all` asks for it. */
  async retry(): Promise<void> {
    await this.#ask('retry', { all: true });
  }

  async #ask(question: string, parameters: Readonly<Record<string, unknown>>): Promise<unknown> {
    await sleep(ASK_AGAIN_MS);
    const reports = await ask(join(this.directory, 'state'), question, parameters);
    if (reports === undefined) throw new Error(`${this.name}: the daemon does not run`);
    return reports[0];
  }

  /** The daemon on this site. */
  run(): Daemon {
    return new Daemon(this);
  }

  /** Whether the peer has every file that was dropped, as it was dropped. */
  async expectAllInPeer(): Promise<void> {
    for (const [file, content] of this.contents) {
      const document = await this.real.peerdoc(this.url(file));
      expect(document?.digest, file).toBe(createHash('sha256').update(content).digest('hex'));
    }
  }
}

export class Daemon {
  readonly running: Running;
  readonly #read: Line[] = [];
  #readTo = 0;

  constructor(readonly site: Site) {
    // In detail, for of many files at once not each has a line otherwise.
    this.running = new Running(['run', '-c', site.config, '--log-level', 'debug'], { life: 'file' });
  }

  /** What it wrote, line by line; each is read once, for it is looked at again and again. */
  get #lines(): readonly Line[] {
    const { stdout } = this.running;
    const end = stdout.lastIndexOf('\n') + 1;
    for (const line of stdout.slice(this.#readTo, end).split('\n'))
      if (line !== '') this.#read.push(JSON.parse(line) as Line);
    this.#readTo = Math.max(this.#readTo, end);
    return this.#read;
  }

  get confirmed(): number {
    return this.#lines.filter(({ event }) => event === 'confirmed').length;
  }

  /**
   * What a person reads beside the confirmed files, once everything has started: `warn: the sentence`. That the machine was
   * too busy for the process is no word of the peer.
   */
  get said(): string[] {
    return this.#lines
      .filter(({ level, lateMs }) => level >= 30 && lateMs === undefined)
      .filter(({ event, of }) => !['confirmed', 'watching', 'peer'].includes(of ?? event ?? ''))
      .map(({ level, msg }) => `${{ 30: 'info', 40: 'warn', 50: 'error' }[level]}: ${msg}`);
  }

  async confirms(count: number): Promise<void> {
    await until(() => this.confirmed === count, `${this.site.name}: ${count} confirmed`).catch(
      (error: unknown) => {
        throw new Error(`${error}, but ${this.confirmed}\n${this.said.join('\n')}`);
      },
    );
  }

  async stop(): Promise<void> {
    const { code } = await this.running.kill('SIGTERM');
    expect(code).toBe(0);
  }
}
