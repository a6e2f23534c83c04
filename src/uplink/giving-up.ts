import { durationText } from '../lib/duration-text.js';
import { sentence } from '../lib/sentence.js';
import type { AcceptedItem, PendingItem, Trouble } from '../state/entry.js';
import { isRemembered } from '../state/history.js';
import { failed, quarantined, returned, unremembered } from '../state/transitions.js';
import { DomainGate, GATE_ATTEMPTS, gateHint, reachOf } from './domain-gate.js';
import type { Hold } from './hold.js';
import type { DoubtOver } from './looks.js';
import { placeName, type UplinkParts, type UplinkState } from './parts.js';
import { sayQuarantined } from './trouble.js';

export interface GivingUpParts
  extends Pick<UplinkParts, 'clock' | 'commit' | 'dialect' | 'log' | 'settings'> {
  readonly state: Pick<UplinkState, 'put'>;
}

/**
 * How long the peer may take to show an item, and what becomes of one that it does not show in that time:
 *
 * - accepted: pending again, one attempt spent, and after `push.attempts` of those quarantined;
 * - accepted, and the peer seems to drop its address (see DomainGate): the same after a few attempts that are short;
 * - accepted without a push, for the peer was sent it before: it is pushed now, as soon as a doubt would be over;
 * - in doubt: the doubt is over, and it is pushed again.
 */
export class GivingUp {
  readonly #parts: GivingUpParts;
  readonly #hold: Pick<Hold, 'patienceMs'>;
  readonly #gate = new DomainGate();

  constructor(parts: GivingUpParts, hold: Pick<Hold, 'patienceMs'>) {
    this.#parts = parts;
    this.#hold = hold;
  }

  /** The peer shows the document of this address, pushed at this time. */
  saw(url: string, pushedAt: number): void {
    if (this.#hasGate) this.#gate.saw(url, pushedAt);
  }

  /**
   * How long the peer may take to show this item, in ms; an item that is still pending is one in doubt. What the peer was sent
   * before it had time to show, and somebody else may have put another document there since.
   */
  patienceMs(item: AcceptedItem | PendingItem, typicalMs: number): number {
    if (item.status === 'pending' || isRemembered(item)) return this.#hold.patienceMs(typicalMs, 'doubt');
    return this.#hold.patienceMs(typicalMs, this.#isGated(item) ? 'gated' : undefined);
  }

  /**
   * Its time is over.
   *
   * @param patienceMs how long that was
   * @param why what the last look-up said
   * @param onDoubtOver decides about an item in doubt; without one it is pushed again
   */
  async giveUp(
    item: AcceptedItem | PendingItem,
    patienceMs: number,
    why: string,
    onDoubtOver: DoubtOver | undefined,
  ): Promise<void> {
    if (item.status === 'pending') await this.#endDoubt(item, onDoubtOver);
    else if (isRemembered(item)) await this.#pushNow(item, why);
    else await this.#spend(item, patienceMs, why);
  }

  async #pushNow(item: AcceptedItem, why: string): Promise<void> {
    const { clock, commit, log, state } = this.#parts;
    state.put(unremembered(item, why, clock.now()));
    await commit();
    log.info(
      { event: 'not-shown', folder: item.folder, path: item.path, attempts: 0 },
      `not shown by the peer any more, pushed again: ${placeName(item)}: ${why}`,
    );
  }

  async #endDoubt(item: PendingItem, onDoubtOver: DoubtOver | undefined): Promise<void> {
    const { clock, commit, log, state } = this.#parts;
    if (onDoubtOver !== undefined) await onDoubtOver(item);
    else state.put(returned(item, clock.now()));
    await commit();
    log.debug({ folder: item.folder, path: item.path }, `not in the peer, pushed again: ${placeName(item)}`);
  }

  async #spend(item: AcceptedItem, patienceMs: number, why: string): Promise<void> {
    const { clock, commit, log, settings, state } = this.#parts;
    const now = clock.now();
    const isGated = this.#isGated(item);
    const trouble = isGated ? this.#gate.trouble(item.url) : this.#notShown(item.url, patienceMs, why);
    const again = failed(item, trouble, now, now);
    const isGivenUp = again.attempts >= Math.min(settings.push.attempts, isGated ? GATE_ATTEMPTS : Infinity);
    state.put(isGivenUp ? quarantined(again, item, item.version, trouble, now) : again);
    await commit();
    if (isGivenUp) sayQuarantined(log, item, trouble);
    else
      log.info(
        { event: 'not-shown', folder: item.folder, path: item.path, attempts: again.attempts },
        `not shown by the peer, pushed again: ${placeName(item)}: ${why}`,
      );
  }

  #notShown(url: string, patienceMs: number, why: string): Trouble {
    const look = 'See in the peer whether it indexes this URL at all; `peersync retry` pushes it again.';
    return {
      code: 'NOT_SHOWN',
      message: `The peer accepted it but did not show it within ${durationText(patienceMs)}: ${sentence(why)}`,
      hint: this.#hasGate ? `${look} ${gateHint(reachOf(url))}` : look,
    };
  }

  /** Whether documents are dropped without a word because of their addresses. */
  get #hasGate(): boolean {
    return this.#parts.dialect.current?.hasDomainGate === true;
  }

  #isGated(item: AcceptedItem): boolean {
    return this.#hasGate && this.#gate.explains(item.url, firstAcceptedAt(item));
  }
}

/** When the peer took this version for the first time, in ms since the epoch. */
function firstAcceptedAt({ attempts, history, since }: AcceptedItem): number {
  const times = history.filter(({ status }) => status === 'accepted').map(({ at }) => at);
  return times.at(-1 - attempts) ?? times[0] ?? since;
}
