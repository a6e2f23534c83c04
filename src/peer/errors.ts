import { type ErrorTable, EXIT, tableError } from '../lib/errors.js';

/** `{what}` is the failure, and the beginning of the answer. */
const MESSAGE = '{url} {what}';

const ERRORS = {
  PEER_UNREACHABLE: {
    message: MESSAGE,
    hint: 'Check that the peer is running and that peer.url (and peer.tls.ca for a private certificate) is right.',
    exitCode: EXIT.unreachable,
  },
  PEER_TIMEOUT: {
    message: MESSAGE,
    hint: 'The peer is slow or hangs; if it is only slow, raise peer.timeouts.',
    exitCode: EXIT.unreachable,
  },
  PEER_AUTH: {
    message: MESSAGE,
    hint: 'Check peer.auth: the user name, and the password that it names; pages that end in _p need the administrator.',
  },
  PEER_AUTH_WEAK: {
    message: MESSAGE,
    hint: 'Use https, or Digest on the peer.',
  },
  PEER_BUSY: {
    message: MESSAGE,
    hint: 'The peer asked for fewer requests; lower push.requestsPerSecond if it goes on.',
  },
  PEER_REFUSED: {
    message: MESSAGE,
    hint: 'The peer does not take this request; check peer.url and what the peer says.',
  },
  PEER_TOO_LARGE: {
    message: MESSAGE,
    hint: 'Lower push.maxBytes or push.maxItems, or raise the limit of the peer.',
  },
  PEER_FAILED: {
    message: MESSAGE,
    hint: 'The peer failed inside; its own log says more.',
  },
  PEER_ANSWER: {
    message: MESSAGE,
    hint: 'Check that peer.url is the base URL of a search peer and that peer.dialect fits it; what broke off may come whole the next time.',
  },
  PEER_ANSWER_TOO_LARGE: {
    message: MESSAGE,
    hint: 'Raise peer.maxAnswer if answers of this size are expected.',
  },
  PEER_NOT_DONE: {
    message: MESSAGE,
    hint: 'The peer took the request without an error but does not show its effect; look at its own log, then ask again.',
  },
  PEER_KEY: {
    message: MESSAGE,
    hint: 'Choose a shorter key: letters outside ASCII take two bytes or more.',
    exitCode: EXIT.usage,
  },
  PEER_NAME: {
    message: MESSAGE,
    hint: 'A name is the path of a file below that address, such as lists/a.txt: no part of it is empty, "." or "..".',
    exitCode: EXIT.usage,
  },
  PEER_SOURCE: {
    message: MESSAGE,
    hint: 'The text could not be read, or changed while it was sent; it can be sent again once it is at rest.',
  },
  PEER_ABORTED: {
    message: MESSAGE,
    hint: 'The request was called off; nothing needs to be done.',
  },
} as const satisfies ErrorTable;

export type PeerErrorCode = keyof typeof ERRORS;
export const PEER_ERROR_CODES = Object.keys(ERRORS) as [PeerErrorCode, ...PeerErrorCode[]];

/**
 * Whether the peer received the body of the request.
 *
 * - `no`: there was no connection, the request was cut short, or it had no body.
 * - `maybe`: the request was sent completely, and no answer arrived.
 * - `yes`: an answer arrived, or at least its headers.
 */
export type Delivered = 'no' | 'maybe' | 'yes';

export interface PeerErrorParts {
  /** The URL of the request, without credentials. */
  readonly url: string;
  /** The failure, as the end of a sentence whose subject is the URL. */
  readonly what: string;
  readonly delivered: Delivered;
  readonly status?: number | undefined;
  /** The first bytes of the answer. They are shortened and made printable. */
  readonly answer?: Uint8Array | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly item?: number | undefined;
  /** The advice for a person. @default the hint of the code */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
}

/** A request to the peer that did not end with a usable answer. Never holds a secret. */
export class PeerError extends tableError(ERRORS) {
  /** The HTTP status of the answer, if one arrived. */
  override readonly status: number | undefined;
  /** The beginning of the answer, printable, at most about 200 characters. */
  readonly firstBytes: string | undefined;
  readonly delivered: Delivered;
  /** The delay that the peer asked for, in ms (PEER_BUSY). */
  readonly retryAfterMs: number | undefined;
  /** The number of the one item of a push that is to blame, from 0 (PEER_SOURCE). */
  readonly item: number | undefined;

  constructor(code: PeerErrorCode, parts: PeerErrorParts) {
    const { answer, cause, delivered, hint, item, retryAfterMs, status } = parts;
    const { href } = withoutCredentials(parts.url);
    const firstBytes = (answer && printable(answer)) || undefined;
    const details = { url: href, status, delivered, retryAfterMs, item, firstBytes };
    const known = Object.entries(details).filter(([, value]) => value !== undefined);
    const what = `${parts.what}${answer ? shown(answer) : ''}`;
    super(code, { url: href, what }, { cause, hint, details: Object.fromEntries(known) });
    this.status = status;
    this.firstBytes = firstBytes;
    this.delivered = delivered;
    this.retryAfterMs = retryAfterMs;
    this.item = item;
  }
}

function withoutCredentials(text: string): URL {
  const url = new URL(text);
  url.username = '';
  url.password = '';
  return url;
}

const SHOWN_CHARACTERS = 200;
const SHOWN_BYTES = SHOWN_CHARACTERS * 4;
/**
 * The largest share of unreadable characters in a text. Beyond it, the answer is not shown as text.
 */
const UNREADABLE_SHARE = 0.1;

/** Returns the beginning of an answer, as the end of a sentence. */
function shown(answer: Uint8Array): string {
  const text = new TextDecoder().decode(answer.subarray(0, SHOWN_BYTES));
  if (text.trim() === '') return '';
  const unreadable = text.match(/\ufffd|[^\P{Cc}\s]/gu)?.length ?? 0;
  // The cut may split the last character, which is then unreadable.
  const isText = unreadable <= text.length * UNREADABLE_SHARE + 1;
  return isText ? `; the answer begins with: ${printable(answer)}` : '; the answer is not text';
}

/**
 * Returns the beginning of some bytes as one printable line. Characters that could move a cursor or
 * hide text are escaped.
 */
export function printable(bytes: Uint8Array): string {
  const characters = [...new TextDecoder().decode(bytes.subarray(0, SHOWN_BYTES))];
  const line = escaped(characters.slice(0, SHOWN_CHARACTERS).join('')).trim();
  return characters.length > SHOWN_CHARACTERS || bytes.length > SHOWN_BYTES ? `${line}…` : line;
}

const QUOTED_CHARACTERS = 100;

/**
 * Quotes a text of the peer for a message. Unprintable characters are escaped, and a long text is
 * cut off.
 */
export function quoted(text: string): string {
  const cut = text.length > QUOTED_CHARACTERS ? `${text.slice(0, QUOTED_CHARACTERS)}…` : text;
  return escaped(JSON.stringify(cut));
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escaped(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu,
    (c) => SHORT_ESCAPES[c] ?? `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
