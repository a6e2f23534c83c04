import type { Clock, Timer } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { statusSentence } from '../report/status-sentence.js';
import type { Daemon } from './daemon.js';
import type { Notifier } from './systemd-notifier.js';
import { Watchdog } from './watchdog.js';

/** How often systemd hears how things stand, in ms; only where that changed. */
const STATUS_EVERY_MS = 10_000;

/** Lets systemd know that the daemon lives and how it stands, until the returned function is called. */
export function giveSigns(
  daemon: Pick<Daemon, 'state' | 'live' | 'duties' | 'disks' | 'stuck' | 'silentDisk'>,
  notifier: Notifier,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): () => void {
  const watchdog = new Watchdog({
    notifier,
    duties: () => daemon.duties(),
    disks: () => daemon.disks(),
    clock,
    log,
  });
  watchdog.start();
  daemon.stuck = () => watchdog.stuck();
  daemon.silentDisk = () => watchdog.silentDisk();
  let told: string | undefined;
  let timer: Timer;
  const tell = (): void => {
    const live = daemon.live();
    const sentence = statusSentence({
      items: daemon.state.counts(),
      peer: { queue: live.queue() },
      figures: live.figures(),
      mirrors: live.mirrors(),
      configuration: live.configuration(),
      stateTrouble: daemon.state.failure,
      diskTrouble: watchdog.silentDisk(),
    });
    if (sentence !== told) notifier.status(sentence);
    told = sentence;
    timer = clock.after(STATUS_EVERY_MS, tell, { background: true });
  };
  tell();
  return () => {
    watchdog.stop();
    timer.cancel();
  };
}
