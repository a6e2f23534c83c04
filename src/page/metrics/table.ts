import { FOLDER_METRICS } from './folders.js';
import { ITEM_METRICS } from './items.js';
import type { Metric } from './metric.js';
import { MIRROR_METRICS } from './mirrors.js';
import { PEER_METRICS } from './peer.js';
import { STATE_METRICS } from './state.js';

/** Every metric of peersync's own. */
export const METRICS: readonly Metric[] = [
  ...ITEM_METRICS,
  ...PEER_METRICS,
  ...FOLDER_METRICS,
  ...MIRROR_METRICS,
  ...STATE_METRICS,
];

/** The README's table of them. */
export function metricDocs(): string {
  const rows = METRICS.map(({ name, type, labels = [], help }) => {
    const named = labels.length === 0 ? '' : `{${labels.join(', ')}}`;
    return `| \`${name}${named}\` | ${type} | ${help} |`;
  });
  return ['| metric | kind | meaning |', '| --- | --- | --- |', ...rows].join('\n');
}
