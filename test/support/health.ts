import type { HealthCheck } from '../../src/lib/health.js';

/** Returns the descriptions of the checks that are busy now. */
export function busyIn({ health }: { readonly health: readonly HealthCheck[] }): string[] {
  return health.filter(({ busy }) => busy).map(({ what }) => what);
}

/**
 * Looks at a check that was not looked at for a second; whether it had made progress, or was not
 * busy.
 */
export function goesOn(health: readonly HealthCheck[], name: string): boolean {
  const check = health.find((each) => each.name === name);
  if (check === undefined) throw new Error(`there is no health check of ${name}`);
  return check.look(check.lastProgressAt + 1_000) === 0;
}
