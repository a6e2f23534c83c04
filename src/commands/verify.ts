import { verifyItems, verifyOutput } from '../api/verify.js';
import { define } from '../cli/command.js';
import { openLog } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { Progress, type Step } from '../cli/progress.js';
import { counted, safe } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import type { Deviation, Verified, Verifying } from '../uplink/verify.js';
import { askLines, configToAsk } from './ask.js';

/** The usual number of items. */
const SAMPLE = 100;

/**
 * Looks items up in the peer once more. A peer that crashes, or its administrator, can lose
 * documents, and a restored backup brings removed ones back.
 */
export const verifyCommand = define({
  options: {
    sample: option.value(
      `How many confirmed and removed items, by chance (${SAMPLE} unless given)`,
    ),
    all: option.flag('All of them'),
    repair: option.flag('Push again what is missing, and remove again what has come back'),
  },
  output: verifyOutput,
  examples: [
    ['$0 verify', 'A sample'],
    ['$0 verify --all --repair', 'After a crash of the peer, or a restored backup'],
  ],
  run: async (options) => {
    if (options.all && options.sample !== undefined)
      throw new UsageError('Both --sample and --all were given.', 'Give one of them.');
    const count =
      options.sample === undefined ? SAMPLE : option.wholeNumber('--sample', options.sample);
    const config = await configToAsk(options);
    const { repair } = options;
    // The result goes to the standard output, and the progress to a person who watches.
    const watched = process.stderr.isTTY && !options.json;
    const progress = new Progress(watched ? process.stderr : undefined, systemClock);
    const question = { repair, ...(options.all ? {} : { sample: count }) };
    const log = progress.beside(await openLog(options, 2, 'warn'));
    const lines = askLines(options, config, verifyItems, question, { patienceMs: 0, log });
    let deviations = 0;
    try {
      for await (const line of lines) {
        if (line.kind === 'verifying') progress.show(stepOf(line));
        else {
          progress.clear();
          answer(options, line, () => [verifyText(line, repair)]);
          if (line.kind !== 'verified') deviations += 1;
        }
      }
    } finally {
      progress.end();
    }
    return deviations > 0 && !repair ? EXIT.quarantined : EXIT.done;
  },
});

function stepOf({ back, checked, lost, of }: Verifying): Step {
  const looked = of === undefined ? `${checked} looked up` : `${checked}/${of} looked up`;
  return {
    done: checked,
    total: of ?? checked,
    parts: [looked, `${lost} missing`, `${back} back`],
  };
}

/** Returns one line of the answer for a person. */
export function verifyText(line: Deviation | Verified, repair: boolean): string {
  if (line.kind !== 'verified') {
    const what = line.kind === 'lost' ? 'missing' : 'back';
    return `${what.padEnd(7)}  ${safe(line.file)}  ${safe(line.url)}: ${safe(line.why)}`;
  }
  const { back, checked, failed, lost, removed } = line;
  if (checked === 0) return 'Nothing is confirmed yet, so that there is nothing to look up.';
  const confirmed = checked - removed;
  const sentences: string[] = [];
  if (confirmed > 0) {
    const looked = `${counted(confirmed, 'confirmed item')} looked up`;
    if (lost > 0)
      sentences.push(`${looked}, ${lost} missing.`, repair ? PUSHED_AGAIN : PUSHES_AGAIN);
    else sentences.push(`${looked}: ${failed === 0 ? 'all are there' : 'none is missing'}.`);
  }
  if (removed > 0) {
    const looked = `${counted(removed, 'removed item')} looked up`;
    if (back > 0)
      sentences.push(`${looked}, ${back} back.`, repair ? REMOVED_AGAIN : REMOVES_AGAIN);
    else sentences.push(`${looked}: none has come back.`);
  }
  if (failed > 0)
    sentences.push(
      `Of ${counted(failed, 'item')} the answer could not be used; the log names them.`,
    );
  return sentences.join(' ');
}

const BY_DAEMON = 'by the daemon, or by `peersync once` where none runs.';
const PUSHED_AGAIN = `What is missing is pushed again ${BY_DAEMON}`;
const REMOVED_AGAIN = `What is back is removed again ${BY_DAEMON}`;
const PUSHES_AGAIN = '`peersync verify --all --repair` pushes again what is missing.';
const REMOVES_AGAIN = '`peersync verify --all --repair` removes again what is back.';
