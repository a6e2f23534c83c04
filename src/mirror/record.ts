/** A condition or failure of a mirror: one sentence about the cause, and one about the remedy. */
export interface MirrorFailure {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  /** Its begin, in ms since the epoch. */
  readonly since: number;
}

/**
 * A cell that file and peer changed differently, or a whole file that was edited. The peer's value
 * was kept.
 */
export interface Conflict {
  /** The key of the row. Empty for a whole file. */
  readonly pk: string;
  /** Undefined for a row that one side changed and the other removed. */
  readonly column?: string;
  /** The conflict file, below the root. It holds the edit that was not applied. */
  readonly file: string;
  /** In ms since the epoch. */
  readonly at: number;
}

/** The version of a shared object, as the peer identifies it. Times are ms since the epoch. */
export interface ShareVersion {
  /** Identifies the object and its peer. A version of another object says nothing. */
  readonly of: string;
  readonly etag?: string | undefined;
  /** The time by the clock of the peer. A later change is another version. */
  readonly asOf?: number | undefined;
  /** The time of the answer, by our clock. */
  readonly at: number;
}

/** The part of a record that the configuration determines. */
export interface Identity {
  readonly kind: 'share' | 'table' | 'citations';
  /** The path below the root. For citations the template. */
  readonly path: string;
  /** For a table: its name in the peer. */
  readonly table?: string | undefined;
  /** For a shared object that a pattern found: its name in the peer. */
  readonly share?: string | undefined;
}

/** The facts that a successful run finds out. Times are ms since the epoch. */
export interface Facts {
  /** The last time when the file was known to be as the peer has it. */
  readonly succeededAt?: number | undefined;
  readonly rows?: number | undefined;
  readonly bytes?: number | undefined;
  /** The sha256 of the content, in lower-case hex. */
  readonly sha256?: string | undefined;
  /** For a table: its columns in the order of the file, without the key. */
  readonly columns?: readonly string[] | undefined;
  /** For a table: the codes of conditions that a person accepted and whose cause lasts. */
  readonly accepted?: readonly string[] | undefined;
  /** The key of `accepted` in older records. */
  readonly tolerated?: readonly string[] | undefined;
  /** For a shared object: its media type. */
  readonly type?: string | undefined;
  /** For a shared object whose peer tells versions apart. */
  readonly version?: ShareVersion | undefined;
  /** The stamp of the file as it was written. A change by others shows in it. */
  readonly file?:
    | { readonly size: number; readonly mtimeMs: number; readonly ino: number }
    | undefined;
  /** The time when a person accepted that the peer does not have it any more. */
  readonly absentSince?: number | undefined;
  readonly conflicts?: readonly Conflict[] | undefined;
  /** Notes for a reader of `status`: names that were made safe, rows that came back. */
  readonly notes?: readonly string[] | undefined;
}

/**
 * The record of one mirror: one file, or one folder for citations. Times are ms since the epoch.
 */
export interface MirrorRecord extends Identity, Facts {
  readonly triedAt?: number | undefined;
  /** When a run last wrote or removed the file, also to put it back. */
  readonly changedAt?: number | undefined;
  /** The failure of the last run. The next run may succeed by itself. */
  readonly failure?: MirrorFailure | undefined;
  /**
   * The contents that may be in place after a crash, as sha256: the one that was about to be
   * written, and the one before.
   */
  readonly writing?: readonly string[] | undefined;
  /** The number of failed runs in a row. */
  readonly failures?: number | undefined;
  /** The condition that keeps the file from following the peer, until a person acts. */
  readonly condition?: MirrorFailure | undefined;
}

/** The report of a mirror, for `status`, `mirror` and the log. */
export interface MirrorReport extends MirrorRecord {
  readonly name: string;
  /** The time of the next run. Only while the daemon runs. */
  readonly nextAt?: number | undefined;
  readonly running?: boolean | undefined;
  /** Whether the reported run wrote or removed the file. */
  readonly changed?: boolean | undefined;
  /** Whether the reported run was the last: nothing is left to follow. */
  readonly isOver?: boolean | undefined;
}

/**
 * The position of a pass over the items of a folder. Items are ordered by their cursor keys: the
 * time since when they are confirmed, or gone, and their path.
 */
export interface Pass {
  /** In ms since the epoch. */
  readonly beganAt: number;
  /** The key of the last item that the pass visited. Undefined once the pass is complete. */
  readonly after?: string | undefined;
  /** The key of the last visited item of those that changed since the pass began. */
  readonly newAfter?: string | undefined;
  /** The items with a file so far. */
  readonly files: number;
  readonly changed: boolean;
}

/** Returns the codes of conditions that a person accepted in an earlier run. */
export function acceptedEarlier(record: MirrorRecord | undefined): readonly string[] {
  return record?.accepted ?? record?.tolerated ?? [];
}
