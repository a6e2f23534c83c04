import { join } from 'node:path';
import type { Clock } from '../lib/clock.js';
import { messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { counted, sentence } from '../lib/text.js';
import type { PeerClient } from '../peer/client.js';
import type { State } from '../state/state.js';
import { ConflictFiles } from './conflict-files.js';
import { type ConditionCode, howToPut, MirrorCondition, MirrorError, quoted } from './errors.js';
import type { Target } from './place.js';
import { identityOf, type ListedPlan, matcherOf, type Plan, records } from './plan.js';
import type { Conflict, Facts, Identity, MirrorRecord, MirrorReport } from './record.js';
import type { MirrorRoot } from './root.js';
import type { TargetPath } from './target-path.js';
import {
  hashOf,
  Overtaken,
  removeWhole,
  type Standing,
  sameStamp,
  stampOfTarget,
  statsAt,
} from './whole-file.js';

/** Conflicts of whole files that are listed of one mirror. */
const LISTED = 100;
const NOUNS = { table: 'table', share: 'shared object' } as const;

/** What mirrors ask of the peer client. */
export interface MirrorPeer extends Pick<PeerClient, 'baseUrl' | 'citation' | 'share' | 'shares'> {
  readonly tables: Pick<
    PeerClient['tables'],
    'maxKeyBytes' | 'list' | 'stream' | 'set' | 'deleteRows'
  >;
}

/** What every mirror works with. */
export interface MirrorDeps {
  readonly peer: MirrorPeer;
  /** Asks the peer when it is a mirror's turn. A long answer is one task from beginning to end. */
  ask<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Whether the peer's list had it when that was last read; where it was not read, yes. */
  isListed(kind: ListedPlan['kind'], source: string): boolean;
  /** Takes what the peer has; resolves when each that a pattern matches is a mirror. */
  onList(kind: ListedPlan['kind'], sources: readonly string[]): Promise<void>;
  readonly state: State;
  /** Resolves when all changes of the state are on disk. */
  commit(): Promise<void>;
  /** Absolute: everything is written below it. */
  readonly root: string;
  readonly mirrorRoot: MirrorRoot;
  /** Absolute: for temporary files that are not mirrored. */
  readonly stateDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface FollowOptions {
  /** Codes of conditions that a person accepts: those checks are left out. */
  readonly accepted: readonly string[];
  /** Whether a person asked for the run: then nothing is left for later. */
  readonly isAsked?: boolean;
  readonly signal: AbortSignal;
}

/** How a run that went well ended. */
export type Followed =
  | { readonly kind: 'followed'; readonly changed: boolean; readonly facts: Facts }
  /**
   * It is over: nothing is left to follow. `changed`: whether there was a file, which was removed.
   */
  | { readonly kind: 'over'; readonly changed: boolean };

/** One mirror: how often it runs, and what a run does. */
export abstract class Mirror<P extends Plan = Plan> {
  readonly name: string;
  /** In ms. */
  readonly every: number;
  readonly identity: Identity;
  protected readonly target: Target;
  /** About its path, for a reader of `status`. */
  protected readonly notes: readonly string[];

  constructor(
    readonly plan: P,
    place: TargetPath,
    protected readonly deps: MirrorDeps,
  ) {
    this.name = plan.name;
    this.every = plan.settings.every;
    this.identity = identityOf(plan, place.path);
    this.target = { root: deps.root, path: place.path };
    this.notes = place.notes;
  }

  /**
   * Asks the peer, and writes what differs. An error leaves the file as it was.
   *
   * @throws MirrorCondition that a person has to accept or mend; Overtaken when somebody is writing
   *   the file, and the run is repeated in a few seconds; anything else is a failure, and retried
   */
  abstract follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed>;

  /**
   * Called before the file is replaced or removed: what somebody wrote into it is saved as a
   * conflict file, and what is about to be written is known again after a crash. Both are on disk
   * when this resolves.
   */
  protected readonly onReplace = async (
    sha256: string | undefined,
    old?: Standing,
  ): Promise<void> => {
    const known = records.of(this.deps.state, this.name);
    const ours = [known?.sha256, ...(known?.writing ?? [])];
    let there = known?.sha256;
    if (old !== undefined && !sameStamp(old.stamp, known?.file)) {
      there = await hashOf(old.path);
      if (!ours.includes(there)) await this.keepEdits(this.target, there);
    }
    if (sha256 === undefined) return;
    await this.#remember({ writing: there === undefined ? [sha256] : [there, sha256] });
  };

  /** Saves a file that somebody edited as a conflict file. @param sha256 of its content */
  protected async keepEdits(target: Target, sha256: string): Promise<void> {
    const file = await new ConflictFiles(target, this.deps.clock).keep(sha256);
    const known = records.of(this.deps.state, this.name)?.conflicts ?? [];
    if (known.some((conflict) => conflict.file === file)) return;
    const conflict = { pk: '', file, at: this.deps.clock.now() };
    await this.#remember({ conflicts: [...known, conflict].slice(-LISTED) });
  }

  /** The conflicts that are known, and whose files a person has not removed yet. */
  async standing(): Promise<readonly Conflict[] | undefined> {
    const standing: Conflict[] = [];
    for (const conflict of records.of(this.deps.state, this.name)?.conflicts ?? []) {
      const path = join(this.deps.root, conflict.file);
      if ((await statsAt(path).catch(() => undefined)) !== undefined) standing.push(conflict);
    }
    return standing.length > 0 ? standing : undefined;
  }

  async #remember(facts: Pick<MirrorRecord, 'conflicts' | 'writing'>): Promise<void> {
    const { state } = this.deps;
    records.keep(state, this.name, { ...this.identity, ...records.of(state, this.name), ...facts });
    await this.deps.commit();
  }

  /** How long from now, in ms, until its next run, where it knows better than the scheduler. */
  nextIn?(): number | undefined;

  /**
   * Whether there is something that does not wait for the next run, such as a person's edit. Asked
   * every 2 seconds.
   */
  wantsRun?(): Promise<boolean>;
}

/** A mirror of something that the peer lists. */
export abstract class ListedMirror<P extends ListedPlan> extends Mirror<P> {
  /** The table or object, for sentences. */
  protected get what(): string {
    return `the ${NOUNS[this.plan.kind]} ${quoted(this.plan.source)}`;
  }

  protected condition(code: ConditionCode, detail?: string): MirrorCondition {
    return new MirrorCondition(code, this.name, this.what, detail);
  }

  /** What is known of the file, unless it stands elsewhere now. */
  protected known(before: MirrorRecord | undefined): MirrorRecord | undefined {
    return before?.path === this.target.path ? before : undefined;
  }

  /**
   * The peer does not have it. Accepting that removes the file, and the mirror waits for it to come
   * back; where a pattern brought it here, the mirror is over.
   *
   * @throws MirrorCondition TABLE_GONE, SHARE_GONE; MirrorError MIRROR_NOTHING if it never existed
   */
  protected async gone(
    before: MirrorRecord | undefined,
    { accepted }: FollowOptions,
  ): Promise<Followed> {
    const { kind, source, role } = this.plan;
    const { absentSince, file } = before ?? {};
    if (absentSince !== undefined)
      return { kind: 'followed', changed: false, facts: { absentSince } };
    if (file === undefined) {
      // It was on the list, and went before it was read: what stands there is not ours.
      if (role === 'member' && !this.deps.isListed(kind, source))
        return { kind: 'over', changed: false };
      throw new MirrorError('MIRROR_NOTHING', this.what, howToPut(kind, source));
    }
    const code = kind === 'table' ? 'TABLE_GONE' : 'SHARE_GONE';
    if (!accepted.includes(code)) throw this.condition(code);
    const changed = (await stampOfTarget(this.target)) !== undefined;
    const left = await this.retire(before);
    if (role === 'member' && left.length === 0) return { kind: 'over', changed };
    return {
      kind: 'followed',
      changed,
      facts: { absentSince: this.deps.clock.now(), conflicts: left },
    };
  }

  /** Removes the file. @returns the conflicts that are left */
  async retire(_before: MirrorRecord | undefined): Promise<readonly Conflict[]> {
    const { versions } = this.plan.settings;
    await removeWhole(this.target, { versions, onReplace: this.onReplace });
    return (await this.standing()) ?? [];
  }
}

/** A peer that lists more is not listing what a person made. */
const MOST_MEMBERS = 10_000;

/**
 * A pattern over the tables, or the shared objects, of the peer. A run asks for the list of them;
 * each that matches is a mirror of its own, and stays one when it is not on the list any more,
 * until a person accepts that.
 */
export class PatternMirror extends Mirror<ListedPlan> {
  async follow(_before: unknown, { signal }: FollowOptions): Promise<Followed> {
    const { ask, peer } = this.deps;
    const { kind, source } = this.plan;
    const one = NOUNS[kind];
    const sources = await ask(signal, (signal) =>
      kind === 'table' ? peer.tables.list({ signal }) : peer.shares({ signal }),
    );
    if (sources === undefined) throw new MirrorError('MIRROR_NO_LIST', quoted(source), `${one}s`);
    const matching = sources.filter(matcherOf(this.plan)).length;
    if (matching > MOST_MEMBERS) {
      throw new MirrorError('MIRROR_TOO_MANY', quoted(source), `${MOST_MEMBERS} ${one}s`);
    }
    await this.deps.onList(kind, sources);
    const follows = `Follows ${counted(matching, one)} of the peer.`;
    const notes = [matching === 0 ? `None of the ${one}s of the peer matches it.` : follows];
    return { kind: 'followed', changed: false, facts: { notes } };
  }
}

export interface RunResult {
  readonly end: Followed['kind'] | 'later' | 'condition' | 'failed';
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
 * Runs a mirror once. What that came to is in its record, on disk, when this resolves, and never
 * before the file is in place: after a crash between the two the next run finds the file as it
 * should be and only writes the record.
 *
 * @throws the reason of the signal when it aborts, QueueError or PeerError when the queue or the
 *   peer client is stopped, StateError when the record cannot be kept; what is wrong with the
 *   mirror is in the report
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
    const { accepted } = options;
    await deps.mirrorRoot.check(deps.root, { name, path: identity.path, accepted });
    const followed = await mirror.follow(before, options);
    if (followed.kind === 'over') return { end: 'over', changed: followed.changed };
    await deps.mirrorRoot.remember(deps.root);
    const [now, { changed, facts }] = [deps.clock.now(), followed];
    const times = { succeededAt: now, triedAt: now, changedAt: changed ? now : before?.changedAt };
    const { conflicts = await mirror.standing() } = facts;
    return { end: 'followed', changed, record: { ...identity, ...times, ...facts, conflicts } };
  } catch (error) {
    if (isCalledOff(error, options.signal)) throw error;
    // With what the run itself remembered.
    const known = records.of(deps.state, name);
    if (error instanceof Overtaken) return { end: 'later', record: known };
    const isKnown = error instanceof PeersyncError;
    if (!isKnown)
      deps.log.error(
        { err: error, mirror: name },
        `the mirror ${name} failed: ${messageOf(error)}`,
      );
    const { code, message, hint } = isKnown
      ? error
      : new MirrorError('MIRROR_FAILED', JSON.stringify(name), messageOf(error));
    const triedAt = deps.clock.now();
    const { condition, failure, failures = 0, ...rest } = { ...known, ...identity, triedAt };
    if (error instanceof MirrorCondition) {
      // A condition that was raised before keeps its time.
      const since = condition?.code === code ? condition.since : triedAt;
      const { conflicts = rest.conflicts } = error;
      return {
        end: 'condition',
        record: { ...rest, condition: { code, message, hint, since }, conflicts },
      };
    }
    const since = failure?.since ?? triedAt;
    return {
      end: 'failed',
      record: {
        ...rest,
        condition,
        failure: { code, message, hint, since },
        failures: failures + 1,
      },
    };
  }
}

