import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StatusReport } from '../../src/report/status.js';
import type { WhyReport } from '../../src/report/why.js';
import type { Life } from '../support/afterwards.js';
import { ask } from '../support/ask.js';
import { type Ended, Running } from '../support/cli.js';
import { type ConfigParts, writeConfig } from '../support/config.js';
import type { PeerProcess } from '../support/peer-process.js';
import { ScriptedPeer } from '../support/scripted-peer.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';
import { remotePeer } from './at-peer.js';

/** Between two questions to the daemon, in ms: asking is not to be most of the work. */
const ASK_AGAIN_MS = 30;

/**
 * A directory with a configuration that a test rewrites, and a daemon at work. The real peer is that of all tests of the
 * file, where each has documents of its own.
 */
export class AtWork {
  readonly directory: string;
  config = '';
  readonly #base: string;
  #daemon: Running | undefined;

  private constructor(
    readonly peer: PeerProcess,
    readonly proxy: ScriptedPeer,
    readonly life: Life,
  ) {
    this.directory = temporaryDirectory(life);
    this.#base = `https://${basename(this.directory).toLowerCase()}.example.org`;
  }

  static async begin(parts: Partial<ConfigParts> = {}, life: Life = 'test'): Promise<AtWork> {
    const peer = await remotePeer();
    const work = new AtWork(peer, await ScriptedPeer.start(peer.url, life), life);
    work.configure(parts);
    return work;
  }

  get daemon(): Running {
    if (this.#daemon === undefined) throw new Error('no daemon was started');
    return this.#daemon;
  }

  /** Writes the configuration; nobody is told. */
  configure({ folders = [{ name: 'inbox' }], ...parts }: Partial<ConfigParts>): void {
    this.config = writeConfig(this.directory, {
      ...{ peer: this.peer.section(this.proxy.url), ...parts },
      folders: folders.map((folder) => ({ url: this.url(`${folder.name}/`), ...folder })),
      mirror: { root: join(this.directory, 'mirror'), ...parts.mirror },
    });
  }

  /** Starts a daemon, and waits until it answers. */
  async start(): Promise<void> {
    const daemon = new Running(['run', '--config', this.config], { life: this.life });
    this.#daemon = daemon;
    await daemon.says('pushing to');
    await until(() => this.ask('status').then(Boolean, () => false), 'the daemon answers');
  }

  async stop(): Promise<Ended> {
    return await this.daemon.kill('SIGTERM');
  }

  run(...args: readonly string[]): Promise<Ended> {
    return peersync([...args, '--config', this.config]);
  }

  async ask<T>(question: string, parameters: Record<string, unknown> = {}): Promise<T | undefined> {
    const lines = await ask<T>(join(this.directory, 'state'), question, parameters);
    if (lines === undefined) throw new Error('the daemon does not run');
    return lines.at(-1);
  }

  async status(): Promise<StatusReport> {
    const report = await this.ask<StatusReport>('status');
    if (report === undefined) throw new Error('no status');
    return report;
  }

  why(file: string): Promise<WhyReport | undefined> {
    return this.ask<WhyReport>('why', { path: join(this.directory, file) });
  }

  /** Sends SIGHUP, and waits until a reload has ended that began after that. */
  async hangUp(): Promise<void> {
    const ended = () => this.daemon.stdout.match(/"event":"reload(ed|-failed)"/g)?.length ?? 0;
    // What was said of an earlier one may have come and not been read.
    for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    const before = ended();
    this.daemon.child.kill('SIGHUP');
    await until(() => ended() > before, 'the configuration was read anew');
  }

  /** The URL of the document of `FOLDER/PATH`. */
  url(file: string): string {
    return `${this.#base}/${file}`;
  }

  /** @param file `FOLDER/PATH` */
  drop(file: string, content = `${file} of ${this.directory}\n`): void {
    const path = join(this.directory, file);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, content);
  }

  /** Waits until files are confirmed as they are on disk, and the peer shows them. */
  async confirmed(...files: readonly string[]): Promise<void> {
    for (const file of files) {
      const digest = createHash('sha256')
        .update(readFileSync(join(this.directory, file)))
        .digest('hex');
      const isConfirmed = async () => {
        await sleep(ASK_AGAIN_MS);
        const report = await this.why(file);
        return report?.verdict === 'confirmed' && report.version?.sha256 === digest;
      };
      await until(isConfirmed, `${file} is confirmed`, 60_000).catch((error: unknown) => {
        throw new Error(this.daemon.stdout.slice(-3_000), { cause: error });
      });
      const url = (await this.why(file))?.url ?? '';
      if ((await this.peer.peerdoc(url))?.digest !== digest)
        throw new Error(`the peer does not show ${file}`);
    }
  }

  /** What was pushed of a file `FOLDER/PATH`, each time: its collection. */
  collectionsOf(file: string): readonly string[] {
    const url = this.url(file);
    return this.proxy.requests
      .filter(({ status }) => status === 200)
      .flatMap(({ items }) => items.filter((item) => item.url === url).map(({ collection }) => collection));
  }
}
