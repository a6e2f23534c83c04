import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { resolveSecret, secretPlace } from '../config/secret.js';
import { isLoopback, type Listen, parseListen } from '../config/url.js';
import type { Timer } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { sentence } from '../lib/text.js';
import type { PageDeps } from './api.js';
import type { Metrics } from './metrics.js';

/** The interval between two attempts to listen, in ms. */
const AGAIN_MS = 30_000;
/** The shortest token of a page that other machines reach. */
const SHORTEST_TOKEN = 16;

interface Opened {
  readonly app: FastifyInstance;
  readonly listen: string;
  readonly token: string | undefined;
}

/**
 * The status page of a daemon. Its failures never stop the daemon.
 *
 * - *Off*: the configuration disables it.
 * - *Open*: it listens on the configured address.
 * - *Failed*: it cannot listen there, or its token cannot be read. That is logged once, and tried
 *   again every 30 s.
 *
 * A reload that changes the address or the token leads to one of these again. `stop` ends it in
 * every mode, at once even if browsers follow.
 */
export class StatusPage {
  readonly #deps: PageDeps;
  #opened: Opened | undefined;
  /**
   * One instance for the whole run, because the metrics of the process are collected until its end.
   */
  #metrics: Metrics | undefined;
  #loggedMessage: string | undefined;
  #timer: Timer | undefined;
  #isStopped = false;
  /** The last change that was begun. Changes happen one after the other. */
  #last: Promise<void> = Promise.resolve();

  constructor(deps: PageDeps) {
    this.#deps = deps;
  }

  /** Applies the configuration: at the start, and after each reload. */
  configure(): void {
    this.#last = this.#last.then(() => this.#follow()).catch((error: unknown) => this.#fail(error));
  }

  /** The URL for a browser on this machine; undefined while the page is not open. */
  get url(): string | undefined {
    return this.#opened && urlOf(addressOf(this.#opened.app));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#last;
    await this.#close();
  }

  async #follow(): Promise<void> {
    this.#timer?.cancel();
    if (this.#isStopped) return;
    const { env, live } = this.#deps;
    const { status } = live.current.config;
    const token = status.token && (await resolveSecret(status.token, env, live.log));
    if (this.#opened?.listen === status.listen && this.#opened.token === token) return;
    await this.#close();
    const listen = parseListen(status.listen);
    if (listen === undefined) return;
    // The configuration is checked for whether there is one; here a short one would be a hole too.
    if (!isLoopback(listen) && (token ?? '').length < SHORTEST_TOKEN)
      throw new Error(
        `an address that others reach needs a token of at least ${SHORTEST_TOKEN} characters.`,
      );
    const where = status.token && secretPlace(status.token, 'status.token');
    await this.#open(listen, token, where === undefined ? '' : `The token stands ${where}.`);
    this.#loggedMessage = undefined;
  }

  async #open(listen: Listen, token: string | undefined, place: string): Promise<void> {
    const { log, current } = this.#deps.live;
    // Loaded here, so a page that is off costs no memory. Fastify is a CommonJS package. It is
    // loaded first, because Node 20 may give modules that import it at the same time an empty one.
    await import('fastify');
    const [{ pageApp }, { Metrics }] = await Promise.all([
      import('./app.js'),
      import('./metrics.js'),
    ]);
    this.#metrics ??= new Metrics(this.#deps.live);
    const address = () => addressOf(app);
    const app = await pageApp(this.#deps, {
      token,
      tokenPlace: place,
      address,
      metrics: this.#metrics,
    });
    try {
      await app.listen({ host: listen.host, port: listen.port });
    } catch (error) {
      await app.close();
      throw error;
    }
    this.#opened = { app, listen: current.config.status.listen, token };
    this.#deps.onUrl?.(this.url);
    const others = isEverywhere(listen) ? ', and at every other address of this machine' : '';
    log.info({ event: 'page', url: this.url }, `status page at ${this.url}${others}`);
  }

  async #fail(error: unknown): Promise<void> {
    // The earlier page would stay open at an address, or with a token, that no longer applies.
    await this.#close();
    const { clock, log, current } = this.#deps.live;
    const { listen } = current.config.status;
    const message = `The status page cannot be opened: ${reasonOf(error, listen)} It is tried again every 30 s; everything else works.`;
    if (message !== this.#loggedMessage)
      log.warn({ event: 'no-page', listen, code: systemCode(error) }, message);
    this.#loggedMessage = message;
    if (!this.#isStopped)
      this.#timer = clock.after(AGAIN_MS, () => this.configure(), { background: true });
  }

  async #close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    if (opened !== undefined) this.#deps.onUrl?.(undefined);
    await opened?.app.close();
  }
}

function addressOf(app: FastifyInstance): Listen {
  const { address, port } = app.server.address() as AddressInfo;
  return { host: address, port };
}

function urlOf({ host, port }: Listen): string {
  const isV6 = host.includes(':');
  const name = isEverywhere({ host, port }) ? (isV6 ? '::1' : '127.0.0.1') : host;
  return `http://${isV6 ? `[${name}]` : name}:${port}/`;
}

/** Returns whether the host stands for all addresses of this machine. */
function isEverywhere({ host }: Listen): boolean {
  return /^[0:.]+$/.test(host);
}

function reasonOf(error: unknown, listen: string): string {
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `${listen} is in use. Stop what listens there, or set another status.listen.`,
    EADDRNOTAVAIL: `this machine has no address ${listen} now. Set another status.listen if that stays so.`,
    EACCES: `peersync may not listen on ${listen}. Set a status.listen with a port from 1024 up.`,
  };
  const known = reasons[systemCode(error) ?? ''];
  return known ?? `${sentence(messageOf(error))} See status.listen and status.token.`;
}
