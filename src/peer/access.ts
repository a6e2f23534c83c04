import { type FileHandle, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeFileAtomic } from '../lib/atomic.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { shellWord } from '../lib/text.js';

/** The ways to show that one knows the password, from the weakest on. */
const SCHEMES = ['basic', 'digest-md5', 'digest-sha256'] as const;
export type SchemeName = (typeof SCHEMES)[number];

const NAMES: Readonly<Record<SchemeName, string>> = {
  basic: 'Basic',
  'digest-md5': 'Digest with MD5',
  'digest-sha256': 'Digest with SHA-256',
};

/** Why a challenge is not answered: `what` is the end of a sentence that begins with the URL. */
export interface Weakness {
  readonly what: string;
  readonly hint: string;
}

export interface PeerAccessOptions {
  readonly allowBasic: boolean;
  /**
   * The file that remembers; nothing is written where its directory is missing. Without a file this
   * object remembers alone.
   */
  readonly path: string | undefined;
  /** Is told of a file that cannot be read or written. */
  readonly log: Logger;
}

/** Names and addresses that never leave this machine. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * The rules for the password of one peer.
 *
 * - Basic shows the password to everyone between: over http it is for loopback only, unless
 *   `allowBasic` says otherwise.
 * - A peer is never shown the password in a weaker way than before, for somebody between may have
 *   asked. The first scheme that a peer asks for counts at once, a stronger one when it let us in:
 *   anybody may ask for one that nobody can answer.
 *
 * The strongest scheme is remembered in a file, for all peers by URL, so that it outlives the
 * process. The file is read at each challenge: removing it makes every process forget. A file that
 * cannot be read or written is warned of once; this process remembers by itself then.
 */
export class PeerAccess {
  /** Whether Basic may carry the password over http to another machine. */
  allowBasic: boolean;
  /** Of the peer, without credentials and a slash at the end. */
  readonly #url: string;
  readonly #path: string | undefined;
  readonly #log: Logger;
  #strongest: SchemeName | undefined;
  /** Whether the file has it. */
  #isSaved = false;
  #hasWarned = false;

  constructor(
    private readonly peer: URL,
    { path, log, allowBasic }: PeerAccessOptions,
  ) {
    this.#url = (peer.origin + peer.pathname).replace(/\/+$/, '');
    this.#path = path;
    this.#log = log;
    this.allowBasic = allowBasic;
  }

  /** Whether everyone between here and the peer would see the password, and nobody allowed that. */
  isExposedBy(scheme: SchemeName): boolean {
    const { protocol, hostname } = this.peer;
    return (
      scheme === 'basic' && protocol === 'http:' && !LOOPBACK.test(hostname) && !this.allowBasic
    );
  }

  /** Why a challenge is not to be answered; undefined where it may be. */
  async forbids(scheme: SchemeName): Promise<Weakness | undefined> {
    if (this.isExposedBy(scheme))
      return {
        what: 'asks for the password in plain text (Basic over http, 401); it was not sent',
        hint:
          'Use https, or Digest on the peer. Where the network between is trusted, set peer.auth.allowBasic to true; ' +
          'a running daemon takes that up by `peersync reload`.',
      };
    const strongest = await this.#read();
    if (strongest === undefined || rankOf(scheme) >= rankOf(strongest)) return undefined;
    const forget =
      this.#path === undefined
        ? 'make a new client.'
        : `let peersync forget how it asked: \`rm ${shellWord(this.#path)}\`, then \`peersync retry --all\`.`;
    return {
      what: `asks for ${NAMES[scheme]} (401), and asked for ${NAMES[strongest]} before, which is stronger; the password was not sent`,
      hint: `Somebody between may want the password: see who answers at peer.url. If the peer itself was changed, ${forget}`,
    };
  }

  /** The peer asked for this. */
  async wasAsked(scheme: SchemeName): Promise<void> {
    if ((await this.#read()) === undefined) await this.#remember(scheme);
    else if (!this.#isSaved) await this.#save();
  }

  /** The peer let us in by this. */
  async worked(scheme: SchemeName): Promise<void> {
    const strongest = await this.#read();
    if (rankOf(scheme) > rankOf(strongest)) await this.#remember(scheme);
  }

  async #remember(scheme: SchemeName): Promise<void> {
    this.#strongest = scheme;
    this.#isSaved = false;
    await this.#save();
  }

  /** The strongest scheme of this peer, by the file where that can be read. */
  async #read(): Promise<SchemeName | undefined> {
    const records = await this.#records();
    if (records === undefined) {
      this.#isSaved = false;
      return this.#strongest;
    }
    const found = SCHEMES.find((scheme) => scheme === records[this.#url]);
    const isStronger = found !== undefined && rankOf(found) > rankOf(this.#strongest);
    if (this.#isSaved || isStronger) this.#strongest = found;
    this.#isSaved = found !== undefined && found === this.#strongest;
    return this.#strongest;
  }

  /** What the file holds, nothing where there is none; undefined where it cannot be read. */
  async #records(): Promise<Readonly<Record<string, unknown>> | undefined> {
    if (this.#path === undefined) return undefined;
    try {
      const content: unknown = JSON.parse(await readFile(this.#path, 'utf8'));
      if (typeof content === 'object' && content !== null && !Array.isArray(content))
        return { ...content };
      throw new Error('it holds no JSON object');
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return {};
      this.#warn('cannot be read, and will be written anew', error);
      return undefined;
    }
  }

  async #save(): Promise<void> {
    const path = this.#path;
    if (path === undefined) return;
    const records = { ...(await this.#records()), [this.#url]: this.#strongest };
    const directory = dirname(path);
    // A file of root's could not be read by the user that the directory is for.
    const isReadable = async (file: FileHandle) =>
      process.geteuid?.() !== 0 || (await file.stat()).uid === (await stat(directory)).uid;
    try {
      await writeFileAtomic(path, `${JSON.stringify(records, null, 2)}\n`, { ready: isReadable });
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') this.#warn('cannot be written', error);
    }
  }

  #warn(what: string, error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const path = this.#path;
    this.#log.warn(
      { path },
      `${path}, which remembers how the peer asks for the password, ${what}: ${messageOf(error)}`,
    );
  }
}

function rankOf(scheme: SchemeName | undefined): number {
  return scheme === undefined ? -1 : SCHEMES.indexOf(scheme);
}
