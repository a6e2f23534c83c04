import { type FileHandle, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeFileAtomic } from '../lib/atomic.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { shellWord } from '../lib/text.js';

/** The authentication schemes, weakest first. */
const SCHEMES = ['basic', 'digest-md5', 'digest-sha256'] as const;
export type SchemeName = (typeof SCHEMES)[number];

const NAMES: Readonly<Record<SchemeName, string>> = {
  basic: 'Basic',
  'digest-md5': 'Digest with MD5',
  'digest-sha256': 'Digest with SHA-256',
};

/**
 * The reason why a challenge is not answered. `what` completes a sentence whose subject is the URL
 * of the peer.
 */
export interface Weakness {
  readonly what: string;
  readonly hint: string;
}

export interface PeerAccessOptions {
  readonly allowBasic: boolean;
  /**
   * The file that records the strongest scheme of each peer. Nothing is written if its directory is
   * missing. @default undefined: only this object remembers
   */
  readonly path: string | undefined;
  /** Logs a warning if the file cannot be read or written. */
  readonly log: Logger;
}

/** The host names that never leave this machine. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * Decides how the password may be sent to one peer.
 *
 * - Basic sends the password in plain text. Over http it is allowed only on loopback, unless
 *   `allowBasic` is set.
 * - A peer never gets a weaker scheme than before, because an attacker on the way may have sent the
 *   challenge. The first scheme that a peer asks for is recorded at once. A stronger one is
 *   recorded when the peer has accepted it: an attacker could ask for a scheme that nobody can
 *   answer, and lock everyone out.
 *
 * The strongest scheme of each peer is recorded in a file, by URL, and so survives a restart. The
 * file is read at each challenge: removing it makes every process forget. If the file cannot be
 * read or written, one warning is logged, and this process remembers the scheme on its own.
 */
export class PeerAccess {
  /** Whether Basic may send the password over http to another machine. */
  allowBasic: boolean;
  /** The URL of the peer, without credentials and without a slash at the end. */
  readonly #url: string;
  readonly #path: string | undefined;
  readonly #log: Logger;
  #strongest: SchemeName | undefined;
  /** Whether the file holds `#strongest`. */
  #isSaved = false;
  #isWarned = false;

  constructor(
    private readonly peer: URL,
    { path, log, allowBasic }: PeerAccessOptions,
  ) {
    this.#url = (peer.origin + peer.pathname).replace(/\/+$/, '');
    this.#path = path;
    this.#log = log;
    this.allowBasic = allowBasic;
  }

  /**
   * Whether this scheme would show the password to everyone on the way to the peer, and
   * `allowBasic` is not set.
   */
  isExposedBy(scheme: SchemeName): boolean {
    const { protocol, hostname } = this.peer;
    return (
      scheme === 'basic' && protocol === 'http:' && !LOOPBACK.test(hostname) && !this.allowBasic
    );
  }

  /** Returns the reason not to answer a challenge; undefined if it may be answered. */
  async weaknessOf(scheme: SchemeName): Promise<Weakness | undefined> {
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

  /**
   * Records a scheme that the peer asked for, if it is the first. Otherwise saves the recorded one,
   * if the file does not hold it yet.
   */
  async recordChallenge(scheme: SchemeName): Promise<void> {
    if ((await this.#read()) === undefined) await this.#remember(scheme);
    else if (!this.#isSaved) await this.#save();
  }

  /** Records a scheme that the peer accepted, if it is the strongest so far. */
  async recordSuccess(scheme: SchemeName): Promise<void> {
    const strongest = await this.#read();
    if (rankOf(scheme) > rankOf(strongest)) await this.#remember(scheme);
  }

  async #remember(scheme: SchemeName): Promise<void> {
    this.#strongest = scheme;
    this.#isSaved = false;
    await this.#save();
  }

  /** Returns the strongest scheme of this peer, from the file if that can be read. */
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

  /**
   * Returns the content of the file, which is empty if there is no file; undefined if it cannot be
   * read.
   */
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
    // The user of the directory could not read a file that belongs to root.
    const isReadable = async (file: FileHandle) =>
      process.geteuid?.() !== 0 || (await file.stat()).uid === (await stat(directory)).uid;
    try {
      await writeFileAtomic(path, `${JSON.stringify(records, null, 2)}\n`, { ready: isReadable });
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') this.#warn('cannot be written', error);
    }
  }

  #warn(what: string, error: unknown): void {
    if (this.#isWarned) return;
    this.#isWarned = true;
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
