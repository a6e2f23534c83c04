import { wallClockText } from '../lib/duration-text.js';
import type { StatusReport } from './status.js';

/** So many conditions are named. */
const NAMED = 5;

/**
 * How the daemon is, in one sentence for `systemctl status`.
 *
 * It gives times of day and not how long ago something was: it stands until something changes.
 */
export function statusSentence(
  status: Pick<StatusReport, 'items' | 'figures' | 'conditions' | 'paused' | 'wallAheadMs' | 'peer'>,
): string {
  const { conditions, figures, items, paused, peer, wallAheadMs = 0 } = status;
  const text = (at: number) => wallClockText(at + wallAheadMs);
  const waiting = items.pending + items.accepted;
  const counts = [
    `${number(items.confirmed)} ${items.confirmed === 1 ? 'document' : 'documents'} confirmed`,
    waiting === 0 ? 'nothing waiting' : `${number(waiting)} waiting`,
    ...(items.quarantined > 0 ? [`${number(items.quarantined)} in quarantine`] : []),
    ...(figures?.lastConfirmedAt === undefined ? [] : [`last confirmation ${text(figures.lastConfirmedAt)}`]),
  ];
  const named = conditions.filter(({ code }) => code !== 'QUARANTINE' && code !== 'PAUSED');
  const more = named.length - NAMED;
  const until = paused?.until === undefined ? '' : ` until ${text(paused.until)}`;
  const { pausedUntil } = peer.queue ?? {};
  return [
    counts.join(', '),
    ...(paused === undefined ? [] : [`paused since ${text(paused.since)}${until}`]),
    ...named.slice(0, NAMED).map(({ message, since }) => {
      const words = message.replace(/\.$/, '');
      return since === undefined ? words : `${words} (since ${text(since)})`;
    }),
    ...(more > 0 ? [`and ${more} more: \`peersync status\``] : []),
    ...(pausedUntil === undefined ? [] : [`the peer asked to wait until ${text(pausedUntil)}`]),
  ].join('; ');
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}
