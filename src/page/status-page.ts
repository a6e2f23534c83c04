import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config/config.js';
import { isLoopback, type Listen, parseListen } from '../config/listen.js';
import { resolveSecret } from '../config/secret.js';
import type { Timer } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { sentence } from '../lib/sentence.js';
import type { LiveFeed } from '../report/live-feed.js';
import type { AppParts } from './app.js';
import { Followers } from './followers.js';
import type { MetricsWriter } from './metrics/exposition.js';

/** Between two tries to listen, in ms. */
const AGAIN_MS = 30_000;

export interface StatusPageParts
  extends Omit<AppParts, 'assets' | 'token' | 'address' | 'followers' | 'metrics' | 'current'> {
  readonly current: {
    readonly config: Config;
    onChange(listener: (before: Config, after: Config) => void): () => void;
  };
  readonly feed: Pick<LiveFeed, 'follow'>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Of the page as the build left it. */
  readonly assetsDirectory?: string;
}

interface Opened {
  readonly app: FastifyInstance;
  readonly followers: Followers;
  readonly listen: string;
  readonly token: string | undefined;
}

/**
 * The status page of a daemon, which never fails it.
 *
 * - *Off*: the configuration says so.
 * - *Open*: listens where the configuration says.
 * - *Shut out*: it cannot listen there, or its token cannot be read. Told once, and tried again every 30 s.
 *
 * A reload that changes where it listens, or its token, leads anew to one of these. `stop` ends it from each, at once
 * also where browsers follow.
 */
export class StatusPage {
  readonly #parts: StatusPageParts;
  #opened: Opened | undefined;
  /** One for all times, for what it collects of the process does not end; that costs 0.2 % of a core where nothing else is done. */
  #metrics: Promise<MetricsWriter> | undefined;
  #told: string | undefined;
  #timer: Timer | undefined;
  #isStopped = false;
  /** What was begun last: opening and closing happen one after the other. */
  #last: Promise<void> = Promise.resolve();
  #unsubscribe = () => {};

  constructor(parts: StatusPageParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#unsubscribe = this.#parts.current.onChange(() => this.#inTurn());
    this.#inTurn();
  }

  /** Where it listens; undefined while it does not. */
  get url(): string | undefined {
    return this.#opened && urlOf(addressOf(this.#opened.app));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#timer?.cancel();
    await this.#last;
    await this.#close();
  }

  #inTurn(): void {
    this.#last = this.#last.then(() => this.#follow()).catch((error: unknown) => this.#shutOut(error));
  }

  /** Makes it what the configuration says. */
  async #follow(): Promise<void> {
    this.#timer?.cancel();
    if (this.#isStopped) return;
    const { env, log, current } = this.#parts;
    const { status } = current.config;
    const token = status.token === undefined ? undefined : await resolveSecret(status.token, env, log);
    if (this.#opened?.listen === status.listen && this.#opened.token === token) return;
    await this.#close();
    const listen = parseListen(status.listen);
    if (listen === undefined) return;
    // The configuration is checked for this too; here it would be a hole.
    if (token === undefined && !isLoopback(listen))
      throw new Error('an address that others reach needs a token');
    await this.#open(listen, token);
    this.#told = undefined;
  }

  async #open(listen: Listen, token: string | undefined): Promise<void> {
    const { log, clock, feed, assetsDirectory, current } = this.#parts;
    // Loaded here: what is turned off costs no memory. The two packages of the old module system first, and one after the
    // other: while much else is loaded, Node 20 gave modules that import them at the same time an empty one.
    await import('fastify');
    await import('prom-client');
    const [{ pageApp }, { readAssets }] = await Promise.all([import('./app.js'), import('./assets.js')]);
    const followers = new Followers({ feed, clock });
    const app: FastifyInstance = pageApp({
      ...this.#parts,
      assets: await readAssets(assetsDirectory),
      token,
      followers,
      metrics: () => this.#metricsWriter(),
      address: () => addressOf(app),
    });
    try {
      await app.listen({ host: listen.host, port: listen.port });
    } catch (error) {
      await app.close();
      throw error;
    }
    this.#opened = { app, followers, listen: current.config.status.listen, token };
    const url = urlOf(addressOf(app));
    const others = isEverywhere(listen) ? ', and at every other address of this machine' : '';
    log.info({ event: 'page', url }, `status page at ${url}${others}`);
  }

  /** Whom nobody scrapes pays nothing for it. */
  #metricsWriter(): Promise<MetricsWriter> {
    this.#metrics ??= import('./metrics/exposition.js').then(
      ({ MetricsWriter }) => new MetricsWriter(this.#parts.clock),
    );
    return this.#metrics;
  }

  async #shutOut(error: unknown): Promise<void> {
    // What was open before would be so where, or for whom, it is not to be any more.
    await this.#close();
    const { clock, log, current } = this.#parts;
    const { listen } = current.config.status;
    const message = wordsOf(error, listen);
    if (message !== this.#told) log.warn({ event: 'no-page', listen, code: systemCode(error) }, message);
    this.#told = message;
    if (!this.#isStopped) this.#timer = clock.after(AGAIN_MS, () => this.#inTurn(), { background: true });
  }

  async #close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    opened?.followers.close();
    await opened?.app.close();
  }
}

function addressOf(app: FastifyInstance): Listen {
  const { address, port } = app.server.address() as AddressInfo;
  return { host: address, port };
}

/** As a browser on this machine reaches it. */
function urlOf(listen: Listen): string {
  const { host, port } = isEverywhere(listen) ? { ...listen, host: loopbackOf(listen) } : listen;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}/`;
}

/** Whether it is no address, but stands for all. */
function isEverywhere({ host }: Listen): boolean {
  return /^[0:.]+$/.test(host);
}

function loopbackOf({ host }: Listen): string {
  return host.includes(':') ? '::1' : '127.0.0.1';
}

function wordsOf(error: unknown, listen: string): string {
  const again = 'It is tried again every 30 s; everything else works.';
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return `The status page cannot be opened: ${listen} is in use. Stop what listens there, or set another status.listen. ${again}`;
    case 'EADDRNOTAVAIL':
      return `The status page cannot be opened: this machine has no address ${listen} now. Set another status.listen if that stays so. ${again}`;
    case 'EACCES':
      return `The status page cannot be opened: peersync may not listen on ${listen}. Set a status.listen with a port from 1024 up. ${again}`;
    default:
      return `The status page cannot be opened: ${sentence(messageOf(error))} See status.listen and status.token. ${again}`;
  }
}
