import type { Encoding } from '../lib/encodings.js';
import type { ContentRules } from '../peer/dialect.js';
import type { Trouble } from '../state/entry.js';

/**
 * Why a file with this encoding cannot go to the peer: a peer that takes no files gets an item's content as text.
 *
 * @param rules of the peer's dialect; as long as that is not known nothing is refused
 */
export function cannotTravel(encoding: Encoding, rules: ContentRules | undefined): Trouble | undefined {
  if (encoding !== 'binary' || rules === undefined || rules.takesBinary) return undefined;
  return {
    code: 'NOT_TEXT',
    message: 'The file is not text, and this peer takes only text.',
    hint: 'Convert it to text, or leave it; files of this kind are passed over.',
  };
}
