// Loaded into the daemon before it starts (`--import`): answers a message from the bench with how
// long the event loop was blocked since the one before, and the processor time of the process.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

export interface Probed {
  /**
   * The longest block of the event loop, and the one that 99.9 % of the looks at it (one a
   * millisecond) stayed below, in ms.
   */
  readonly longestMs: number;
  readonly p999Ms: number;
  readonly looks: number;
  /** Processor time of all threads since the start of the process, in ms. */
  readonly cpuMs: number;
}

/** `rest`: look no more, for a timer a millisecond is no rest. */
export type ProbeQuestion = 'read' | 'rest';

const RESOLUTION_MS = 1;

if (isMainThread && process.send !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  process.on('message', (question: ProbeQuestion) => {
    const { user, system } = process.cpuUsage();
    const probed: Probed = {
      longestMs: blockMs(delay.max),
      p999Ms: blockMs(delay.percentile(99.9)),
      looks: delay.count,
      cpuMs: (user + system) / 1_000,
    };
    delay.reset();
    if (question === 'rest') delay.disable();
    else delay.enable();
    process.send?.(probed);
  });
  // The daemon ends with the bench.
  process.on('disconnect', () => process.kill(process.pid));
  process.channel?.unref();
}

/** A tick comes after the resolution when nothing blocks. */
function blockMs(ns: number): number {
  return Math.max(0, ns / 1e6 - RESOLUTION_MS);
}
