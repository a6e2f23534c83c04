import { z } from 'zod';
import { EXIT } from '../lib/errors.js';

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
