import type { Daemon } from '../daemon/daemon.js';
import { type Clock, systemClock } from '../lib/clock.js';
import { EXIT, type ExitCode, PeersyncError } from '../lib/errors.js';
import { growHeapSlowly } from '../lib/process.js';
import { durationText } from '../lib/units.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { MirrorReport } from '../mirror/record.js';
import type { Paused } from '../queue/request-queue.js';
import { itemCounts } from '../report/status.js';
import type { Counts } from '../state/entries.js';
import type { StateView } from '../state/state.js';
import type { FolderStatus } from '../watch/watcher.js';
import { define, duration, onSignals, prepare, print, printJson } from './context.js';
import { lastingTrouble, mirrorExitCode, peerInTrouble, runLines, withoutMirrors, worse } from './mirror.js';
import { Progress, type Step } from './progress.js';
import { counted, safe } from './text.js';

const TICK_MS = 100;

/** Scans, pushes and confirms until every file at rest has its place, then exits. */
export const onceCommand = define({
  options: {
    timeout: {
      type: 'string',
      default: '10m',
      describe: 'Give up after this long; the next run goes on from there',
    },
  },
  examples: [
    ['$0 once', 'Bring the peer up to date'],
    ['$0 once --timeout 1h --json', 'The same for a script: the last line is one JSON object'],
  ],
  run: async (options) => {
    const { timeout } = options;
    const timeoutMs = duration('--timeout', timeout);
    const { config, log } = await prepare(options);
    const started = systemClock.now();
    const progress = new Progress(options.json ? undefined : process.stdout, systemClock);
    const ending = new AbortController();
    const unlisten = onSignals(() => ending.abort());
    try {
      growHeapSlowly();
      const { Daemon } = await import('../daemon/daemon.js');
      const daemon = await Daemon.open({
        config,
        clock: systemClock,
        log: options.json ? log : progress.beside(withoutMirrors(log), options.logLevel ?? 'warn'),
        follow: false,
        patient: false,
        onFailure: (error) => ending.abort(error),
      });
      const failures: unknown[] = [];
      const failed = (error: unknown) => failures.push(error);
      let round: MirrorRound | undefined;
      try {
        await daemon.start();
        round = new MirrorRound(daemon.parts.mirrors);
        await settle(daemon, round, { timeout, timeoutMs, progress, signal: ending.signal });
      } catch (error) {
        failed(error);
      }
      progress.end();
      await daemon.stop().catch(failed);
      const items = itemCounts(daemon.parts.state.counts());
      const { push, peerdoc } = daemon.parts.client.requests;
      const durationMs = Math.round(systemClock.now() - started);
      const mirrors = round?.counts;
      for (const report of round?.reports ?? []) {
        const { alarm, conflicts, failure, notes } = report;
        if (options.json || (alarm ?? failure ?? notes ?? conflicts) === undefined) continue;
        for (const line of runLines(report, config.mirror.root)) print(line);
      }
      if (options.json)
        printJson({
          items,
          requests: { push, peerdoc },
          ...(mirrors === undefined ? {} : { mirrors }),
          durationMs,
        });
      else
        print(
          `${items.confirmed} confirmed, ${items.pending + items.accepted} waiting, ${items.quarantined} quarantined, ` +
            `${daemon.parts.state.counts().passed} passed over, ${mirrorsText(mirrors)}in ${durationText(durationMs)} ` +
            `(${counted(push, 'push', 'pushes')}, ${counted(peerdoc, 'look-up')})`,
        );
      if (failures.length > 0) throw failures[0];
      return worse(items.quarantined > 0 ? EXIT.quarantined : EXIT.done, round?.exitCode ?? EXIT.done);
    } finally {
      unlisten();
    }
  },
});

/**
 * Waits until nothing is left to do.
 *
 * @throws PeersyncError where something is: a folder is held, the peer stays away or asks to wait, it is paused, the time is
 *   over; and the reason that `signal` aborts with
 */
