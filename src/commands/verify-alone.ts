import type { Config } from '../config/config.js';
import { systemClock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { DIALECTS } from '../peer/client.js';
import { chosen, chosenCount } from '../report/items.js';
import { lockState } from '../state/directory.js';
import { State } from '../state/state.js';
import { type Missed, type Verified, type Verifying, verify } from '../uplink/verify.js';
import { withPeer } from './peer-access.js';

const CONCURRENCY = 4;

/** `verify` where no daemon runs. What is to be pushed again is, by the next run. */
export async function verifyAlone(
  config: Config,
  {
    progress,
    repair,
    sample,
  }: { readonly progress: boolean; readonly repair: boolean; readonly sample?: number },
  log: Logger,
  tell: (line: Missed | Verified | Verifying) => void,
): Promise<void> {
  const clock = systemClock;
  await withPeer(config, log, async (client, signal) => {
    const holdMs =
      config.confirm.hold ?? DIALECTS[client.dialect ?? (await client.detect({ signal }))].holdMs;
    const parts = {
      ...{ clock, log, concurrency: CONCURRENCY, holdMs },
      lookUp: (url: string) => client.peerdoc({ url }, { signal }),
    };
    if (!repair) {
      const state = await State.read(config.state.dir);
      const of = progress ? { of: chosenCount(state, sample) } : {};
      const unchanged = { get: (folder: string, path: string) => state.get(folder, path), put: () => {} };
      const reading = { ...parts, state: unchanged, commit: async () => {} };
      for await (const line of verify(await chosen(state, sample), reading, { repair, signal, ...of }))
        tell(line);
      return;
    }
    const lock = await lockState(config.state.dir, { clock });
    try {
      const state = await State.open(config.state.dir, { clock, log });
      try {
        const of = progress ? { of: chosenCount(state, sample) } : {};
        const writing = { ...parts, state, commit: () => state.commit() };
        for await (const line of verify(await chosen(state, sample), writing, { repair, signal, ...of }))
          tell(line);
      } finally {
        await state.close();
      }
    } finally {
      await lock.release();
    }
  });
}
