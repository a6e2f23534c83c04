import type { Peerdoc } from './peerdoc.js';

/** What was pushed, and when. */
export interface SentVersion {
  /** Bytes of the text as it travelled (UTF-8). */
  readonly size: number;
  /** sha256 of the text as it travelled, lower-case hex. */
  readonly digest: string;
  readonly url: string;
  readonly collection: string;
  /** When it was pushed, by our clock, in ms since the epoch. */
  readonly at: number;
  /** When the push began, by the peer's clock (whole seconds, as ms). */
  readonly peerAt?: number;
}

/** What can show that a document is the version that was pushed, strongest first. */
export type EvidenceKind = 'digest' | 'lastModified' | 'loadDate' | 'size' | 'present';

export type VersionShown =
  | { readonly shown: true; readonly kind: EvidenceKind; readonly text: string }
  | { readonly shown: false; readonly why: string };

/** Whether the peer shows the version that was sent, and what tells so. */
export function evidenceOf(_doc: Peerdoc, _sent: SentVersion): VersionShown {
  return { shown: false, why: 'not compared' };
}
