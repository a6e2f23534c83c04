import { askText } from '../../src/api/client.js';
import { REQUESTS } from '../../src/api/requests.js';
import { until } from './wait.js';

type Parameters = Readonly<Record<string, unknown>>;

/** Returns the answer of the daemon that uses a state, line by line; undefined if none runs. */
export async function ask<T>(
  stateDirectory: string,
  question: string,
  parameters: Parameters = {},
): Promise<T[] | undefined> {
  const request = REQUESTS.find(({ name }) => name === question);
  if (request === undefined) throw new Error(`there is no request ${question}`);
  const answer = await askText<unknown>(stateDirectory, request, parameters);
  if (answer === undefined) return undefined;
  const lines: T[] = [];
  for await (const text of answer)
    for (const line of text.trimEnd().split('\n')) lines.push(JSON.parse(line));
  return lines;
}

/** Waits until the daemon takes commands, which is a moment after it says that it runs. */
export async function answers(stateDirectory: string): Promise<void> {
  await until(
    async () => (await ask(stateDirectory, 'status')) !== undefined,
    'the daemon takes commands',
  );
}
