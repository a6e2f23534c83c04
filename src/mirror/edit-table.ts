import type { TableMirrorConfig } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { TableRow } from '../peer/table.js';
import type { EditAlarm } from './edit-alarms.js';
import type { Conflict, MirrorRecord } from './record.js';

/** The peer's table as it is now. */
export interface EditSource {
  /** Without the key, in the order in which the file has them; only the configured ones where there are such. */
  readonly columns: readonly string[];
  /** In the order in which the file has them, with all cells that the peer has, also those of no column above. */
  readonly rows: AsyncIterable<readonly TableRow[]>;
}

/** What a two-way table asks of the peer, through the queue. Whatever these throw ends the run, and the file stays. */
export interface EditPeer {
  /** Bytes of the longest key that a row can have in the peer; undefined where it has no limit. */
  maxKeyBytes(signal: AbortSignal | undefined): Promise<number | undefined>;
  /** The whole table, checked as that of any mirror (vanished, emptied, columns lost: throws). `rows` is read once. */
  read(signal: AbortSignal | undefined): Promise<EditSource>;
  /** As the client's: each row committed, only the given cells, and read back. */
  set(rows: readonly TableRow[], signal: AbortSignal | undefined): Promise<unknown>;
  /** As the client's: gone, and that seen. */
  deleteRows(keys: readonly string[], signal: AbortSignal | undefined): Promise<unknown>;
}

export interface EditableTableParts {
  /** Of the mirror, for its base. */
  readonly name: string;
  /** The table itself, also where the configuration has a pattern. */
  readonly table: string;
  readonly settings: Pick<
    TableMirrorConfig,
    'format' | 'columns' | 'search' | 'count' | 'deletes' | 'maxDeletes' | 'neutralise' | 'versions'
  >;
  /** Absolute. */
  readonly root: string;
  /** Of the file, below the root. */
  readonly path: string;
  /** Where bases are kept, in `mirrors/` below it. */
  readonly stateDir: string;
  readonly peer: EditPeer;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What the record of the mirror says, where there is one. */
export type EditKnown = Pick<MirrorRecord, 'sha256' | 'conflicts' | 'alarm'>;

/** How a run ended; a run that failed throws what made it fail, and the user's file is as it was. */
export type EditOutcome =
  | {
      readonly kind: 'settled';
      /** Whether the file changed; if not, its mtime stays. */
      readonly changed: boolean;
      /** What of the record is new. */
      readonly record: Required<
        Pick<MirrorRecord, 'rows' | 'bytes' | 'sha256' | 'columns' | 'file' | 'conflicts' | 'notes'>
      >;
      /** What was written to the peer. */
      readonly written: { readonly rows: number; readonly deleted: number };
    }
  /** Somebody writes the file just now: to be run again in a few seconds, without a word. */
  | { readonly kind: 'later' }
  /** The user's file cannot be taken as it is: nothing was written, neither there nor to the peer. */
  | { readonly kind: 'alarm'; readonly alarm: EditAlarm; readonly conflicts: readonly Conflict[] };

/** A table of the peer that a person edits in its file; see EditableTable. */
export interface TwoWayTable {
  /**
   * Merges the file with the peer, once.
   *
   * @param options.accept a person accepts the alarm that the record has: more deletions than `maxDeletes`. Where by now
   *   others would be deleted, that is a new alarm
   * @throws what `peer` throws, MirrorError, or the reason of the signal; the file is as it was
   */
  run(
    known: EditKnown,
    options?: { readonly accept?: boolean; readonly signal?: AbortSignal },
  ): Promise<EditOutcome>;
  /** Whether the file is another one than the last run left: a stat, to be asked every 2 seconds. */
  looksEdited(): Promise<boolean>;
  /**
   * The table is gone, and a person accepted that: the file goes, after it was saved as a conflict file if it holds
   * edits; then the base.
   *
   * @throws EditAlarm, MirrorError
   */
  retire(known: EditKnown): Promise<readonly Conflict[]>;
  /** Closes what is open; what an editor wrote too late is saved before. */
  close(): Promise<void>;
}
