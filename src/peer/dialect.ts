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

/** What may travel as the content of a document, and how. */
export interface ContentRules {
  /** How content that another thread prepares is to be encoded. */
  readonly encoding: TextEncoding;
  /**
   * Whether files travel as they are, those that are no text included; otherwise as text in UTF-8.
   */
  readonly takesBinary: boolean;
  /**
   * Kinds of document of which a peer that takes files loses the text: they travel as text all the
   * same.
   */
  readonly badlyRead: readonly DocumentKind[];
  /** Whether the peer shows how many words of a document it indexed, at least those of its URL. */
  readonly showsWords: boolean;
  /** Bytes of one document; more does the peer harm. @default no limit */
  readonly maxBytes?: number;
}

/**
 * How one kind of peer speaks the API. Everything in which two kinds differ is here. Paths are
 * below the base URL.
 */
export interface Dialect {
  readonly name: DialectName;
  readonly content: ContentRules;
  /** So long after a push the peer may take back what it shows of it, in ms. */
  readonly holdMs: number;
  /**
   * Whether the peer indexes many documents at a time, and loses all of them with one that its
   * index refuses.
   */
  readonly losesUpdates: boolean;
  /**
   * A hash that no document has: to ask for its citations has the peer show at once all that it has
   * indexed.
   */
  readonly commitHash?: string;
  /**
   * How addresses are told apart, where the peer drops documents of those that its network does not
   * take. @default it takes all
   */
  readonly addresses?: AddressPolicy;
  /** So many documents are removed in one request at most. */
  readonly removedAtOnce: number;
  /**
   * Whether the peer may have a removed document again, as of a copy of its index that was
   * restored.
   */
  readonly bringsBack: boolean;
  readonly pushPath: string;
  readonly peerdocPath: string;
  readonly citationPath: string;
  readonly tables: TableDialect;
  readonly search: SearchDialect;
  /** A URL as it is asked for. */
  sentUrl(url: string): string;
  pushBody(items: readonly PushItem[], options: PushOptions, url: string): Promise<Body>;
  /** @throws PeerError PEER_ANSWER when the answer does not say what became of the items */
  pushResults(answer: HttpAnswer, items: readonly PushItem[]): readonly PushResult[];
  /**
   * @throws PeerError by the status, and PEER_ANSWER when the answer says neither what the document
   *   is nor that there is none
   */
  peerdocOf(answer: HttpAnswer, query: PeerdocQuery): Peerdoc | undefined;
  /**
   * @throws PeerError by the status, and PEER_ANSWER when the answer says neither what the
   *   citations are nor that there is no document
   */
  citationOf(answer: HttpAnswer, query: CitationQuery): Citation | undefined;
  /** Whether what the peer shows of a document says that it was removed. */
  isRemoved(doc: Peerdoc | undefined): boolean;
  /** @throws PeerError PEER_NAME for a name that no shared object can have */
  shareRequest(
    query: ShareQuery,
    urlOf: (path: string) => string,
  ): Promise<Pick<PeerRequest, 'method' | 'path' | 'body'>>;
  /**
   * The names of all shared objects, a group before its objects and a `/`; undefined where the peer
   * does not tell them.
   */
  listShares(http: Http, signal: AbortSignal | undefined): Promise<readonly string[] | undefined>;
}

/** How one kind of peer is asked about its tables. Paths are below the base URL. */
export interface TableDialect {
  /** Where rows are read. */
  readonly readPath: string;
  /** Where tables are listed. */
  readonly pagePath: string;
  /** Where tables are changed. */
  readonly changePath: string;
  /**
   * Bytes of a key in UTF-8: a longer one the peer would cut, a shorter one it pads, and in XML it
   * does not escape it.
   * @default keys of any length
   */
  readonly keyBytes?: number;
  /** Whether a single row can be asked for; otherwise all are read to see one. */
  readonly readsOneRow: boolean;
  /** What asks for all rows. @default nothing needs to be said */
  readonly countOfAll?: string;
  /** What each action is sent with. */
  readonly actions: Readonly<Record<'commitrow' | 'deleterows' | 'deletetable', string>>;
  /** How a change travels. */
  changeBody(fields: readonly FormField[], url: string): Promise<Body>;
}

/**
 * Whether an earlier run found the embedded peer at this URL, in what it kept; undefined where
 * nothing was kept of it.
 */
export function rememberedEmbedded(kept: unknown, url: string): boolean | undefined {
  if (typeof kept !== 'object' || kept === null || !('url' in kept) || kept.url !== url)
    return undefined;
  return 'isEmbedded' in kept && typeof kept.isEmbedded === 'boolean' ? kept.isEmbedded : undefined;
}

/** The dialect in what was kept of an earlier run, if that was about the peer at this URL. */
export function rememberedDialect(kept: unknown, url: string): DialectName | undefined {
  if (typeof kept !== 'object' || kept === null || !('url' in kept) || kept.url !== url)
    return undefined;
  return DIALECT_NAMES.find((name) => 'dialect' in kept && name === kept.dialect);
}
