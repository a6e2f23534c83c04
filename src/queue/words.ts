import type { TroubleKind } from './outcome.js';

/** What a peer in trouble does, as the end of a sentence that begins with it. */
export const TROUBLE_WORDS: Readonly<Record<TroubleKind, string>> = {
  unreachable: 'does not answer',
  failing: 'answers with errors',
  denied: 'refuses the credentials',
};
