import { restoreTerminal } from './progress.js';

/** Calls `stop` at the first SIGTERM or SIGINT; the second ends the process as the signal would. */
export function onSignals(stop: (signal: NodeJS.Signals) => void, atOnce = () => {}): () => void {
  let isStopping = false;
  const listener = (signal: NodeJS.Signals) => {
    if (isStopping) {
      atOnce();
      restoreTerminal();
      unlisten();
      process.kill(process.pid, signal);
      return;
    }
    isStopping = true;
    stop(signal);
  };
  const unlisten = () => {
    process.off('SIGTERM', listener);
    process.off('SIGINT', listener);
  };
  process.on('SIGTERM', listener);
  process.on('SIGINT', listener);
  return unlisten;
}

/**
 * Runs `use` until it ends, or the first SIGTERM or SIGINT aborts it. Other work that it started
 * with the controller ends with it.
 */
export async function untilStopped<T>(use: (ending: AbortController) => Promise<T>): Promise<T> {
  const ending = new AbortController();
  const unlisten = onSignals(() => ending.abort());
  try {
    return await use(ending);
  } finally {
    ending.abort();
    unlisten();
  }
}
