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

/** Whether an Accept header names JSON, and HTML not before it. */
export function prefersJson(accept = ''): boolean {
  const [json, html] = ['application/json', 'text/html'].map((type) => accept.toLowerCase().indexOf(type));
  return json !== -1 && (html === -1 || Number(json) < Number(html));
}
