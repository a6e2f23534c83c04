import type { Argv } from 'yargs';
import type { Config } from '../config/config.js';
import { COMPLETION } from './commands.js';
import { DEFAULT_CONFIG, type GlobalOptions, UsageError } from './context.js';
import { safe } from './text.js';

const SHELLS: readonly string[] = ['bash', 'zsh', 'fish'];

/**
 * The arguments without the shell of `completion SHELL`. It goes into `env.SHELL`, which is the only place where yargs
 * looks for it.
 *
 * @throws UsageError for a shell that yargs has no script for
 */
export function withoutShell(args: readonly string[], env: NodeJS.ProcessEnv): string[] {
  const [command, shell, ...rest] = args;
  if (command !== 'completion' || shell === undefined || shell.startsWith('-')) return [...args];
  if (!SHELLS.includes(shell))
    throw new UsageError(
      `There is no completion for "${shell}".`,
      `Give ${SHELLS.slice(0, -1).join(', ')} or ${SHELLS.at(-1)}; without one it is for the shell in $SHELL.`,
    );
  env.SHELL = shell;
  return [command, ...rest];
}

/** Adds the command: that of yargs, but where its help is asked for, for which yargs would print the script. */
export function withCompletion(yargs: Argv<GlobalOptions>, args: readonly string[]): Argv<GlobalOptions> {
  const { describe, examples = [], usage } = COMPLETION;
  if (!args.includes('--help') && !args.includes('-h')) return yargs.completion('completion', describe);
  return yargs.command(usage, describe, (its) => its.example(examples.map(([line, what]) => [line, what])));
}

/** That of yargs leaves out an empty last word, and offers no files. */
const FISH_SCRIPT = `###-begin-peersync-completions-###
# Installation: peersync completion fish > ~/.config/fish/completions/peersync.fish
function __peersync_complete
    set -l current (commandline -ct)
    set -l found (peersync --get-yargs-completions (commandline -opc) "$current")
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -f -c peersync -a '(__peersync_complete)'
###-end-peersync-completions-###`;

/** The script for fish, where that is what the arguments ask for. */
export function fishScript(args: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  const [command, shell, ...rest] = args;
  if (command !== 'completion' || rest.length > 0) return undefined;
  const isFish = shell === undefined ? /(^|\/)fish$/.test(env.SHELL ?? '') : shell === 'fish';
  return isFish ? FISH_SCRIPT : undefined;
}

/** How a shell asks; behind it stand the words of the line, the command's name first. */
const QUESTION = '--get-yargs-completions';
/** A person waits with a finger on the key. */
const PATIENCE_MS = 500;

const CONFIG_OPTIONS: readonly string[] = ['-c', '--config'];
const FILE_OPTIONS: readonly string[] = [...CONFIG_OPTIONS, '-o', '--output'];
const FILE_COMMANDS: readonly string[] = ['why', 'retry', 'push'];

// What answers is loaded where it is asked: this file is part of every start.

/**
 * What only the configuration and the disk know: names of folders and mirrors, and files, for which the answer is empty, so
 * that the shell completes them itself.
 *
 * @param args of the process
 * @returns what may stand there, or undefined where the definitions of the commands know it
 */
export async function completionsFor(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<readonly string[] | undefined> {
  if (args[0] !== QUESTION) return undefined;
  const words = args.slice(2);
  const current = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const last = before.at(-1) ?? '';
  if (FILE_OPTIONS.includes(last)) return [];
  const configPath = () => optionOf(before, CONFIG_OPTIONS) ?? env.PEERSYNC_CONFIG ?? DEFAULT_CONFIG;
  if (last === '--folder') return named(await folderNames(configPath()), env);
  if (current.startsWith('-') || last.startsWith('--')) return undefined;
  const [command, sub] = before.filter((word, i) => !word.startsWith('-') && !isValue(before, i));
  if (command === undefined) return undefined;
  if (FILE_COMMANDS.includes(command)) return [];
  if (command === 'rescan') return named(await folderNames(configPath()), env);
  if (command !== 'mirror') return undefined;
  const names = named(await mirrorNames(configPath()), env);
  return sub === undefined ? ['accept', ...names] : names;
}

function isValue(words: readonly string[], at: number): boolean {
  return CONFIG_OPTIONS.includes(words[at - 1] ?? '');
}

function optionOf(words: readonly string[], names: readonly string[]): string | undefined {
  const at = words.findLastIndex((word) => names.includes(word));
  return at === -1 ? undefined : words[at + 1];
}

/** Zsh reads a description behind a colon. */
function named(names: readonly string[], env: NodeJS.ProcessEnv): string[] {
  const isZsh = (env.SHELL ?? '').includes('zsh') || env.ZSH_NAME !== undefined;
  return names.map((name) => (isZsh ? safe(name).replaceAll(':', '\\:') : safe(name)));
}

async function folderNames(path: string): Promise<readonly string[]> {
  return (await configAt(path))?.folders.map(({ name }) => name) ?? [];
}

/** By the running daemon, which knows what patterns brought, else by the configuration. */
async function mirrorNames(path: string): Promise<readonly string[]> {
  const config = await configAt(path);
  if (config === undefined) return [];
  const { runningStatus } = await import('./daemon-access.js');
  try {
    const status = await runningStatus(config.state.dir, { patienceMs: PATIENCE_MS });
    if (status !== undefined) return status.mirrors.map(({ name }) => name);
  } catch {
    // A daemon that is busy or of another user.
  }
  const { planOf } = await import('../mirror/plan.js');
  return planOf(config.mirror, { meta: () => undefined, metaNames: () => [] }).map(({ name }) => name);
}

/** Nothing where it cannot be read: a key was pressed, and nobody asked for its mistakes. */
async function configAt(path: string): Promise<Config | undefined> {
  const { loadConfig } = await import('../config/load.js');
  try {
    return (await loadConfig(path)).config;
  } catch {
    return undefined;
  }
}
