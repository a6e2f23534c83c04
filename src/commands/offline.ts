import type { Config } from '../config/config.js';
import { askDaemon } from '../daemon/control.js';

/**
 * What the running daemon answers, or, where none runs, what `offline` finds out by itself.
 *
 * @param options.patienceMs as for `askDaemon`
 * @throws PeersyncError of either
 */
export async function* askOr<T>(
  config: Config,
  ask: string,
  parameters: Readonly<Record<string, unknown>>,
  offline: () => AsyncIterable<T> | Promise<Iterable<T>>,
  options: { readonly patienceMs?: number } = {},
): AsyncGenerator<T> {
  const answer = await askDaemon(config.state.dir, { ask, parameters }, options);
  if (answer === undefined) yield* await offline();
  else for await (const line of answer) yield line as T;
}
