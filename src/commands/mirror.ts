import type { Config } from '../config/config.js';
import { formatBytes } from '../config/units.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, type ExitCode, PeersyncError } from '../lib/errors.js';
import { sentence } from '../lib/sentence.js';
import type { MirrorReport } from '../mirror/record.js';
import { type Command, moduleOf, prepare, print, printJson } from './context.js';
import { askOr } from './offline.js';
import { onSignals } from './run.js';
import { counted, safe } from './text.js';

interface MirrorOptions {
  readonly names: readonly string[] | undefined;
}

/** Runs mirrors now, by the running daemon or, where none runs, by itself. */
export const mirrorCommand: Command<MirrorOptions> = {
  command: ['mirror [names..]'],
  describe: "Bring the files that follow the peer's tables and shared objects up to date now",
  builder: (yargs) =>
    yargs
      .command(moduleOf(acceptCommand))
      .positional('names', { type: 'string', array: true, describe: 'Only the mirrors with these names' })
      .example('$0 mirror', 'All of them')
      .example('$0 mirror prices', 'One of them')
      .example('$0 mirror accept prices', 'Take what the peer says, after an alarm'),
  run: async (options) => {
    const { names } = options;
    return await report('mirror', names === undefined || names.length === 0 ? {} : { names }, options);
  },
};

/** A person accepts what raised an alarm. */
const acceptCommand: Command<{ readonly names: readonly string[] }> = {
  command: ['accept <names..>'],
  describe: 'Accept what raised the alarm of a mirror: its file follows the peer again',
  builder: (yargs) =>
    yargs
      .positional('names', {
        type: 'string',
        array: true,
        demandOption: true,
        describe: 'The mirrors, as `status` names them',
      })
      .example('$0 mirror accept prices', 'After its table became empty on purpose'),
  run: async (options) => await report('mirror-accept', { names: options.names }, options),
};

async function report(
  ask: 'mirror' | 'mirror-accept',
  parameters: { readonly names?: readonly string[] },
  options: Parameters<typeof prepare>[0],
): Promise<ExitCode> {
  const { loaded, log } = await prepare(options, { fd: 2, quiet: true });
  const { config } = loaded;
  let exitCode: ExitCode = EXIT.done;
  let mirrors = 0;
  for await (const each of askOr(config, ask, { ...parameters }, () => alone(config, log, ask, parameters))) {
    mirrors += 1;
    if (options.json) printJson(each);
    else for (const line of reportLines(each)) print(line);
    exitCode = worse(exitCode, exitCodeOf(each));
  }
  if (mirrors === 0 && !options.json)
    print('The configuration names no mirrors: see `mirror` in the README for what they do.');
  return exitCode;
}

/** Opens everything for the mirrors alone: nothing is scanned or pushed. */
async function* alone(
  config: Config,
  log: Awaited<ReturnType<typeof prepare>>['log'],
  ask: 'mirror' | 'mirror-accept',
  { names }: { readonly names?: readonly string[] },
): AsyncGenerator<MirrorReport> {
  const ending = new AbortController();
  const { signal } = ending;
  const unlisten = onSignals(() => ending.abort(stopped()));
  try {
    const { Daemon } = await import('../daemon.js');
    const daemon = await Daemon.open({
      config,
      clock: systemClock,
      log,
      follow: false,
      patient: false,
      onFailure: (error) => ending.abort(error),
    });
    try {
      if (ask === 'mirror') yield* daemon.mirrors.run(names, { signal });
      else for (const name of names ?? []) yield await daemon.mirrors.accept(name, { signal });
    } finally {
      await daemon.stop();
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    unlisten();
  }
}

function stopped(): PeersyncError {
  return new PeersyncError({
    code: 'STOPPED',
    message: 'Stopped before every mirror was looked at.',
    hint: 'Nothing is lost: every file is whole, and the next run goes on from here.',
  });
}

/** What a run of one mirror came to, for a person. */
export function reportLines(report: MirrorReport): string[] {
  const { name, path, changed, rows, bytes, alarm, failure, notes = [], conflicts = [] } = report;
  const what = [
    rows === undefined ? undefined : counted(rows, 'row'),
    bytes === undefined ? undefined : formatBytes(bytes),
  ]
    .filter((part) => part !== undefined)
    .join(', ');
  const lines: string[] = [];
  if (alarm !== undefined)
    lines.push(`${safe(name)}: ALARM: ${safe(sentence(alarm.message))} ${safe(sentence(alarm.hint))}`);
  else if (failure !== undefined)
    lines.push(`${safe(name)}: failed: ${safe(sentence(failure.message))} ${safe(sentence(failure.hint))}`);
  else
    lines.push(
      `${safe(name)}: ${safe(path)} ${changed ? 'written' : 'unchanged'}${what === '' ? '' : ` (${what})`}`,
    );
  for (const note of notes) lines.push(`  ${safe(note)}`);
  const files = [...new Set(conflicts.map(({ file }) => file))];
  for (const file of files)
    lines.push(
      `  ${counted(conflicts.filter((c) => c.file === file).length, 'cell')} changed on both sides: the peer's value was kept, yours is in ${safe(file)}`,
    );
  return lines;
}

/** 3 for an alarm; 4 or 1 for a run that failed. */
export function exitCodeOf({ alarm, failure }: MirrorReport): ExitCode {
  if (failure !== undefined)
    return failure.code === 'PEER_UNREACHABLE' || failure.code === 'PEER_TIMEOUT'
      ? EXIT.unreachable
      : EXIT.failure;
  return alarm === undefined ? EXIT.done : EXIT.quarantined;
}

const SEVERITY: readonly ExitCode[] = [EXIT.done, EXIT.quarantined, EXIT.unreachable, EXIT.failure];

/** The one of two that a script should hear of. */
export function worse(a: ExitCode, b: ExitCode): ExitCode {
  return SEVERITY.indexOf(a) > SEVERITY.indexOf(b) ? a : b;
}
