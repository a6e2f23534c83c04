import { counted } from '../lib/text.js';
import { type ConditionCode, howToPut, MirrorCondition, MirrorError, quoted } from './errors.js';
import { type FollowOptions, type FollowResult, Mirror } from './mirror.js';
import { type ListedPlan, matcherOf } from './plan.js';
import type { Conflict, MirrorRecord } from './record.js';
import { removeWhole, stampOfTarget } from './whole-file.js';

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
