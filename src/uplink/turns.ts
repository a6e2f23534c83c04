import type { Place } from '../state/entries.js';
import type { Standing } from './parts.js';
import { Schedule } from './schedule.js';

/** A turn is that of an item as it was when it was added. */
export interface Turn {
  readonly place: Place;
  readonly notBefore: number;
}

/**
 * The turns of all items that wait, by their folders: how those stand is asked whenever a turn is to come, and not for each item,
 * so that however much waits in a folder that is missing costs nothing, and goes on as soon as that is there again.
 *
 * A turn *waits* until it is due and its folder is not missing. One that is put *aside* came in vain, for it has no file in a
 * folder that is doubtful: it comes again when that is in no doubt any more. The turns of a folder that left the configuration
 * are *dropped*, for its items are about to be gone.
 */
export class Turns {
  readonly #standing: (folder: string) => Standing | undefined;
  /** By folder; none is kept empty. */
  readonly #waiting = new Map<string, Schedule<Turn>>();
  readonly #aside = new Map<string, Schedule<Turn>>();
  #order = 0;
  #size = 0;

  /** @param standing how a folder stands; undefined for one that left the configuration */
  constructor(standing: (folder: string) => Standing | undefined) {
    this.#standing = standing;
  }

  get size(): number {
    return this.#size;
  }

  /** When the first one falls due that may come; undefined when there is none. */
  get nextDue(): number | undefined {
    return this.#first()?.nextDue;
  }

  /** Whether nothing of its folder may come to its turn. */
  isKept({ place }: Turn): boolean {
    const standing = this.#standing(place.folder);
    return standing === undefined || standing === 'missing';
  }

  add(turn: Turn, due: number): void {
    this.#put(this.#waiting, turn, due);
  }

  putAside(turn: Turn, due: number): void {
    this.#put(this.#aside, turn, due);
  }

  /** Takes the first one that may come if it is due at `now`; of those due at the same time the one that was added first. */
  take(now: number): Turn | undefined {
    const schedule = this.#first();
    const turn = schedule?.take(now);
    if (turn === undefined) return undefined;
    this.#size -= 1;
    if (schedule?.size === 0) {
      const { folder } = turn.place;
      (this.#waiting.get(folder) === schedule ? this.#waiting : this.#aside).delete(folder);
    }
    return turn;
  }

  /** Drops every turn that `isWanted` says no to. */
  keep(isWanted: (turn: Turn) => boolean): void {
    this.#size = 0;
    for (const schedules of [this.#waiting, this.#aside]) {
      for (const [folder, schedule] of schedules) {
        schedule.keep(isWanted);
        this.#size += schedule.size;
        if (schedule.size === 0) schedules.delete(folder);
      }
    }
  }

  #put(schedules: Map<string, Schedule<Turn>>, turn: Turn, due: number): void {
    const { folder } = turn.place;
    let schedule = schedules.get(folder);
    if (schedule === undefined) {
      schedule = new Schedule();
      schedules.set(folder, schedule);
    }
    schedule.add(turn, due, this.#order++);
    this.#size += 1;
  }

  #first(): Schedule<Turn> | undefined {
    let first: Schedule<Turn> | undefined;
    for (const schedules of [this.#waiting, this.#aside]) {
      for (const [folder, schedule] of schedules) {
        const standing = this.#standing(folder);
        const mayCome = standing === 'there' || (standing === 'doubtful' && schedules === this.#waiting);
        if (standing === undefined) this.#drop(schedules, folder, schedule);
        else if (mayCome && schedule.isBefore(first)) first = schedule;
      }
    }
    return first;
  }

  #drop(schedules: Map<string, Schedule<Turn>>, folder: string, { size }: Schedule<Turn>): void {
    schedules.delete(folder);
    this.#size -= size;
  }
}
