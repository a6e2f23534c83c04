import { askDaemon } from '../daemon/control.js';
import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import type { Missed, Verified, Verifying } from '../uplink/verify.js';
import {
  configOf,
  define,
  flag,
  openLog,
  print,
  printJson,
  UsageError,
  value,
  wholeNumber,
} from './context.js';
import { answerAlone } from './daemon-access.js';
import { Progress, type Step } from './progress.js';
import { counted, safe } from './text.js';

/** So many items are looked up when nothing else is asked for. */
const SAMPLE = 100;

/** Looks confirmed items up once more: a peer that crashes, or its administrator, can lose documents. */
export const verifyCommand = define({
  options: {
    sample: value(`How many confirmed items, by chance (${SAMPLE} unless given)`),
    all: flag('All of them'),
    repair: flag('Push again what is missing'),
  },
  examples: [
    ['$0 verify', 'A sample'],
    ['$0 verify --all --repair', 'After a crash of the peer'],
  ],
  run: async (options) => {
    if (options.all && options.sample !== undefined)
      throw new UsageError('Both --sample and --all were given.', 'Give one of them.');
    const count = options.sample === undefined ? SAMPLE : wholeNumber('--sample', options.sample);
    const { config } = await configOf(options);
    const { repair } = options;
    // The result goes to the standard output; how far it has come is for who watches.
    const watched = process.stderr.isTTY && !options.json;
    const progress = new Progress(watched ? process.stderr : undefined, systemClock);
    const how = { repair, ...(options.all ? {} : { sample: count }) };
    let lost = 0;
    const question = { ask: 'verify', parameters: how };
    const log = progress.beside(await openLog(options, 2, 'warn'));
    try {
      const answer = await askDaemon(config.state.dir, question, { patienceMs: 0 });
      for await (const each of answer ?? answerAlone(config, log, question)) {
        const line = each as Missed | Verified | Verifying;
        if (line.kind === 'verifying') progress.show(stepOf(line));
        else {
          progress.clear();
          if (options.json) printJson(line);
          else print(verifyText(line, repair));
          if (line.kind === 'missed') lost += 1;
        }
      }
    } finally {
      progress.end();
    }
    return lost > 0 && !repair ? EXIT.quarantined : EXIT.done;
  },
});

function stepOf({ checked, missed, of }: Verifying): Step {
  const looked = of === undefined ? `${checked} looked up` : `${checked}/${of} looked up`;
  return { done: checked, total: of ?? checked, parts: [looked, `${missed} missing`] };
}

/** What is told of one line, for a person. */
export function verifyText(line: Missed | Verified, repair: boolean): string {
  if (line.kind === 'missed') return `missing  ${safe(line.file)}  ${safe(line.url)}: ${safe(line.why)}`;
  const { checked, failed, missed } = line;
  if (checked === 0) return 'Nothing is confirmed yet, so that there is nothing to look up.';
  const unclear =
    failed === 0 ? '' : ` Of ${counted(failed, 'item')} the answer could not be used; the log names them.`;
  if (missed === 0 && failed === 0) return `${counted(checked, 'confirmed item')} looked up: all are there.`;
  if (missed === 0) return `${counted(checked, 'confirmed item')} looked up: none is missing.${unclear}`;
  const next = repair ? 'They are pushed again.' : '`peersync verify --repair` pushes what is missing again.';
  return `${counted(checked, 'confirmed item')} looked up, ${missed} missing. ${next}${unclear}`;
}
