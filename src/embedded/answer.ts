import { escapeMarkup, page } from './markup.js';

/** The three forms in which every endpoint answers, chosen by the end of its address. */
export type AnswerForm = 'html' | 'xml' | 'json';

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

const TYPES = {
  html: 'text/html; charset=utf-8',
  xml: 'text/xml; charset=utf-8',
  json: 'application/json; charset=utf-8',
} as const;

export function answer(form: AnswerForm, body: string, status = 200): Answer {
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
  413: 'Too large',
  415: 'Unsupported content type',
  500: 'The peer failed',
  503: 'The peer is stopping',
  507: 'The disk is full',
};

export function refusalAnswer(form: AnswerForm, refusal: Refusal): Answer {
  const { status, message, headers } = refusal;
  const name = NAMES[status] ?? 'Error';
  const bodies = {
    json: () => `${JSON.stringify({ error: name, status, message }, null, 2)}\n`,
    xml: () =>
      `<?xml version="1.0" encoding="UTF-8"?>\n<error>\n  <name>${escapeMarkup(name)}</name>\n` +
      `  <status>${status}</status>\n  <message>${escapeMarkup(message)}</message>\n</error>\n`,
    html: () =>
      page(
        name,
        `<h1>${escapeMarkup(name)}</h1>\n<p>${escapeMarkup(message)}</p>\n<p><a href="/">Search</a></p>`,
      ),
  };
  return { ...answer(form, bodies[form](), status), headers };
}