/** Failures that the queue logs once for everybody. */
const OF_THE_PEER = [
  'PEER_UNREACHABLE',
  'PEER_TIMEOUT',
  'PEER_BUSY',
  'PEER_AUTH',
  'PEER_AUTH_WEAK',
];

/**
 * Logs what is new about a mirror, once: troubles when they begin and when they are over, and what
 * changed.
 */
function logRun(
  name: string,
  before: MirrorRecord | undefined,
  { changed, record }: Outcome,
  { log }: MirrorDeps,
): void {
  const say = (level: 'debug' | 'info' | 'warn', text: string, more: object = {}): void =>
    log[level]({ event: 'mirror', mirror: name, ...more }, `mirror ${name}: ${text}`);
  for (const kind of ['condition', 'failure'] as const) {
    const [was, is] = [before?.[kind], record?.[kind]];
    const { code = '' } = is ?? was ?? {};
    const level = OF_THE_PEER.includes(code) ? 'debug' : is ? 'warn' : 'info';
    if (is && was?.code !== is.code) say(level, `${sentence(is.message)} ${is.hint}`, { code });
    if (!is && was)
      say(level, kind === 'condition' ? 'does not need you any more' : 'works again', { code });
  }
  const { path, absentSince, notes = [], conflicts = [], rows, bytes, sha256 } = record ?? {};
  for (const note of notes) if (before?.notes?.includes(note) !== true) say('info', note);
  const known = new Set(before?.conflicts?.map(({ file }) => file));
  const fresh = new Map(
    conflicts.filter(({ file }) => !known.has(file)).map((each) => [each.file, each]),
  );
  for (const { file, pk } of fresh.values()) {
    const whose = pk === '' ? 'a file that somebody edited' : 'what was changed on both sides';
    say('warn', `${whose} stays as the peer has it; the file as it was edited is ${file}`);
  }
  if (!changed) return;
  if (record === undefined || absentSince !== undefined)
    say('info', 'its file is removed, as a person accepted');
  else if (sha256 !== undefined && sha256 === before?.sha256)
    say('info', `somebody changed or removed ${path}, and it was put back as the peer has it`);
  else say('info', `${path} changed`, { rows, bytes });
}
