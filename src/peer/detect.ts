import { type AnswerHead, type HttpAnswer, isSuccess, statusError, unusable } from './answer.js';
import type { Dialect, Recognition } from './dialects/dialect.js';
import type { Http } from './http.js';

const SET_DIALECT_HINT = 'set peer.dialect to the kind of peer that it is';

/** The answer for the detection page of one dialect. */
interface Candidate {
  readonly dialect: Dialect;
  readonly answer: HttpAnswer;
  readonly recognition: Recognition;
}

/**
 * Detects the dialect of a peer: requests the detection page of each dialect, and asks the dialect
 * whether the answer is that of its kind. The requests name no document, so they change nothing.
 *
 * A dialect that is `certain` is the dialect of the peer. If none is, one that is `possible` is,
 * unless the peer answers for the page of another dialect too: then a proxy may answer for pages
 * that do not exist.
 *
 * @throws PeerError PEER_ANSWER if no dialect fits, or more than one; otherwise as for any request
 */
export async function detectDialect(http: Http, dialects: readonly Dialect[]): Promise<Dialect> {
  const candidates: Candidate[] = [];
  for (const dialect of dialects) {
    const answer = await detectionPage(http, dialect);
    candidates.push({ dialect, answer, recognition: dialect.recognises(answer) });
  }
  const certain = candidates.filter(({ recognition }) => recognition === 'certain');
  const [only, another] = certain;
  if (only !== undefined && another === undefined) return only.dialect;
  if (another !== undefined)
    throw undecided(http, certain, `answers as several kinds of peer: ${pagesOf(certain)}`);
  const [possible, alternative] = candidates.filter(
    ({ recognition }) => recognition === 'possible',
  );
  if (possible === undefined) throw notAPeer(http, candidates);
  const existing = candidates.filter(({ answer }) => pageExists(answer));
  const isAlone = existing.every(({ dialect }) => isSamePage(dialect, possible.dialect));
  if (isAlone && alternative === undefined) return possible.dialect;
  const what = `answers for pages of several kinds of peer (${pagesOf(existing)}), and shows a document in none`;
  throw undecided(http, existing, what);
}

/**
 * Requests the detection page of a dialect.
 *
 * @throws PeerError if the peer is unreachable, busy or denies access: the answer then says nothing
 *   about the dialect
 */
async function detectionPage(http: Http, { detectionPath: path }: Dialect): Promise<HttpAnswer> {
  const answer = await http.ask({ counted: 'other', method: 'GET', path, isProtected: false });
  const error = statusError(answer);
  if (error === undefined || ['PEER_REFUSED', 'PEER_FAILED', 'PEER_ANSWER'].includes(error.code))
    return answer;
  throw error;
}

function isSamePage(one: Dialect, another: Dialect): boolean {
  return one.detectionPath === another.detectionPath;
}

/** Whether the page exists. A peer may refuse a request that names no document. */
function pageExists({ status }: AnswerHead): boolean {
  return isSuccess(status) || (status >= 400 && status < 500 && status !== 404);
}

function pagesOf(candidates: readonly Candidate[]): string {
  return candidates
    .map(({ dialect: { name, detectionPath } }) => `${name} at ${detectionPath}`)
    .join(', ');
}

/** Returns the error for a peer that more than one dialect fits. */
function undecided(http: Http, [first]: readonly Candidate[], what: string): Error {
  return errorOf(http, first, `${what}; ${SET_DIALECT_HINT}`);
}

/** Returns the error for a peer that has no page of any dialect. */
function notAPeer(http: Http, candidates: readonly Candidate[]): Error {
  const last = candidates.at(-1);
  const error = last && statusError(last.answer);
  if (error !== undefined && error.code !== 'PEER_REFUSED') return error;
  const pages = pagesOf(candidates);
  const what = `has no page of a peer that is known (${pages}); check that peer.url is the base URL of a peer`;
  return errorOf(http, last, what);
}

/** Returns an error about the peer, and not about one of its pages. */
function errorOf(http: Http, candidate: Candidate | undefined, what: string): Error {
  if (candidate === undefined) return new TypeError('there are no dialects');
  return unusable({ ...candidate.answer, url: http.url('/') }, what);
}
