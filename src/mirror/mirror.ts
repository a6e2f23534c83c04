import { join } from 'node:path';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { counted } from '../lib/text.js';
import type { PeerClient } from '../peer/client.js';
import type { State } from '../state/state.js';
import { ConflictFiles } from './conflict-files.js';
import { type ConditionCode, howToPut, MirrorCondition, MirrorError, quoted } from './errors.js';
import type { Target } from './held-directory.js';
import {
  type Catalog,
  identityOf,
  type ListedPlan,
  matcherOf,
  type Plan,
  records,
} from './plan.js';
import type { Conflict, Facts, Identity, MirrorRecord } from './record.js';
import type { MirrorRequests } from './requests.js';
import type { MirrorRoot } from './root.js';
import type { TargetPath } from './target-path.js';
import {
  type ExistingFile,
  hashOf,
  removeWhole,
  sameStamp,
  stampOfTarget,
  statsAt,
} from './whole-file.js';

/** The most conflict files that the record of one mirror lists. */
const MAX_LISTED = 100;

/** The parts of the peer client that mirrors use. */
export interface MirrorPeer extends Pick<PeerClient, 'baseUrl' | 'citation' | 'share' | 'shares'> {
  readonly tables: Pick<
    PeerClient['tables'],
    'maxKeyBytes' | 'list' | 'stream' | 'set' | 'deleteRows'
  >;
}

/** The parts that every mirror works with. */
export interface MirrorDeps {
  readonly peer: MirrorPeer;
  readonly requests: Pick<MirrorRequests, 'run' | 'commit'>;
  readonly catalog: Pick<Catalog, 'has' | 'replace'>;
  readonly state: State;
  /** The absolute path below which all files are written. */
  readonly root: string;
  readonly mirrorRoot: MirrorRoot;
  /** The absolute path for temporary files that are not mirrored. */
  readonly stateDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface FollowOptions {
  /** The codes of conditions that a person accepts: those checks are left out. */
  readonly accepted: readonly string[];
  /** Whether a person asked for the run: then nothing is left for later. */
  readonly isAsked?: boolean;
  readonly signal: AbortSignal;
}

/** The result of a run without an error. */
export type FollowResult =
  /** The file is as the peer has it, or was removed as a person accepted (`absentSince`). */
  | { readonly kind: 'current'; readonly changed: boolean; readonly facts: Facts }
  /** The mirror ends: it has nothing left to follow. `changed` says that a file was removed. */
  | { readonly kind: 'ended'; readonly changed: boolean };

/** One mirror: how often it runs, and how a run brings its file up to date. */
export abstract class Mirror<P extends Plan = Plan> {
  readonly name: string;
  /** The time between two runs, in ms. */
  readonly every: number;
  readonly identity: Identity;
  protected readonly target: Target;
  /** Notes about its path, for `status`. */
  protected readonly notes: readonly string[];

  constructor(
    readonly plan: P,
    path: TargetPath,
    protected readonly deps: MirrorDeps,
  ) {
    this.name = plan.name;
    this.every = plan.settings.every;
    this.identity = identityOf(plan, path.path);
    this.target = { root: deps.root, path: path.path };
    this.notes = path.notes;
  }

  /**
   * Asks the peer, and writes what differs. An error leaves the file as it was.
   *
   * @throws MirrorCondition that a person has to accept or mend; FileChanged when somebody is
   *   writing the file, and the run is repeated in a few seconds; anything else is a failure, and
   *   retried
   */
  abstract follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<FollowResult>;

  /** Returns the ms until its next run, if the mirror knows that better than the scheduler. */
  nextIn?(): number | undefined;

  /** Returns whether something does not wait for the next run, such as an edit. Polled. */
  wantsRun?(): Promise<boolean>;

  /** Returns the known conflicts whose files a person has not removed yet. */
  async openConflicts(): Promise<readonly Conflict[] | undefined> {
    const open: Conflict[] = [];
    for (const conflict of records.of(this.deps.state, this.name)?.conflicts ?? []) {
      const path = join(this.deps.root, conflict.file);
      if ((await statsAt(path).catch(() => undefined)) !== undefined) open.push(conflict);
    }
    return open.length > 0 ? open : undefined;
  }

  /**
   * Called before the file is replaced or removed. Saves edits as a conflict file, and writes down
   * which content is about to be written, so that it is recognised after a crash. Both are on disk
   * when this resolves.
   *
   * @param sha256 of the new content, undefined for a removal
   */
  protected readonly beforeReplace = async (
    sha256: string | undefined,
    existing?: ExistingFile,
  ): Promise<void> => {
    const known = records.of(this.deps.state, this.name);
    const ours = [known?.sha256, ...(known?.writing ?? [])];
    let current = known?.sha256;
    if (existing !== undefined && !sameStamp(existing.stamp, known?.file)) {
      current = await hashOf(existing.path);
      if (!ours.includes(current)) await this.keepEdits(this.target, current);
    }
    if (sha256 === undefined) return;
    await this.#remember({ writing: current === undefined ? [sha256] : [current, sha256] });
  };

