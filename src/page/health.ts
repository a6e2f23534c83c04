import { type Condition, stateDirConditions } from '../report/conditions.js';
import type { StatusReport } from '../report/status.js';

/** Whether the process is worth keeping; it is not when something stands still that nothing keeps. */
export function aliveReasons({ conditions }: StatusReport): readonly Condition[] {
  return conditions.filter(({ code }) => code === 'STUCK');
}

/** What keeps new files from becoming searchable now; empty where nothing does. */
export async function readyReasons(
  { conditions }: StatusReport,
  stateDir: string,
): Promise<readonly Condition[]> {
  const reasons = conditions.filter(({ severity }) => severity === 'critical');
  // A disk that does not answer may be that of the state, and would keep the answer waiting.
  const isKnown = reasons.some(({ subject }) => subject === 'disk' || subject === 'state');
  return isKnown ? reasons : [...reasons, ...(await stateDirConditions(stateDir))];
}
