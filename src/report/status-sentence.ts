import type { QueueStatus } from '../queue/request-queue.js';

/** What the sentence is made of; a status report has all of it. Times in ms since the epoch. */
export interface Standing {
  readonly items: Readonly<Record<'pending' | 'accepted' | 'confirmed' | 'quarantined' | 'gone', number>>;
  readonly peer: { readonly queue?: Pick<QueueStatus, 'circuit' | 'pausedUntil' | 'paused'> };
  readonly figures?: { readonly lastConfirmedAt?: number };
  /** What keeps changes from being recorded. */
  readonly stateTrouble?: unknown;
  readonly configuration?: { readonly refused?: { readonly at: number } };
  /** A disk that does not answer. */
  readonly diskTrouble?: unknown;
  readonly mirrors: readonly { readonly alarm?: unknown; readonly failure?: unknown }[];
}

/**
 * How the daemon is, in one sentence for `systemctl status`.
 *
 * It tells times of day and not how long ago something was: it stands until something changes.
 */
export function statusSentence(standing: Standing): string {
  const { items, figures } = standing;
  const parts = [counted(items.confirmed, 'document', 'confirmed')];
  const waiting = items.pending + items.accepted;
  parts.push(waiting === 0 ? 'nothing waiting' : `${number(waiting)} waiting`);
  if (items.quarantined > 0) parts.push(`${number(items.quarantined)} in quarantine`);
  if (figures?.lastConfirmedAt !== undefined)
    parts.push(`last confirmation ${timeText(figures.lastConfirmedAt)}`);
  return [parts.join(', '), ...troubles(standing)].join('; ');
}

function troubles({ peer, mirrors, configuration, stateTrouble, diskTrouble }: Standing): string[] {
  const told: string[] = [];
  if (stateTrouble !== undefined) told.push('what happens cannot be recorded, so the work waits');
  if (diskTrouble !== undefined) told.push('a disk does not answer, and what needs it waits');
  const refused = configuration?.refused;
  if (refused !== undefined)
    told.push(`the changed configuration was refused ${timeText(refused.at)}, and the one before holds`);
  const { circuit, pausedUntil, paused } = peer.queue ?? {};
  if (paused !== undefined) {
    const end = paused.until === undefined ? '' : ` until ${timeText(paused.until)}`;
    told.push(`paused since ${timeText(paused.since)}${end}`);
  }
  if (circuit !== undefined && circuit.state !== 'closed')
    told.push(`${TROUBLE[circuit.reason?.kind ?? 'unreachable']} since ${timeText(circuit.since)}`);
  else if (pausedUntil !== undefined) told.push(`the peer asked to wait until ${timeText(pausedUntil)}`);
  const alarms = mirrors.filter(({ alarm }) => alarm !== undefined).length;
  const failing = mirrors.filter(({ alarm, failure }) => alarm === undefined && failure !== undefined).length;
  if (alarms > 0) told.push(counted(alarms, 'mirror', 'with an alarm'));
  if (failing > 0) told.push(counted(failing, 'mirror', failing === 1 ? 'fails' : 'fail'));
  return told;
}

const TROUBLE = {
  unreachable: 'the peer does not answer',
  denied: 'the peer refuses our credentials',
  failing: 'the peer answers with errors',
} as const;

function counted(count: number, what: string, how: string): string {
  return `${number(count)} ${what}${count === 1 ? '' : 's'} ${how}`;
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}

/** As the clock on the wall has it: `2026-11-21 10:04:12`. */
function timeText(at: number): string {
  return new Date(at).toLocaleString('sv-SE');
}
