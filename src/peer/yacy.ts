import { decoded } from './answer.js';
import type { Dialect } from './dialect.js';
import { PeerError } from './errors.js';
import type { HttpAnswer } from './http.js';
import { readPeerdoc } from './peerdoc.js';
import { standard } from './standard.js';
import { statusError } from './status.js';
import { pushBody, pushResults } from './yacy-push.js';
import { yacyTables } from './yacy-tables.js';
import { isNormalisedFrom, sentUrl } from './yacy-url.js';

const SHARES = '/share/';

/**
 * YaCy, as a running 1.92 showed it and the sources of later ones read. Where it speaks as the specification does,
 * it is asked so.
 *
 * What it shows of a pushed document comes from a buffer that is read for a second or two; then nothing (or the version
 * before) is shown until its index commits, at the latest about 18.5 s after the push.
 */
export const yacy: Dialect = {
  name: 'yacy',
  content: { encoding: 'base64', takesBinary: true, showsWords: true, maxBytes: 20_000_000 },
  holdMs: 20_000,
  losesUpdates: true,
  commitHash: 'AAAAAAAAAAAA',
  hasDomainGate: true,
  pushPath: '/api/push_p.json',
  peerdocPath: '/api/yacydoc.xml',
  citationPath: standard.citationPath,
  sharesPath: SHARES,
  tables: yacyTables,

  async pushBody(items, options, url) {
    return pushBody(items, options, url);
  },

  pushResults,

  peerdocBody(query, options, url) {
    const sent = 'url' in query ? { url: sentUrl(query.url) } : query;
    return standard.peerdocBody(sent, options, url);
  },

  /** A document that is not there is a record of empty fields. A 404 says that this is not a YaCy. */
  peerdocOf(answer, query) {
    const error = statusError(answer);
    if (error !== undefined) throw error;
    const doc = readPeerdoc(answer, query, isNormalisedFrom);
    if (doc?.urlhash === undefined) return undefined;
    return 'url' in query ? { ...doc, url: query.url } : doc;
  },

  citationBody(query, options, url) {
    const sent = 'url' in query ? { url: sentUrl(query.url) } : query;
    return standard.citationBody(sent, options, url);
  },

  hasNoCitation: isCitationFailure,

  citationOf: (answer, query) =>
    standard.citationOf(answer, 'url' in query ? { url: sentUrl(query.url) } : query),

  /** Its shared objects are the files below `/share/`; a group of them is a directory. */
  async shareRequest({ data, c }, urlOf) {
    const names = (c === undefined ? data : `${c}/${data}`).split('/');
    if (names.some((name) => name === '' || name === '.' || name === '..')) {
      const what = `can have no shared object of the name ${JSON.stringify(names.join('/'))}`;
      throw new PeerError('PEER_NAME', { url: urlOf(SHARES), what, delivered: 'no' });
    }
    return { method: 'GET', path: SHARES + names.map(encodeURIComponent).join('/') };
  },
};

/**
 * The page servlet fails for a document that is not in the index (a null pointer), and its page says no more than where;
 * what fails elsewhere looks otherwise.
 */
function isCitationFailure({ status, body }: HttpAnswer): boolean {
  if (status !== 500) return false;
  const page = decoded(body);
  return /HTTP ERROR:? 500/.test(page) && page.includes(standard.citationPath);
}
