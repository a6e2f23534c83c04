import { mirrorSchema } from '../../src/config/schema.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { Mirrors } from '../../src/mirror/mirrors.js';
import { PeerClient } from '../../src/peer/client.js';
import { State } from '../../src/state/state.js';

const [, , baseUrl = '', root = '', stateDir = ''] = process.argv;
const [clock, log] = [systemClock, silentLogger];

/** Mirrors the shared object `x` once, and says how that ended. */
const state = await State.open(stateDir, { clock, log });
const peer = new PeerClient({ baseUrl, dialect: 'yacy' });
const settings = mirrorSchema.parse({ root, shares: [{ data: 'x' }] });
const mirrors = new Mirrors({
  settings: {
    ...settings,
    shares: settings.shares.map((share) => ({ ...share, name: 'x', path: 'x' })),
    tables: [],
    citations: [],
  },
  stateDir,
  state,
  queue: { run: (_, work) => work(new AbortController().signal) },
  peer,
  clock,
  log,
});
for await (const { failure, changed } of mirrors.run(undefined)) {
  process.stdout.write(`${JSON.stringify(failure?.code ?? changed)}\n`);
}
await mirrors.stop();
await state.close();
await peer.close();
