/** Why something went wrong, for a person: one sentence what happened, one what to do. */
export interface MirrorFailure {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  /** Since when, in ms since the epoch. */
  readonly since: number;
}

/**
 * A cell that was changed in the file and in the peer, differently, or a whole file that was
 * edited. What the peer has was kept.
 */
export interface Conflict {
  /**
   * Empty where it is about the whole file: nobody merges it, or it was written while nobody could.
   */
  readonly pk: string;
  /** Undefined where a row that one side changed was removed on the other. */
  readonly column?: string;
  /** Below the root: the copy of the file that holds what was not applied. */
  readonly file: string;
  /** In ms since the epoch. */
  readonly at: number;
}

/**
 * Which version of a shared object a file is, in the words of the peer. Times are ms since the
 * epoch.
 */
export interface ShareVersion {
  /** Of which object of which peer: of another it says nothing. */
  readonly of: string;
  readonly etag?: string | undefined;
  /** By the peer's clock: what changed after this is another version. */
  readonly asOf?: number | undefined;
  /** When it came, by our clock. */
  readonly at: number;
}

/** What a mirror is, wherever its record is kept. */
export interface Identity {
  readonly kind: 'share' | 'table' | 'citations';
  /** Below the root, as it is on disk; of citations the template. */
  readonly path: string;
  /** Of a table, its name in the peer. */
  readonly table?: string | undefined;
  /** Of a share that a pattern found, its name in the peer. */
  readonly share?: string | undefined;
}

/** What a run that went well found out. Times are ms since the epoch. */
export interface Facts {
  /** When the file was last known to be what the peer has. */
  readonly succeededAt?: number | undefined;
  readonly rows?: number | undefined;
  readonly bytes?: number | undefined;
  /** Of the content, lower-case hex. */
  readonly sha256?: string | undefined;
  /** Of a table, without the key, in the order in which they are written. */
  readonly columns?: readonly string[] | undefined;
  /** For a table: the codes of conditions that a person accepted and whose cause lasts. */
  readonly accepted?: readonly string[] | undefined;
  /** The key of `accepted` in older records. */
  readonly tolerated?: readonly string[] | undefined;
  /** Of a share, as the peer said. */
  readonly type?: string | undefined;
  /** Of a share, where the peer tells versions apart. */
  readonly version?: ShareVersion | undefined;
  /** As it was written, so that a change by others is noticed. */
  readonly file?:
    | { readonly size: number; readonly mtimeMs: number; readonly ino: number }
    | undefined;
  /** Since when a person has accepted that the peer has it no more: it is waited for. */
  readonly absentSince?: number | undefined;
  readonly conflicts?: readonly Conflict[] | undefined;
  /** What a reader of `status` should know: names that were made safe, rows not deleted. */
  readonly notes?: readonly string[] | undefined;
}

/**
 * What is remembered of one mirror: one file, or for citations one folder. Times are ms since the
 * epoch.
 */
export interface MirrorRecord extends Identity, Facts {
  readonly triedAt?: number | undefined;
  /** When its content last changed. */
  readonly changedAt?: number | undefined;
  /** The last try failed, and the next may succeed by itself. */
  readonly failure?: MirrorFailure | undefined;
  /**
   * Each sha256 of what may stand there after a crash: what was about to replace the file, and what
   * that was to replace.
   */
  readonly writing?: readonly string[] | undefined;
  /** Tries that failed one after the other. */
  readonly failures?: number | undefined;
  /** What the peer says would replace good data: it stays as it is until a person accepts that. */
  readonly condition?: MirrorFailure | undefined;
}

/** For `status`, `mirror` and the log. */
export interface MirrorReport extends MirrorRecord {
  readonly name: string;
  /** When it is asked for next; only while the daemon runs. */
  readonly nextAt?: number | undefined;
  readonly running?: boolean | undefined;
  /**
   * Whether the run that is reported changed the file: wrote it or, where the peer has it no more,
   * removed it.
   */
  readonly changed?: boolean | undefined;
  /** Whether that run was the last: nothing is left to follow, until a pattern brings it again. */
  readonly isOver?: boolean | undefined;
}

/**
 * Where looking at the items of a folder stands, as it is kept in state. Items are in the order of
 * their keys: since when they are confirmed, or gone, and their path.
 */
export interface Pass {
  /** In ms since the epoch. */
  readonly beganAt: number;
  /** The key of the last item of the pass that was looked at; undefined once the pass is over. */
  readonly after?: string | undefined;
  /** That of the last item that was looked at of those that changed since the pass began. */
  readonly newAfter?: string | undefined;
  /** Items that have a file, so far. */
  readonly files: number;
  readonly changed: boolean;
}

/** Returns the codes of conditions that a person accepted in an earlier run. */
export function acceptedEarlier(record: MirrorRecord | undefined): readonly string[] {
  return record?.accepted ?? record?.tolerated ?? [];
}
