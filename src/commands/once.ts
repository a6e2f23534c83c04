import { z } from 'zod';
import { condition, counts } from '../api/shapes.js';
import { define } from '../cli/command.js';
import { prepare } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer, restated } from '../cli/output.js';
import { Progress, type Step } from '../cli/progress.js';
import { untilStopped } from '../cli/signals.js';
import { counted, fewOf, numberText, safe } from '../cli/text.js';
import type { Daemon } from '../daemon/daemon.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, type ExitCode, PeersyncError } from '../lib/errors.js';
import { growHeapSlowly } from '../lib/process.js';
import { quoted } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { MirrorReport } from '../mirror/record.js';
import { statusReport } from '../report/status.js';
import { isHeldUp } from '../report/status-report.js';
import type { Counts } from '../state/entries.js';
import type { Failure } from '../state/entry.js';
import { statusOf } from '../state/line.js';
import type { StateView } from '../state/state.js';
import type { UnmountedPart } from '../watch/watcher.js';
import { runningStatus } from './ask.js';
import { mirrorExitCode, runLines, withoutMirrors, worse } from './mirror.js';
import { lastingFailure, peerFailed } from './patience.js';
import { openAlone } from './without-daemon.js';

const TICK_MS = 100;
/** The codes of a state that another process uses. */
const LOCKED: ReadonlySet<string> = new Set(['STATE_LOCKED', 'STATE_LOCKED_ELSEWHERE']);
/** The conditions that are named at the end of a run. Other conditions are reported differently. */
const NAMED: ReadonlySet<string> = new Set(['ADDRESSES_UNSEEN', 'DELETES_AWAIT_APPROVAL']);

/** Scans, pushes and confirms until every file at rest has its place, then exits. */
export const onceCommand = define({
  options: {
    timeout: option.preset('10m', 'Give up after this long; the next run goes on from there'),
  },
  output: z.object({
    items: counts,
    requests: z.object({ push: z.number(), peerdoc: z.number() }),
    mirrors: z.object({
      current: z.number(),
      changed: z.number(),
      conditions: z.number(),
      failed: z.number(),
    }),
    durationMs: z.number(),
    conditions: z.array(condition).describe('What keeps files from their end.'),
  }),
  examples: [
    ['$0 once', 'Bring the peer up to date'],
    ['$0 once --timeout 1h --json', 'The same for a script: the last line is one JSON object'],
  ],
  run: async (options) => {
    const { json, timeout } = options;
    const timeoutMs = option.duration('--timeout', timeout);
    const { config, log } = await prepare(options);
    const started = systemClock.now();
    const progress = new Progress(json ? undefined : process.stdout, systemClock);
    return await untilStopped(async (ending) => {
      growHeapSlowly();
      const beside = json ? log : progress.beside(withoutMirrors(log));
      const daemon = await openAlone(config, beside, ending).catch(async (error: unknown) => {
        throw await doneElsewhere(error, config.state.dir);
      });
      const failures: unknown[] = [];
      const failed = (error: unknown) => failures.push(error);
      const reports: MirrorReport[] = [];
      const deadline = systemClock.now() + timeoutMs;
      const run = { timeout, deadline, progress, reports, signal: ending.signal };
      await daemon
        .start()
        .then(() => settle(daemon, run))
        .catch(failed)
        .finally(() => ending.abort());
      progress.end();
      await daemon.stop().catch(failed);
      const { client, state } = daemon.parts;
      const items = state.committed.counts();
      const { push, peerdoc } = client.requests;
      const mirrors = mirrorCounts(reports);
      const conditions = statusReport(config, state, undefined).conditions.filter(({ code }) =>
        NAMED.has(code),
      );
      const deletes = conditions.filter(({ code }) => code === 'DELETES_AWAIT_APPROVAL');
      const durationMs = Math.round(systemClock.now() - started);
      answer(
        options,
        { items, requests: { push, peerdoc }, mirrors, durationMs, conditions },
        () => [
          ...reports.filter(isNoteworthy).flatMap((report) => runLines(report, config.mirror.root)),
          `${numberText(items.confirmed)} confirmed, ${numberText(waitingOf(items))} waiting, ` +
            `${numberText(items.quarantined)} quarantined, ` +
            `${numberText(items.skipped)} skipped, ${mirrorsText(mirrors)}in ${durationText(durationMs)} ` +
            `(${counted(push, 'push', 'pushes')}, ${counted(peerdoc, 'look-up')})`,
          ...conditions.map(({ message, hint }) => safe(`${message} ${hint}`)),
        ],
      );
      if (failures.length > 0) throw failures[0];
      const code: ExitCode = items.quarantined + deletes.length > 0 ? EXIT.quarantined : EXIT.done;
      return reports.map(mirrorExitCode).reduce(worse, code);
    });
  },
});

/** Returns the error of a state in use with its meaning for `once`; any other error unchanged. */
async function doneElsewhere(error: unknown, stateDir: string): Promise<unknown> {
  if (!(error instanceof PeersyncError) || !LOCKED.has(error.code)) return error;
  const running = await runningStatus(stateDir).catch(() => undefined);
  const hint =
    running === undefined
      ? 'It does this already, or will when it has started: wait until it has ended, or ask `peersync status`.'
      : 'The running daemon does this already; `peersync rescan` has it look now.';
  return restated(error, { hint });
}

