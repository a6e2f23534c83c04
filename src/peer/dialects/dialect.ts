import type { DocumentKind } from '../../lib/file.js';
import type { HttpAnswer } from '../answer.js';
import type { Citation, CitationOptions, CitationQuery } from '../citation.js';
import type { Body, FormField, TextEncoding } from '../form.js';
import type { EndpointRequest, Http } from '../http.js';
import type { Peerdoc, PeerdocOptions, PeerdocQuery } from '../peerdoc.js';
import type { PushItem, PushOptions, PushResult } from '../push.js';
import type { SearchQuery } from '../search.js';
import type { ShareQuery } from '../share.js';

/** The name of a dialect: `standard`, `yacy`, or that of another one in `dialects.ts`. */
export type DialectName = string;

/** Returns the whole URL of a path below the base URL. Needed to measure bodies and in errors. */
export type UrlOf = (path: string) => string;

/**
 * The API as one kind of peer speaks it: everything in which two kinds differ.
 *
 * A dialect is one constant object without state. To add one, write its file and add a line to
 * `dialects.ts`; the configuration accepts it when its name is in `DIALECT_NAMES` of
 * `config/schema.ts`. Paths are relative to the base URL and begin with `/`.
 */
export interface Dialect {
  /** The name in the configuration, in messages and in the state on disk. Must never change. */
  readonly name: DialectName;

  // Detection

  /**
   * The path that detection requests: a GET without parameters, which must change nothing. `ping`
   * requests it too.
   */
  readonly detectionPath: string;
  /**
   * Judges the answer to a GET of `detectionPath`, with any status. Not called if the peer is
   * unreachable, busy or denies access.
   */
  recognises(answer: HttpAnswer): Recognition;
  /** Whether the embedded peer speaks this dialect. */
  readonly canBeEmbedded: boolean;

  // Documents

  /** The forms in which the peer takes the content of a document. */
  readonly content: ContentRules;
  /** Returns the spelling of a URL under which the peer finds the document. */
  sentUrl(url: string): string;
  /** Returns the request that pushes these documents. */
  pushRequest(
    items: readonly PushItem[],
    options: PushOptions,
    urlOf: UrlOf,
  ): Promise<EndpointRequest>;
  /**
   * Returns the result of each item, in order.
   *
   * @param answer an answer with a status of success
   * @throws PeerError PEER_ANSWER if the answer does not say what happened to each item
   */
  pushResults(answer: HttpAnswer, items: readonly PushItem[]): readonly PushResult[];
  /** Returns the request that looks up one document. */
  peerdocRequest(
    query: PeerdocQuery,
    options: PeerdocOptions,
    urlOf: UrlOf,
  ): Promise<EndpointRequest>;
  /**
   * Returns the document that the answer shows; undefined if the peer has none.
   *
   * @throws PeerError the error for the status; PEER_ANSWER if the answer neither shows the
   *   document nor says that there is none
   */
  peerdocOf(answer: HttpAnswer, query: PeerdocQuery): Peerdoc | undefined;
  /** Returns the request for the citations of one document. */
  citationRequest(
    query: CitationQuery,
    options: CitationOptions,
    urlOf: UrlOf,
  ): Promise<EndpointRequest>;
  /**
   * Returns the citations that the answer shows; undefined if the peer has no such document.
   *
   * @throws PeerError the error for the status; PEER_ANSWER if the answer neither shows citations
   *   nor says that there is no document
   */
  citationOf(answer: HttpAnswer, query: CitationQuery): Citation | undefined;

  // Removal

  /**
   * Returns the function that removes documents of one peer. Called once for each client, so the
   * function may keep what it learned about the peer, such as a token.
   */
  remover(peer: RemovalAccess): Remover;
  /**
   * Whether every peer of this kind removes documents. Otherwise only an embedded peer does; in
   * others an empty document replaces a removed one.
   */
  readonly removesDocuments: boolean;
  /**
   * Whether this look-up shows that the document was removed. Called for a look-up after the
   * removal was accepted. A wrong `true` is a leak.
   */
  isRemoved(doc: Peerdoc | undefined): boolean;
  /** The most documents that one request removes. */
  readonly maxRemovalsPerRequest: number;
  /**
   * Whether a removed document can come back, because somebody restored an old copy of the index.
   * The audit looks up removed documents too if so.
   */
  readonly restoresRemoved: boolean;

  // Index

  /**
   * The time after a push within which the peer may stop showing a document that it showed before,
   * in ms. An answer within that time confirms nothing. 0 if the first answer with a document
   * counts. The setting `confirm.hold` takes precedence.
   */
  readonly holdMs: number;
  /**
   * Returns how long the peer takes to index so many bytes, in ms. It is added to the hold. Matters
   * only with a hold.
   */
  indexingMs(bytes: number): number;
  /**
   * The times and the limit of isolation. Set if the peer indexes documents in groups, and loses a
   * whole group when its index refuses one of them. Matters only with a hold.
   *
   * @default the peer loses no document together with another
   */
  readonly isolation?: IsolationPolicy;
  /**
   * Makes the peer show at once everything that it indexed. Must change nothing else.
   *
   * @default the peer has no such request
   * @throws PeerError if the peer did not do it
   */
  commitIndex?(http: Http, signal: AbortSignal | undefined): Promise<void>;
  /**
   * The addresses that the network of this peer takes. The peer drops documents with other
   * addresses, and says so at most in the answer to a synchronous push.
   *
   * @default every address is taken
   */
  readonly addresses?: AddressPolicy;

