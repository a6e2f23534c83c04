import type { Config } from '../config/config.js';
import type { Stuck } from '../lib/health.js';
import { amountText, counted, quoted, shellWord } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { MirrorReport } from '../mirror/record.js';
import type { DialectName } from '../peer/dialects/dialect.js';
import type { Paused, QueueStatus } from '../queue/request-queue.js';
import type { Counts } from '../state/entries.js';
import type { Failure } from '../state/entry.js';
import type { StateView } from '../state/state.js';
import type { ReadingSpeed } from '../uplink/extraction.js';
import type { RepairAuditProgress } from '../uplink/repair-audit.js';
import type { UplinkStatus } from '../uplink/uplink.js';
import type { MassDeletion } from '../watch/mass-deletions.js';
import type { FolderStatus, PathProblem } from '../watch/watcher.js';
import type { FleetReport } from './fleet.js';
import type { StatisticsReport } from './statistics.js';

/** The failure of a disk that does not answer. `since` is in ms since the epoch. */
export type DiskFailure = Failure & { readonly path: string; readonly since: number };

/** Tells whether the running daemon uses its configuration file as it is now. */
export interface ConfigurationReport {
  /** When the file was last loaded, by a start or a reload, in ms since the epoch. */
  readonly takenUpAt: number;
  /** The absolute path of the file. */
  readonly file?: string | undefined;
  /** Set if the last reload failed: the reason, and when that was. */
  readonly refused?: (Failure & { readonly at: number }) | undefined;
}

/** A part of a list that is too long for a status. */
interface Truncated {
  readonly total: number;
  readonly shown: number;
}

export interface QuarantinedFile {
  /** `FOLDER/path`. */
  readonly file: string;
  readonly code: string;
  readonly message: string;
}

/** The state of one configured folder. */
export interface FolderReport {
  readonly name: string;
  readonly path: string;
  readonly collection: string;
  readonly items: Counts;
  /** Set while a daemon runs. */
  readonly watch?: FolderStatus | undefined;
  /** Removed files whose documents wait for `approve-deletes`. */
  readonly massDeletion?: MassDeletion | undefined;
}

/** The progress of `uplink`; see UplinkStatus. */
interface UplinkReport {
  readonly inFlight: number;
  readonly confirming: number;
  readonly timeToVisibleMs?: number | undefined;
  readonly documents?: UplinkStatus['documents'] | undefined;
  readonly removalsFailing?: UplinkStatus['removalsFailing'];
  readonly readersFailure?: UplinkStatus['readersFailure'];
}

interface PeerReport {
  readonly url: string;
  /** Whether it is the embedded peer, which has pages of its own. */
  readonly embedded?: boolean | undefined;
  /** Undefined until the peer has answered once. */
  readonly dialect?: DialectName | undefined;
  /** Set while a daemon runs. */
  readonly queue?: QueueStatus | undefined;
}

/** A status without its conditions, which follow from it. Times are in ms since the epoch. */
export interface StatusFacts {
  readonly version: string;
  readonly running: boolean;
  /** Set while a daemon runs, as are `startedAt`, `uplink`, `figures` and `configuration`. */
  readonly pid?: number | undefined;
  readonly startedAt?: number | undefined;
  /**
   * The lead of the wall clock over the daemon's steady clock, by which all times here are, in ms.
   * Set if the wall clock was set since the daemon started. Rounded to seconds, so that a status
   * changes only when something else does.
   */
  readonly wallAheadMs?: number | undefined;
  readonly uplink?: UplinkReport | undefined;
  readonly figures?: StatisticsReport | undefined;
  readonly configuration?: ConfigurationReport | undefined;
  /** A pause that a person asked for. */
  readonly paused?: Paused | undefined;
  /** The keys of the configuration whose new values take effect after a restart. */
  readonly restart?: readonly string[] | undefined;
  /** The URL of the status page. Set while the page is open. */
  readonly page?: string | undefined;
  readonly peer: PeerReport;
  /** The machines that help. Set while a daemon runs whose configuration has `fleet`. */
  readonly fleet?: FleetReport | undefined;
  readonly items: Counts;
  /** The speed at which waiting files become searchable. Set while files wait and move. */
  readonly pace?: Pace | undefined;
  readonly folders: readonly FolderReport[];
  /** Folders that left the configuration, and whose documents the peer may still have. */
  readonly formerFolders: readonly FormerFolder[];
  /** The reasons why the peer may never show documents of some addresses. */
  readonly unseenAddresses: readonly (Failure & { readonly since: number })[];
  /** The directory that the paths of mirrors are relative to. */
  readonly mirrorRoot: string;
  readonly mirrors: readonly MirrorReport[];
  /** The first few quarantined files. */
  readonly quarantined: readonly QuarantinedFile[];
  readonly problems: readonly PathProblem[];
  /** The lists that are cut short, by name. */
  readonly truncated?: Readonly<Record<string, Truncated>> | undefined;
  /** The reason why the state cannot be written. Nothing is sent meanwhile. */
  readonly stateFailure?: Failure | undefined;
  /** A disk that does not answer. */
  readonly diskFailure?: DiskFailure | undefined;
  /** Loops that make no progress. */
  readonly stuck: readonly Stuck[];
  /** Repairs that were made when the state was opened. */
  readonly repairs: readonly string[];
  /** The progress of the full audit that follows a repair. Set until the audit is done. */
  readonly repairAudit?: RepairAuditProgress | undefined;
}

/** Everything that `status` shows, also as JSON. */
export interface StatusReport extends StatusFacts {
  /** The most severe first. */
  readonly conditions: readonly Condition[];
}

