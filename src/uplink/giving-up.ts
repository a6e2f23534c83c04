import { sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { AcceptedItem, PendingItem, Trouble } from '../state/entry.js';
import { failed, isRemembered, lost, quarantined, returned, unremembered } from '../state/transitions.js';
import { DomainGate, GATE_ATTEMPTS, gateHint, reachOf } from './domain-gate.js';
import { type Isolation, lostTrouble } from './isolation.js';
import type { DoubtOver } from './looks.js';
import { placeName, type UplinkParts, type UplinkState } from './parts.js';
import { sayQuarantined } from './trouble.js';
import { baseOf } from './url-conflicts.js';
import type { Hold } from './visibility.js';

/** How sure it is that the peer lost an item. */
export type Loss = 'certain' | 'likely';

/** An item that took others along and was lost so often alone is to blame; one that took none along after all its attempts. */
const ALONE_ATTEMPTS = 2;

export interface GivingUpParts
  extends Pick<UplinkParts, 'clock' | 'commit' | 'dialect' | 'log' | 'settings'> {
  readonly state: Pick<UplinkState, 'put'>;
}

/**
 * How long the peer may take to show an item, and what becomes of one that it does not show in that time:
 *
 * - accepted, and lost by a peer that loses documents together: pushed again apart from others (see Isolation);
 * - accepted: pending again, one attempt spent, and after `push.attempts` of those quarantined;
 * - accepted, and the peer seems to drop its address (see DomainGate): the same after a few attempts that are short;
 * - accepted without a push, for the peer was sent it before: it is pushed now, as soon as a doubt would be over;
 * - in doubt: the doubt is over, and it is pushed again.
 */
export class GivingUp {
  readonly #parts: GivingUpParts;
  readonly #hold: Pick<Hold, 'patienceMs' | 'ms'>;
  readonly #isolation: Isolation;
  readonly #gate = new DomainGate();
  /** The URL bases below which a document was ever shown: there the address is not the reason. */
  readonly #shownBases = new Set<string>();

  constructor(parts: GivingUpParts, hold: Pick<Hold, 'patienceMs' | 'ms'>, isolation: Isolation) {
    this.#parts = parts;
    this.#hold = hold;
    this.#isolation = isolation;
  }

  /** The peer shows the document of this item, pushed at this time. */
  saw(item: Pick<AcceptedItem, 'url' | 'path'>, pushedAt: number): void {
    if (!this.#hasGate) return;
    this.#gate.saw(item.url, pushedAt);
    this.#shownBases.add(baseOf(item.url, item.path));
  }

  /** Whether the peer may have lost this item together with others, as far as the peer and its address go. */
  canBeLost(item: AcceptedItem): boolean {
    return this.#losesUpdates && !isRemembered(item) && !this.#isGated(item);
  }

  /** The peer accepted an item and lost it: it is pushed again apart from others, and quarantined if it was alone already. */
  async lost(item: AcceptedItem | PendingItem, why: string, loss: Loss): Promise<void> {
    if (item.status === 'pending') return;
    const { clock, commit, log, settings, state } = this.#parts;
    const { timesAlone, hadCompany } = this.#isolation.lost(item, loss === 'certain');
    if (timesAlone >= (hadCompany ? ALONE_ATTEMPTS : settings.push.attempts)) {
      await this.#quarantine(item, neverIndexed(hadCompany));
      return;
    }
    state.put(lost(item, lostTrouble, clock.now()));
    await commit();
    log.debug(
      { event: 'lost', folder: item.folder, path: item.path },
      `accepted and not indexed, pushed again apart from others: ${placeName(item)}: ${why}`,
    );
  }

  /** The peer shows this version, and indexed none of its text: another push would end no better. */
  async withoutText(item: AcceptedItem | PendingItem): Promise<void> {
    await this.#quarantine(item, TEXT_NOT_INDEXED);
  }

  async #quarantine(item: AcceptedItem | PendingItem, trouble: Trouble): Promise<void> {
    const { clock, commit, log, state } = this.#parts;
    state.put(quarantined(item, item, item.version, trouble, clock.now()));
    await commit();
    sayQuarantined(log, item, trouble);
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
    const trouble = isGated ? this.#gate.trouble(item.url) : this.#notShown(item, patienceMs, why);
    const again = failed(item, trouble, now, now);
    // What is pushed again at the same time may be lost again together; but where nothing was ever shown, all wait for the peer.
    if (this.#losesUpdates && this.#shownBases.size > 0) this.#isolation.lost(item, false);
    else this.#isolation.forget(item);
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

  #notShown(item: AcceptedItem, patienceMs: number, why: string): Trouble {
    const mayBeGated = this.#hasGate && !this.#shownBases.has(baseOf(item.url, item.path));
    const look = 'See in the peer whether it indexes this URL at all; `peersync retry` pushes it again.';
    return {
      code: 'NOT_SHOWN',
      message: `The peer accepted it but did not show it within ${durationText(patienceMs)}: ${sentence(why)}`,
      hint: mayBeGated ? `${look} ${gateHint(reachOf(item.url))}` : look,
    };
  }

  get #losesUpdates(): boolean {
    return this.#parts.dialect.current?.losesUpdates === true && this.#hold.ms > 0;
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

const TEXT_NOT_INDEXED: Trouble = {
  code: 'TEXT_NOT_INDEXED',
  message:
    'The peer shows the document and indexed none of its text: it is found by the words of its URL only.',
  hint: 'Look for control characters in the file, or in a page for `&lt;`, or save it in another format; a changed file is pushed again by itself.',
};

function neverIndexed(hadCompany: boolean): Trouble {
  if (!hadCompany)
    return {
      code: 'NEVER_INDEXED',
      message: 'The peer accepts it each time and never indexes it, while it indexes others.',
      hint: 'See in the log of the peer what it says of this URL; `peersync retry` pushes it again.',
    };
  return {
    code: 'REFUSED_BY_INDEX',
    message:
      'Each time it was pushed, nothing that came with it was indexed, and alone it is not indexed either: the index of the peer refuses it.',
    hint: 'Look for damaged characters in it (U+FFFF from inside a PDF is one), save it anew, or keep it out with a rule; `peersync retry` pushes it again.',
  };
}
