/** What a task's end says about the peer; the door's owner tells it from the task's error. */
export type Outcome =
  /** The peer works, whatever it said to this task. */
  | { readonly kind: 'answered' }
  /** No answer came: refused, reset, timed out. */
  | { readonly kind: 'unreachable' }
  /** An answer that a working peer does not give: 5xx, garbage. */
  | { readonly kind: 'failing' }
  /** The peer asks to be left alone for a while: 429, or 503 with Retry-After. */
  | { readonly kind: 'busy'; readonly retryAfterMs?: number }
  /** The peer refused the credentials. */
  | { readonly kind: 'denied' }
  /** The task was called off; says nothing about the peer. */
  | { readonly kind: 'aborted' };

/** The outcomes that open the circuit when there are enough of them. */
export type TroubleKind = 'unreachable' | 'failing' | 'denied';

/** What went wrong with the peer, in the words of the error that showed it. */
export interface Trouble {
  readonly kind: TroubleKind;
  readonly code?: string;
  readonly message: string;
  /** What a person can do about it, where the error says so. */
  readonly hint?: string;
}
