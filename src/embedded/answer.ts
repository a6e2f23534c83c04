import type { IncomingHttpHeaders } from 'node:http';
import { escapeMarkup, page } from './markup.js';

/** The forms in which every endpoint answers, chosen by the end of its address. */
export type AnswerForm = 'html' | 'json';

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | StreamedBody;
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

/** A piece of a body; an empty one only lets others have a turn. */
export type Chunk = string | Uint8Array;

/** A body that is made while it is sent, at the speed of whoever reads it. */
export interface StreamedBody {
  /** Bytes, where they are known; sent as Content-Length, and then exactly so many have to come. */
  readonly size?: number;
  /**
   * Asked for at most once, and not for HEAD. Making one chunk may block the peer for some 10 ms at most; what throws breaks
   * the connection, so that a part is never taken for the whole.
   */
  readonly chunks: () => AsyncIterable<Chunk> | Iterable<Chunk>;
  /** Called once when nothing more will be asked for, also where nothing was. */
  readonly end?: () => void | Promise<void>;
}

const TYPES = {
  html: 'text/html; charset=utf-8',
  json: 'application/json; charset=utf-8',
} as const;

export function answer(form: AnswerForm, body: string | StreamedBody, status = 200): Answer {
  return { status, type: TYPES[form], body };
}

/** A request that is refused: why, in one sentence, for whoever sent it. */
export class Refusal extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;

  constructor(status: number, why: string, headers: Readonly<Record<string, string | string[]>> = {}) {
    super(why);
    this.status = status;
    this.headers = headers;
  }
}

const NAMES: Readonly<Record<number, string>> = {
  400: 'Bad request',
  401: 'The administrator has to sign in',
  403: 'Forbidden',
  404: 'Not found',
  405: 'Method not allowed',
  408: 'Time-out',
  409: 'Conflict',
  413: 'Too large',
  415: 'Unsupported content type',
  416: 'No such range',
  500: 'The peer failed',
  503: 'The peer is stopping',
  507: 'The disk is full',
};

export function refusalAnswer(form: AnswerForm, refusal: Refusal): Answer {
  const { status, message, headers } = refusal;
  const name = NAMES[status] ?? 'Error';
  const bodies = {
    json: () => `${JSON.stringify({ error: name, status, message }, null, 2)}\n`,
    html: () =>
      page(
        name,
        `<h1>${escapeMarkup(name)}</h1>\n<p>${escapeMarkup(message)}</p>\n<p><a href="/">Search</a></p>`,
      ),
  };
  return { ...answer(form, bodies[form](), status), headers };
}

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