function isNoteworthy({ condition, conflicts, failure, notes }: MirrorReport): boolean {
  return (condition ?? failure ?? notes ?? conflicts) !== undefined;
}

/** A run and its progress. */
interface Run {
  /** The argument as it was given. */
  readonly timeout: string;
  readonly deadline: number;
  readonly progress: Progress;
  /** The reports of the mirrors that have run. */
  readonly reports: MirrorReport[];
  readonly signal: AbortSignal;
}

/**
 * Waits until nothing is left to do, with the items and with the mirrors; citations run when the
 * items are confirmed that they are about.
 *
 * @throws PeersyncError where something is: a folder is held, the peer stays away or asks to wait,
 *   it is paused, the time is over; and the reason that `signal` aborts with
 */
async function settle(daemon: Daemon, run: Run): Promise<void> {
  const { audit, kind, mirrors, queue, state, uplink, watcher } = daemon.parts;
  const { signal } = run;
  let isScanned = false;
  const held = () => watcher.status().filter((folder) => folder.state === 'held');
  const unmounted = () =>
    watcher.unmounted().map((part) => ({ ...part, waiting: pendingBelow(state, part) }));
  const refused = () => uplink.status().removalsFailing;
  // Files in a held folder, and files that are refused again and again, are not waited for.
  const isAtRest = () => {
    const inHeld = held().map(({ name }) => waitingOf({ ...state.counts(name), accepted: 0 }));
    inHeld.push(...unmounted().map((part) => part.waiting));
    const waiting = inHeld.reduce((rest, count) => rest - count, waitingOf(state.counts()));
    return waiting <= (refused()?.documents ?? 0) || (uplink.isIdle && inHeld.length > 0);
  };
  const items = async () => {
    await watcher.idle();
    // Documents of removed files can be handled only when the kind of the peer is known.
    await kind.asked;
    await watcher.idle();
    isScanned = true;
    const isOver = () => isAtRest() && audit.repairProgress === undefined;
    while (!isOver() && !signal.aborted) await systemClock.sleep(TICK_MS, signal);
  };
  const mirrored = async (isChosen: (kind: MirrorReport['kind']) => boolean) => {
    const names = mirrors.status().flatMap(({ kind, name }) => (isChosen(kind) ? name : []));
    for await (const report of mirrors.run(names)) run.reports.push(report);
  };
  const all = async () => {
    await Promise.all([items(), mirrored((kind) => kind !== 'citations')]);
    signal.throwIfAborted();
    await mirrored((kind) => kind === 'citations');
    return 'over';
  };
  const over = all();
  // The error that ends the run is thrown by the watching code.
  over.catch(() => {});
  do {
    const ran = new Set(run.reports.map(({ name }) => name));
    const waiting = mirrors.names.filter((name) => !ran.has(name));
    const heldUp = isHeldUp(queue.status(), systemClock.now());
    const step = stepOf(state.committed.counts(), isScanned, {
      total: mirrors.names.length,
      waiting,
    });
    run.progress.show({ ...step, heldUp });
    assertHope(daemon, run, isScanned);
  } while ((await Promise.race([over, systemClock.sleep(TICK_MS, signal)])) !== 'over');
  const leftOut = (what: string, name: string, waiting: number, failure: Failure | undefined) => {
    const waits =
      waiting === 0
        ? ''
        : ` ${counted(waiting, 'file of it waits', 'files of it wait')} to be pushed.`;
    const message = `${what} ${quoted(name)} was left out: ${safe(failure?.message ?? 'it is not there.')}${waits}`;
    return { name, waiting, message };
  };
  const folders = [
    ...held().map(({ name, failure }) =>
      leftOut('The folder', name, state.committed.counts(name).pending, failure),
    ),
    ...unmounted().map(({ folder, failure, waiting }) =>
      leftOut('A part of the folder', folder, waiting, failure),
    ),
  ];
  const { message, hint } = refused() ?? {};
  if (folders.length === 0 && message !== undefined)
    throw unfinished('REMOVALS_FAIL', message, hint);
  if (folders.length === 0) return;
  throw new PeersyncError({
    code: 'FOLDER_HELD',
    message: [...folders.map((folder) => folder.message), message ?? []].flat().join('\n  '),
    hint: 'Mount or bring back what belongs there (create it only where nothing was yet), or mend the path in the configuration, then run again: nothing is lost, the next run goes on from here.',
    details: { folders: folders.map(({ name, waiting }) => ({ name, waiting })) },
  });
}

/** Returns the number of pending files on a file system that is away. */
function pendingBelow({ entries }: StateView, { folder, directory }: UnmountedPart): number {
  let pending = 0;
  for (const [, , , line] of entries.lines(folder, directory))
    if (statusOf(line) === 'pending') pending += 1;
  return pending;
}

/**
 * Throws if the run cannot reach its end.
 *
 * @throws the reason; see `settle`
 */
