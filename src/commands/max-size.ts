import { PeersyncError } from '../lib/errors.js';
import { PeerError } from '../peer/errors.js';

/** Throws the error on; of an answer that was too large it says which option is meant for it. */
export function nameMaxSize(error: unknown): never {
  if (!(error instanceof PeerError) || error.code !== 'PEER_ANSWER_TOO_LARGE') throw error;
  const { code, message, details, exitCode } = error;
  const hint = 'Give a larger --max-size if that is expected.';
  throw new PeersyncError({ code, message, details, exitCode, hint, cause: error });
}