  // Search, tables and shared objects

  readonly search: SearchDialect;
  readonly tables: TableDialect;
  /** @throws PeerError PEER_NAME if no shared object can have this name */
  shareRequest(query: ShareQuery, urlOf: UrlOf): Promise<EndpointRequest>;
  /**
   * Returns the names of all shared objects; undefined if the peer does not list them. An object in
   * a group is named `GROUP/OBJECT`.
   */
  listShares(http: Http, signal: AbortSignal | undefined): Promise<readonly string[] | undefined>;
}

/**
 * The proof that an answer gives about the dialect of the peer.
 *
 * - `certain`: only a peer of this kind answers so, for example with a record that has the fields
 *   of a document.
 * - `possible`: the page is there. It decides only if no page of another dialect is.
 * - `no`: the peer is of another kind, or the answer proves nothing.
 */
export type Recognition = 'certain' | 'possible' | 'no';

/**
 * The forms in which a peer takes the content of a document. Plain data, because threads receive a
 * copy.
 */
export interface ContentRules {
  /** The encoding in which a worker thread prepares content. */
  readonly encoding: TextEncoding;
  /**
   * Whether the peer takes files of any kind as they are. Otherwise it takes only text in UTF-8.
   */
  readonly takesBinary: boolean;
  /**
   * Whether the peer reads plain text as if it were HTML, and loses words or whole updates by what
   * it finds there. Text is rewritten before it is sent if so (see yacy-text.ts). Matters only if
   * `takesBinary`.
   */
  readonly readsTextAsHtml: boolean;
  /**
   * The kinds of document whose text this peer cannot read. They are converted to text before they
   * are pushed. Matters only if `takesBinary`.
   */
  readonly convertHere: readonly DocumentKind[];
  /**
   * Whether the peer shows how many words of a document it indexed. The words of the URL count too.
   */
  readonly showsWords: boolean;
  /**
   * The largest document that the peer indexes without harm to itself, in bytes. @default no limit
   */
  readonly maxBytes?: number;
}

/** The means of a remover: the requests of one client. */
export interface RemovalAccess {
  readonly http: Http;
  /** Pushes documents in the same dialect. */
  push(items: readonly PushItem[], signal: AbortSignal | undefined): Promise<readonly PushResult[]>;
}

/**
 * Removes documents. A document that the peer does not have counts as removed.
 *
 * @returns the answer of the peer for each URL, in the same order
 */
export type Remover = (
  urls: readonly string[],
  signal: AbortSignal | undefined,
) => Promise<readonly PushResult[]>;

/**
 * The policy of isolation: documents that a peer lost together are pushed again one by one, so that
 * a bad document loses no other. See `uplink/isolation.ts`.
 */
export interface IsolationPolicy {
  /**
   * Quiet time before a round, and around each push if the peer did not commit its index, as a
   * fraction of the hold. It must be long enough that earlier pushes are in another group.
   */
  readonly quietShare: number;
  /** Longest duration of a round, as a fraction of the hold. Other pushes wait meanwhile. */
  readonly roundShare: number;
  /**
   * Maximum number of lost items that wait for a round. Further ones are pushed together again,
   * because so many are lost in a crash, and not by one bad document.
   */
  readonly maxLost: number;
}

/** The reach of an address: the local network, or the internet. */
export type Reach = 'local' | 'global';

/** The failure of a document that the peer does not show because of its address. */
export interface AddressFailure {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
}

/**
 * The policy of a peer that shows documents of one reach only. It accepts documents of the other
 * reach as well, and drops them without an error.
 */
export interface AddressPolicy {
  /** Returns the reach by the address alone. Looks up no name. */
  reachOf(url: string): Reach;
  /**
   * Returns an address of this reach that no folder uses. A test document is pushed there to see
   * whether the peer shows it.
   */
  probeUrl(reach: Reach): string;
  /**
   * Returns why the peer never shows the document at this address, although it shows documents of
   * the other reach.
   */
  dropped(url: string): AddressFailure;
  /**
   * Returns why the peer may never show the document at this address. Used until the peer has shown
   * a document of its reach.
   */
  unseen(url: string): AddressFailure;
  /** Returns what to do about documents of this reach that the peer drops. */
  hint(reach: Reach): string;
}

/** The search page of one kind of peer, and its parameters. */
export interface SearchDialect {
  /** The path that is requested with GET. */
  readonly path: string;
  /** Whether it knows `type`, `after` and `before`. */
  readonly takesFilters: boolean;
  /** Returns the parameters, in order. */
  fields(query: SearchQuery): readonly FormField[];
}

/** The requests with which one kind of peer reads and changes tables. */
export interface TableDialect {
  /** The path that returns rows. */
  readonly readPath: string;
  /** The path that lists the tables. */
  readonly pagePath: string;
  /** The path that changes tables. */
  readonly changePath: string;
  /**
   * The fixed width of a key, in bytes of UTF-8. The peer cuts longer keys and pads shorter ones.
   * It does not escape keys in XML. @default keys have any length
   */
  readonly keyBytes?: number;
  /** Whether the peer can return a single row. Otherwise the whole table is read. */
  readonly readsOneRow: boolean;
  /** The `count` that returns all rows. @default `count` is left out */
  readonly allRowsCount?: string;
  /** The value that each action sends. */
  readonly actions: Readonly<Record<'commitrow' | 'deleterows' | 'deletetable', string>>;
  /** Encodes the fields of a change. */
  changeBody(fields: readonly FormField[], url: string): Promise<Body>;
}
