import type { StateView } from '../state/state.js';

/** The small value that tells how far the audit of everything is. */
export const REPAIR_AUDIT_META = 'repairAudit';

/**
 * How far the audit of everything is, as it is kept in state. A type and not an interface, for it
 * is kept as JSON.
 */
export type RepairAudit = {
  /** Which repair it follows: its `repairedAt`. */
  readonly of: number;
  readonly parts: number;
  /** The parts that are done, and the items in them. */
  readonly done: number;
  readonly checked: number;
};

/** How far the audit after a repair of the state is. */
export interface RepairAuditProgress {
  /** When the state was repaired, in ms since the epoch. */
  readonly since: number;
  readonly checked: number;
  /** How many items there are. */
  readonly of: number;
}

/**
 * Undefined where no audit of everything is to be done. @param checkedInPart those of the part that
 * is under way
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
