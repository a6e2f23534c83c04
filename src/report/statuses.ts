/** The statuses of items that `list` can show, in the order of an item's life. */
export const LISTED_STATUSES = [
  'pending',
  'accepted',
  'confirmed',
  'quarantined',
  'gone',
  'removing',
  'removed',
  'skipped',
] as const;