function assertHope(
  { parts }: Daemon,
  { deadline, signal, timeout }: Run,
  isScanned: boolean,
): void {
  const counts = parts.state.committed.counts();
  const { accepted, pending, removing } = counts;
  const waiting = waitingOf(counts);
  const { reason } = signal;
  if (reason instanceof DOMException && reason.name === 'AbortError')
    throw unfinished('STOPPED', `Stopped with ${counted(waiting, 'file')} to go.`);
  if (signal.aborted) throw reason;
  const { circuit, paused, retryAfterUntil = 0 } = parts.queue.status();
  const now = systemClock.now();
  const failure = now > deadline ? circuit.reason : lastingFailure(circuit, now);
  if (failure !== undefined) throw peerFailed(failure);
  if (retryAfterUntil > deadline)
    throw unfinished(
      'PEER_BUSY',
      `The peer asks to wait for ${durationText(retryAfterUntil - now)}, which is longer than this run may take (${timeout}).`,
      'Nothing is lost: run again later, or give a longer --timeout.',
    );
  const { until = Infinity } = paused ?? {};
  if (isScanned && paused !== undefined && until > deadline) {
    const end = until === Infinity ? '' : ` for another ${durationText(until - now)}`;
    throw unfinished(
      'PAUSED',
      `peersync is paused${end}; ${counted(waiting, 'item waits', 'items wait')}.`,
      'End the pause with `peersync resume`, then run again; nothing is lost meanwhile.',
    );
  }
  if (now <= deadline) return;
  const { repairProgress } = parts.audit;
  if (waiting === 0 && repairProgress !== undefined) {
    const { checked, of } = repairProgress;
    throw unfinished(
      'TIMEOUT',
      `The state was repaired, or the peer has another database, and ${numberText(checked)} of ${counted(of, 'document')} were compared with the peer after ${timeout}.`,
    );
  }
  if (waiting === 0)
    throw unfinished(
      'TIMEOUT',
      `${isScanned ? 'The mirrors are not up to date' : 'Not all folders were looked through'} after ${timeout}.`,
    );
  const removals = removing === 0 ? '' : `, ${numberText(removing)} to be removed`;
  const status = pending > 0 ? 'pending' : accepted > 0 ? 'accepted' : 'removing';
  throw unfinished(
    'TIMEOUT',
    `${counted(pending, 'file')} still to be pushed and ${numberText(accepted)} to be confirmed${removals} after ${timeout}.`,
    `Nothing is lost: the next run goes on from here; \`peersync list --status ${status}\` names them.`,
  );
}

function unfinished(
  code: string,
  message: string,
  hint = 'Nothing is lost: the next run goes on from here.',
) {
  return new PeersyncError({ code, message, hint });
}

function waitingOf({ accepted, pending, removing }: Counts): number {
  return accepted + pending + removing;
}

/**
 * Returns the results of the mirrors of one run: current files, those of them that were written,
 * and the others.
 */
function mirrorCounts(reports: readonly MirrorReport[]) {
  const conditions = reports.filter(({ condition }) => condition !== undefined).length;
  const failed = reports.filter(({ failure }) => failure !== undefined).length;
  const changed = reports.filter((report) => report.changed).length;
  return { current: reports.length - conditions - failed, changed, conditions, failed };
}

function mirrorsText({
  conditions,
  changed,
  current,
  failed,
}: ReturnType<typeof mirrorCounts>): string {
  if (current + conditions + failed === 0) return '';
  const waiting =
    conditions > 0 ? `${conditions} ${conditions === 1 ? 'needs' : 'need'} you, ` : '';
  const failing = failed > 0 ? `${failed} failed, ` : '';
  return `${counted(current, 'mirror')} current (${changed} written), ${waiting}${failing}`;
}

/**
 * Returns the progress of `once`: the share of the possible items that is confirmed, and the
 * mirrors that it waits for. More items may come until the folders are scanned.
 */
export function stepOf(
  counts: Counts,
  isScanned: boolean,
  mirrors: { readonly total: number; readonly waiting: readonly string[] },
): Step {
  const { pending, accepted, confirmed, quarantined, removing } = counts;
  const total = pending + accepted + confirmed;
  const { waiting } = mirrors;
  const parts = [`${numberText(confirmed)}/${numberText(total)} confirmed`];
  if (isScanned && total + removing === confirmed && waiting.length > 0) {
    parts.unshift(`waiting for ${counted(waiting.length, 'mirror')} (${fewOf(waiting)})`);
  } else {
    parts.push(`${numberText(pending)} to push`, `${numberText(accepted)} to confirm`);
    if (waiting.length > 0) parts.push(`${counted(waiting.length, 'mirror')} to fetch`);
  }
  if (removing > 0) parts.push(`${numberText(removing)} to remove`);
  if (quarantined > 0) parts.push(`${numberText(quarantined)} quarantined`);
  if (!isScanned) parts.push('scanning');
  const besides = { done: mirrors.total - waiting.length, total: mirrors.total };
  return { done: confirmed, total, besides, parts, growing: !isScanned };
}
