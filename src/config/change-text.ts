import type { ConfigChanges, KeyChange, ListChanges } from './changes.js';
import { changedKeys } from './changes.js';
import { type Description, describeConfig, describeKey } from './description.js';
import { DURATION_PATTERN, formatBytes, formatDuration, SIZE_PATTERN } from './units.js';

/** What changed, a line each: `folder notes: added`, `push.concurrency: 4, now 8`. */
export function changeLines(changes: ConfigChanges): string[] {
  const { folders, shares, tables, citations, keys } = changes;
  const root = describeConfig();
  return [
    ...listLines('folder', folders, ({ path }) => ` (${path})`),
    ...[shares, tables, citations].flatMap((list: ListChanges<{ readonly name: string }>) =>
      listLines('mirror', list, () => ''),
    ),
    ...keys.map((change) => keyLine(root, change)),
  ];
}

function listLines<T extends { readonly name: string }>(
  what: string,
  { added, removed, changed }: ListChanges<T>,
  where: (each: T) => string,
): string[] {
  return [
    ...added.map((each) => `${what} ${each.name}${where(each)}: added`),
    ...removed.map((each) => `${what} ${each.name}${where(each)}: removed`),
    ...changed.map(({ before, after }) => {
      const keys = changedKeys(before, after).map(({ key }) => key);
      return `${what} ${after.name}: ${keys.join(', ')} changed`;
    }),
  ];
}

function keyLine(root: Description, { key, before, after }: KeyChange): string {
  const description = describeKey(root, key.split('.'));
  if (before === undefined) return `${key}: now ${valueText(after, description)}`;
  if (after === undefined) return `${key}: ${valueText(before, description)}, now not given`;
  return `${key}: ${valueText(before, description)}, now ${valueText(after, description)}`;
}

/** As it would stand in the file. */
function valueText(value: unknown, description: Description | undefined): string {
  const patterns = [description, ...(description?.anyOf ?? [])].map((each) => each?.pattern);
  if (typeof value === 'number' && patterns.includes(DURATION_PATTERN)) return `"${formatDuration(value)}"`;
  if (typeof value === 'number' && patterns.includes(SIZE_PATTERN)) return `"${formatBytes(value)}"`;
  return JSON.stringify(value);
}
