import { EXIT, type PeersyncError } from '../lib/errors.js';

/** The HTTP statuses of errors whose status follows from their code. */
const STATUSES: Readonly<Record<string, number>> = {
  UNKNOWN_FOLDER: 404,
  MIRROR_NONE: 404,
  MIRROR_UNKNOWN: 404,
  UNKNOWN_QUESTION: 501,
  STATE_FULL: 503,
  STATE_UNWRITABLE: 503,
};

/** Returns the HTTP status of an answer that is an error. */
export function httpStatusOf({ code, exitCode }: PeersyncError): number {
  return STATUSES[code] ?? (exitCode === EXIT.usage ? 400 : 409);
}
