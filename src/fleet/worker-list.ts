import type { WorkerReport } from './protocol.js';
import type { FleetStatus, LostWorker, WorkerStatus } from './status.js';

/** The time over which the speed of a worker is measured, in ms. */
const SPEED_MS = 60_000;
/** How long a worker may be silent until it counts as lost, in ms. Redis may have restarted. */
const SILENT_MS = 30_000;
/** How long a lost worker is shown, in ms. */
const LOST_SHOWN_MS = 10 * 60_000;

interface Known {
  readonly report: WorkerReport;
  /** When its last report came, by the clock of the owner. */
  readonly seenAt: number;
  /** Documents that were done, at times of the last minute. */
  readonly counts: readonly { readonly at: number; readonly done: number }[];
}

/**
 * Knows the workers as the owner sees them: which are there, how fast each one is, and which are
 * lost.
 *
 * A worker is *lost* when it has not reported for 30 s. It is shown for 10 minutes, or until
 * another worker starts on that machine. One that reported that it stops is forgotten at once.
 */
export class WorkerList {
  #known: ReadonlyMap<string, Known> = new Map();
  #there: readonly string[] = [];
  #noneSince: number | undefined;

  /**
   * Takes the reports of the workers that are there.
   *
   * @param now by the clock of the owner, in ms since the epoch
   */
  update(reports: readonly WorkerReport[], now: number): void {
    const known = new Map<string, Known>();
    const started = new Set<string>();
    for (const report of reports) {
      const before = this.#known.get(report.id);
      if (before === undefined) started.add(report.host);
      known.set(report.id, updated(report, before, now));
    }
    for (const [id, one] of this.#known) {
      const { report, seenAt } = one;
      const isForgotten =
        report.idle?.reason === 'stopping' ||
        now - seenAt > LOST_SHOWN_MS ||
        started.has(report.host);
      if (!known.has(id) && !isForgotten) known.set(id, one);
    }
    this.#known = known;
    this.#there = reports.map(({ id }) => id);
    this.#noneSince = reports.length > 0 ? undefined : (this.#noneSince ?? now);
  }

  /** @param now by the clock of the owner, in ms since the epoch */
  status(now: number): Pick<FleetStatus, 'active' | 'lost' | 'noneSince' | 'workers'> {
    const workers = this.#there.flatMap((id): WorkerStatus[] => {
      const one = this.#known.get(id);
      if (one === undefined) return [];
      const { orders: _, pushSlots, ...report } = one.report;
      const slots = report.slots + pushSlots;
      return [{ ...report, slots, seenAt: one.seenAt, perSecond: speedOf(one) }];
    });
    const there = new Set(this.#there);
    const lost = [...this.#known].flatMap(([id, { report, seenAt }]): LostWorker[] =>
      there.has(id) || now - seenAt <= SILENT_MS ? [] : [{ id, host: report.host, seenAt }],
    );
    const since = this.#noneSince;
    return {
      active: workers.reduce((sum, { active }) => sum + active, 0),
      workers,
      lost,
      noneSince: since !== undefined && now - since > SILENT_MS ? since : undefined,
    };
  }
}

function updated(report: WorkerReport, before: Known | undefined, now: number): Known {
  if (before?.report.seenAt === report.seenAt) return before;
  const recent = (before?.counts ?? []).filter(({ at }) => at >= now - SPEED_MS);
  return { report, seenAt: now, counts: [...recent, { at: now, done: report.done }] };
}

function speedOf({ counts }: Known): number | undefined {
  const [first, last] = [counts[0], counts.at(-1)];
  if (first === undefined || last === undefined || last.at <= first.at) return undefined;
  return Number((((last.done - first.done) * 1_000) / (last.at - first.at)).toPrecision(3));
}
