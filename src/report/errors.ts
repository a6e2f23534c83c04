import { EXIT, PeersyncError } from '../lib/errors.js';

/** The error of a question that is wrong and has to be changed. */
export function badRequest(code: string, message: string, hint: string): PeersyncError {
  return new PeersyncError({ code, message, hint, exitCode: EXIT.usage });
}
