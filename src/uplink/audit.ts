import { PeersyncError } from '../lib/errors.js';
import { counted } from '../lib/text.js';
import type { Entry } from '../state/entry.js';
import type { Deps } from './deps.js';
import {
  REPAIR_AUDIT_META,
  type RepairAudit,
  type RepairAuditProgress,
  repairAuditProgress,
} from './repair-audit.js';
import { isVerifiable, VERIFIABLE, type Verifiable, verify } from './verify.js';

/** The number of slices of `everyMs`. A slice lasts an hour at most. */
const SLICES = 100;
const LONGEST_SLICE_MS = 3_600_000;
const SHORTEST_SLICE_MS = 100;
const AUDITED_META = 'auditedUntil';

/**
 * The repair audit has up to this many parts, of about `PART_ITEMS` items each. A restart repeats
 * one part.
 */
const MAX_PARTS = 200;
const PART_ITEMS = 500;
/** Delay before a part is tried again that the peer did not answer, in ms. */
const PART_AGAIN_MS = 5_000;

/**
 * Finds documents that the peer lost, slowly and in the background, and has them pushed again. On
 * peers that may show a removed document again, it also finds those and has them removed.
 *
 * *Resting* at first. `start` begins to look every confirmed item up once in every `everyMs`;
 * `stop` ends that.
 *
 * The name of an item decides its moment within each `everyMs`. The item is looked up in the slice
 * of time in which its moment passes. The state keeps the time up to which that was done, so
 * moments that passed while the daemon did not run, or while the peer was away, are caught up on.
 *
 * After a repair of the state, a *repair audit* comes first, at once and for any `everyMs`: the
 * state may describe versions that are older than what was pushed. It has parts, which the names
 * decide as well; the state keeps how many are done.
 */
export class Audit {
  readonly #deps: Deps;
  #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #checkedInPart = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Begins the audit.
   * @param everyMs the time in which each confirmed item is looked up once, in ms; 0 for never
   * @param onFailure called with an error that ended the audit, which is a bug or a failing disk
   */
  start(everyMs: number, onFailure: (error: unknown) => void): void {
    this.#stopping = new AbortController();
    this.#loop = this.#run(everyMs, this.#stopping.signal).catch(onFailure);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  /** The progress of the repair audit; undefined if none is pending. */
  get repairProgress(): RepairAuditProgress | undefined {
    return repairAuditProgress(this.#deps.state, this.#checkedInPart);
  }

  async #run(everyMs: number, signal: AbortSignal): Promise<void> {
    const { clock, dialect, state } = this.#deps;
    if (!(await dialect.known(signal))) return;
    await this.#auditAll(signal);
    if (everyMs === 0 || signal.aborted) return;
    if (typeof state.meta(AUDITED_META) !== 'number') state.setMeta(AUDITED_META, clock.now());
    const sliceMs = Math.max(SHORTEST_SLICE_MS, Math.min(LONGEST_SLICE_MS, everyMs / SLICES));
    while (!signal.aborted) {
      await clock.sleep(sliceMs, signal);
      const to = clock.now();
      const due = this.#due(Number(state.meta(AUDITED_META)), to, everyMs);
      try {
        for await (const _ of verify(due, this.#deps, { lane: 'audit', repair: true, signal }));
      } catch (error) {
        // The peer is away, or the audit stops: the next slice catches up.
        if (error instanceof PeersyncError || signal.aborted) continue;
        throw error;
      }
      if (signal.aborted) return;
      state.setMeta(AUDITED_META, to);
      await state.commit();
    }
  }

  /** Runs the repair audit from where an earlier run left it. */
  async #auditAll(signal: AbortSignal): Promise<void> {
    const { clock, log, state } = this.#deps;
    const { repairedAt: of } = state;
    if (of === undefined || this.repairProgress === undefined) return;
    const { confirmed, removed } = state.counts();
    const parts = Math.min(MAX_PARTS, Math.max(1, Math.ceil((confirmed + removed) / PART_ITEMS)));
    const known = state.meta(REPAIR_AUDIT_META) as RepairAudit | undefined;
    let audit: RepairAudit = known?.of === of ? known : { of, parts, done: 0, checked: 0 };
    log.info(
      { event: 'repair-audit' },
      'the state was repaired, or the peer has another database: everything in the peer is compared with the state',
    );
    while (audit.done < audit.parts) {
      const checked = await this.#auditPart(audit, signal);
      if (signal.aborted) return;
      if (checked === undefined) await clock.sleep(PART_AGAIN_MS, signal);
      else {
        audit = { ...audit, done: audit.done + 1, checked: audit.checked + checked };
        this.#checkedInPart = 0;
        state.setMeta(REPAIR_AUDIT_META, audit);
        await state.commit();
      }
    }
    log.info(
      { event: 'repair-audit', checked: audit.checked },
      `everything in the peer was compared with the state: ${counted(audit.checked, 'document')}`,
    );
  }

  /**
   * @returns the number of items that were looked up; undefined if the peer did not answer for all
   *   of them
   */
  async #auditPart({ done, parts }: RepairAudit, signal: AbortSignal): Promise<number | undefined> {
    const options = { lane: 'audit', repair: true, evidence: 'asConfirmed', signal } as const;
    this.#checkedInPart = 0;
    try {
      for await (const line of verify(this.#part(done, parts), this.#deps, options))
        if (line.kind === 'verifying' || line.kind === 'verified')
          this.#checkedInPart = line.checked;
      return this.#checkedInPart;
    } catch (error) {
      if (error instanceof PeersyncError || signal.aborted) return undefined;
      throw error;
    }
  }

  async *#part(part: number, parts: number): AsyncGenerator<Verifiable> {
    for await (const slice of this.#deps.state.entries.slices({ status: VERIFIABLE }))
      for (const item of slice)
        if (isVerifiable(item) && Math.floor(namePosition(item) * parts) === part) yield item;
  }

  /**
   * Yields the items whose moment is after `from` and not after `to`, without those that changed in
   * between.
   */
  async *#due(from: number, to: number, everyMs: number): AsyncGenerator<Verifiable> {
    const { dialect, state } = this.#deps;
    const status = dialect.current?.restoresRemoved ? VERIFIABLE : (['confirmed'] as const);
    for await (const slice of state.entries.slices({ status })) {
      for (const item of slice) {
        const moment = namePosition(item) * everyMs;
        if (Math.floor((to - moment) / everyMs) <= Math.floor((from - moment) / everyMs)) continue;
        const isNew = item.since > from && item.since <= to;
        if (isVerifiable(item) && !isNew) yield item;
      }
    }
  }
}

/**
 * Returns the position of a name between 0 and 1. It uses the hash FNV-1a, which spreads similar
 * names.
 */
function namePosition({ folder, path }: Verifiable | Entry): number {
  const name = `${folder}/${path}`;
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return (hash >>> 0) / 2 ** 32;
}
