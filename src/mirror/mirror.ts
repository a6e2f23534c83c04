import { join } from 'node:path';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { PeerClient } from '../peer/client.js';
import type { State } from '../state/state.js';
import type { Catalog } from './catalog.js';
import { ConflictFiles } from './conflict-files.js';
import type { Target } from './held-directory.js';
import { identityOf, type Plan, records } from './plan.js';
import type { Conflict, Facts, Identity, MirrorRecord } from './record.js';
import type { MirrorRequests } from './requests.js';
import type { MirrorRoot } from './root.js';
import type { TargetPath } from './target-path.js';
import { type ExistingFile, hashOf, sameStamp, statsAt } from './whole-file.js';

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
