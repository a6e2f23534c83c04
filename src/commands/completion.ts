import { basename } from 'node:path';
import yargs from 'yargs';
import { type Completes, define } from '../cli/command.js';
import { DEFAULT_CONFIG } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { print } from '../cli/output.js';
import { safe } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import type { Config } from '../config/config.js';
import { EXIT } from '../lib/errors.js';

/** The script for fish. That of yargs drops an empty last word, and offers no files. */
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

/**
 * The script for bash. That of yargs puts names with blanks in double quotes, in which bash expands
 * `$(…)`. Here, names are quoted by bash itself.
 */
const BASH_SCRIPT = `###-begin-peersync-completions-###
_peersync_completions()
{
    local current="\${COMP_WORDS[COMP_CWORD]}" names name quoted
    mapfile -t names < <(peersync --get-yargs-completions "\${COMP_WORDS[@]}")
    COMPREPLY=()
    for name in "\${names[@]}"; do
        quoted=$(printf '%q' "$name")
        if [[ $name == "$current"* || $quoted == "$current"* ]]; then COMPREPLY+=("$quoted"); fi
    done
}
complete -o bashdefault -o default -F _peersync_completions peersync
###-end-peersync-completions-###`;

const SHELLS: readonly string[] = ['bash', 'zsh', 'fish'];

/** Prints the script for the named shell, or for the one in `$SHELL`, or for bash. */
export const completionCommand = define({
  positionals: { shell: option.value('bash, zsh or fish') },
  examples: [
    [
      '$0 completion bash >> ~/.bashrc',
      'Complete commands, options and the names of folders and mirrors in bash',
    ],
  ],
  run: async ({ shell: named }) => {
    const own = basename(process.env.SHELL ?? '');
    const shell = named ?? (SHELLS.includes(own) ? own : 'bash');
    if (!SHELLS.includes(shell))
      throw new UsageError(`There is no completion for "${shell}".`, 'Give bash, zsh or fish.');
    // The only place where yargs looks for it.
    process.env.SHELL = shell;
    if (shell === 'fish') print(FISH_SCRIPT);
    else if (shell === 'bash') print(BASH_SCRIPT);
    else yargs().scriptName('peersync').showCompletionScript();
    return EXIT.done;
  },
});

const CONFIG_OPTIONS: readonly string[] = ['-c', '--config'];
const FILE_OPTIONS: readonly string[] = [...CONFIG_OPTIONS, '-o', '--output'];

/**
 * Returns the candidates that only the configuration and the disk know: names of folders and
 * mirrors. For files it returns an empty list, and the shell completes them itself.
 *
 * @param args of the process: the question of the shell, then the words of the command line,
 *   beginning with `peersync`
 * @param completesOf returns what the arguments of a command name
 * @returns the candidates; undefined if yargs knows them from the definitions of the commands
 */
export async function completionsFor(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  completesOf: (command: string) => Completes | undefined,
): Promise<readonly string[] | undefined> {
  const words = args.slice(2);
  const current = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const last = before.at(-1) ?? '';
  if (FILE_OPTIONS.includes(last)) return [];
  const isConfig = (word: string) => CONFIG_OPTIONS.includes(word);
  const [command, sub] = before.filter(
    (word, i) => !/^-/.test(word) && !isConfig(before[i - 1] ?? ''),
  );
  const isAnOption = current.startsWith('-') || (last.startsWith('--') && last !== '--folder');
  if (isAnOption || command === undefined) return undefined;
  const completes = last === '--folder' ? 'folders' : completesOf(command);
  if (completes === undefined) return undefined;
  if (completes === 'files') return [];
  const { loadConfig } = await import('../config/load.js');
  const path = before[before.findLastIndex(isConfig) + 1];
  const isGiven = before.some(isConfig) && path !== undefined;
  // A person pressed a key and did not ask for the faults of the configuration.
  const config = await loadConfig(isGiven ? path : (env.PEERSYNC_CONFIG ?? DEFAULT_CONFIG)).then(
    (loaded) => loaded.config,
    () => undefined,
  );
  const names = config === undefined ? [] : await NAMES[completes](config);
  // In zsh a description follows a colon.
  const isZsh = (env.SHELL ?? '').includes('zsh') || env.ZSH_NAME !== undefined;
  const shown = names.map((name) => (isZsh ? safe(name).replaceAll(':', '\\:') : safe(name)));
  return completes === 'mirrors' && sub === undefined ? ['accept', ...shown] : shown;
}

const NAMES: Readonly<
  Record<Exclude<Completes, 'files'>, (config: Config) => string[] | Promise<string[]>>
> = { folders: configuredFolders, 'folders to forget': foldersToForget, mirrors: mirrorsOf };

async function mirrorsOf({ mirror }: Config): Promise<string[]> {
  const { plansOf } = await import('../mirror/plan.js');
  const plans = plansOf(mirror, { meta: () => undefined, metaNames: () => [] });
  return Array.from(plans, ({ name }) => name);
}

function configuredFolders({ folders }: Config): string[] {
  return folders.map(({ name }) => name);
}

/**
 * Folders that left the configuration and are still in the state first, then those that are
 * configured, which take --remove.
 */
async function foldersToForget(config: Config): Promise<string[]> {
  const { readState } = await import('./without-daemon.js');
  const configured = configuredFolders(config);
  const known = await readState(config).then(
    ({ entries }) => [...entries.folders()],
    (): string[] => [],
  );
  return [...known.filter((name) => !configured.includes(name)), ...configured];
}
