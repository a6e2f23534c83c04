import { mkdir, readdir, stat } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { messageOf, PeersyncError } from '../lib/errors.js';
import { sentence } from '../lib/text.js';
import { MirrorAlarm, MirrorError, onDisk } from './errors.js';
import type { Followed, FollowOptions, Mirror, MirrorDeps } from './mirror.js';
import { records } from './plan.js';
import type { MirrorRecord, MirrorReport } from './record.js';
import { sameStamp, stampOfTarget } from './whole-file.js';

export interface RunResult {
  readonly end: Followed['kind'] | 'alarm' | 'failed';
  readonly report: MirrorReport;
}

/** What a run came to. */
interface Outcome {
  readonly end: RunResult['end'];
  /** Whether the file was written, or removed. */
  readonly changed: boolean;
  /** Holds from now on. */
  readonly record: MirrorRecord | undefined;
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
  const { state, clock, log } = deps;
  const { name, identity } = mirror;
  options.signal.throwIfAborted();
  const before = records.of(state, name);
  const disturbance = await disturbanceOf(mirror, before, deps.root);
  const outcome = await outcomeOf(mirror, before, deps, options);
  const { end, changed, record } = outcome;
  records.keep(state, name, record);
  await deps.commit();
  logRun(name, before, outcome, deps);
  if (changed && disturbance !== undefined) {
    log.info(
      { event: 'mirror', mirror: name, path: identity.path },
      `mirror ${name}: somebody ${disturbance} ${identity.path}, which only follows the peer; it was put back`,
    );
  }
  const isOver = end === 'over' ? { isOver: true } : {};
  return { end, report: { name, ...(record ?? { ...identity, triedAt: clock.now() }), changed, ...isOver } };
}

/** Whether a run ended because it was called off, and not because of the mirror. */
export function isCalledOff(error: unknown, signal: AbortSignal): boolean {
  const codes = ['QUEUE_STOPPED', 'PEER_ABORTED', 'MIRROR_REPLACED'];
  return signal.aborted || (error instanceof PeersyncError && codes.includes(error.code));
}

async function outcomeOf(
  mirror: Mirror,
  before: MirrorRecord | undefined,
  deps: MirrorDeps,
  options: FollowOptions,
): Promise<Outcome> {
  const { identity } = mirror;
  try {
    await checkRoot(deps);
    const followed = await mirror.follow(before, options);
    if (followed.kind === 'later') return { end: 'later', changed: false, record: before };
    if (followed.kind === 'over') return { end: 'over', changed: followed.changed, record: undefined };
    await rememberRoot(deps);
    const [now, { changed, facts }] = [deps.clock.now(), followed];
    const times = { succeededAt: now, triedAt: now, changedAt: changed ? now : before?.changedAt };
    return { end: 'followed', changed, record: { ...identity, ...times, ...facts } };
  } catch (error) {
    if (isCalledOff(error, options.signal)) throw error;
    const triedAt = deps.clock.now();
    const { code, message, hint } = troubleOf(error, mirror, deps);
    if (error instanceof MirrorAlarm) {
      // An alarm that was raised before keeps its time.
      const since = before?.alarm?.code === code ? before.alarm.since : triedAt;
      const { conflicts = before?.conflicts } = error;
      const alarm = { code, message, hint, since };
      const record = { ...before, ...identity, triedAt, alarm, conflicts };
      return { end: 'alarm', changed: false, record: { ...record, failure: undefined, failures: undefined } };
    }
    const failure = { code, message, hint, since: before?.failure?.since ?? triedAt };
    const failures = (before?.failures ?? 0) + 1;
    return { end: 'failed', changed: false, record: { ...before, ...identity, triedAt, failure, failures } };
  }
}

/** Nothing that went wrong with one mirror ends the others. */
function troubleOf(error: unknown, { name }: Mirror, { log }: MirrorDeps): PeersyncError {
  if (error instanceof PeersyncError) return error;
  log.error({ err: error, mirror: name }, `the mirror ${name} failed: ${messageOf(error)}`);
  return new MirrorError('MIRROR_FAILED', JSON.stringify(name), messageOf(error), error);
}

/** What somebody did to a file that is only written, since it was. */
async function disturbanceOf(
  { identity: { path }, looksEdited }: Mirror,
  before: MirrorRecord | undefined,
  root: string,
): Promise<'changed' | 'removed' | undefined> {
  if (looksEdited !== undefined || before?.file === undefined || before.path !== path) return undefined;
  const stamp = await stampOfTarget({ root, path });
  if (stamp === undefined) return 'removed';
  return sameStamp(stamp, before.file) ? undefined : 'changed';
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
  const { path, absentSince, notes = [], conflicts = [], rows, bytes } = record ?? {};
  for (const [kind, over] of [
    ['alarm', 'the alarm is over'],
    ['failure', 'works again'],
  ] as const) {
    const [was, is] = [before?.[kind], record?.[kind]];
    const { code = '' } = is ?? was ?? {};
    const level = OF_THE_PEER.includes(code) ? 'debug' : is ? 'warn' : 'info';
    if (is && was?.code !== is.code) say(level, `${sentence(is.message)} ${is.hint}`, { code });
    if (!is && was) say(level, over, { code });
  }
  for (const note of notes) if (before?.notes?.includes(note) !== true) say('info', note);
  const known = new Set(before?.conflicts?.map(({ file }) => file));
  for (const file of new Set(conflicts.map(({ file }) => file))) {
    const said = `what was changed on both sides stays as the peer has it; the file as it was edited is ${file}`;
    if (!known.has(file)) say('warn', said);
  }
  if (!changed) return;
  if (record === undefined) say('info', 'removed, as a person accepted');
  else if (absentSince !== undefined) say('info', `removed ${path}, as a person accepted`);
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
