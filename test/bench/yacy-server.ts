// The model of a YaCy, ten times as fast as one in all it waits for, but with a fixed time a document and a look-up. Its own
// process. Prints its URL, and the counts of its requests whenever a line comes in.
import { createInterface } from 'node:readline';
import { timing } from '../wire/yacy/timing.js';
import { YacyModel } from '../wire/yacy/yacy-model.js';

const [perDocument, perLookUp, perPush] = process.argv.slice(2).map(Number);
const model = await YacyModel.start({
  timing: timing(10, { perDocument: perDocument ?? 0, perLookUp: perLookUp ?? 0, perPush: perPush ?? 0 }),
  life: 'file',
});
process.stdout.write(`${model.url}\n`);
for await (const _ of createInterface({ input: process.stdin })) {
  const count = (page: string) => model.served.filter(({ target }) => target.startsWith(page)).length;
  const pushes = model.served.filter(({ target }) => target.startsWith('/api/push_p')).map(({ at }) => at);
  const gaps = pushes.map((at, i) => at - (pushes[i - 1] ?? at));
  process.stdout.write(
    `${JSON.stringify({ pushes: count('/api/push_p'), lookUps: count('/api/yacydoc'), longestGapMs: Math.max(...gaps) })}\n`,
  );
  model.served.length = 0;
}
