import { type Deps, succeeds } from './deps.js';

/**
 * Asks the peer to commit its index: afterwards it shows everything that it has indexed. Callers
 * share a commit that is under way.
 */
export class IndexCommits {
  readonly #deps: Deps;
  #lastAt = Number.NEGATIVE_INFINITY;
  #lastSucceeded = false;
  #underWay: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** The time when the last commit ended, whether it succeeded or not, in ms since the epoch. */
  get lastAt(): number {
    return this.#lastAt;
  }

  get lastSucceeded(): boolean {
    return this.#lastSucceeded;
  }

  /**
   * Asks for a commit, unless one ended after `since`.
   * @returns whether it succeeded; if not, the caller has to wait for the usual time
   */
  async since(since: number): Promise<boolean> {
    if (this.#lastAt <= since) {
      this.#underWay ??= this.#commit();
      await this.#underWay;
    }
    return this.#lastSucceeded;
  }

  async #commit(): Promise<void> {
    const { clock, peer, queue } = this.#deps;
    this.#lastSucceeded = await succeeds(
      queue.run('confirm', (signal) => peer.commitIndex({ signal })),
    );
    this.#lastAt = clock.now();
    this.#underWay = undefined;
  }
}