  /** Saves an edited file as a conflict file. @param sha256 of its content */
  protected async keepEdits(target: Target, sha256: string): Promise<void> {
    const file = await new ConflictFiles(target, this.deps.clock).keep(sha256);
    const known = records.of(this.deps.state, this.name)?.conflicts ?? [];
    if (known.some((conflict) => conflict.file === file)) return;
    const conflict = { pk: '', file, at: this.deps.clock.now() };
    await this.#remember({ conflicts: [...known, conflict].slice(-MAX_LISTED) });
  }

  async #remember(facts: Pick<MirrorRecord, 'conflicts' | 'writing'>): Promise<void> {
    const { requests, state } = this.deps;
    records.keep(state, this.name, { ...this.identity, ...records.of(state, this.name), ...facts });
    await requests.commit();
  }
}

const NOUNS = { table: 'table', share: 'shared object' } as const;
/** The most mirrors of one pattern. A longer list is not one that a person made. */
const MAX_MEMBERS = 10_000;

/** Mirrors one table or shared object to one file. */
export abstract class ListedMirror<P extends ListedPlan> extends Mirror<P> {
  /** The table or shared object, for messages. */
  protected get subject(): string {
    return `the ${NOUNS[this.plan.kind]} ${quoted(this.plan.source)}`;
  }

  protected condition(code: ConditionCode, detail?: string): MirrorCondition {
    return new MirrorCondition(code, this.name, this.subject, detail);
  }

  /** Returns the record if it is about the same path. */
  protected known(before: MirrorRecord | undefined): MirrorRecord | undefined {
    return before?.path === this.target.path ? before : undefined;
  }

  /**
   * Called if the peer does not have the table or object. If that is accepted, the file is removed,
   * and the mirror waits for it to come back. A mirror that a pattern created ends.
   *
   * @throws MirrorCondition TABLE_GONE, SHARE_GONE; MirrorError MIRROR_NOTHING if it never existed
   */
  protected async gone(
    before: MirrorRecord | undefined,
    { accepted }: FollowOptions,
  ): Promise<FollowResult> {
    const { kind, source, role } = this.plan;
    const { absentSince, file } = before ?? {};
    if (absentSince !== undefined)
      return { kind: 'current', changed: false, facts: { absentSince } };
    if (file === undefined) {
      // It was listed and gone before it was read: a file at this path is not ours.
      const isUnlisted = role === 'member' && !this.deps.catalog.has(kind, source);
      if (isUnlisted) return { kind: 'ended', changed: false };
      const detail = howToPut(kind, source);
      throw new MirrorError('MIRROR_NOTHING', { what: this.subject, detail });
    }
    const code = kind === 'table' ? 'TABLE_GONE' : 'SHARE_GONE';
    if (!accepted.includes(code)) throw this.condition(code);
    const changed = (await stampOfTarget(this.target)) !== undefined;
    const conflicts = await this.retire(before);
    if (role === 'member' && conflicts.length === 0) return { kind: 'ended', changed };
    const facts = { absentSince: this.deps.clock.now(), conflicts };
    return { kind: 'current', changed, facts };
  }

  /** Removes the file. @returns the conflicts that are still open */
  async retire(_before: MirrorRecord | undefined): Promise<readonly Conflict[]> {
    const { versions } = this.plan.settings;
    await removeWhole(this.target, { versions, onReplace: this.beforeReplace });
    return (await this.openConflicts()) ?? [];
  }
}

/**
 * Follows a pattern over the names of tables or shared objects. A run asks the peer for its list.
 * Each matching name becomes a mirror of its own. It stays one when the name leaves the list, until
 * a person accepts that.
 */
export class PatternMirror extends Mirror<ListedPlan> {
  async follow(_before: unknown, { signal }: FollowOptions): Promise<FollowResult> {
    const { catalog, peer, requests } = this.deps;
    const { kind, source } = this.plan;
    const what = quoted(source);
    const noun = NOUNS[kind];
    const names = await requests.run(signal, (signal) =>
      kind === 'table' ? peer.tables.list({ signal }) : peer.shares({ signal }),
    );
    if (names === undefined) throw new MirrorError('MIRROR_NO_LIST', { what, detail: `${noun}s` });
    const matching = names.filter(matcherOf(this.plan)).length;
    if (matching > MAX_MEMBERS) {
      throw new MirrorError('MIRROR_TOO_MANY', { what, detail: `${MAX_MEMBERS} ${noun}s` });
    }
    await catalog.replace(kind, names);
    const note =
      matching === 0
        ? `None of the ${noun}s of the peer matches it.`
        : `Follows ${counted(matching, noun)} of the peer.`;
    return { kind: 'current', changed: false, facts: { notes: [note] } };
  }
}
