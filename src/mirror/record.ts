/** Why something went wrong, for a person: one sentence what happened, one what to do. */
export interface MirrorTrouble {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  /** Since when, in ms since the epoch. */
  readonly since: number;
}

/** A cell that was changed in the file and in the peer, differently. The peer's value was kept. */
export interface Conflict {
  /** Empty where it is not known which cells it is about: the copy holds what was written while nobody could merge it. */
  readonly pk: string;
  /** Undefined where a row that one side changed was removed on the other. */
  readonly column?: string;
  /** Below the root: the copy of the file that holds what was not applied. */
  readonly file: string;
  /** In ms since the epoch. */
  readonly at: number;
}

/** Which version of a shared object a file is, in the words of the peer. Times are ms since the epoch. */
export interface ShareVersion {
  /** Of which object of which peer: of another it says nothing. */
  readonly of: string;
  readonly etag?: string;
  /** By the peer. */
  readonly lastModified?: number;
  /** By the peer's clock: what changed after this is another version. */
  readonly asOf?: number;
  /** When it came, by our clock. */
  readonly at: number;
}

/** What a mirror is, wherever its record is kept. */
export interface Identity {
  readonly kind: 'share' | 'table' | 'citations';
  /** Below the root, as it is on disk; of citations the template. */
  readonly path: string;
  /** Of a table, its name in the peer. */
  readonly table?: string;
  /** Of a share that a pattern found, its name in the peer. */
  readonly share?: string;
}

/** What a run that went well found out. Times are ms since the epoch. */
export interface Facts {
  /** When the file was last known to be what the peer has. */
  readonly succeededAt?: number;
  readonly rows?: number;
  readonly bytes?: number;
  /** Of the content, lower-case hex. */
  readonly sha256?: string;
  /** Of a table, without the key, in the order in which they are written. */
  readonly columns?: readonly string[];
  /** Of a share, as the peer said. */
  readonly type?: string;
  /** Of a share, where the peer tells versions apart. */
  readonly version?: ShareVersion;
  /** As it was written, so that a change by others is noticed. */
  readonly file?: { readonly size: number; readonly mtimeMs: number; readonly ino: number };
  /** Since when a person has accepted that the peer has it no more: it is waited for. */
  readonly absentSince?: number;
  readonly conflicts?: readonly Conflict[];
  /** What a reader of `status` should know: names that were made safe, rows not deleted. */
  readonly notes?: readonly string[];
}

/** What is remembered of one mirror: one file, or for citations one folder. Times are ms since the epoch. */
export interface MirrorRecord extends Identity, Facts {
  readonly triedAt?: number;
  /** When its content last changed. */
  readonly changedAt?: number;
  /** The last try failed, and the next may succeed by itself. */
  readonly failure?: MirrorTrouble;
  /** Tries that failed one after the other. */
  readonly failures?: number;
  /** What the peer says would replace good data: it stays as it is until a person accepts that. */
  readonly alarm?: MirrorTrouble;
}

/** For `status`, `mirror` and the log. */
export interface MirrorReport extends MirrorRecord {
  readonly name: string;
  /** When it is asked for next; only while the daemon runs. */
  readonly nextAt?: number;
  readonly running?: boolean;
  /** Whether the run that is reported changed the file: wrote it or, where the peer has it no more, removed it. */
  readonly changed?: boolean;
  /** Whether that run was the last: nothing is left to follow, until a pattern brings it again. */
  readonly isOver?: boolean;
}

type Optional<T> = { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> };
type Required<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] };

/** The value without its undefined entries, which no record holds. */
export function defined<T extends object>(value: T): Optional<T> & Required<T> {
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries) as Optional<T> & Required<T>;
}
