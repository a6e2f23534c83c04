import { stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import yargs from 'yargs';
import { define } from '../cli/command.js';
import { DEFAULT_CONFIG } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer, print } from '../cli/output.js';
import { safe } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import type { Config } from '../config/config.js';
import { EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import { isWithin } from '../lib/text.js';

/** Writes a first configuration that runs as it is, never over another one. */
export const initCommand = define({
  positionals: { folder: option.value('The folder to watch; ./data/inbox unless given') },
  examples: [
    ['$0 init ~/notes', 'Write ./config.json for the folder ~/notes'],
    ['$0 init -c /etc/peersync/config.json', 'Write it elsewhere'],
  ],
  run: async (options) => {
    const path = writtenPath(options.config);
    const folder = options.folder === undefined ? './data/inbox' : writtenPath(options.folder);
    const isThere = await toBeWatched(resolve(dirname(path), folder), join(dirname(path), 'data'));
    const collection = basename(folder).replace(/[^\p{L}\p{M}\p{N}\-_.]+/gu, '-') || 'files';
    const config = { peer: { url: 'embedded' }, folders: [{ path: folder, collection }] };
    try {
      await writeFile(path, `${JSON.stringify(config, null, 2)}\n`, { flag: 'wx', mode: 0o644 });
    } catch (cause) {
      const exists = systemCode(cause) === 'EEXIST';
      throw new PeersyncError({
        code: exists ? 'CONFIG_EXISTS' : 'CONFIG_UNWRITABLE',
        message: exists
          ? `${path} is there already.`
          : `${path} could not be written: ${messageOf(cause)}.`,
        hint: exists
          ? 'Nothing was changed. Add the folder to `folders` there, or name another file with --config.'
          : 'Nothing was changed; name another file with --config.',
        exitCode: EXIT.usage,
        cause,
      });
    }
    return answer(options, { path, folder, collection }, () => [
      `Wrote ${path}: the folder ${folder} goes into the collection "${collection}" of the embedded peer.`,
      'Documents are named by file:// URLs. Where people open the files at another address, set `url` of the',
      'folder to it before the first run: it names the documents for ever. `peersync schema` explains every option.',
      ...(isThere
        ? []
        : ['The folder does not exist yet: create it, or start with `peersync run --create`.']),
      'Then try `peersync check` and `peersync run`.',
    ]);
  },
});

/**
 * @param data where peersync keeps its own files unless the configuration says otherwise
 * @returns whether it is there already
 * @throws UsageError
 */
async function toBeWatched(folder: string, data: string): Promise<boolean> {
  if (isWithin(data, folder))
    throw new UsageError(
      `${folder} holds ${data}, where peersync keeps its own files.`,
      'Name a configuration outside of the folder with --config: they stand beside it.',
    );
  const found = await stat(folder).catch(() => undefined);
  if (found !== undefined && !found.isDirectory())
    throw new UsageError(`${folder} is no directory.`, 'Name the directory that holds it.');
  return found !== undefined;
}

/** The JSON Schema of the configuration, for editors, or that of the answers. */
export const schemaCommand = define({
  options: { output: option.flag('That of what commands answer with --json, in its place') },
  examples: [
    [
      '$0 schema > config.schema.json',
      'Then add "$schema": "./config.schema.json" to the configuration',
    ],
    ['$0 schema --output', 'For programs that read `status --json` and the like'],
  ],
  run: async ({ output }) => {
    const schema = output
      ? (await import('./output.js')).outputSchema()
      : (await import('../config/schema.js')).jsonSchema();
    print(JSON.stringify(schema, null, 2));
    return EXIT.done;
  },
});

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

/**
 * The script for bash. That of yargs puts names with blanks between double quotes, where bash runs
 * what stands in `$(…)`: here a name is written as bash itself quotes it.
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

/**
 * The script for the shell that is named, else for the one in `$SHELL`, else for bash, as where
 * there is no `$SHELL`.
 */
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
const FILE_COMMANDS: readonly string[] = ['why', 'retry', 'push'];

/**
 * What only the configuration and the disk know: names of folders and mirrors, and files, for which
 * the answer is empty, so that the shell completes them itself.
 *
 * @param args of the process: how a shell asks, and behind that the words of the line, the
 *   command's name first
 * @returns what may stand there, or undefined where the definitions of the commands know it
 */
export async function completionsFor(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
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
  if (FILE_COMMANDS.includes(command)) return [];
  const wantsFolder =
    last === '--folder' || ['rescan', 'approve-deletes', 'forget'].includes(command);
  if (!wantsFolder && command !== 'mirror') return undefined;
  const { loadConfig } = await import('../config/load.js');
  const path = before[before.findLastIndex(isConfig) + 1];
  const isGiven = before.some(isConfig) && path !== undefined;
  // A key was pressed, and nobody asked for the mistakes of the configuration.
  const config = await loadConfig(isGiven ? path : (env.PEERSYNC_CONFIG ?? DEFAULT_CONFIG)).then(
    (loaded) => loaded.config,
    () => undefined,
  );
  const isForget = wantsFolder && command === 'forget';
  const namesOf = isForget ? foldersToForget : wantsFolder ? configuredFolders : mirrorsOf;
  const names = config === undefined ? [] : await namesOf(config);
  // Zsh reads a description behind a colon.
  const isZsh = (env.SHELL ?? '').includes('zsh') || env.ZSH_NAME !== undefined;
  const shown = names.map((name) => (isZsh ? safe(name).replaceAll(':', '\\:') : safe(name)));
  return wantsFolder || sub !== undefined ? shown : ['accept', ...shown];
}

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
  const { readState } = await import('./daemon-access.js');
  const configured = configuredFolders(config);
  const known = await readState(config).then(
    ({ entries }) => [...entries.folders()],
    (): string[] => [],
  );
  return [...known.filter((name) => !configured.includes(name)), ...configured];
}
