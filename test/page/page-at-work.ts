import { mkdirSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { LiveFeed } from '../../src/api/live-feed.js';
import { answererOf } from '../../src/api/requests.js';
import type { Config } from '../../src/config/config.js';
import { loadConfig } from '../../src/config/load.js';
import { DaemonLog } from '../../src/daemon/log-repeats.js';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import type { Stuck } from '../../src/lib/health.js';
import type { MirrorReport } from '../../src/mirror/record.js';
import type { ApiError } from '../../src/page/guard.js';
import { StatusPage } from '../../src/page/status-page.js';
import type { Paused } from '../../src/queue/request-queue.js';
import type { FleetReport } from '../../src/report/fleet.js';
import type { Live } from '../../src/report/live.js';
import type { Sample, Statistics, StatisticsReport } from '../../src/report/statistics.js';
import { statusReport } from '../../src/report/status.js';
import type { ConfigurationReport, DiskFailure } from '../../src/report/status-report.js';
import type { OpenFile } from '../../src/state/directory.js';
import type { ItemKey } from '../../src/state/entries.js';
import { State } from '../../src/state/state.js';
import type { FolderStatus, PathProblem } from '../../src/watch/watcher.js';
import { queue } from '../browser/reports.js';
import { afterwards } from '../support/afterwards.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

export const INDEX = '<!doctype html><title>the page</title>';

export interface PageOptions {
  readonly listen?: string;
  /** Asked for where one is given. */
  readonly token?: string;
  readonly clock?: Clock;
  readonly open?: OpenFile;
}

/**
 * The status page of a daemon whose loops a test plays: a real state, real answers, a real server.
 */
export class PageAtWork {
  readonly directory = temporaryDirectory();
  readonly clock: Clock;
  readonly logged: { level: string; message: string }[] = [];
  readonly log: DaemonLog;
  /**
   * Requests that the daemon received: `look`, `rescan`, `mirror` or `accept`, each with its
   * subject.
   */
  readonly asked: string[] = [];
  queue = queue();
  folders: FolderStatus[] = [];
  diskFailure: DiskFailure | undefined;
  mirrors: MirrorReport[] = [];
  problems: PathProblem[] = [];
  fleet: FleetReport | undefined;
  isDialectKnown = true;
  stuck: readonly Stuck[] = [];
  readonly samples: Sample[] = [];
  configuration: ConfigurationReport = { takenUpAt: 1_700_000_000_000 };
  figures: StatisticsReport = {
    timeToSearch: [],
    confirmedPerSecond: 0,
    lastConfirmedAt: undefined,
    alerts: [],
  };
  readonly #stopping = new AbortController();
  #config!: Config;
  state!: State;
  page!: StatusPage;

  private constructor({ clock = systemClock }: PageOptions) {
    this.clock = clock;
    const say = (level: string) => (_fields: object, message: string) =>
      void this.logged.push({ level, message });
    const log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
    this.log = new DaemonLog(log, clock);
  }

  /** Starts the page, and waits until it listens unless the test says that it cannot. */
  static async start(options: PageOptions = {}, { opens = true } = {}): Promise<PageAtWork> {
    const work = new PageAtWork(options);
    await work.#start(options);
    afterwards('test', () => work.stop());
    if (opens) await until(() => work.page.url !== undefined, 'the page is open');
    return work;
  }

  async #start({ listen = '127.0.0.1:0', token, open }: PageOptions): Promise<void> {
    await this.configure({ listen, ...(token === undefined ? {} : { token: this.secret(token) }) });
    const { clock, log } = this;
    this.state = await State.open(this.#config.state.dir, { clock, log, ...(open && { open }) });
    const scan = { files: 2, directories: 1, durationMs: 250, at: 1_700_000_000_000 };
    this.folders = this.#config.folders.map(({ name }) => ({
      name,
      state: 'watching',
      since: 0,
      directoriesWatched: 1,
      settling: 0,
      lastScan: { folder: name, ...scan },
    }));
    const live = this.#live();
    const feed = new LiveFeed(live);
    const answer = answererOf({ live, feed });
    const assetsDirectory = this.assetsDirectory();
    this.page = new StatusPage({ live, answer, feed, env: process.env, assetsDirectory });
    this.page.configure();
  }

  #live(): Live {
    const work = this;
    const note = (what: string) => void this.asked.push(what);
    const parts = {
      state: this.state,
      peerUrl: 'http://peer.example/',
      client: {
        get dialect() {
          return work.isDialectKnown ? ('standard' as const) : undefined;
        },
        requests: { push: 5, peerdoc: 7, other: 1 },
        pushedBytes: 1234,
      },
      dialect: { current: { holdMs: 0 } },
      uplink: {
        status: () => ({
          inFlight: 0,
          confirming: 0,
          timeToVisibleMs: 50,
          documents: { reading: 0, waiting: 0 },
        }),
        readTotals: { documents: 12, pages: 140, ocrPages: 37 },
        isInFlight: () => false,
        nextLookUp: () => undefined,
      },
      statistics: {
        samples: this.samples,
        report: () => this.figures,
        totals: { accepted: 8, confirmed: 4, quarantined: 2 },
        set onConfirmed(confirmed: Statistics['onConfirmed']) {
          for (const seconds of [0.5, 6, 7, 8, 20]) confirmed('inbox', seconds * 1_000);
        },
      },
      watcher: {
        status: () => this.folders,
        problems: () => this.problems,
        lookSoon: ({ folder, path }: ItemKey) => note(`look ${folder}/${path}`),
        scan: async (folder: string) => note(`scan ${folder}`),
        scanAll: async () => {
          note('rescan all');
          return [{ folder: 'inbox', files: 1, directories: 1, durationMs: 5 }];
        },
        scanAcceptingRoot: async (folder: string) => {
          note(`rescan ${folder}`);
          return [{ folder, files: 1, directories: 1, durationMs: 5 }];
        },
      },
      audit: { repairProgress: undefined },
      get fleet() {
        return work.fleet && { owner: { status: () => work.fleet } };
      },
      mirrors: {
        status: () => this.mirrors,
        run: async function* (names: readonly string[] | undefined) {
          note(`mirror ${names?.join() ?? 'all'}`);
          yield* work.mirrors;
        },
        accept: async (name: string) => {
          note(`accept ${name}`);
          return { name, kind: 'share' as const, path: name };
        },
      },
      queue: {
        status: () => this.queue,
        tryNow: () => note('try'),
        pause: (paused: Paused) => {
          note(
            `pause ${paused.until === undefined ? 'until resumed' : paused.until - paused.since}`,
          );
          this.queue = { ...this.queue, paused };
        },
        resume: () => {
          note('resume');
          const { paused: _, ...others } = this.queue;
          this.queue = others;
        },
      },
    };
    const live = {
      startedAt: this.clock.now(),
      clock: this.clock,
      log: this.log,
      parts,
      current: {
        get config() {
          return work.#config;
        },
        restart: [],
        get report() {
          return work.configuration;
        },
      },
      recents: this.log.recents,
      get watchdog() {
        return { diskFailure: work.diskFailure, stuck: work.stuck };
      },
      stopping: this.#stopping.signal,
      status: () => statusReport(this.#config, this.state, live),
      reload: async () => ({ changes: [], restart: [] }),
    } as unknown as Live;
    return live;
  }

  get config(): Config {
    return this.#config;
  }

  /** The port that the page listens on. */
  get port(): number {
    return Number(new URL(this.page.url ?? '').port);
  }

  secret(token: string): { readonly file: string } {
    const file = join(this.directory, 'token');
    writeFileSync(file, `${token}\n`, { mode: 0o600 });
    return { file };
  }

  /** Loads another configuration, as a reload does. */
  async configure(status: object): Promise<void> {
    const peer = { url: 'http://peer.example/' };
    const folders = [{ name: 'inbox' }, { name: 'notes' }];
    const path = writeConfig(this.directory, { peer, folders, status: { ...status } });
    this.#config = (await loadConfig(path)).config;
    this.page?.configure();
  }

  private assetsDirectory(): string {
    const directory = join(this.directory, 'browser');
    mkdirSync(directory);
    const others = [
      'sign-in.html',
      'not-found.html',
      'favicon-ok.svg',
      'main.js',
      'main.css',
      'main.js.map',
      'tsconfig.json',
    ];
    for (const name of ['index.html', ...others]) writeFileSync(join(directory, name), INDEX);
    return directory;
  }

  /** Writes a file into a folder on disk. */
  file(name: string): string {
    const path = join(this.directory, name);
    writeFileSync(path, name);
    return path;
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return await fetch(new URL(path, this.page.url), { redirect: 'manual', ...init });
  }

  /** The status of an answer. */
  async status(path: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
    return (await this.fetch(path, { headers })).status;
  }

  /** Status and code of an answer that is an error. */
  async refusal(path: string, init?: RequestInit): Promise<[status: number, code: string]> {
    const answer = await this.fetch(path, init);
    return [answer.status, ((await answer.json()) as ApiError).error.code];
  }

  /** Sends a token by the form. */
  async signIn(token: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return await this.fetch('/sign-in', {
      method: 'POST',
      body: new URLSearchParams({ token }),
      headers,
    });
  }

  async json(path: string, init?: RequestInit): Promise<unknown> {
    return await (await this.fetch(path, init)).json();
  }

  post(path: string, body: unknown = {}, headers: object = {}): Promise<Response> {
    return this.fetch(path, this.posting(body, headers));
  }

  posting(body: unknown, headers: object = {}): RequestInit {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: text,
    };
  }

  /** The status of the answer to a request with just these lines, for what no client would send. */
  async rawStatus(...lines: readonly string[]): Promise<number> {
    const socket = this.connect();
    socket.end(`${lines.join('\r\n')}\r\nconnection: close\r\n\r\n`);
    return Number(/^HTTP\/1\.1 (\d{3})/.exec(await text(socket))?.[1]);
  }

  connect(): Socket {
    return connect(this.port, '127.0.0.1').on('error', () => {});
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.page.stop();
    await this.state.close().catch(() => {});
  }
}
