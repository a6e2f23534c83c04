import { askDaemon } from '../../src/daemon/control.js';
import { until } from './wait.js';

type Parameters = Readonly<Record<string, unknown>>;

/** Returns the answer of the daemon that uses a state, line by line; undefined if none runs. */
export async function ask<T>(
  stateDirectory: string,
  question: string,
  parameters: Parameters = {},
): Promise<T[] | undefined> {
  const answer = await askDaemon(stateDirectory, { ask: question, parameters });
  if (answer === undefined) return undefined;
  const lines: T[] = [];
  for await (const line of answer) lines.push(line as T);
  return lines;
}

/** Waits until the daemon takes commands, which is a moment after it says that it runs. */
export async function answers(stateDirectory: string): Promise<void> {
  await until(
    async () => (await ask(stateDirectory, 'status')) !== undefined,
    'the daemon takes commands',
  );
}
