import { messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { sentence } from '../lib/text.js';
import { MirrorCondition, MirrorError } from './errors.js';
import type { FollowOptions, FollowResult, Mirror, MirrorDeps } from './mirror.js';
import { records } from './plan.js';
import type { MirrorFailure, MirrorRecord, MirrorReport } from './record.js';
import { FileChanged } from './whole-file.js';

/**
 * The end of a run.
 *
 * - `current`, `ended`: see `FollowResult`.
 * - `busy`: somebody is writing the file. The run is repeated in a few seconds.
 * - `condition`: a person has to accept or mend something.
 * - `failed`: the run is repeated with backoff (`Scheduler.#retry`).
 */
export type RunEnd = FollowResult['kind'] | 'busy' | 'condition' | 'failed';

export interface RunResult {
  readonly end: RunEnd;
  readonly report: MirrorReport;
}

interface Outcome {
  readonly end: RunEnd;
  /** Whether the file was written or removed. */
  readonly changed?: boolean;
  /** The record that replaces the one before. Undefined for a mirror that ends. */
  readonly record?: MirrorRecord | undefined;
}

/**
 * Runs a mirror once. The record is on disk when this resolves, and never before the file is in
 * place. After a crash in between, the next run finds the file as it should be, and writes only the
 * record.
 *
 * @throws the reason of the signal if it aborts; QueueError or PeerError if the queue or the peer
 *   client is stopped; StateError if the record cannot be written. Errors of the mirror itself are
 *   in the report.
 */
export async function runMirror(
  mirror: Mirror,
  deps: MirrorDeps,
  options: FollowOptions,
): Promise<RunResult> {
  const { name, identity } = mirror;
  const { clock, log, requests, state } = deps;
  options.signal.throwIfAborted();
  const before = records.of(state, name);
  const outcome = await outcomeOf(mirror, before, deps, options);
  const { end, changed = false, record } = outcome;
  records.keep(state, name, record);
  await requests.commit();
  logRun(name, before, outcome, log);
  const isOver = end === 'ended' ? { isOver: true } : {};
  const known = record ?? { ...identity, triedAt: clock.now() };
  return { end, report: { name, ...known, changed, ...isOver } };
}

/** Whether a run ended because it was cancelled, and not because of the mirror. */
export function isCancelled(error: unknown, signal: AbortSignal): boolean {
  const codes = ['QUEUE_STOPPED', 'PEER_ABORTED', 'MIRROR_REPLACED'];
  return signal.aborted || (error instanceof PeersyncError && codes.includes(error.code));
}

/** Follows, and turns every error of the mirror into an outcome. Other mirrors go on. */
async function outcomeOf(
  mirror: Mirror,
  before: MirrorRecord | undefined,
  deps: MirrorDeps,
  options: FollowOptions,
): Promise<Outcome> {
  try {
    const { name, identity } = mirror;
    const { mirrorRoot, root } = deps;
    await mirrorRoot.check(root, { name, path: identity.path, accepted: options.accepted });
    const result = await mirror.follow(before, options);
    if (result.kind === 'ended') return { end: 'ended', changed: result.changed };
    await mirrorRoot.remember(root);
    return await currentOutcome(mirror, before, deps, result);
  } catch (error) {
    if (isCancelled(error, options.signal)) throw error;
    return outcomeOfError(mirror, deps, error);
  }
}

async function currentOutcome(
  mirror: Mirror,
  before: MirrorRecord | undefined,
  { clock }: MirrorDeps,
  { changed, facts }: Extract<FollowResult, { readonly kind: 'current' }>,
): Promise<Outcome> {
  const now = clock.now();
  const { conflicts = await mirror.openConflicts() } = facts;
  const times = { succeededAt: now, triedAt: now, changedAt: changed ? now : before?.changedAt };
  return { end: 'current', changed, record: { ...mirror.identity, ...times, ...facts, conflicts } };
}

function outcomeOfError(
  { name, identity }: Mirror,
  { clock, log, state }: MirrorDeps,
  error: unknown,
): Outcome {
  // The run itself may have written the record.
  const known = records.of(state, name);
  if (error instanceof FileChanged) return { end: 'busy', record: known };
  const triedAt = clock.now();
  const { condition, failure, failures = 0, ...rest } = { ...known, ...identity, triedAt };
  if (error instanceof MirrorCondition) {
    // A condition that was reported before keeps its time.
    const since = condition?.code === error.code ? condition.since : triedAt;
    const { conflicts = rest.conflicts } = error;
    return {
      end: 'condition',
      record: { ...rest, condition: failureOf(error, since), conflicts },
    };
  }
  const since = failure?.since ?? triedAt;
  return {
    end: 'failed',
    record: {
      ...rest,
      condition,
      failure: failureOf(expected(error, name, log), since),
      failures: failures + 1,
    },
  };
}

/** Returns an error of ours as it is. Logs any other, and wraps it. */
function expected(error: unknown, mirror: string, log: Logger): PeersyncError {
  if (error instanceof PeersyncError) return error;
  log.error({ err: error, mirror }, `the mirror ${mirror} failed: ${messageOf(error)}`);
  const values = { what: JSON.stringify(mirror), detail: messageOf(error) };
  return new MirrorError('MIRROR_FAILED', values);
}

function failureOf({ code, message, hint }: PeersyncError, since: number): MirrorFailure {
  return { code, message, hint, since };
}

/** Failures that the queue logs once for all mirrors. */
const PEER_FAILURES = [
  'PEER_UNREACHABLE',
  'PEER_TIMEOUT',
  'PEER_BUSY',
  'PEER_AUTH',
  'PEER_AUTH_WEAK',
];

/** Logs the news of a mirror once: a condition or failure that begins or ends, and changes. */
function logRun(
  name: string,
  before: MirrorRecord | undefined,
  { changed = false, record }: Outcome,
  log: Logger,
): void {
  const news = new MirrorLog(name, log);
  news.failure(before?.condition, record?.condition, 'does not need you any more');
  news.failure(before?.failure, record?.failure, 'works again');
  for (const note of record?.notes ?? [])
    if (before?.notes?.includes(note) !== true) news.info(note);
  news.conflicts(before, record);
  if (changed) news.changed(before, record);
}

/** Writes the log lines of one mirror. */
class MirrorLog {
  constructor(
    private readonly name: string,
    private readonly log: Logger,
  ) {}

  info(text: string, more: object = {}): void {
    this.#write('info', text, more);
  }

  /** @param ended the text if there is none any more */
  failure(was: MirrorFailure | undefined, is: MirrorFailure | undefined, ended: string): void {
    const { code = '' } = is ?? was ?? {};
    const isOfPeer = PEER_FAILURES.includes(code);
    if (is !== undefined && was?.code !== is.code) {
      this.#write(isOfPeer ? 'debug' : 'warn', `${sentence(is.message)} ${is.hint}`, { code });
    }
    if (is === undefined && was !== undefined) {
      this.#write(isOfPeer ? 'debug' : 'info', ended, { code });
    }
  }

  conflicts(before: MirrorRecord | undefined, record: MirrorRecord | undefined): void {
    const known = new Set(before?.conflicts?.map(({ file }) => file));
    const fresh = new Map(
      record?.conflicts
        ?.filter(({ file }) => !known.has(file))
        .map((conflict) => [conflict.file, conflict]),
    );
    for (const { file, pk } of fresh.values()) {
      const about = pk === '' ? 'a file that somebody edited' : 'what was changed on both sides';
      const text = `${about} stays as the peer has it; the file as it was edited is ${file}`;
      this.#write('warn', text);
    }
  }

  changed(before: MirrorRecord | undefined, record: MirrorRecord | undefined): void {
    if (record === undefined || record.absentSince !== undefined) {
      this.info('its file is removed, as a person accepted');
      return;
    }
    const { path, rows, bytes, sha256 } = record;
    if (sha256 !== undefined && sha256 === before?.sha256) {
      this.info(`somebody changed or removed ${path}, and it was put back as the peer has it`);
    } else {
      this.info(`${path} changed`, { rows, bytes });
    }
  }

  #write(level: 'debug' | 'info' | 'warn', text: string, more: object = {}): void {
    this.log[level](
      { event: 'mirror', mirror: this.name, ...more },
      `mirror ${this.name}: ${text}`,
    );
  }
}
