import { readdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { sentence } from '../lib/text.js';
import { MirrorAlarm, MirrorError } from './errors.js';
import type { Followed, FollowOptions, Mirror, MirrorDeps, Trouble } from './mirror.js';
import { records } from './plan.js';
import { defined, type MirrorRecord, type MirrorReport, type MirrorTrouble } from './record.js';
import { sameStamp, stampOfTarget } from './whole-file.js';

export interface RunResult {
  readonly end: Followed['kind'] | 'failed';
  readonly report: MirrorReport;
}

/** What a run came to: the record that holds from now on. */
interface Outcome {
  readonly end: RunResult['end'];
  readonly changed: boolean;
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
  const { state, clock } = deps;
  const { name, identity } = mirror;
  options.signal.throwIfAborted();
  const before = records.of(state, name);
  const disturbance = await disturbanceOf(mirror, before, deps.root);
  const { end, changed, record } = await outcomeOf(mirror, before, deps, options);
  records.keep(state, name, record);
  await deps.commit();
  logRun(name, before, record, changed, deps);
  if (changed && disturbance !== undefined) {
    deps.log.info(
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
  const { name, identity } = mirror;
  const { clock, log } = deps;
  try {
    await checkRoot(deps);
    const followed = await mirror.follow(before, options);
    switch (followed.kind) {
      case 'followed': {
        await rememberRoot(deps);
        const [now, { changed, facts }] = [clock.now(), followed];
        const changedAt = defined({ changedAt: changed ? now : before?.changedAt });
        const record = { ...identity, succeededAt: now, ...facts, triedAt: now, ...changedAt };
        return { end: 'followed', changed, record };
      }
      case 'alarm':
        return alarmed(mirror, before, followed, clock.now());
      case 'later':
        return { end: 'later', changed: false, record: before };
      case 'over':
        return { end: 'over', changed: followed.changed, record: undefined };
    }
  } catch (error) {
    if (isCalledOff(error, options.signal)) throw error;
    const now = clock.now();
    if (error instanceof MirrorAlarm) return alarmed(mirror, before, { trouble: error }, now);
    let trouble = error;
    if (!(trouble instanceof PeersyncError)) {
      // Nothing that went wrong with one mirror ends the others.
      log.error({ err: error, mirror: name }, `the mirror ${name} failed: ${messageOf(error)}`);
      trouble = new MirrorError('MIRROR_FAILED', JSON.stringify(name), messageOf(error), error);
    }
    const failure = dated(trouble as PeersyncError, before?.failure?.since ?? now);
    const failures = (before?.failures ?? 0) + 1;
    const record = { ...before, ...identity, triedAt: now, failure, failures };
    return { end: 'failed', changed: false, record };
  }
}

/** It waits for a person. An alarm that was raised before keeps its time. */
function alarmed(
  { identity }: Mirror,
  before: MirrorRecord | undefined,
  { trouble, conflicts }: Pick<Extract<Followed, { kind: 'alarm' }>, 'trouble' | 'conflicts'>,
  now: number,
): Outcome {
  const { failure: _, failures: __, ...kept }: Partial<MirrorRecord> = before ?? {};
  const since = kept.alarm?.code === trouble.code ? kept.alarm.since : now;
  const alarm = dated(trouble, since);
  const record = { ...kept, ...identity, triedAt: now, alarm, ...defined({ conflicts }) };
  return { end: 'alarm', changed: false, record };
}

function dated({ code, message, hint }: Trouble, since: number): MirrorTrouble {
  return { code, message, hint, since };
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
  after: MirrorRecord | undefined,
  changed: boolean,
  { log }: Pick<MirrorDeps, 'log'>,
): void {
  const say = (level: 'debug' | 'info' | 'warn', text: string, more: object = {}): void =>
    log[level]({ event: 'mirror', mirror: name, ...more }, `mirror ${name}: ${text}`);
  const { alarm, failure, notes = [], conflicts = [], rows, bytes } = after ?? {};
  for (const [was, is, over] of [
    [before?.alarm, alarm, 'the alarm is over'],
    [before?.failure, failure, 'works again'],
  ] as const) {
    const code = (is ?? was)?.code ?? '';
    const level = OF_THE_PEER.includes(code) ? 'debug' : is ? 'warn' : 'info';
    if (is && was?.code !== is.code) say(level, `${sentence(is.message)} ${is.hint}`, { code });
    if (!is && was) say(level, over, { code });
  }
  for (const note of notes) if (before?.notes?.includes(note) !== true) say('info', note);
  for (const file of new Set(conflicts.map(({ file }) => file))) {
    if (before?.conflicts?.some((known) => known.file === file)) continue;
    say(
      'warn',
      `what was changed on both sides stays as the peer has it; the file as it was edited is ${file}`,
    );
  }
  if (!changed) return;
  const removed = after?.absentSince === undefined ? 'removed' : `removed ${after.path}`;
  const isRemoved = after === undefined || after.absentSince !== undefined;
  say(
    'info',
    isRemoved ? `${removed}, as a person accepted` : `${after.path} changed`,
    defined({ rows, bytes }),
  );
}

const ROOT = 'mirror-root';

/**
 * Refuses to write into an empty mount point: files would fill the disk below it, and when the right one is back an old file that is
 * edited would look like a person's edit. The root counts as away while it is empty, or not there at all, on another file system
 * than when something was last written to it.
 *
 * @throws MirrorError MIRROR_ROOT_AWAY
 */
async function checkRoot({ root, state }: MirrorDeps): Promise<void> {
  const known = knownRoot(state);
  if (known?.path !== root || known.device === (await deviceOf(root))) return;
  const names = await readdir(root).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  if (names.length === 0) throw new MirrorError('MIRROR_ROOT_AWAY', root);
}

/** Committed with the record of what was written. */
async function rememberRoot({ root, state }: MirrorDeps): Promise<void> {
  const device = await deviceOf(root);
  const known = knownRoot(state);
  if (known?.path !== root || known.device !== device) state.setMeta(ROOT, { path: root, device });
}

function knownRoot(state: MirrorDeps['state']) {
  return state.meta(ROOT) as { readonly path?: unknown; readonly device?: unknown } | undefined;
}

/** Of the directory, or of the one above it that exists. */
async function deviceOf(directory: string): Promise<number> {
  try {
    return (await stat(directory)).dev;
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || dirname(directory) === directory) throw error;
    return await deviceOf(dirname(directory));
  }
}
