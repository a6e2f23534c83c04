import type { DocumentKind } from '../lib/file.js';
import type { AddressPolicy } from './addresses.js';
import type { HttpAnswer } from './answer.js';
import type { Citation, CitationQuery } from './citation.js';
import type { Body, FormField, TextEncoding } from './form.js';
import type { Http, PeerRequest } from './http.js';
import type { Peerdoc, PeerdocQuery } from './peerdoc.js';
import type { PushItem, PushOptions, PushResult } from './push.js';
import type { SearchDialect } from './search.js';
import type { ShareQuery } from './share.js';

/** The kinds of peer. */
export const DIALECT_NAMES = ['standard', 'yacy'] as const;
export type DialectName = (typeof DIALECT_NAMES)[number];

/** The forms in which a peer takes the content of a document. */
export interface ContentRules {
  /** The encoding in which a worker thread prepares content. */
  readonly encoding: TextEncoding;
  /**
   * Whether the peer takes files of any kind as they are. Otherwise it takes only text in UTF-8.
   */
  readonly takesBinary: boolean;
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

/**
 * The API as one kind of peer speaks it. Holds everything in which two kinds differ. Paths are
 * relative to the base URL.
 */
export interface Dialect {
  readonly name: DialectName;
  readonly content: ContentRules;
  /** How long after a push the peer may stop showing a document that it showed before, in ms. */
  readonly holdMs: number;
  /**
   * Whether the peer indexes documents in groups. If its index refuses one of them, the whole group
   * is lost.
   */
  readonly losesUpdates: boolean;
  /**
   * A hash that no document has. A citation request for it makes the peer commit its index at once.
   * @default the peer has no such request
   */
  readonly commitHash?: string;
  /**
   * The addresses that the network of this peer takes. The peer drops documents with other
   * addresses. @default every address is taken
   */
  readonly addresses?: AddressPolicy;
  /** The most documents that one request removes. */
  readonly maxRemovalsPerRequest: number;
  /**
   * Whether a removed document can come back, because somebody restored an old copy of the index.
   */
  readonly restoresRemoved: boolean;
  readonly pushPath: string;
  readonly peerdocPath: string;
  readonly citationPath: string;
  readonly tables: TableDialect;
  readonly search: SearchDialect;
  /** Returns the spelling of a URL under which the peer finds the document. */
  sentUrl(url: string): string;
  pushBody(items: readonly PushItem[], options: PushOptions, url: string): Promise<Body>;
  /** @throws PeerError PEER_ANSWER if the answer does not say what happened to each item */
  pushResults(answer: HttpAnswer, items: readonly PushItem[]): readonly PushResult[];
  /**
   * Returns the document that the answer shows; undefined if the peer has none.
   *
   * @throws PeerError the error for the status; PEER_ANSWER if the answer neither shows the
   *   document nor says that there is none
   */
  peerdocOf(answer: HttpAnswer, query: PeerdocQuery): Peerdoc | undefined;
  /**
   * Returns the citations that the answer shows; undefined if the peer has no such document.
   *
   * @throws PeerError the error for the status; PEER_ANSWER if the answer neither shows citations
   *   nor says that there is no document
   */
  citationOf(answer: HttpAnswer, query: CitationQuery): Citation | undefined;
  /** Whether this answer about a document shows that it was removed. */
  isRemoved(doc: Peerdoc | undefined): boolean;
  /** @throws PeerError PEER_NAME if no shared object can have this name */
  shareRequest(
    query: ShareQuery,
    urlOf: (path: string) => string,
  ): Promise<Pick<PeerRequest, 'method' | 'path' | 'body'>>;
  /**
   * Returns the names of all shared objects; undefined if the peer does not list them. An object in
   * a group is named `GROUP/OBJECT`.
   */
  listShares(http: Http, signal: AbortSignal | undefined): Promise<readonly string[] | undefined>;
}

/**
 * The requests with which one kind of peer reads and changes tables. Paths are relative to the base
 * URL.
 */
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

/**
 * Returns whether an earlier run found the embedded peer at this URL; undefined if that is not
 * recorded.
 *
 * @param kept the record of the earlier run
 */
export function rememberedEmbedded(kept: unknown, url: string): boolean | undefined {
  if (typeof kept !== 'object' || kept === null || !('url' in kept) || kept.url !== url)
    return undefined;
  return 'isEmbedded' in kept && typeof kept.isEmbedded === 'boolean' ? kept.isEmbedded : undefined;
}

/**
 * Returns the dialect that an earlier run found at this URL; undefined if that is not recorded.
 *
 * @param kept the record of the earlier run
 */
export function rememberedDialect(kept: unknown, url: string): DialectName | undefined {
  if (typeof kept !== 'object' || kept === null || !('url' in kept) || kept.url !== url)
    return undefined;
  return DIALECT_NAMES.find((name) => 'dialect' in kept && name === kept.dialect);
}
