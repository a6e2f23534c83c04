import { UsageError } from './context.js';

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
