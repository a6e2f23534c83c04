import { EXIT, type ExitCode, PeersyncError } from '../lib/errors.js';

/** Every error of this room: what to do about it, and the exit code of a command that ends with it. */
const TABLE = {
  PEER_UNREACHABLE: {
    hint: 'Check that the peer is running and that peer.url (and peer.tls.ca for a private certificate) is right.',
    exitCode: EXIT.unreachable,
  },
  PEER_TIMEOUT: {
    hint: 'The peer is slow or hangs; if it is only slow, raise peer.timeouts.',
    exitCode: EXIT.unreachable,
  },
  PEER_AUTH: {
    hint: 'Check peer.auth: the user name, and the password that it names; pages that end in _p need the administrator.',
    exitCode: EXIT.failure,
  },
  PEER_BUSY: {
    hint: 'The peer asked for fewer requests; lower push.requestsPerSecond if it goes on.',
    exitCode: EXIT.failure,
  },
  PEER_REFUSED: {
    hint: 'The peer does not take this request; check peer.url and what the peer says.',
    exitCode: EXIT.failure,
  },
  PEER_TOO_LARGE: {
    hint: 'Lower push.maxBytes or push.maxItems, or raise the limit of the peer.',
    exitCode: EXIT.failure,
  },
  PEER_FAILED: {
    hint: 'The peer failed inside; its own log says more.',
    exitCode: EXIT.failure,
  },
  PEER_ANSWER: {
    hint: 'Check that peer.url is the base URL of a search peer and that peer.dialect fits it; what broke off may come whole the next time.',
    exitCode: EXIT.failure,
  },
  PEER_ANSWER_TOO_LARGE: {
    hint: 'Raise peer.maxAnswer if answers of this size are expected.',
    exitCode: EXIT.failure,
  },
  PEER_NOT_DONE: {
    hint: 'The peer took the request without an error but does not show its effect; look at its own log, then ask again.',
    exitCode: EXIT.failure,
  },
  PEER_KEY: {
    hint: 'Choose a shorter key: letters outside ASCII take two bytes or more.',
    exitCode: EXIT.usage,
  },
  PEER_NAME: {
    hint: 'A name is the path of a file below that address, such as lists/a.txt: no part of it is empty, "." or "..".',
    exitCode: EXIT.usage,
  },
  PEER_SOURCE: {
    hint: 'The text could not be read, or changed while it was sent; it can be sent again once it is at rest.',
    exitCode: EXIT.failure,
  },
  PEER_ABORTED: {
    hint: 'The request was called off; nothing needs to be done.',
    exitCode: EXIT.failure,
  },
} as const satisfies Record<string, { readonly hint: string; readonly exitCode: ExitCode }>;

export type PeerErrorCode = keyof typeof TABLE;

/**
 * Whether the body of the request reached the peer: `no` (no connection, it was cut short, or there was none), `maybe`
 * (it was sent whole and nothing came back), `yes` (an answer came, at least the head of one).
 */
export type Delivered = 'no' | 'maybe' | 'yes';

export interface PeerErrorParts {
  /** The URL of the request, without credentials. */
  readonly url: string;
  /** What came instead of an answer, as the end of a sentence that begins with the URL. */
  readonly what: string;
  readonly delivered: Delivered;
  readonly status?: number | undefined;
  /** The first bytes of the answer; shown printable and cut. */
  readonly answer?: Uint8Array | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly item?: number | undefined;
  readonly cause?: unknown;
}

/** A request to the peer that did not end with a usable answer. Never holds a secret. */
export class PeerError extends PeersyncError {
  declare readonly code: PeerErrorCode;
  /** HTTP status of the answer, if one came. */
  readonly status: number | undefined;
  /** Path of the request: `/api/push_p.html`. */
  readonly endpoint: string;
  /** The beginning of the answer, printable, at most about 200 characters. */
  readonly firstBytes: string | undefined;
  readonly delivered: Delivered;
  /** How long the peer asked to wait, in ms (PEER_BUSY). */
  readonly retryAfterMs: number | undefined;
  /** The number of the one item of a push that is to blame, from 0 (PEER_SOURCE). */
  readonly item: number | undefined;

  constructor(code: PeerErrorCode, parts: PeerErrorParts) {
    const url = withoutCredentials(parts.url);
    const firstBytes = parts.answer === undefined ? undefined : printable(parts.answer);
    const details = {
      url: url.href,
      status: parts.status,
      delivered: parts.delivered,
      retryAfterMs: parts.retryAfterMs,
      item: parts.item,
      firstBytes,
    };
    super({
      code,
      message: `${url.href} ${parts.what}${parts.answer === undefined ? '' : shown(parts.answer)}`,
      ...TABLE[code],
      details: Object.fromEntries(Object.entries(details).filter(([, value]) => value !== undefined)),
      ...(parts.cause === undefined ? {} : { cause: parts.cause }),
    });
    this.status = parts.status;
    this.endpoint = url.pathname;
    this.firstBytes = firstBytes;
    this.delivered = parts.delivered;
    this.retryAfterMs = parts.retryAfterMs;
    this.item = parts.item;
  }
}

/** What an answer shows, as the end of a sentence. */
function shown(answer: Uint8Array): string {
  const begin = printable(answer);
  if (/^(\s|\\[nrt])*$/.test(begin)) return '';
  return isText(answer) ? `; the answer begins with: ${begin}` : '; the answer is not text';
}

const SHOWN_CHARACTERS = 200;
/** More of the characters of a text than this are readable. */
const READABLE_SHARE = 0.9;

function isText(bytes: Uint8Array): boolean {
  const characters = [...new TextDecoder().decode(bytes.subarray(0, SHOWN_CHARACTERS * 4))];
  // Cut off in the middle of a character, the last may be unreadable though the text is not.
  const unreadable = characters.slice(0, -1).filter((c) => c === '\ufffd' || /[^\P{Cc}\s]/u.test(c));
  return unreadable.length <= characters.length * (1 - READABLE_SHARE);
}

/** The beginning of some bytes as one printable line; anything that could move a cursor or hide text is escaped. */
export function printable(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes.subarray(0, SHOWN_CHARACTERS * 4));
  const characters = [...text];
  const shown = characters.slice(0, SHOWN_CHARACTERS).join('').replace(UNPRINTABLE, escapeCharacter).trim();
  return characters.length > SHOWN_CHARACTERS || bytes.length > SHOWN_CHARACTERS * 4 ? `${shown}…` : shown;
}

const UNPRINTABLE = /\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\p{Co}|\p{Cs}/gu;
const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escapeCharacter(character: string): string {
  return SHORT_ESCAPES[character] ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

function withoutCredentials(text: string): URL {
  const url = new URL(text);
  url.username = '';
  url.password = '';
  return url;
}
