import { PeersyncError } from '../lib/errors.js';
import { counted } from '../lib/text.js';
import type { Entry } from '../state/entry.js';
import {
  REPAIR_AUDIT_META,
  type RepairAudit,
  type RepairAuditProgress,
  repairAuditProgress,
} from './repair-audit.js';
import { isVerifiable, VERIFIABLE, type Verifiable, type VerifyDeps, verify } from './verify.js';

/** A round of the audit comes so many times in `every`, but no more rarely than once an hour. */
const ROUNDS = 100;
const LONGEST_ROUND_MS = 3_600_000;
const SHORTEST_ROUND_MS = 100;
const AUDITED_META = 'auditedUntil';

/**
 * The audit of everything goes in so many parts at most, each of about so many items. A restart
 * repeats one part.
 */
const MOST_PARTS = 200;
const PART_ITEMS = 500;
/** Between two tries of a part that the peer did not answer, in ms. */
const PART_AGAIN_MS = 5_000;

/**
 * Notices slowly, in the background, what the peer lost, and has it pushed again; on peers that may
 * have a removed document again, also that, and has it removed.
 *
 * *Resting* at first; `start` lets it look up every confirmed item once more in every `everyMs`,
 * `stop` lets it rest again.
 *
 * Each item has a moment of its own in every `everyMs`, which its name decides; an item is looked
 * up in the round in which its moment passes. Until when that was done is remembered, so that
 * moments that passed while nothing ran, or while the peer was away, are made up for.
 *
 * After a repair of the state, all items are looked up once before that, at once, whatever
 * `everyMs` is: what the state says of them may be from before a later version was pushed. That
 * goes in parts, which the names decide as well. How many of them are done is remembered.
 */
export class Audit {
  readonly #deps: VerifyDeps;
  #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #checkedInPart = 0;

  constructor(deps: VerifyDeps) {
    this.#deps = deps;
  }

  /** @param everyMs in what time every confirmed item is looked up once more, in ms; 0 for never */
  start(everyMs: number, onFailure: (error: unknown) => void): void {
    this.#stopping = new AbortController();
    this.#loop = this.#run(everyMs, this.#stopping.signal).catch(onFailure);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  /** How far the audit after a repair is; undefined where none is to be done. */
  get repairProgress(): RepairAuditProgress | undefined {
    return repairAuditProgress(this.#deps.state, this.#checkedInPart);
  }

  async #run(everyMs: number, signal: AbortSignal): Promise<void> {
    const { clock, dialect, state } = this.#deps;
    if (!(await dialect.known(signal))) return;
    await this.#lookAtAll(signal);
    if (everyMs === 0 || signal.aborted) return;
    if (typeof state.meta(AUDITED_META) !== 'number') state.setMeta(AUDITED_META, clock.now());
    const roundMs = Math.max(SHORTEST_ROUND_MS, Math.min(LONGEST_ROUND_MS, everyMs / ROUNDS));
    while (!signal.aborted) {
      await clock.sleep(roundMs, signal);
      const to = clock.now();
      const due = this.#due(Number(state.meta(AUDITED_META)), to, everyMs);
      try {
        for await (const _ of verify(due, this.#deps, { lane: 'audit', repair: true, signal }));
      } catch (error) {
        // The peer is away, or we stop: the next round makes up for it.
        if (error instanceof PeersyncError || signal.aborted) continue;
        throw error;
      }
      if (signal.aborted) return;
      state.setMeta(AUDITED_META, to);
      await state.commit();
    }
  }

  /** The audit after a repair: goes on where it stands, until it is done. */
  async #lookAtAll(signal: AbortSignal): Promise<void> {
    const { clock, log, state } = this.#deps;
    const { repairedAt: of } = state;
    if (of === undefined || this.repairProgress === undefined) return;
    const { confirmed, removed } = state.counts();
    const parts = Math.min(MOST_PARTS, Math.max(1, Math.ceil((confirmed + removed) / PART_ITEMS)));
    const known = state.meta(REPAIR_AUDIT_META) as RepairAudit | undefined;
    let audit: RepairAudit = known?.of === of ? known : { of, parts, done: 0, checked: 0 };
    log.info(
      { event: 'repair-audit' },
      'the state was repaired: everything in the peer is compared with it',
    );
    while (audit.done < audit.parts) {
      const checked = await this.#lookAtPart(audit, signal);
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
      `everything in the peer was compared with the repaired state: ${counted(audit.checked, 'document')}`,
    );
  }

  /**
   * @returns how many items were looked up; undefined where the peer did not answer for all of them
   */
  async #lookAtPart(
    { done, parts }: RepairAudit,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const options = { lane: 'audit', repair: true, isDoubtful: true, signal } as const;
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
        if (isVerifiable(item) && Math.floor(share(item) * parts) === part) yield item;
  }

  /** The items whose moment is after `from` and not after `to`. */
  async *#due(from: number, to: number, everyMs: number): AsyncGenerator<Verifiable> {
    const { dialect, state } = this.#deps;
    const status = dialect.current?.bringsBack ? VERIFIABLE : (['confirmed'] as const);
    for await (const slice of state.entries.slices({ status })) {
      for (const item of slice) {
        const moment = share(item) * everyMs;
        if (Math.floor((to - moment) / everyMs) <= Math.floor((from - moment) / everyMs)) continue;
        const isNew = item.since > from && item.since <= to;
        if (isVerifiable(item) && !isNew) yield item;
      }
    }
  }
}

/** Where a name stands between 0 and 1: FNV-1a, which spreads similar names. */
function share({ folder, path }: Verifiable | Entry): number {
  const name = `${folder}/${path}`;
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return (hash >>> 0) / 2 ** 32;
}
