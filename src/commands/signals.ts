/** Calls `stop` at the first SIGTERM or SIGINT; the second ends the process as the signal would. */
export function onSignals(stop: (signal: NodeJS.Signals) => void, atOnce = () => {}): () => void {
  let asked = false;
  const listener = (signal: NodeJS.Signals) => {
    if (asked) {
      atOnce();
      unlisten();
      process.kill(process.pid, signal);
      return;
    }
    asked = true;
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
