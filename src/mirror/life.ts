import type { Trouble } from './alarms.js';
import type { Conflict, MirrorRecord, MirrorTrouble } from './record.js';

/** What a run that went well found out. */
export type Facts = Pick<
  MirrorRecord,
  | 'rows'
  | 'bytes'
  | 'sha256'
  | 'columns'
  | 'type'
  | 'version'
  | 'file'
  | 'absentSince'
  | 'conflicts'
  | 'notes'
  | 'succeededAt'
>;

/** What a mirror is called wherever its record is kept. */
export type Identity = Pick<MirrorRecord, 'kind' | 'path' | 'table' | 'share'>;

/** The file is what the peer has: troubles are over. */
export function followed(
  before: MirrorRecord | undefined,
  identity: Identity,
  { changed, facts }: { readonly changed: boolean; readonly facts: Facts },
  now: number,
): MirrorRecord {
  const changedAt = changed ? now : before?.changedAt;
  return {
    ...identity,
    succeededAt: now,
    ...facts,
    triedAt: now,
    ...(changedAt === undefined ? {} : { changedAt }),
  };
}

/** What the peer says waits for a person. An alarm that was raised before keeps its time. */
export function alarmed(
  before: MirrorRecord | undefined,
  identity: Identity,
  { trouble, conflicts }: { readonly trouble: Trouble; readonly conflicts?: readonly Conflict[] },
  now: number,
): MirrorRecord {
  const { failure: _, failures: __, ...kept }: Partial<MirrorRecord> = before ?? {};
  const since = kept.alarm?.code === trouble.code ? kept.alarm.since : now;
  return {
    ...kept,
    ...identity,
    triedAt: now,
    alarm: dated(trouble, since),
    ...(conflicts && { conflicts }),
  };
}

/** The run came to nothing, and the next may succeed by itself. An alarm stays. */
export function failed(
  before: MirrorRecord | undefined,
  identity: Identity,
  trouble: Trouble,
  now: number,
): MirrorRecord {
  const since = before?.failure?.since ?? now;
  const failures = (before?.failures ?? 0) + 1;
  return { ...before, ...identity, triedAt: now, failure: dated(trouble, since), failures };
}

function dated({ code, message, hint }: Trouble, since: number): MirrorTrouble {
  return { code, message, hint, since };
}
