import type { Config } from '../config/config.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, type ExitCode, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { MirrorReport } from '../mirror/record.js';
import { type Command, moduleOf, prepare, print, printJson } from './context.js';
import { giveUpInTime } from './give-up.js';
import { HEADS } from './heads.js';
import { runLines } from './mirror-text.js';
import { askOr } from './offline.js';
import { onSignals } from './signals.js';

interface MirrorOptions {
  readonly names: readonly string[] | undefined;
}

/** Runs mirrors now, by the running daemon or, where none runs, by itself. */
export const mirrorCommand: Command<MirrorOptions> = {
  ...HEADS.mirror,
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
  const told = options.json ? log : withoutMirrors(log);
  let exitCode: ExitCode = EXIT.done;
  let mirrors = 0;
  const offline = () => alone(config, told, ask, parameters);
  // A large table may take long before there is anything to say.
  for await (const each of askOr(config, ask, { ...parameters }, offline, { patienceMs: 0 })) {
    mirrors += 1;
    if (options.json) printJson(each);
    else for (const line of runLines(each, config.mirror.root)) print(line);
    exitCode = worse(exitCode, exitCodeOf(each));
  }
  if (mirrors === 0 && !options.json)
    print('The configuration names no mirrors: see `mirror` in the README for what they do.');
  return exitCode;
}

/** Opens everything for the mirrors alone: nothing is scanned or pushed. */
async function* alone(
  config: Config,
  log: Logger,
  ask: 'mirror' | 'mirror-accept',
  { names }: { readonly names?: readonly string[] },
): AsyncGenerator<MirrorReport> {
  const ending = new AbortController();
  const { signal } = ending;
  const unlisten = onSignals(() => ending.abort(stopped()));
  try {
    const { Daemon } = await import('../daemon/daemon.js');
    const daemon = await Daemon.open({
      config,
      clock: systemClock,
      log,
      follow: false,
      patient: false,
      onFailure: (error) => ending.abort(error),
    });
    const lookingOut = giveUpInTime(() => daemon.parts.queue.status(), ending);
    try {
      if (ask === 'mirror') yield* daemon.parts.mirrors.run(names, { signal });
      else for (const name of names ?? []) yield await daemon.parts.mirrors.accept(name, { signal });
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      ending.abort();
      await lookingOut;
      await daemon.stop();
    }
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

/** A log for a command that prints itself what becomes of each mirror. */
export function withoutMirrors(log: Logger): Logger {
  const at = (level: keyof Logger) => (fields: object, message: string) => {
    if (!('event' in fields && fields.event === 'mirror')) log[level](fields, message);
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
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
