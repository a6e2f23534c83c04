import { mkdir, readdir, stat } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { messageOf, PeersyncError } from '../lib/errors.js';
import { sentence } from '../lib/text.js';
import { MirrorAlarm, MirrorError, onDisk } from './errors.js';
import type { Followed, FollowOptions, Mirror, MirrorDeps } from './mirror.js';
import { records } from './plan.js';
import type { MirrorRecord, MirrorReport } from './record.js';

export interface RunResult {
  readonly end: Followed['kind'] | 'alarm' | 'failed';
  readonly report: MirrorReport;
}

/** What a run came to. */
interface Outcome {
  readonly end: RunResult['end'];
  /** Whether the file was written, or removed. */
  readonly changed?: boolean;
  /** Holds from now on. */
  readonly record?: MirrorRecord | undefined;
}

/**
 * Runs a mirror once. What that came to is in its record, on disk, when this resolves, and never before the file is in place: after
 * a crash between the two the next run finds the file as it should be and only writes the record.
 *
 * @throws the reason of the signal when it aborts, QueueError or PeerError when the queue or the peer client is stopped, StateError
 *   when the record cannot be kept; what is wrong with the mirror is in the report
 */
export async function runMirror(
  mirror: Mirror,
  deps: MirrorDeps,
  options: FollowOptions,
): Promise<RunResult> {
  const { name, identity } = mirror;
  options.signal.throwIfAborted();
  const before = records.of(deps.state, name);
  const outcome = await outcomeOf(mirror, before, deps, options);
  const { end, changed = false, record } = outcome;
  records.keep(deps.state, name, record);
  await deps.commit();
  logRun(name, before, outcome, deps);
  const isOver = end === 'over' ? { isOver: true } : {};
  const known = record ?? { ...identity, triedAt: deps.clock.now() };
  return { end, report: { name, ...known, changed, ...isOver } };
}

/** Whether a run ended because it was called off, and not because of the mirror. */
export function isCalledOff(error: unknown, signal: AbortSignal): boolean {
  const codes = ['QUEUE_STOPPED', 'PEER_ABORTED', 'MIRROR_REPLACED'];
  return signal.aborted || (error instanceof PeersyncError && codes.includes(error.code));
}

/** Nothing that went wrong with one mirror ends the others. */
async function outcomeOf(
  mirror: Mirror,
  before: MirrorRecord | undefined,
  deps: MirrorDeps,
  options: FollowOptions,
): Promise<Outcome> {
  const { name, identity } = mirror;
  try {
    await checkRoot(deps);
    const followed = await mirror.follow(before, options);
    if (followed.kind === 'later') return { end: 'later', record: before };
    if (followed.kind === 'over') return { end: 'over', changed: followed.changed };
    await rememberRoot(deps);
    const [now, { changed, facts }] = [deps.clock.now(), followed];
    const times = { succeededAt: now, triedAt: now, changedAt: changed ? now : before?.changedAt };
    return { end: 'followed', changed, record: { ...identity, ...times, ...facts } };
  } catch (error) {
    if (isCalledOff(error, options.signal)) throw error;
    const isKnown = error instanceof PeersyncError;
    if (!isKnown)
      deps.log.error({ err: error, mirror: name }, `the mirror ${name} failed: ${messageOf(error)}`);
    const { code, message, hint } = isKnown
      ? error
      : new MirrorError('MIRROR_FAILED', JSON.stringify(name), messageOf(error));
    const triedAt = deps.clock.now();
    const { alarm, failure, failures = 0, ...rest } = { ...before, ...identity, triedAt };
    if (error instanceof MirrorAlarm) {
      // An alarm that was raised before keeps its time.
      const since = alarm?.code === code ? alarm.since : triedAt;
      const { conflicts = rest.conflicts } = error;
      return { end: 'alarm', record: { ...rest, alarm: { code, message, hint, since }, conflicts } };
    }
    const trouble = { code, message, hint, since: failure?.since ?? triedAt };
    return { end: 'failed', record: { ...rest, alarm, failure: trouble, failures: failures + 1 } };
  }
}

/** Failures that the queue logs once for everybody. */
const OF_THE_PEER = ['PEER_UNREACHABLE', 'PEER_TIMEOUT', 'PEER_BUSY', 'PEER_AUTH'];

/** Logs what is new about a mirror, once: troubles when they begin and when they are over, and what changed. */
function logRun(
  name: string,
  before: MirrorRecord | undefined,
  { changed, record }: Outcome,
  { log }: MirrorDeps,
): void {
  const say = (level: 'debug' | 'info' | 'warn', text: string, more: object = {}): void =>
    log[level]({ event: 'mirror', mirror: name, ...more }, `mirror ${name}: ${text}`);
  for (const kind of ['alarm', 'failure'] as const) {
    const [was, is] = [before?.[kind], record?.[kind]];
    const { code = '' } = is ?? was ?? {};
    const level = OF_THE_PEER.includes(code) ? 'debug' : is ? 'warn' : 'info';
    if (is && was?.code !== is.code) say(level, `${sentence(is.message)} ${is.hint}`, { code });
    if (!is && was) say(level, kind === 'alarm' ? 'the alarm is over' : 'works again', { code });
  }
  const { path, absentSince, notes = [], conflicts = [], rows, bytes, sha256 } = record ?? {};
  for (const note of notes) if (before?.notes?.includes(note) !== true) say('info', note);
  const known = new Set(before?.conflicts?.map(({ file }) => file));
  for (const file of new Set(conflicts.map(({ file }) => file))) {
    const said = `what was changed on both sides stays as the peer has it; the file as it was edited is ${file}`;
    if (!known.has(file)) say('warn', said);
  }
  if (!changed) return;
  if (record === undefined || absentSince !== undefined)
    say('info', 'its file is removed, as a person accepted');
  else if (sha256 !== undefined && sha256 === before?.sha256)
    say('info', `somebody changed or removed ${path}, and it was put back as the peer has it`);
  else say('info', `${path} changed`, { rows, bytes });
}

const ROOT = 'mirror-root';

/**
 * Refuses to write into an empty mount point: files would fill the disk below it, and when the right one is back an old file that is
 * edited would look like a person's edit. The root counts as away while it is empty, on another file system than when something
 * was last written to it.
 *
 * @throws MirrorError MIRROR_ROOT_AWAY
 */
async function checkRoot({ root, state }: MirrorDeps): Promise<void> {
  const known = state.meta(ROOT) as { readonly path?: unknown; readonly device?: unknown } | undefined;
  await onDisk(root, async () => {
    await mkdir(root, { recursive: true, mode: 0o755 });
    if (known?.path !== root || known.device === (await stat(root)).dev) return;
    if ((await readdir(root)).length === 0) throw new MirrorError('MIRROR_ROOT_AWAY', root);
  });
}

/** Committed with the record of what was written. */
async function rememberRoot({ root, state }: MirrorDeps): Promise<void> {
  const now = { path: root, device: (await stat(root)).dev };
  if (!isDeepStrictEqual(state.meta(ROOT), now)) state.setMeta(ROOT, now);
}
