import type { Counts } from '../state/entries.js';
import type { MirrorRound } from './mirror-round.js';
import type { Step } from './progress-text.js';
import { counted, safe } from './text.js';

/** How many mirrors are named that a run waits for. */
const NAMED = 3;

/**
 * How far `once` has come: of what can succeed, how much is confirmed, and which mirrors it waits for. Until the folders are
 * scanned there may be more.
 */
export function stepOf(
  { pending, accepted, confirmed, quarantined }: Counts,
  scanned: boolean,
  mirrors: Pick<MirrorRound, 'total' | 'waiting'>,
): Step {
  const total = pending + accepted + confirmed;
  const { waiting } = mirrors;
  const isSettled = scanned && pending + accepted === 0;
  const parts = [`${confirmed}/${total} confirmed`];
  if (isSettled && waiting.length > 0) parts.unshift(`waiting for ${mirrorsText(waiting)}`);
  else {
    parts.push(`${pending} to push`, `${accepted} to confirm`);
    if (waiting.length > 0) parts.push(`${counted(waiting.length, 'mirror')} to fetch`);
  }
  if (quarantined > 0) parts.push(`${quarantined} quarantined`);
  if (!scanned) parts.push('scanning');
  const besides = { done: mirrors.total - waiting.length, total: mirrors.total };
  return { done: confirmed, total, besides, parts, growing: !scanned };
}

function mirrorsText(names: readonly string[]): string {
  const named = names.slice(0, NAMED).map(safe);
  if (names.length > NAMED) named.push('…');
  return `${counted(names.length, 'mirror')} (${named.join(', ')})`;
}
