import { changeLines, type Reloaded, reloaded } from '../config/changes.js';
import type { Config } from '../config/config.js';
import { resolveSecret } from '../config/secret.js';
import type { Clock } from '../lib/clock.js';
import { messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Credentials } from '../peer/auth.js';
import type { Refused, ReloadReport } from '../report/live.js';
import { configuredCredentials, readCa } from '../uplink/configured-peer.js';
import type { ConfigHolder } from './config-holder.js';
import { type Parts, queueLimits } from './parts.js';

/** What takes up another configuration. */
export interface ReloadedParts {
  readonly client: Pick<Parts['client'], 'authenticate' | 'trust'>;
  readonly queue: Pick<Parts['queue'], 'limit' | 'tryNow'>;
  readonly watcher: Pick<Parts['watcher'], 'watch'>;
  readonly housekeeping: Pick<Parts['housekeeping'], 'keep' | 'stop'>;
  readonly mirrors: Pick<Parts['mirrors'], 'configure'>;
  readonly audit: Pick<Parts['audit'], 'start' | 'stop'>;
  readonly commit: Parts['commit'];
}

export interface ReloadingParts {
  readonly current: ConfigHolder;
  /** Reads the configuration anew. */
  readonly load: () => Promise<Config>;
  readonly parts: ReloadedParts;
  readonly clock: Clock;
  readonly log: Logger;
  /** Hears of a failure in the midst of a change: then only a start from the new configuration is certain to be right. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Lets a running daemon take up its changed configuration.
 *
 * Everything is read and checked first, and what is wrong changes nothing. Then what changed takes effect, and only that:
 * who is as before goes on undisturbed. Reloads go one after the other; those that wait for their turn are one, for the file
 * is read when it comes. `current` keeps whether the last one took the file up, or why not. After `stop`, which resolves when none is under way, there are no more.
 */
export class Reloading {
  readonly #options: ReloadingParts;
  #last: Promise<unknown> = Promise.resolve();
  #waiting: Promise<ReloadReport> | undefined;
  #isStopped = false;

  constructor(options: ReloadingParts) {
    this.#options = options;
  }

  /** @throws PeersyncError: what is wrong with the configuration; nothing changed then */
  reload(): Promise<ReloadReport> {
    if (this.#waiting !== undefined) return this.#waiting;
    const turn = this.#last.then(() => {
      this.#waiting = undefined;
      return this.#reload();
    });
    this.#waiting = turn;
    this.#last = turn.catch(() => {});
    return turn;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    // What is long about a reload: the many files of a folder that was removed.
    await this.#options.parts.housekeeping.stop();
    await this.#last;
  }

  async #reload(): Promise<ReloadReport> {
    const { current, clock, log } = this.#options;
    const { config, restart, access } = await this.#read();
    const changes = changeLines(current.config, config);
    changes.push(...(await this.#apply(config, restart, access)));
    current.takenUp(clock.now());
    const waits = restart.length === 0 ? '' : `; waiting for a restart: ${restart.join(', ')}`;
    log.info(
      { event: 'reloaded', changes, restart },
      `reloaded the configuration: ${changes.length === 0 ? 'nothing changed' : changes.join('; ')}${waits}`,
    );
    return { changes, restart };
  }

  /** Reads and checks everything; nothing changed yet. */
  async #read(): Promise<Reloaded & { readonly access: PeerAccess }> {
    const { current, load, clock, log } = this.#options;
    try {
      this.#unlessStopped();
      const wanted = await load();
      const access = await readSecrets(wanted, log);
      const now = await reloaded(current.config, wanted);
      this.#unlessStopped();
      return { ...now, access };
    } catch (error) {
      if (!this.#isStopped) current.refuse(refusedFor(error, clock.now()));
      const code = error instanceof PeersyncError ? error.code : undefined;
      log.error(
        { event: 'reload-failed', ...(code === undefined ? {} : { code }) },
        `the configuration was not reloaded, everything goes on as before: ${messageOf(error)}`,
      );
      throw error;
    }
  }

  /** @returns what is new in the files that it names, a line each */
  async #apply(config: Config, restart: readonly string[], access: PeerAccess): Promise<string[]> {
    const { current, parts, onFailure } = this.#options;
    const { client, queue, watcher, housekeeping, mirrors, audit, commit } = parts;
    const before = current.config;
    const isForThisPeer = !restart.includes('peer.url') && config.peer.url !== 'embedded';
    try {
      current.replace(config, restart);
      const changes: string[] = [];
      if (isForThisPeer && client.authenticate(access.credentials))
        changes.push('peer.auth: other credentials');
      if (isForThisPeer && client.trust(access.ca)) changes.push('peer.tls.ca: other certificates');
      if (config !== before) {
        queue.limit(queueLimits(config));
        await watcher.watch({
          folders: config.folders,
          hints: config.watch.hints,
          rescanMs: config.watch.rescan,
        });
        await housekeeping.keep(
          config.folders.map(({ name }) => name),
          config.state.keepGone,
        );
        await mirrors.configure(config.mirror);
        if (config.audit.every !== before.audit.every) {
          await audit.stop();
          audit.start(config.audit.every, onFailure);
        }
        await commit();
      }
      // Somebody mended something: a peer that refused the old password need not be waited for.
      if (changes.length > 0) queue.tryNow();
      return changes;
    } catch (error) {
      onFailure(error);
      throw error;
    }
  }

  #unlessStopped(): void {
    if (!this.#isStopped) return;
    throw new PeersyncError({
      code: 'STOPPING',
      message: 'The daemon is about to stop.',
      hint: 'Start it again: it begins with the configuration as it is then.',
    });
  }
}

function refusedFor(error: unknown, at: number): Refused {
  const message = oneLine(messageOf(error));
  return error instanceof PeersyncError
    ? { code: error.code, message, hint: error.hint, at }
    : { code: 'RELOAD_FAILED', message, hint: 'The log says more.', at };
}

/** Several problems are told on lines of their own. */
function oneLine(text: string): string {
  return text.replace(/([.:])?\s*\n\s*/g, (_, end: string | undefined) => (end ? `${end} ` : '; '));
}

/** What the files hold that a configuration names for its peer. */
interface PeerAccess {
  readonly credentials: Credentials | undefined;
  /** PEM text. */
  readonly ca: string | undefined;
}

/**
 * The credentials and certificates that a configuration names; and whether its other secrets can be read at all.
 *
 * @throws ConfigError, or PeersyncError CONFIG_CA, for all that cannot
 */
async function readSecrets({ peer, status }: Config, log: Logger): Promise<PeerAccess> {
  const { auth, tls } = peer;
  const [credentials, ca, token] = await Promise.allSettled([
    auth === undefined ? undefined : configuredCredentials(auth, log),
    tls.ca === undefined ? undefined : readCa(tls.ca),
    status.token === undefined ? undefined : resolveSecret(status.token, process.env, log),
  ]);
  const wrong = [credentials, ca, token].flatMap((each) =>
    each.status === 'rejected' ? [each.reason as unknown] : [],
  );
  const [first] = wrong;
  if (wrong.length > 1 && first instanceof PeersyncError) {
    const { code, hint, exitCode } = first;
    const message = wrong.map(messageOf).join('\n  ');
    throw new PeersyncError({ code, message, hint, exitCode });
  }
  if (wrong.length > 0) throw first;
  return {
    credentials: credentials.status === 'fulfilled' ? credentials.value : undefined,
    ca: ca.status === 'fulfilled' ? ca.value : undefined,
  };
}
