import { EXIT, messageOf, PeersyncError } from '../lib/errors.js';
import type { ApiError } from './api.js';

export type PageErrorCode =
  | 'TOKEN_NEEDED'
  | 'TOKEN_WRONG'
  | 'TOO_MANY_TRIES'
  | 'FOREIGN_HOST'
  | 'FOREIGN_ORIGIN'
  | 'NOT_JSON'
  | 'TOO_LARGE'
  | 'BAD_REQUEST'
  | 'NOT_FOUND'
  | 'TOO_MANY_FOLLOWERS'
  | 'FAILED';

interface Row {
  readonly status: number;
  readonly message: string;
  readonly hint: string;
}

const TABLE: Readonly<Record<PageErrorCode, Row>> = {
  TOKEN_NEEDED: {
    status: 401,
    message: 'This page needs its token.',
    hint: 'Sign in at /sign-in, or send the header "Authorization: Bearer TOKEN".',
  },
  TOKEN_WRONG: {
    status: 401,
    message: 'That is not the token of this page.',
    hint: 'Give the secret that status.token in the configuration names.',
  },
  TOO_MANY_TRIES: {
    status: 429,
    message: 'Too many wrong tokens came from this address.',
    hint: 'Wait a moment before the next try.',
  },
  FOREIGN_HOST: {
    status: 403,
    message: 'The page was asked for by a name that is not its own.',
    hint: 'Use the address in status.listen; behind another name the page needs a status.token.',
  },
  FOREIGN_ORIGIN: {
    status: 403,
    message: 'The request came from a page of another origin.',
    hint: 'Use the status page itself, or a program that sends no Origin.',
  },
  NOT_JSON: {
    status: 403,
    message: 'A request to change something has to be JSON.',
    hint: 'Send the header "Content-Type: application/json" and a body, {} where there is nothing to say.',
  },
  TOO_LARGE: {
    status: 413,
    message: 'The request is too large.',
    hint: 'Name fewer paths at a time; up to 64 KiB are taken.',
  },
  BAD_REQUEST: {
    status: 400,
    message: 'The request could not be understood.',
    hint: 'See "Status page" in the README for what can be asked.',
  },
  NOT_FOUND: {
    status: 404,
    message: 'There is nothing at this address.',
    hint: 'The status page is at /.',
  },
  TOO_MANY_FOLLOWERS: {
    status: 503,
    message: 'Too many browsers follow this page already.',
    hint: 'Close one of them; a new try comes by itself.',
  },
  FAILED: {
    status: 500,
    message: 'Something went wrong inside peersync.',
    hint: 'See its log.',
  },
};

/** What the server of the status page refuses by itself. */
export class PageError extends PeersyncError {
  readonly status: number;

  constructor(
    code: PageErrorCode,
    { message, cause }: { readonly message?: string; readonly cause?: unknown } = {},
  ) {
    const row = TABLE[code];
    super({ code, message: message ?? row.message, hint: row.hint, cause });
    this.status = row.status;
  }
}

/** Codes of other rooms whose status says more than that of all others. */
const STATUSES: Readonly<Record<string, number>> = {
  UNKNOWN_FOLDER: 404,
  MIRROR_UNKNOWN: 404,
  UNKNOWN_QUESTION: 501,
  STATE_FULL: 503,
  STATE_UNWRITABLE: 503,
};

/** Any error as an answer, without a word of where in the program it arose. */
export function answerOf(error: unknown): { readonly status: number; readonly body: ApiError } {
  const known = error instanceof PeersyncError ? error : frameworkError(error);
  const { code, message, hint } = known;
  return { status: statusOf(known), body: { error: { code, message, hint } } };
}

function statusOf(error: PeersyncError): number {
  if (error instanceof PageError) return error.status;
  return STATUSES[error.code] ?? (error.exitCode === EXIT.usage ? 400 : 409);
}

/** What fastify refuses before a route sees it, in our words; anything else is a bug of ours. */
function frameworkError(error: unknown): PageError {
  const status =
    typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : undefined;
  if (status === 413) return new PageError('TOO_LARGE', { cause: error });
  if (status === 415) return new PageError('NOT_JSON', { cause: error });
  if (typeof status === 'number' && status >= 400 && status < 500)
    return new PageError('BAD_REQUEST', { cause: error });
  return new PageError('FAILED', { cause: messageOf(error) });
}
