import type { MirrorConfig } from '../config/config.js';
import type { StateView } from '../state/state.js';
import { type Plan, planOf } from './plan.js';
import type { MirrorRecord, MirrorReport } from './record.js';
import { recordOf } from './records.js';

/** What is known of each mirror without a daemon: of those that a pattern brought, what it found last. */
export function mirrorReports(
  settings: MirrorConfig,
  state: Pick<StateView, 'meta' | 'metaNames'>,
): MirrorReport[] {
  return planOf(settings, state).map((plan) => reportOf(plan, recordOf(state, plan.name)));
}

/** Of a mirror that has not run yet, what the configuration says. */
export function reportOf(plan: Plan, record: MirrorRecord | undefined): MirrorReport {
  const { name, settings } = plan;
  if (record !== undefined) return { name, ...record };
  return { name, path: settings.path, ...followedBy(plan) };
}

function followedBy(plan: Plan): Pick<MirrorRecord, 'kind' | 'table' | 'share'> {
  switch (plan.kind) {
    case 'table':
      return { kind: 'table', table: plan.table };
    case 'table-pattern':
      return { kind: 'table' };
    case 'share-pattern':
      return { kind: 'share' };
    case 'share':
      return { kind: 'share', ...(plan.matched === undefined ? {} : { share: plan.matched }) };
    default:
      return { kind: 'citations' };
  }
}
