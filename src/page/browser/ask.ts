import type { ApiError } from '../api.js';

/** What the daemon refused, or why it could not be asked: one sentence what happened, one what to do. */
export class PageError extends Error {
  readonly code: string;
  readonly hint: string;

  constructor({ code, message, hint }: ApiError['error']) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

const NO_ANSWER = {
  code: 'NO_ANSWER',
  message: 'peersync did not answer.',
  hint: 'Look whether it runs; the page connects again by itself.',
};

/** Questions are answered in milliseconds; who does not in this time is stuck. */
const PATIENCE_MS = 8_000;

/** Asks for something. @throws PageError */
export function get<T>(path: string, parameters: Readonly<Record<string, string>> = {}): Promise<T> {
  const query = new URLSearchParams(parameters).toString();
  return ask<T>(query === '' ? path : `${path}?${query}`, { signal: AbortSignal.timeout(PATIENCE_MS) });
}

/** Asks for something to be done. @throws PageError */
export function post<T>(path: string, body: object): Promise<T> {
  return ask<T>(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

async function ask<T>(url: string, init: RequestInit): Promise<T> {
  const response = await fetch(url, { ...init, credentials: 'same-origin', cache: 'no-store' }).catch(() => {
    throw new PageError(NO_ANSWER);
  });
  if (response.status === 401) location.assign('/sign-in');
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && answer !== undefined) return answer as T;
  throw new PageError(
    isApiError(answer)
      ? answer.error
      : { ...NO_ANSWER, message: `peersync answered with the status ${response.status}.` },
  );
}

function isApiError(answer: unknown): answer is ApiError {
  return typeof answer === 'object' && answer !== null && 'error' in answer;
}

/** Any error in the two sentences that a person gets. */
export function wordsOf(error: unknown): string {
  if (error instanceof PageError) return `${error.message} ${error.hint}`;
  return error instanceof Error ? error.message : String(error);
}
