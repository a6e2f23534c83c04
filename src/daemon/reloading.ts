import { changeLines, type Reloaded, reloaded } from '../config/changes.js';
import type { Config } from '../config/config.js';
import { resolveSecret } from '../config/secret.js';
import { messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { CurrentConfig, ReloadReport } from '../report/live.js';
import { configuredCredentials, readCa } from './configured-peer.js';
import { type DaemonOptions, type Parts, queueLimits } from './parts.js';

export interface ReloadingDeps extends Pick<DaemonOptions, 'clock' | 'log' | 'onFailure'> {
  readonly current: CurrentConfig;
  readonly parts: Parts;
  /** Reads the configuration anew. */
  readonly load: () => Promise<Config>;
  /** Called when `current` is another one. */
  readonly onReload: () => void;
}

/**
 * Lets a running daemon take up its changed configuration.
 *
 * Everything is read and checked first, and what is wrong changes nothing. Then what changed takes
 * effect, and only that: what is as before goes on undisturbed. Reloads go one after the other.
 * `current` keeps whether the last one took the file up, or why not. After `stop`, which resolves
 * when none is under way, there are no more.
 */
export class Reloading {
  #last: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  constructor(private readonly deps: ReloadingDeps) {}

  /** @throws PeersyncError: what is wrong with the configuration; nothing changed then */
  reload(): Promise<ReloadReport> {
    const turn = this.#last.then(() => this.#reload());
    this.#last = turn.catch(() => {});
    return turn;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    // What is long about a reload: the many files of a folder that was removed.
    await this.deps.parts.housekeeping.stop();
    await this.#last;
  }

  async #reload(): Promise<ReloadReport> {
    const { clock, current, log, onFailure } = this.deps;
    const { taken, access } = await this.#read();
    const changes = [...changeLines(current.config, taken.config)];
    try {
      changes.push(...(await this.#apply(taken, access)));
    } catch (error) {
      onFailure(error);
      throw error;
    }
    current.report = { takenUpAt: clock.now(), file: current.report.file };
    const { restart } = taken;
    const waits = restart.length === 0 ? '' : `; waiting for a restart: ${restart.join(', ')}`;
    log.info(
      { event: 'reloaded', changes, restart },
      `reloaded the configuration: ${changes.length === 0 ? 'nothing changed' : changes.join('; ')}${waits}`,
    );
    return { changes, restart };
  }

  /** Reads and checks everything; nothing changed yet. */
  async #read() {
    const { current, load, clock, log } = this.deps;
    try {
      this.#unlessStopped();
      const wanted = await load();
      const access = await readAccess(wanted, log);
      const taken = await reloaded(current.config, wanted);
      this.#unlessStopped();
      return { taken, access };
    } catch (error) {
      const { code, hint } =
        error instanceof PeersyncError
          ? error
          : { code: 'RELOAD_FAILED', hint: 'The log says more.' };
      // Several problems are told on lines of their own.
      const message = messageOf(error)
        .replace(/(?<![.:])\n\s*/g, '; ')
        .replace(/\s*\n\s*/g, ' ');
      if (!this.#isStopped)
        current.report = { ...current.report, refused: { code, message, hint, at: clock.now() } };
      log.error(
        { event: 'reload-failed', code },
        `the configuration was not reloaded, everything goes on as before: ${messageOf(error)}`,
      );
      throw error;
    }
  }

  /** @returns what is new in the files that it names, a line each */
  async #apply(taken: Reloaded, access: PeerAccess): Promise<string[]> {
    const { current, parts, onFailure, onReload } = this.deps;
    const { client, queue, watcher, housekeeping, mirrors, audit, state } = parts;
    const { config, restart } = taken;
    const before = current.config;
    current.config = config;
    current.restart = restart;
    if (config !== before) onReload();
    const changes: string[] = [];
    if (!restart.includes('peer.url') && config.peer.url !== 'embedded') {
      client.allowBasic(config.peer.auth?.allowBasic ?? false);
      if (client.authenticate(access.credentials)) changes.push('peer.auth: other credentials');
      if (client.trust(access.ca)) changes.push('peer.tls.ca: other certificates');
    }
    if (config !== before) {
      const { hints, rescan } = config.watch;
      queue.limit(queueLimits(config));
      watcher.watch({ folders: config.folders, hints, rescanMs: rescan });
      await housekeeping.keep(config);
      await mirrors.configure(config.mirror);
      if (config.audit.every !== before.audit.every) {
        await audit.stop();
        audit.start(config.audit.every, onFailure);
      }
      await state.commit();
    }
    // Somebody mended something: a peer that refused the old password need not be waited for.
    if (changes.length > 0) queue.tryNow();
    return changes;
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

type PeerAccess = Awaited<ReturnType<typeof readAccess>>;

/**
 * What the files hold that a configuration names for its peer; and whether its other secrets can be
 * read at all.
 *
 * @throws ConfigError, or PeersyncError CONFIG_CA, for all that cannot
 */
async function readAccess({ peer, status }: Config, log: Logger) {
  const { auth, tls } = peer;
  const reading = [
    auth && configuredCredentials(auth, log),
    tls.ca === undefined ? undefined : readCa(tls.ca),
    status.token && resolveSecret(status.token, process.env, log),
  ] as const;
  const problems = (await Promise.allSettled(reading)).flatMap((read) =>
    'reason' in read ? [read.reason as unknown] : [],
  );
  const [first] = problems;
  if (first === undefined) return { credentials: await reading[0], ca: await reading[1] };
  if (!(first instanceof PeersyncError)) throw first;
  const { code, hint, exitCode } = first;
  throw new PeersyncError({ code, hint, exitCode, message: problems.map(messageOf).join('\n  ') });
}
