import type { Clock } from '../lib/clock.js';
import type { Place } from '../state/entries.js';
import type { AcceptedItem, PendingItem, Sent } from '../state/entry.js';
import type { UplinkState } from './parts.js';
import { PlaceMap } from './place-map.js';
import { Schedule } from './schedule.js';

/** One item that is being looked up. Times are in ms since the epoch. */
export interface Look {
  readonly place: Place;
  readonly sent: Sent;
  /** The push was never answered: a negative leads to another push and not to a failed attempt. */
  readonly doubt: boolean;
  readonly onDoubtOver: DoubtOver | undefined;
  readonly since: number;
  /** When it was sent. */
  readonly sentAt: number;
  /** The looks at what the same request brought, the scout first. */
  readonly group: readonly Look[] | undefined;
  due: number;
  interval: number;
  /** From then on a first showing counts at once; for ever later once it was not shown. */
  sureFrom: number;
  /** What `sureFrom` was at first: what is not shown from then on is late. */
  readonly heldUntil: number;
  /** Its first showing: when that was, and when it was due. One that does not count at once has to hold. */
  firstShown: { readonly at: number; readonly due: number } | undefined;
  /** Why the last answer proved nothing. */
  why: string | undefined;
  /** How many look-ups had been answered when one of this ended without an answer. */
  unanswered: number | undefined;
}

/** What a look begins with. */
export type NewLook = Pick<Look, 'sent' | 'doubt' | 'due' | 'since' | 'sentAt' | 'sureFrom'> & {
  readonly group?: readonly Look[];
  readonly onDoubtOver?: DoubtOver | undefined;
};

/** Decides about an item in doubt that the peer does not have. */
export type DoubtOver = (item: PendingItem) => void | Promise<void>;

export interface NextLook {
  /** In ms since the epoch. */
  readonly at: number;
  readonly lastAnswer?: string;
}

/** The items that are being looked up, one look each, by place and by when they are due. */
export class Looks {
  readonly #state: Pick<UplinkState, 'get'>;
  readonly #clock: Clock;
  readonly #byPlace = new PlaceMap<Look>();
  readonly #schedule = new Schedule<{ readonly look: Look; readonly due: number }>();

  constructor(state: Pick<UplinkState, 'get'>, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  get size(): number {
    return this.#byPlace.size;
  }

  get nextDue(): number | undefined {
    return this.#schedule.nextDue;
  }

  get(place: Place): Look | undefined {
    return this.#byPlace.get(place);
  }

  /** When an item is looked up next, and what the last look-up said. */
  next(place: Place): NextLook | undefined {
    const look = this.#byPlace.get(place);
    if (look === undefined) return undefined;
    const at = Math.round(look.due);
    return look.why === undefined ? { at } : { at, lastAnswer: look.why };
  }

  /** Takes the place of an earlier look at the same item. */
  add(place: Place, interval: number, begin: NewLook): Look {
    const { sent, doubt, onDoubtOver, since, sentAt, group, due, sureFrom } = begin;
    // Each by its name: to spread objects into one costs more than all the rest that is done here.
    const look: Look = {
      place,
      sent,
      doubt,
      onDoubtOver,
      since,
      sentAt,
      group,
      due,
      interval,
      sureFrom,
      heldUntil: sureFrom,
      firstShown: undefined,
      why: undefined,
      unanswered: undefined,
    };
    this.#byPlace.set(look.place, look);
    this.plan(look, look.due);
    return look;
  }

  plan(look: Look, due: number): void {
    look.due = due;
    this.#schedule.add({ look, due }, due);
  }

  /** One that is due. */
  take(): Look | undefined {
    for (;;) {
      const slot = this.#schedule.take(this.#clock.now());
      if (slot === undefined) return undefined;
      if (this.has(slot.look) && slot.due === slot.look.due) return slot.look;
    }
  }

  has(look: Look): boolean {
    return this.#byPlace.get(look.place) === look;
  }

  forget(look: Look): void {
    if (this.has(look)) this.#byPlace.delete(look.place);
  }

  /** The item that a look is about, or undefined when it has become another one meanwhile. */
  itemOf(look: Look): AcceptedItem | PendingItem | undefined {
    if (!this.has(look)) return undefined;
    const entry = this.#state.get(look.place.folder, look.place.path);
    if (look.doubt)
      return entry?.status === 'pending' && entry.doubt?.at === look.sent.at ? entry : undefined;
    return entry?.status === 'accepted' &&
      entry.sent.at === look.sent.at &&
      entry.sent.sha256 === look.sent.sha256
      ? entry
      : undefined;
  }
}
