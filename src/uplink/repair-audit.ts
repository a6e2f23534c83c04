import type { StateView } from '../state/state.js';

/** The key of the state value that keeps the progress of the repair audit. */
export const REPAIR_AUDIT_META = 'repairAudit';

/**
 * The progress of the repair audit as the state keeps it. A type and not an interface, because it
 * is stored as JSON.
 */
export type RepairAudit = {
  /** The `repairedAt` of the repair that it follows. */
  readonly of: number;
  readonly parts: number;
  /** The number of parts that are done, and of items in them. */
  readonly done: number;
  readonly checked: number;
};

/** The progress of the repair audit after a repair of the state. */
export interface RepairAuditProgress {
  /** When the state was repaired, in ms since the epoch. */
  readonly since: number;
  readonly checked: number;
  /** The number of items to look up. */
  readonly of: number;
}

/**
 * Returns the progress of the repair audit; undefined if none is pending.
 * @param checkedInPart the number of items looked up in the present part
 */
export function repairAuditProgress(
  state: Pick<StateView, 'meta' | 'repairedAt' | 'counts'>,
  checkedInPart = 0,
): RepairAuditProgress | undefined {
  const { repairedAt } = state;
  const known = state.meta(REPAIR_AUDIT_META) as RepairAudit | undefined;
  const isOfThisRepair = known?.of === repairedAt;
  if (repairedAt === undefined || (isOfThisRepair && known?.done === known?.parts))
    return undefined;
  const { confirmed, removed } = state.counts();
  const checked = (isOfThisRepair ? (known?.checked ?? 0) : 0) + checkedInPart;
  return { since: repairedAt, checked, of: Math.max(checked, confirmed + removed) };
}
