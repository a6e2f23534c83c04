import type { Sample } from '../../report/statistics.js';

/** An hour of them. */
const KEPT = 360;

/**
 * What is known of the last hour with what came now. What would lie after that is from before the daemon's clock was set back:
 * a line would run backwards there.
 */
export function withSamples(known: readonly Sample[], came: readonly Sample[]): readonly Sample[] {
  const [first] = came;
  if (first === undefined) return known;
  return [...known.filter(({ at }) => at < first.at), ...came].slice(-KEPT);
}
