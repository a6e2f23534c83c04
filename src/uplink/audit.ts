import { PeersyncError } from '../lib/errors.js';
import type { ConfirmedItem } from '../state/entry.js';
import type { UplinkParts } from './parts.js';
import { type VerifyParts, verify } from './verify.js';

/** A round of the audit comes so many times in `every`, but no more rarely than once an hour. */
const ROUNDS = 100;
const LONGEST_ROUND_MS = 3_600_000;
const SHORTEST_ROUND_MS = 100;
/** So many records are looked at without a pause. */
const SLICE = 5_000;
const META = 'auditedUntil';

export interface AuditParts
  extends Pick<UplinkParts, 'state' | 'commit' | 'queue' | 'peer' | 'dialect' | 'clock' | 'log'> {}

/**
 * Notices slowly, in the background, what the peer lost, and has it pushed again.
 *
 * *Resting* at first; `start` lets it look up every confirmed item once more in every `everyMs`, `stop` lets it rest again.
 *
 * Each item has a moment of its own in every `everyMs`, which its name decides; an item is looked up in the round in which
 * its moment passes. Until when that was done is remembered, so that moments that passed while nothing ran, or while the
 * peer was away, are made up for.
 */
export class Audit {
  readonly #parts: AuditParts;
  #stopping = new AbortController();
  #everyMs = 0;
  #loop: Promise<void> = Promise.resolve();

  constructor(parts: AuditParts) {
    this.#parts = parts;
  }

  /** @param everyMs in what time every confirmed item is looked up once more, in ms; 0 for never */
  start(everyMs: number, onFailure: (error: unknown) => void): void {
    if (everyMs === 0) return;
    this.#everyMs = everyMs;
    this.#stopping = new AbortController();
    this.#loop = this.#run(this.#stopping.signal).catch(onFailure);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, dialect, state } = this.#parts;
    if (!(await dialect.known(signal))) return;
    if (this.#until === undefined) state.setMeta(META, clock.now());
    const roundMs = Math.max(SHORTEST_ROUND_MS, Math.min(LONGEST_ROUND_MS, this.#everyMs / ROUNDS));
    while (!signal.aborted) {
      await clock.sleep(roundMs, signal);
      if (!signal.aborted) await this.#round(signal);
    }
  }

  get #until(): number | undefined {
    const kept = this.#parts.state.meta(META);
    return typeof kept === 'number' ? kept : undefined;
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { clock, commit, state } = this.#parts;
    const to = clock.now();
    const items = await this.#due(this.#until ?? to, to);
    try {
      for await (const _ of verify(items, this.#verifyParts(signal), { repair: true, signal }));
    } catch (error) {
      // The peer is away, or we stop: the next round makes up for it.
      if (error instanceof PeersyncError || signal.aborted) return;
      throw error;
    }
    if (signal.aborted) return;
    state.setMeta(META, to);
    await commit();
  }

  /** The confirmed items whose moment is after `from` and not after `to`. */
  async #due(from: number, to: number): Promise<ConfirmedItem[]> {
    const { clock, state } = this.#parts;
    const everyMs = this.#everyMs;
    const due: ConfirmedItem[] = [];
    let seen = 0;
    for (const entry of state.entries.all()) {
      seen += 1;
      if (seen % SLICE === 0) await clock.sleep(0);
      // What was confirmed after `to` was so before the clock was set back.
      if (entry.status !== 'confirmed' || (entry.since > from && entry.since <= to)) continue;
      const moment = share(`${entry.folder}/${entry.path}`) * everyMs;
      if (Math.floor((to - moment) / everyMs) > Math.floor((from - moment) / everyMs)) due.push(entry);
    }
    return due;
  }

  #verifyParts(signal: AbortSignal): VerifyParts {
    const { clock, commit, dialect, queue, log, peer, state } = this.#parts;
    return {
      ...{ state, commit, clock, log, concurrency: 1 },
      patienceMs: patienceOf(dialect.current?.holdMs),
      lookUp: (url) => queue.run('audit', (s) => peer.peerdoc({ url }, { signal: s }), { signal }),
    };
  }
}

const SHORTEST_PATIENCE_MS = 1_000;

/** How long a document must stay missing, for a peer that takes back so long what it shows. */
export function patienceOf(holdMs = 0): number {
  return Math.max(SHORTEST_PATIENCE_MS, holdMs);
}

/** Where a name stands between 0 and 1: FNV-1a, which spreads similar names. */
function share(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return (hash >>> 0) / 2 ** 32;
}
