import type { LiveLine, RecentEvent } from '../report/answers.js';
import type { Sample } from '../report/statistics.js';
import type { StatusReport } from '../report/status.js';

const KEPT_SAMPLES = 360;
const KEPT_EVENTS = 100;

/** What is known of the daemon that is watched; its size does not depend on how many files there are. */
export interface WatchModel {
  /** What it said last, also when it is away since. */
  readonly status?: StatusReport;
  /** When that was, in ms since the epoch. */
  readonly heardAt?: number;
  /** Why nothing comes, in a sentence; undefined while something does. */
  readonly away?: string;
  /** Oldest first. */
  readonly samples: readonly Sample[];
  /** Oldest first. */
  readonly events: readonly RecentEvent[];
  /** What became of the last key, and when it was pressed, in ms since the epoch. */
  readonly note?: { readonly text: string; readonly at: number };
}

export const NOTHING_KNOWN: WatchModel = { samples: [], events: [] };

/** The model after one more line of the daemon. */
export function withLine({ away: _, ...model }: WatchModel, line: LiveLine, now: number): WatchModel {
  const heard = { ...model, heardAt: now };
  switch (line.kind) {
    case 'status':
      return { ...heard, status: line.status };
    case 'samples':
      return { ...heard, samples: [...model.samples, ...line.samples].slice(-KEPT_SAMPLES) };
    case 'recents':
      return { ...heard, events: [...model.events, ...line.recents].slice(-KEPT_EVENTS) };
    default:
      // A daemon of a newer version may say more.
      return heard;
  }
}

/** The model when the daemon went away; what it did is told anew when it is back. */
export function withoutDaemon(model: WatchModel, away: string): WatchModel {
  return { ...model, away, samples: [], events: [] };
}
