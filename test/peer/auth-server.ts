import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { ACCEPTED, HttpServer, type Recorded } from './servers.js';

export interface DigestRules {
  readonly algorithm?: string;
  readonly qop?: string;
  readonly realm?: string;
  /** How often a nonce may be used. */
  readonly uses?: number;
  /** Whether the server says so when a nonce was fine but has grown old. */
  readonly saysStale?: boolean;
}

export const REALM =
  'The access is limited to administrators. If you don\'t know the password, ask for "it", <politely> \\o/';

/** A server that checks Digest as RFC 7616 says: every nonce is its own, every count is used once. */
export class DigestServer {
  readonly rules: DigestRules;
  http: HttpServer = new HttpServer();
  #nonces = new Map<string, Set<string>>();
  #issued = 0;
  #password = CREDENTIALS.password;

  private constructor(rules: DigestRules) {
    this.rules = rules;
  }

  static async start(rules: DigestRules = {}): Promise<DigestServer> {
    const server = new DigestServer({
      algorithm: 'MD5',
      qop: 'auth',
      realm: REALM,
      saysStale: true,
      ...rules,
    });
    server.http = await HttpServer.start((request, response) => server.#answer(request, response));
    return server;
  }

  get url(): string {
    return this.http.url;
  }

  /** What came, in short: `GET -` without credentials, `POST 1` with the count of its nonce. */
  get log(): string[] {
    return this.http.requests.map(({ method, headers }) => {
      const { nc } = parameters(headers.authorization ?? '');
      return `${method} ${headers.authorization === undefined ? '-' : nc === undefined ? 'old' : Number.parseInt(nc, 16)}`;
    });
  }

  changePassword(): void {
    this.#password = 'another';
  }

  /** Forgets all nonces, as a restart does. */
  restart(): void {
    this.#nonces.clear();
  }

  #answer(request: Recorded, response: ServerResponse): void {
    const judged = this.#judge(request);
    if (judged === 'in') {
      response.end(request.method === 'GET' ? '<p>Push</p>' : ACCEPTED);
      return;
    }
    this.#issued += 1;
    const nonce = `nonce+${this.#issued}/=`;
    this.#nonces.set(nonce, new Set());
    const { algorithm, qop, realm = '', saysStale } = this.rules;
    const quotedRealm = `"${realm.replace(/["\\]/g, '\\$&')}"`;
    const parts = [`realm=${quotedRealm}`, 'domain=""', `nonce="${nonce}"`, 'opaque="o,p"'];
    if (algorithm !== undefined) parts.push(`algorithm=${algorithm}`);
    if (qop !== '') parts.push(`qop="${qop}"`);
    if (saysStale) parts.push(`stale=${judged === 'stale'}`);
    response.writeHead(401, { 'www-authenticate': `Digest ${parts.join(', ')}` }).end('no');
  }

  #judge({ method, url, headers }: Recorded): 'in' | 'wrong' | 'stale' {
    const { authorization } = headers;
    if (!authorization?.startsWith('Digest ')) return 'wrong';
    const given = parameters(authorization);
    const { username, realm, nonce = '', uri, response, nc, cnonce, qop, opaque } = given;
    const { algorithm = 'MD5' } = this.rules;
    const h = (text: string) =>
      createHash(algorithm.toUpperCase().startsWith('SHA-256') ? 'sha256' : 'md5')
        .update(text)
        .digest('hex');
    if (username !== 'admin' || realm !== this.rules.realm || uri !== url || opaque !== 'o,p') return 'wrong';
    const secret = h(`admin:${realm}:${this.#password}`);
    const a2 = h(`${method}:${uri}`);
    const expected =
      this.rules.qop === ''
        ? h(`${secret}:${nonce}:${a2}`)
        : h(`${secret}:${nonce}:${nc}:${cnonce}:${qop}:${a2}`);
    const used = this.#nonces.get(nonce);
    if (response !== expected) return 'wrong';
    if (used === undefined) return 'stale';
    if (nc !== undefined && used.has(nc)) return 'wrong';
    if (used.size >= (this.rules.uses ?? Number.POSITIVE_INFINITY)) return 'stale';
    used.add(nc ?? String(used.size));
    return 'in';
  }
}

export const CREDENTIALS = { username: 'admin', password: 'sécret:"x"' };

/** The parameters of a header, unquoted. */
export function parameters(header: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [, name = '', quoted, token] of header.matchAll(/([\w*]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))/g)) {
    found[name] = token ?? (quoted ?? '').replace(/\\(.)/g, '$1');
  }
  return found;
}
