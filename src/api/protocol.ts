import { z } from 'zod';
import { EXIT, type PeersyncError } from '../lib/errors.js';

// The parts of the protocol of the control socket that its server and its clients share.

/** The directory of the control socket, below the state directory. */
export const CONTROL_DIRECTORY = 'control';
export const CONTROL_SOCKET = 'socket';

/** The media type of an answer line by line. */
export const NDJSON = 'application/x-ndjson';

/** An error as the control socket answers it. */
export const errorAnswer = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    hint: z.string(),
    exitCode: z.literal([EXIT.done, EXIT.failure, EXIT.usage, EXIT.quarantined, EXIT.unreachable]),
  }),
});

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
