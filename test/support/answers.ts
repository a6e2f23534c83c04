import { askDaemon } from '../../src/daemon/control.js';
import { until } from './wait.js';

/** Waits until the daemon that uses a state takes commands, which is a moment after it says that it runs. */
export async function answers(stateDirectory: string): Promise<void> {
  const isThere = async () => {
    const answer = await askDaemon(stateDirectory, { ask: 'status', parameters: {} });
    for await (const _ of answer ?? []);
    return answer !== undefined;
  };
  await until(isThere, 'the daemon takes commands');
}
