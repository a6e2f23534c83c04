/** Which document: by its URL, or by a hash that the peer told earlier. */
export type CitationQuery = { readonly url: string } | { readonly hash: string };

export interface CitationOptions {
  /** Only the sentences that occur elsewhere. */
  readonly filter?: boolean;
  /** From how many common sentences on another document counts as similar. */
  readonly ch?: number;
  readonly signal?: AbortSignal;
}

/** A sentence of the document, and where else it stands. */
export interface CitedSentence {
  /** The place of the sentence in the document, as the peer counts. */
  readonly number: number;
  readonly text: string;
  /** URLs of the other documents that hold it. */
  readonly appearsIn: readonly string[];
}

/** Another document that has sentences in common with this one. */
export interface CitingDocument {
  readonly url: string;
  readonly title?: string | undefined;
  /** How many sentences they have in common, where the peer says so. */
  readonly sentences?: number | undefined;
}

/** What the peer knows of the references around one document. */
export interface Citation {
  readonly url?: string | undefined;
  readonly urlhash?: string | undefined;
  readonly title?: string | undefined;
  readonly sentences: readonly CitedSentence[];
  /** Documents that have sentences of this one. */
  readonly citing: readonly CitingDocument[];
  /** Documents with at least `ch` sentences in common, on other hosts. */
  readonly similar: readonly CitingDocument[];
  /** Whether the document is longer than what the peer compared, where it says so. */
  readonly more?: boolean | undefined;
}
