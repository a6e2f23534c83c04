import type { IncomingHttpHeaders } from 'node:http';
import type { AnswerForm } from './answer.js';

/** One request, as far as a route knows it besides its parameters. */
export interface Visit {
  /** The address of this peer, as the client called it, without a slash at the end. */
  readonly baseUrl: string;
  /** The form to answer in: by the end of the address, or by Accept where a page is asked for as JSON. */
  readonly as: AnswerForm;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
  /** To be called before a route does what only the administrator may. @throws Refusal 401, 400 */
  readonly requireAdministrator: () => void;
  /** To be called before a route of effect `either` changes something. @throws Refusal 403, 405 */
  readonly requireChange: () => void;
}

/**
 * Whether an Accept header (RFC 9110, 12.5.1) would rather have JSON than HTML. Only `application/json` itself counts, never a
 * wildcard alone; where both are wanted alike, a wildcard gives way and of two names the first wins.
 */
export function prefersJson(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const ranges = accept.split(',').map((range, place) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const weight = q === undefined ? 1 : Number(q);
    return { type, weight: Number.isNaN(weight) ? 0 : weight, place };
  });
  const json = ranges.find((range) => range.type === 'application/json');
  if (!json || json.weight === 0) return false;
  const named = ['text/html', 'application/xhtml+xml'];
  return ranges.every(({ type, weight, place }) => {
    if (named.includes(type)) return weight < json.weight || (weight === json.weight && place > json.place);
    return !['text/*', '*/*'].includes(type) || weight <= json.weight;
  });
}
