import type { PushedItem, Recorded } from '../support/scripted-peer.js';
import { isConfirmed, type Listed } from './setting.js';

/**
 * Keeps the account of what each life of a daemon pushed, and says what should not have been: a version that went out
 * twice in one life, or once more after it was confirmed. So a version costs one push, and at most one more for each
 * crash that came before it was confirmed.
 */
export class Ledger {
  readonly #last = new Map<string, string>();
  readonly #pushed = new Set<string>();
  readonly #confirmed = new Set<string>();
  readonly #again = new Set<string>();
  #counted = 0;
  #lives = 0;

  /** How many versions went out. */
  get pushed(): number {
    return this.#pushed.size;
  }

  /** The versions that went out in more than one life, each as URL and digest. */
  get again(): ReadonlySet<string> {
    return this.#again;
  }

  /** A life ended: what it pushed, and what was known after it. Returns what is wrong with that, a sentence each. */
  close(requests: readonly Recorded[], listed: readonly Listed[]): string[] {
    this.#lives += 1;
    const wrong: string[] = [];
    const inThisLife = new Set<string>();
    for (const { url, digest } of pushedIn(requests.slice(this.#counted))) {
      const version = `${url} ${digest}`;
      if (inThisLife.has(version)) wrong.push(`life ${this.#lives} pushed twice: ${version}`);
      if (this.#confirmed.has(version))
        wrong.push(`life ${this.#lives} pushed what was confirmed: ${version}`);
      if (this.#pushed.has(version)) this.#again.add(version);
      inThisLife.add(version);
      this.#pushed.add(version);
      this.#last.set(url, digest);
    }
    this.#counted = requests.length;
    for (const { url = '', sha256 = '' } of listed.filter(isConfirmed)) {
      if (this.#last.get(url) !== sha256)
        wrong.push(`confirmed, and last pushed was another: ${url} ${sha256}`);
      this.#confirmed.add(`${url} ${sha256}`);
    }
    return wrong;
  }
}

function pushedIn(requests: readonly Recorded[]): PushedItem[] {
  return requests.filter(({ status }) => status !== 401).flatMap(({ items }) => items);
}
