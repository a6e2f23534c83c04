import type { Encoding, Trouble } from '../state/entry.js';

/** Why a file with this encoding cannot go to the peer: the standard dialect carries an item's content as a string. */
export function cannotTravel(encoding: Encoding): Trouble | undefined {
  if (encoding !== 'binary') return undefined;
  return {
    code: 'NOT_TEXT',
    message: 'The file is not text, and this peer takes only text.',
    hint: 'Convert it to text, or leave it; files of this kind are passed over.',
  };
}
