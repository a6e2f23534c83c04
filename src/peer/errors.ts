import { EXIT, type ExitCode, PeersyncError } from '../lib/errors.js';

/** The error codes of the peer client, each with its hint. */
const HINTS = {
  PEER_UNREACHABLE:
    'Check that the peer is running and that peer.url (and peer.tls.ca for a private certificate) is right.',
  PEER_TIMEOUT: 'The peer is slow or hangs; if it is only slow, raise peer.timeouts.',
  PEER_AUTH:
    'Check peer.auth: the user name, and the password that it names; pages that end in _p need the administrator.',
  PEER_AUTH_WEAK: 'Use https, or Digest on the peer.',
  PEER_BUSY: 'The peer asked for fewer requests; lower push.requestsPerSecond if it goes on.',
  PEER_REFUSED: 'The peer does not take this request; check peer.url and what the peer says.',
  PEER_TOO_LARGE: 'Lower push.maxBytes or push.maxItems, or raise the limit of the peer.',
  PEER_FAILED: 'The peer failed inside; its own log says more.',
  PEER_ANSWER:
    'Check that peer.url is the base URL of a search peer and that peer.dialect fits it; what broke off may come whole the next time.',
  PEER_ANSWER_TOO_LARGE: 'Raise peer.maxAnswer if answers of this size are expected.',
  PEER_NOT_DONE:
    'The peer took the request without an error but does not show its effect; look at its own log, then ask again.',
  PEER_KEY: 'Choose a shorter key: letters outside ASCII take two bytes or more.',
  PEER_NAME:
    'A name is the path of a file below that address, such as lists/a.txt: no part of it is empty, "." or "..".',
  PEER_SOURCE:
    'The text could not be read, or changed while it was sent; it can be sent again once it is at rest.',
  PEER_ABORTED: 'The request was called off; nothing needs to be done.',
} as const;

export type PeerErrorCode = keyof typeof HINTS;

/**
 * The exit code of a command that ends with an error of this code. Other codes exit as a failure.
 */
const EXIT_CODES: { readonly [code in PeerErrorCode]?: ExitCode } = {
  PEER_UNREACHABLE: EXIT.unreachable,
  PEER_TIMEOUT: EXIT.unreachable,
  PEER_KEY: EXIT.usage,
  PEER_NAME: EXIT.usage,
};

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
export class PeerError extends PeersyncError {
  declare readonly code: PeerErrorCode;
  /** The HTTP status of the answer, if one arrived. */
  readonly status: number | undefined;
  /** The beginning of the answer, printable, at most about 200 characters. */
  readonly firstBytes: string | undefined;
  readonly delivered: Delivered;
  /** The delay that the peer asked for, in ms (PEER_BUSY). */
  readonly retryAfterMs: number | undefined;
  /** The number of the one item of a push that is to blame, from 0 (PEER_SOURCE). */
  readonly item: number | undefined;

  constructor(code: PeerErrorCode, parts: PeerErrorParts) {
    const {
      what,
      answer,
      status,
      delivered,
      retryAfterMs,
      item,
      hint = HINTS[code],
      cause,
    } = parts;
    const url = new URL(parts.url);
    url.username = '';
    url.password = '';
    const firstBytes = (answer && printable(answer)) || undefined;
    const details = { url: url.href, status, delivered, retryAfterMs, item, firstBytes };
    super({
      code,
      message: `${url.href} ${what}${answer ? shown(answer) : ''}`,
      hint,
      exitCode: EXIT_CODES[code] ?? EXIT.failure,
      details: Object.fromEntries(
        Object.entries(details).filter(([, value]) => value !== undefined),
      ),
      ...(cause === undefined ? {} : { cause }),
    });
    this.status = status;
    this.firstBytes = firstBytes;
    this.delivered = delivered;
    this.retryAfterMs = retryAfterMs;
    this.item = item;
  }
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
