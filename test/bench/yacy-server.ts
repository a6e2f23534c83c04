// The model of a YaCy, ten times as fast as one in all it waits for, but with a fixed time a
// document and a look-up. Its own process. Prints its URL; a message is answered with what it knows
// of the pushes since the message before.
import { timing } from '../wire/yacy/timing.js';
import { YacyModel } from '../wire/yacy/yacy-model.js';

/** The pushes that came; times are in ms from the first to the last. */
export interface Pushes {
  readonly count: number;
  readonly ms: number;
  readonly longestGapMs: number;
}

const [perDocument = 0, perLookUp = 0, perPush = 0] = process.argv.slice(2).map(Number);
const model = await YacyModel.start({
  timing: timing(10, { perDocument, perLookUp, perPush }),
  life: 'file',
});
process.stdout.write(`${model.url}\n`);
process.on('message', () => {
  const times = model.served
    .filter(({ target }) => target.startsWith('/api/push_p'))
    .map(({ at }) => at);
  const longestGapMs = Math.max(0, ...times.map((at, i) => at - (times[i - 1] ?? at)));
  const pushes: Pushes = {
    count: times.length,
    ms: (times.at(-1) ?? 0) - (times[0] ?? 0),
    longestGapMs,
  };
  process.send?.(pushes);
  model.served.length = 0;
});
