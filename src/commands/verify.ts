import type { Config } from '../config/config.js';
import { chosen, chosenCount } from '../inspect/sample.js';
import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { DIALECTS } from '../peer/dialects.js';
import { askDaemon } from '../service/control.js';
import { acquireLock } from '../service/lock.js';
import { State } from '../state/state.js';
import { patienceOf } from '../uplink/audit.js';
import { type Missed, type Verified, type Verifying, verify } from '../uplink/verify.js';
import { type Command, prepare, print, printJson, UsageError } from './context.js';
import { wholeNumber } from './option-values.js';
import { withPeer } from './peer-access.js';
import { Progress } from './progress.js';
import type { Step } from './progress-text.js';
import { counted, safe } from './text.js';

/** So many items are looked up when nothing else is asked for. */
const SAMPLE = 100;
const CONCURRENCY = 4;

interface VerifyOptions {
  readonly sample: string | undefined;
  readonly all: boolean;
  readonly repair: boolean;
}

type Line = Missed | Verified | Verifying;
type Told = Exclude<Line, Verifying>;

/** Looks confirmed items up once more: a peer that crashes, or its administrator, can lose documents. */
export const verifyCommand: Command<VerifyOptions> = {
  command: ['verify'],
  describe: 'Look up in the peer once more what is confirmed, and tell what is missing',
  builder: (yargs) =>
    yargs
      .option('sample', {
        type: 'string',
        describe: `How many confirmed items, by chance (${SAMPLE} unless given)`,
        requiresArg: true,
      })
      .option('all', { type: 'boolean', default: false, describe: 'All of them' })
      .option('repair', { type: 'boolean', default: false, describe: 'Push again what is missing' })
      .example('$0 verify', 'A sample')
      .example('$0 verify --all --repair', 'After a crash of the peer'),
  run: async (options) => {
    if (options.all && options.sample !== undefined)
      throw new UsageError('Both --sample and --all were given.', 'Give one of them.');
    const count = options.sample === undefined ? SAMPLE : wholeNumber('--sample', options.sample);
    const { loaded, log } = await prepare(options, { fd: 2, quiet: true });
    const { repair } = options;
    // The result goes to the standard output; how far it has come is for who watches.
    const watched = process.stderr.isTTY && !options.json;
    const progress = new Progress(watched ? process.stderr : undefined, systemClock);
    const how = { repair, progress: watched, ...(options.all ? {} : { sample: count }) };
    let lost = 0;
    const tell = (line: Line) => {
      if (line.kind === 'verifying') {
        progress.show(stepOf(line));
        return;
      }
      progress.clear();
      if (options.json) printJson(line);
      else print(verifyText(line, repair));
      if (line.kind === 'missed') lost += 1;
    };
    const question = { ask: 'verify', parameters: how };
    const answer = await askDaemon(loaded.config.state.dir, question, { patienceMs: 0 });
    try {
      const told = progress.beside(log, options.logLevel ?? 'warn');
      if (answer === undefined) await verifyAlone(loaded.config, how, told, tell);
      else for await (const line of answer) tell(line as Line);
    } finally {
      progress.end();
    }
    return lost > 0 && !repair ? EXIT.quarantined : EXIT.done;
  },
};

function stepOf({ checked, missed, of }: Verifying): Step {
  return { done: checked, total: of, parts: [`${checked}/${of} looked up`, `${missed} missing`] };
}

/** What is told of one line, for a person. */
export function verifyText(line: Told, repair: boolean): string {
  if (line.kind === 'missed') return `missing  ${safe(line.file)}  ${safe(line.url)}: ${safe(line.why)}`;
  const { checked, missed } = line;
  if (checked === 0) return 'Nothing is confirmed yet, so that there is nothing to look up.';
  if (missed === 0) return `${counted(checked, 'confirmed item')} looked up: all are there.`;
  const next = repair ? 'They are pushed again.' : '`peersync verify --repair` pushes what is missing again.';
  return `${counted(checked, 'confirmed item')} looked up, ${missed} missing. ${next}`;
}

/** Without a daemon. What is to be pushed again is, by the next run. */
async function verifyAlone(
  config: Config,
  {
    progress,
    repair,
    sample,
  }: { readonly progress: boolean; readonly repair: boolean; readonly sample?: number },
  log: Logger,
  tell: (line: Line) => void,
): Promise<void> {
  const clock = systemClock;
  await withPeer(config, log, async (client, signal) => {
    const holdMs =
      config.confirm.hold ?? DIALECTS[client.dialect ?? (await client.detect({ signal }))].holdMs;
    const parts = {
      ...{ clock, log, concurrency: CONCURRENCY, patienceMs: patienceOf(holdMs) },
      lookUp: (url: string) => client.peerdoc({ url }, { signal }),
    };
    if (!repair) {
      const state = await State.read(config.state.dir);
      const of = progress ? { of: chosenCount(state, sample) } : {};
      const unchanged = { get: state.get, put: () => {} };
      const reading = { ...parts, state: unchanged, commit: async () => {} };
      for await (const line of verify(chosen(state, sample), reading, { repair, signal, ...of })) tell(line);
      return;
    }
    const lock = await acquireLock(config.state.dir, { clock });
    try {
      const state = await State.open(config.state.dir, { clock, log });
      try {
        const of = progress ? { of: chosenCount(state, sample) } : {};
        const writing = { ...parts, state, commit: () => state.commit() };
        for await (const line of verify(chosen(state, sample), writing, { repair, signal, ...of }))
          tell(line);
      } finally {
        await state.close();
      }
    } finally {
      await lock.release();
    }
  });
}
