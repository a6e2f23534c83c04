import type { MirrorReport } from '../mirror/record.js';
import type { QueueStatus } from '../queue/request-queue.js';
import type { Entry } from '../state/entry.js';
import type { ScanReport } from '../watch/watcher.js';

/*
 * What the server of the status page and the page in the browser say to each other; types only, so that nothing of the
 * server comes into the browser with them. Times are ms since the epoch.
 *
 * | request | answer |
 * | --- | --- |
 * | `GET /api/status` | `StatusReport` |
 * | `GET /api/live` | server-sent events: the event is a `LiveLine['kind']`, its data a `StatusReport`, `Sample[]` or `RecentEvent[]` |
 * | `GET /api/why?path=` | `WhyReport`, of an absolute path or of `FOLDER/path`, as lists and logs name files |
 * | `GET /api/items?status=&folder=&after=&limit=` | `ItemsPage` |
 * | `POST /api/retry` | `RetryRequest` -> `RetryAnswer` |
 * | `POST /api/rescan` | `RescanRequest` -> `RescanAnswer`, when the scan is over |
 * | `POST /api/pause`, `POST /api/resume` | `PauseRequest`, `{}` -> `PauseAnswer` |
 * | `POST /api/mirrors/run`, `POST /api/mirrors/accept` | `MirrorsRequest` -> `MirrorsAnswer`, when they are done |
 * | `GET /sign-in`, `POST /sign-in` | the page `sign-in.html`, whose form sends the field `token` |
 * | `POST /sign-out` | `{}` -> `{}`; the session of this browser is over |
 *
 * A `POST` to the API has a body in JSON, `{}` where nothing is to be said. Every error has a status from 400 up and is an
 * `ApiError`. 401 says that a token is needed: go to `/sign-in`. A wrong token leads back to `/sign-in#wrong`, and one that
 * comes too soon after wrong ones to `/sign-in#later`, so that the page can say so without a script (`:target`). What is
 * below `/assets/`, `/sign-in` itself and `/healthz` need no token.
 */

/** What every error is answered with: one sentence what happened, one what to do. */
export interface ApiError {
  readonly error: { readonly code: string; readonly message: string; readonly hint: string };
}

/** One file of a folder. */
export interface ItemLine {
  readonly folder: string;
  /** In the folder. */
  readonly path: string;
  /** The absolute path. */
  readonly file: string;
  readonly status: Entry['status'];
  readonly since: number;
  /** In bytes. */
  readonly size: number;
  readonly url?: string;
  readonly attempts?: number;
  /** Why it is quarantined or passed over, or what its last try failed with. */
  readonly code?: string;
  readonly message?: string;
  readonly hint?: string;
}

export interface ItemsPage {
  readonly items: readonly ItemLine[];
  /** What to send as `after` for the following page; absent on the last. An item can come twice when items change meanwhile. */
  readonly next?: string;
}

/** All quarantined files, or absolute paths of files and directories. */
export type RetryRequest = { readonly all: true } | { readonly paths: readonly string[] };

export interface RetryAnswer {
  readonly retried: number;
  /** Files that were passed over or could not be read, and are looked at again. */
  readonly lookedAt: number;
}

export interface RescanRequest {
  /** All of them unless given. */
  readonly folder?: string;
}

export interface RescanAnswer {
  readonly scans: readonly ScanReport[];
}

export interface PauseRequest {
  /** Until it is resumed unless given. */
  readonly forMs?: number;
}

export interface PauseAnswer {
  readonly paused?: NonNullable<QueueStatus['paused']>;
}

export interface MirrorsRequest {
  /** All of them unless given; `accept` needs names. */
  readonly names?: readonly string[];
}

export interface MirrorsAnswer {
  readonly mirrors: readonly MirrorReport[];
}
