import type { Body } from './body.js';
import type { Citation, CitationOptions, CitationQuery } from './citation.js';
import type { HttpAnswer } from './http.js';
import type { Peerdoc, PeerdocOptions, PeerdocQuery } from './peerdoc.js';
import type { PushItem, PushOptions, PushResult } from './push.js';
import type { ShareQuery } from './share.js';
import type { TableDialect } from './table-requests.js';
import type { TextEncoding } from './text.js';

/** The kinds of peer. */
export const DIALECT_NAMES = ['standard', 'yacy'] as const;
export type DialectName = (typeof DIALECT_NAMES)[number];

/** What may travel as the content of a document, and how. */
export interface ContentRules {
  /** How content that another thread prepares is to be encoded. */
  readonly encoding: TextEncoding;
  /** Whether files travel as they are, those that are no text included; otherwise as text in UTF-8. */
  readonly takesBinary: boolean;
  /** Whether the peer shows how many words of a document it indexed, at least those of its URL. */
  readonly showsWords: boolean;
  /** Bytes of one document; more does the peer harm. @default no limit */
  readonly maxBytes?: number;
}

/** How a shared object is asked for; the path is below the base URL. */
export type ShareRequest =
  | { readonly method: 'GET'; readonly path: string }
  | { readonly method: 'POST'; readonly path: string; readonly body: Body };

/** How one kind of peer speaks the API. Everything in which two kinds differ is here. */
export interface Dialect {
  readonly name: DialectName;
  readonly content: ContentRules;
  /** So long after a push the peer may take back what it shows of it, in ms. */
  readonly holdMs: number;
  /** Whether the peer indexes many documents at a time, and loses all of them with one that its index refuses. */
  readonly losesUpdates: boolean;
  /** A hash that no document has: to ask for its citations has the peer show at once all that it has indexed. */
  readonly commitHash?: string;
  /** Whether the peer drops documents of some addresses without a word: those that its network does not take. */
  readonly hasDomainGate: boolean;
  /** Below the base URL. */
  readonly pushPath: string;
  /** Below the base URL. */
  readonly peerdocPath: string;
  /** Below the base URL. */
  readonly citationPath: string;
  /** The directory page of everything that is shared, below the base URL; undefined where there is none. */
  readonly sharesPath?: string;
  readonly tables: TableDialect;
  pushBody(items: readonly PushItem[], options: PushOptions, url: string): Promise<Body>;
  /** @throws PeerError PEER_ANSWER when the answer does not say what became of the items */
  pushResults(answer: HttpAnswer, items: readonly PushItem[]): readonly PushResult[];
  peerdocBody(query: PeerdocQuery, options: PeerdocOptions, url: string): Promise<Body>;
  /** @throws PeerError PEER_ANSWER when the answer says neither what the document is nor that there is none */
  peerdocOf(answer: HttpAnswer, query: PeerdocQuery): Peerdoc | undefined;
  citationBody(query: CitationQuery, options: CitationOptions, url: string): Promise<Body>;
  /** Whether the status of an answer says that there is no such document. */
  hasNoCitation(answer: HttpAnswer): boolean;
  /** @throws PeerError PEER_ANSWER when the answer says neither what the citations are nor that there is no document */
  citationOf(answer: HttpAnswer, query: CitationQuery): Citation | undefined;
  /** @throws PeerError PEER_NAME for a name that no shared object can have */
  shareRequest(query: ShareQuery, urlOf: (path: string) => string): Promise<ShareRequest>;
}
