import { access } from 'node:fs/promises';

export interface MissingState {
  readonly message: string;
  readonly hint: string;
}

/** What it may mean that nothing is where the state should be; undefined where something is. */
export async function missingState(stateDir: string): Promise<MissingState | undefined> {
  const isThere = await access(stateDir).then(
    () => true,
    () => false,
  );
  if (isThere) return undefined;
  return {
    message: `No daemon runs with this configuration: its state would be in ${stateDir}, where nothing is.`,
    hint: 'If state.dir was changed, which takes effect only by a restart: stop the daemon, move its old directory here, and start it again. Else start it with `peersync run`.',
  };
}