/** From the most to the least severe. */
export const SEVERITIES = ['critical', 'error', 'warning', 'info'] as const;
export type Severity = (typeof SEVERITIES)[number];

/**
 * A condition that a person should know about.
 *
 * - `critical`: new files do not become searchable, and `/readyz` fails.
 * - `error`: a promise is broken, or work waits for a person.
 * - `warning`: a part is left out, or waits for a person.
 * - `info`: a person wanted it so.
 */
export interface Condition {
  readonly code: string;
  readonly severity: Severity;
  /**
   * The part that it is about: `peer`, `state`, `disk`, `documents`, `configuration`, `fleet`, or
   * the name of a folder, a collection, a mirror or the machine of a worker.
   */
  readonly subject: string;
  /** Whole sentences. */
  readonly message: string;
  /** The remedy, in whole sentences. */
  readonly hint: string;
  /** In ms since the epoch. */
  readonly since?: number | undefined;
}

/**
 * The speed at which waiting files become searchable. It is known only while files wait and move.
 */
interface Pace {
  /** Files confirmed a second, over the last half minute or since the backlog more than doubled. */
  readonly perSecond: number;
  /**
   * The time until all waiting files are confirmed, in ms. Undefined while a folder is scanned,
   * because more files may be found.
   */
  readonly leftMs?: number | undefined;
}

interface PaceFacts {
  readonly items: Pick<Counts, 'pending' | 'accepted'>;
  readonly confirmedPerSecond: number;
  readonly queue: QueueStatus | undefined;
  readonly isScanning: boolean;
}

/** @param now in ms since the epoch, of the daemon's clock */
export function paceOf(facts: PaceFacts, now: number): Pace | undefined {
  const { confirmedPerSecond, isScanning, items, queue } = facts;
  const waiting = items.pending + items.accepted;
  if (waiting === 0 || confirmedPerSecond === 0 || isHeldUp(queue, now)) return undefined;
  const perSecond = Number(confirmedPerSecond.toPrecision(3));
  if (isScanning) return { perSecond };
  // Rounded to seconds, so that a status changes only when something else does.
  return { perSecond, leftMs: Math.ceil(waiting / confirmedPerSecond) * 1_000 };
}

/** Returns whether no file can move now: the peer is away or asked to wait, or a person paused. */
export function isHeldUp(queue: QueueStatus | undefined, now: number): boolean {
  if (queue === undefined) return true;
  const { circuit, paused, retryAfterUntil = 0 } = queue;
  const isAway = circuit.held.includes('push') || circuit.held.includes('confirm');
  return paused !== undefined || retryAfterUntil > now || isAway;
}

/** Less is over before it is read, in ms. */
const WORTH_TELLING_MS = 10_000;

/** A pace for a person: `38.2 a second, about 2m 10s to go`. */
export function paceText({ perSecond, leftMs = 0 }: Pace): string {
  const left = leftMs > WORTH_TELLING_MS ? `, about ${durationText(leftMs)} to go` : '';
  return `${amountText(perSecond)} a second${left}`;
}

/** The speed at which documents are read, for a person: `12 documents and 140 pages a minute`. */
export function readingSpeedText({ documents, pages }: ReadingSpeed): string {
  const read = documents === 1 ? '1 document' : `${amountText(documents)} documents`;
  if (pages === 0) return `${read} a minute`;
  return `${read} and ${pages === 1 ? '1 page' : `${amountText(pages)} pages`} a minute`;
}

/** A folder that left the configuration while the peer had documents of it. */
interface FormerFolder {
  readonly name: string;
  /**
   * The largest number of documents that the peer can have. Some may never have arrived, or may
   * belong to another folder now.
   */
  readonly documents: number;
  /** A whole sentence. */
  readonly message: string;
  /** The remedy, in a whole sentence. */
  readonly hint: string;
}

/** The folders that are not in the configuration any more and have records, by name. */
export function formerFolders({ folders }: Config, state: StateView): readonly FormerFolder[] {
  const configured = new Set(folders.map(({ name }) => name));
  const former: FormerFolder[] = [];
  for (const name of [...state.entries.folders()].sort()) {
    if (configured.has(name)) continue;
    const { accepted, confirmed, gone, pending, quarantined } = state.counts(name);
    const documents = accepted + confirmed + gone + pending + quarantined;
    if (documents > 0) former.push({ name, documents, ...textsOf(name, documents) });
  }
  return former;
}

/** Returns the message about such a folder, and a hint with both ways to end it. */
function textsOf(name: string, documents: number) {
  const them = documents === 1 ? 'it' : 'them';
  const forget = `peersync forget ${shellWord(name)}`;
  return {
    message: `The folder ${quoted(name)} is not in the configuration any more; the peer may still have ${counted(documents, 'document')} of it.`,
    hint: `\`${forget} --remove\` removes ${them}, \`${forget} --keep\` leaves ${them} there and forgets the folder.`,
  };
}

/** The name under which the state saves a pause. */
export const PAUSE_META = 'paused';

/**
 * Returns the pause that the state has saved; undefined if there is none, or its time is over. A
 * pause that begins in the future comes from an earlier run whose clock was wrong: it begins now,
 * and its end moves with its beginning. A new field of a pause has to be copied here.
 */
export function savedPause(state: Pick<StateView, 'meta'>, now: number): Paused | undefined {
  const saved: { readonly since?: unknown; readonly until?: unknown } = Object(
    state.meta(PAUSE_META),
  );
  const { since, until } = saved;
  if (typeof since !== 'number') return undefined;
  const aheadMs = Math.max(0, since - now);
  if (typeof until !== 'number') return { since: since - aheadMs };
  return until > now ? { since: since - aheadMs, until: until - aheadMs } : undefined;
}
