import type { Duty } from '../lib/pulse.js';
import type { Door } from './door.js';
import { LANES, type Lane } from './lanes.js';

export interface DoorDutiesOptions {
  /** How long one task may run before something is wrong with it, in ms. */
  readonly longestTaskMs: (lane: Lane) => number;
}

/** What waits at the door and may start does start; what runs ends within its time-outs. */
export function doorDuties(
  door: Pick<Door, 'status' | 'mayStart' | 'oldest'>,
  { longestTaskMs }: DoorDutiesOptions,
): readonly Duty[] {
  return LANES.flatMap((lane): readonly Duty[] => [
    {
      name: `door ${lane}`,
      moves: () => door.status().lanes[lane].started,
      neglects: () => (door.mayStart(lane) ? `${lane} requests that may start wait at the door` : undefined),
    },
    {
      name: `request ${lane}`,
      moves: () => door.oldest(lane),
      neglects: () =>
        door.oldest(lane) === undefined ? undefined : `a ${lane} request has outlived all of its time-outs`,
      limitMs: longestTaskMs(lane),
    },
  ]);
}