async function settle(
  daemon: Daemon,
  round: MirrorRound,
  run: {
    /** As it was given. */
    readonly timeout: string;
    readonly timeoutMs: number;
    readonly progress: Progress;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { progress, signal, timeout } = run;
  const { queue, state, uplink, watcher } = daemon.parts;
  const clock: Clock = systemClock;
  const deadline = clock.now() + run.timeoutMs;
  let scanned = false;
  let failure: { readonly error: unknown } | undefined;
  watcher.idle().then(
    () => {
      scanned = true;
    },
    (error: unknown) => {
      failure = { error };
    },
  );
  for (;;) {
    const counts = state.counts();
    const waiting = counts.pending + counts.accepted;
    if (signal.aborted) throw isStopped(signal) ? stopped(waiting) : signal.reason;
    failure ??= round.failure;
    if (failure !== undefined) throw failure.error;
    progress.show(stepOf(counts, scanned, round));
    if (scanned && (waiting === 0 || uplink.isIdle)) {
      const held = watcher.status().filter((folder) => folder.state === 'held');
      const isSettled = held.length > 0 || waiting === 0;
      if (isSettled) round.itemsAreSettled();
      if (isSettled && round.isOver) {
        if (held.length > 0) throw leftOut(held, state);
        return;
      }
    }
    const { circuit, paused, pausedUntil = 0 } = queue.status();
    const leftMs = deadline - clock.now();
    const reason = leftMs < 0 ? circuit.reason : lastingTrouble(circuit, clock.now());
    if (reason !== undefined) throw peerInTrouble(reason);
    if (pausedUntil > deadline) throw busy(pausedUntil - clock.now(), timeout);
    if (scanned && paused !== undefined && (paused.until ?? Infinity) > deadline)
      throw resting(paused, waiting);
    if (leftMs < 0) throw late(counts, timeout);
    await clock.sleep(TICK_MS, signal);
  }
}

/** Whether a person stopped it, and nothing failed. */
function isStopped({ reason }: AbortSignal): boolean {
  return reason instanceof DOMException && reason.name === 'AbortError';
}

function stopped(waiting: number): PeersyncError {
  return new PeersyncError({
    code: 'STOPPED',
    message: `Stopped with ${counted(waiting, 'file')} to go.`,
    hint: 'Nothing is lost: the next run goes on from here.',
  });
}

function late({ accepted, pending }: Counts, timeout: string): PeersyncError {
  return new PeersyncError({
    code: 'TIMEOUT',
    message:
      pending + accepted === 0
        ? `The mirrors are not up to date after ${timeout}.`
        : `${counted(pending, 'file')} still to be pushed and ${accepted} to be confirmed after ${timeout}.`,
    hint: 'Nothing is lost: the next run goes on from here; `peersync list --status pending` names them.',
  });
}

function busy(waitMs: number, timeout: string): PeersyncError {
  return new PeersyncError({
    code: 'PEER_BUSY',
    message: `The peer asks to wait for ${durationText(waitMs)}, which is longer than this run may take (${timeout}).`,
    hint: 'Nothing is lost: run again later, or give a longer --timeout.',
  });
}

function resting({ until }: Paused, waiting: number): PeersyncError {
  const end = until === undefined ? '' : ` for another ${durationText(until - systemClock.now())}`;
  return new PeersyncError({
    code: 'PAUSED',
    message: `peersync is paused${end}; ${counted(waiting, 'item waits', 'items wait')}.`,
    hint: 'End the pause with `peersync resume`, then run again; nothing is lost meanwhile.',
  });
}

function mirrorsText(counts: MirrorRound['counts'] | undefined): string {
  if (counts === undefined) return '';
  const { current, changed, alarms, failed } = counts;
  if (current + alarms + failed === 0) return '';
  const trouble = [alarms > 0 ? counted(alarms, 'alarm') : '', failed > 0 ? `${failed} failed` : ''];
  return [`${counted(current, 'mirror')} current (${changed} written)`, ...trouble]
    .filter((part) => part !== '')
    .map((part) => `${part}, `)
    .join('');
}

/** Everything is done but what is in these folders, whose roots are missing or doubtful. */
function leftOut(held: readonly FolderStatus[], state: StateView): PeersyncError {
  const folders = held.map(({ name, trouble }) => ({ name, trouble, waiting: state.counts(name).pending }));
  const messages = folders.map(({ name, trouble, waiting }) => {
    const words = `The folder ${safe(name)} was left out: ${trouble?.message ?? 'it is not there.'}`;
    if (waiting === 0) return words;
    return `${words} ${counted(waiting, 'file of it waits', 'files of it wait')} to be pushed.`;
  });
  return new PeersyncError({
    code: 'FOLDER_HELD',
    message: messages.join('\n  '),
    hint: 'Mount or bring back what belongs there (create it only where nothing was yet), or mend the path in the configuration, then run again: nothing is lost, the next run goes on from here.',
    details: { folders: folders.map(({ name, waiting }) => ({ name, waiting })) },
  });
}

/** How many mirrors are named that a run waits for. */
const NAMED = 3;

/**
 * How far `once` has come: of what can succeed, how much is confirmed, and which mirrors it waits for. Until the folders are
 * scanned there may be more.
 */
export function stepOf(
  { pending, accepted, confirmed, quarantined }: Counts,
  scanned: boolean,
  mirrors: Pick<MirrorRound, 'total' | 'waiting'>,
): Step {
  const total = pending + accepted + confirmed;
  const { waiting } = mirrors;
  const isSettled = scanned && pending + accepted === 0;
  const parts = [`${confirmed}/${total} confirmed`];
  if (isSettled && waiting.length > 0) parts.unshift(`waiting for ${waitingText(waiting)}`);
  else {
    parts.push(`${pending} to push`, `${accepted} to confirm`);
    if (waiting.length > 0) parts.push(`${counted(waiting.length, 'mirror')} to fetch`);
  }
  if (quarantined > 0) parts.push(`${quarantined} quarantined`);
  if (!scanned) parts.push('scanning');
  const besides = { done: mirrors.total - waiting.length, total: mirrors.total };
  return { done: confirmed, total, besides, parts, growing: !scanned };
}

function waitingText(names: readonly string[]): string {
  const named = names.slice(0, NAMED).map(safe);
  if (names.length > NAMED) named.push('…');
  return `${counted(names.length, 'mirror')} (${named.join(', ')})`;
}

/** What the mirrors of one run came to. */
export interface MirrorCounts {
  /** Files that are what the peer has. */
  readonly current: number;
  /** Of these, written in this run. */
  readonly changed: number;
  readonly alarms: number;
  readonly failed: number;
}

export type RoundMirrors = Pick<Mirrors, 'names' | 'run' | 'status'>;

/** Runs every mirror once: shares and tables at once, citations when the items are confirmed that they are about. */
export class MirrorRound {
  readonly #mirrors: RoundMirrors;
  readonly #reports: MirrorReport[] = [];
  readonly #reported = new Set<string>();
  #underWay = 0;
  #citationsAsked = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(mirrors: RoundMirrors) {
    this.#mirrors = mirrors;
    this.#run((kind) => kind !== 'citations');
  }

  /** To be called when no item waits any more. */
  itemsAreSettled(): void {
    if (this.#citationsAsked) return;
    this.#citationsAsked = true;
    this.#run((kind) => kind === 'citations');
  }

  get isOver(): boolean {
    return this.#citationsAsked && this.#underWay === 0;
  }

  /** How many there are, as far as is known: a pattern brings more. */
  get total(): number {
    return this.#mirrors.names.length;
  }

  /** Those that have not run yet, by name. */
  get waiting(): readonly string[] {
    return this.#mirrors.names.filter((name) => !this.#reported.has(name));
  }

  /** What ended the round: a disk that fails, a bug. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  get reports(): readonly MirrorReport[] {
    return this.#reports;
  }

  get counts(): MirrorCounts {
    const alarms = this.#reports.filter(({ alarm }) => alarm !== undefined).length;
    const failed = this.#reports.filter(({ failure }) => failure !== undefined).length;
    const changed = this.#reports.filter((report) => report.changed).length;
    return { current: this.#reports.length - alarms - failed, changed, alarms, failed };
  }

  get exitCode(): ExitCode {
    return this.#reports.map(mirrorExitCode).reduce(worse, EXIT.done);
  }

  #run(isChosen: (kind: MirrorReport['kind']) => boolean): void {
    const names = this.#mirrors
      .status()
      .filter(({ kind }) => isChosen(kind))
      .map(({ name }) => name);
    if (names.length === 0) return;
    this.#underWay += 1;
    this.#collect(names)
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => {
        this.#underWay -= 1;
      });
  }

  async #collect(names: readonly string[]): Promise<void> {
    for await (const report of this.#mirrors.run(names)) {
      this.#reports.push(report);
      this.#reported.add(report.name);
    }
  }
}
