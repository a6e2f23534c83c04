/**
 * The arguments with `--c` as `--group`: the specification calls the group `c`, and yargs would take that for `-c`, the
 * configuration.
 */
export function withoutShortGroup(args: readonly string[]): string[] {
  const end = args.indexOf('--');
  return args.map((arg, i) =>
    end !== -1 && i > end ? arg : arg === '--c' || arg.startsWith('--c=') ? `--group${arg.slice(3)}` : arg,
  );
}
