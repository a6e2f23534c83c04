import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { Citation, CitationOptions, CitationQuery } from '../peer/citation.js';
import type { ShareOptions, ShareQuery, ShareStream } from '../peer/share.js';
import type { TableQuery, TableRow, TableStream } from '../peer/table.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { Entry } from '../state/entry.js';
import type { State } from '../state/state.js';
import type { Trouble } from './alarms.js';
import type { Facts, Identity } from './life.js';
import type { Conflict, MirrorRecord } from './record.js';

interface Asked {
  readonly signal?: AbortSignal;
}

/** What mirrors ask of the peer client. */
export interface MirrorPeer {
  readonly baseUrl: string;
  citation(query: CitationQuery, options?: CitationOptions): Promise<Citation | undefined>;
  share<T>(
    query: ShareQuery,
    use: (share: ShareStream) => Promise<T>,
    options?: ShareOptions,
  ): Promise<T | undefined>;
  shares(options?: Asked): Promise<readonly string[] | undefined>;
  readonly tables: {
    maxKeyBytes(options?: Asked): Promise<number | undefined>;
    list(options?: Asked): Promise<readonly string[]>;
    stream<T>(
      query: TableQuery,
      use: (table: TableStream) => Promise<T>,
      options?: Asked & { readonly maxBytes?: number },
    ): Promise<T | undefined>;
    set(table: string, rows: readonly TableRow[], options?: Asked): Promise<readonly TableRow[]>;
    deleteRows(table: string, keys: readonly string[], options?: Asked): Promise<readonly string[]>;
  };
}

/** What every mirror works with. */
export interface MirrorTools {
  readonly peer: MirrorPeer;
  readonly queue: Pick<RequestQueue, 'run'>;
  readonly state: Pick<State, 'entries' | 'get' | 'meta' | 'setMeta' | 'commit'>;
  /** Absolute: everything is written below it. */
  readonly root: string;
  /** Absolute: for temporary files that are not mirrored. */
  readonly stateDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface FollowOptions {
  /** Codes of alarms that a person accepts: those checks are left out. */
  readonly accepted: readonly string[];
  /** Whether a person asked for the run: then nothing is left for later. */
  readonly isAsked?: boolean;
  readonly signal: AbortSignal;
}

/** How a run that went well ended. */
export type Followed =
  | { readonly kind: 'followed'; readonly changed: boolean; readonly facts: Facts }
  /** The file cannot be taken as it is: it waits for a person. */
  | { readonly kind: 'alarm'; readonly trouble: Trouble; readonly conflicts: readonly Conflict[] }
  /** Somebody writes the file just now: again in a few seconds, without a word. */
  | { readonly kind: 'later' }
  /** It is over: nothing is left to follow. `changed`: whether there was a file, which was removed. */
  | { readonly kind: 'over'; readonly changed: boolean };

/** One mirror: how often it runs, and what a run does. */
export interface Mirror {
  readonly name: string;
  readonly identity: Identity;
  /** In ms. */
  readonly every: number;
  /** How long from now, in ms, until its next run, where it knows better than the schedule. */
  nextIn?(): number | undefined;
  /** To be told of each item that got another status. @returns whether the next run is due earlier for that */
  itemChanged?(item: Entry): boolean;
  /** Whether a person changed the file and waits for a run. Only of a file that is edited. */
  looksEdited?(): Promise<boolean>;
  close?(): Promise<void>;
  /**
   * Asks the peer, and writes what differs. What goes wrong is thrown, and then the file is as it was: a
   * MirrorAlarm waits for a person, anything else is tried again.
   */
  follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed>;
}
