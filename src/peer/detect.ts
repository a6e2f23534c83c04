import { readAnswer, unusable } from './answer.js';
import type { Asking } from './asking.js';
import type { DialectName } from './dialect.js';
import type { PeerErrorCode } from './errors.js';
import type { HttpAnswer } from './http.js';
import { allRecords, fieldValues } from './record.js';
import { standard } from './standard.js';
import { statusError } from './status.js';
import { yacy } from './yacy.js';

/**
 * Which dialect a peer speaks, by which of the two pages for document information it has. Both are asked for without
 * saying which document, which changes nothing.
 *
 * YaCy answers with an empty record whatever it is asked for; other peers may refuse such a question, but not with 404.
 * Where something in between answers for pages that are not there, what the answers say decides.
 *
 * @throws PeerError PEER_ANSWER where it has both pages or neither; as any request
 */
export async function detectDialect(asking: Asking): Promise<DialectName> {
  const ask = (path: string) => asking.ask({ counted: 'other', method: 'GET', path, isProtected: false });
  const ofYacy = await ask(yacy.peerdocPath);
  refuseTrouble(ofYacy);
  const ofStandard = await ask(standard.peerdocPath);
  refuseTrouble(ofStandard);
  const isYacy = isDocumentRecord(ofYacy);
  const isStandard = isDocumentRecord(ofStandard);
  if (isYacy !== isStandard) return isYacy ? 'yacy' : 'standard';
  // What is wrong is wrong with the peer, not with one of its pages.
  const peer = { ...ofStandard, url: asking.url('/') };
  if (isYacy)
    throw unusable(
      { ...peer, body: ofYacy.body },
      `has both ${yacy.peerdocPath} and ${standard.peerdocPath}; ${NAME_IT}`,
    );
  const mayBeYacy = isThere(ofYacy);
  const mayBeStandard = isThere(ofStandard);
  if (mayBeStandard && !mayBeYacy) return 'standard';
  const error = statusError(ofStandard) ?? statusError(ofYacy);
  if (error !== undefined && error.code !== 'PEER_REFUSED') throw error;
  throw unusable(
    peer,
    mayBeStandard
      ? `answers for ${yacy.peerdocPath} and ${standard.peerdocPath} alike, and shows a document in neither; ${NAME_IT}`
      : `has neither ${yacy.peerdocPath} nor ${standard.peerdocPath}; check that peer.url is the base URL of a peer`,
  );
}

const NAME_IT = 'set peer.dialect to the kind of peer that it is';

/** A peer that is away, busy or closed to us says nothing about its dialect. */
function refuseTrouble(answer: HttpAnswer): void {
  const error = statusError(answer);
  if (error !== undefined && !TELLING.has(error.code)) throw error;
}

const TELLING = new Set<PeerErrorCode>(['PEER_REFUSED', 'PEER_FAILED', 'PEER_ANSWER']);

/** Anything but 404: a question without a document may be refused. */
function isThere({ status }: HttpAnswer): boolean {
  return (status >= 200 && status < 300) || (status >= 400 && status < 500 && status !== 404);
}

/** A record with the names of a document, whether or not with values. */
function isDocumentRecord(answer: HttpAnswer): boolean {
  if (answer.status < 200 || answer.status >= 300) return false;
  try {
    const { record, form } = readAnswer(answer);
    const names = ['identifier', 'urlhash'];
    return form !== 'text' && [...allRecords(record)].some((each) => fieldValues(each, ...names).length > 0);
  } catch {
    return false;
  }
}
