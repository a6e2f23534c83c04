type Environment = Readonly<Record<string, string | undefined>>;

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Whether a stream is a terminal on which lines can be drawn anew. */
export function canDraw(stream: { readonly isTTY?: boolean | undefined }, env: Environment): boolean {
  return stream.isTTY === true && env.TERM !== 'dumb';
}

/** Whether colours are wanted where something is drawn (see no-color.org). */
export function wantsColour(env: Environment): boolean {
  return env.NO_COLOR === undefined || env.NO_COLOR === '';
}

/** How wide a terminal is; some do not know and say 0. */
export function columnsOf(stream: { readonly columns?: number | undefined }): number {
  return stream.columns || 80;
}

/**
 * Has a terminal put in order when the process ends, in whatever way it can notice. A signal that nobody else listens to
 * then ends it as if nobody had listened.
 *
 * @returns how to call that off
 */
export function whenLeaving(restore: () => void): () => void {
  const onSignal = (signal: NodeJS.Signals) => {
    if (process.listenerCount(signal) > 1) return;
    leave();
    process.kill(process.pid, signal);
  };
  const callOff = () => {
    process.off('exit', leave);
    for (const signal of ENDING_SIGNALS) process.off(signal, onSignal);
  };
  function leave(): void {
    callOff();
    restore();
  }
  process.on('exit', leave);
  for (const signal of ENDING_SIGNALS) process.on(signal, onSignal);
  return callOff;
}
