import { readCa } from '../config/ca.js';
import { changeLines, type Reloaded, reloaded } from '../config/changes.js';
import type { Config } from '../config/config.js';
import { resolveSecret } from '../config/secret.js';
import { messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { CurrentConfig, ReloadReport } from '../report/live.js';
import { configuredCredentials } from './configured-peer.js';
import { queueLimits } from './open-queue.js';
import type { DaemonOptions } from './options.js';
import type { Parts } from './parts.js';

export interface ReloadingDeps extends Pick<DaemonOptions, 'clock' | 'log' | 'onFailure'> {
  readonly current: CurrentConfig;
  readonly parts: Parts;
  /** Reads the configuration file. */
  readonly load: () => Promise<Config>;
  /** Called after `current` was replaced. */
  readonly onReload: () => void;
}

/**
 * Applies a changed configuration to a running daemon.
 *
 * Everything is read and checked first; a configuration with errors changes nothing. Then the
 * changes take effect, and parts without changes continue undisturbed. Reloads run one at a time.
 * `current.report` says whether the last reload succeeded, or why it did not.
 *
 * `stop` resolves when no reload is running. Later reloads are refused.
 */
export class Reloading {
  #last: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  constructor(private readonly deps: ReloadingDeps) {}

  /** @throws PeersyncError if the configuration has errors; nothing changed then */
  reload(): Promise<ReloadReport> {
    const turn = this.#last.then(() => this.#reload());
    this.#last = turn.catch(() => {});
    return turn;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    // Ends the longest part of a reload: retiring the files of a folder that was removed.
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

  /** Reads and checks the configuration and the files that it names. Changes nothing. */
  async #read() {
    const { current, load, clock, log } = this.deps;
    try {
      this.#throwIfStopped();
      const wanted = await load();
      const access = await readAccess(wanted, log);
      const taken = await reloaded(current.config, wanted);
      this.#throwIfStopped();
      return { taken, access };
    } catch (error) {
      const { code, hint } =
        error instanceof PeersyncError
          ? error
          : { code: 'RELOAD_FAILED', hint: 'The log says more.' };
      // Several errors come on separate lines.
      const message = messageOf(error)
        .replace(/(?<![.:])\n\s*/g, '; ')
        .replace(/\s*\n\s*/g, ' ');
      if (!this.#isStopped)
        current.report = { ...current.report, refused: { code, message, hint, at: clock.now() } };
      log.error(
        { event: 'reload-failed', code },
        `the configuration was not reloaded, everything continues as before: ${messageOf(error)}`,
      );
      throw error;
    }
  }

  /** @returns one line for each change in the files that the configuration names */
  async #apply(taken: Reloaded, access: PeerAccess): Promise<string[]> {
    const { current, parts, onFailure, onReload } = this.deps;
    const { client, queue, watcher, housekeeping, mirrors, audit, programs, state } = parts;
    const { fleet, uplink } = parts;
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
      uplink.configured();
      fleet?.readers?.startWaiting();
      watcher.configure({ folders: config.folders, hints, rescanMs: rescan });
      await housekeeping.configure(config);
      await mirrors.configure(config.mirror);
      if (config.audit.every !== before.audit.every) {
        await audit.stop();
        audit.start(config.audit.every, onFailure);
      }
      await state.commit();
    }
    // The peer may accept the new credentials at once, so the backoff ends.
    if (changes.length > 0) queue.tryNow();
    const otherPrograms = await programs.refresh();
    return otherPrograms === undefined ? changes : [...changes, otherPrograms];
  }

  #throwIfStopped(): void {
    if (!this.#isStopped) return;
    throw new PeersyncError({
      code: 'STOPPING',
      message: 'The daemon is about to stop.',
      hint: 'Start it again: it reads the configuration file at the start.',
    });
  }
}

type PeerAccess = Awaited<ReturnType<typeof readAccess>>;

/**
 * Reads the credentials and certificates that a configuration names for its peer. Checks that its
 * other secrets can be read, too.
 *
 * @throws ConfigError or PeersyncError CONFIG_CA with all failures
 */
async function readAccess({ peer, status }: Config, log: Logger) {
  const { auth, tls } = peer;
  const reading = [
    auth && configuredCredentials(auth, log),
    tls.ca === undefined ? undefined : readCa(tls.ca, 'peer.tls.ca'),
    status.token && resolveSecret(status.token, process.env, log),
  ] as const;
  const failures = (await Promise.allSettled(reading)).flatMap((read) =>
    'reason' in read ? [read.reason as unknown] : [],
  );
  const [first] = failures;
  if (first === undefined) return { credentials: await reading[0], ca: await reading[1] };
  if (!(first instanceof PeersyncError)) throw first;
  const { code, hint, exitCode } = first;
  throw new PeersyncError({ code, hint, exitCode, message: failures.map(messageOf).join('\n  ') });
}
