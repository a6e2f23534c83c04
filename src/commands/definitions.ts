import type { Argv, CommandModule, Options } from 'yargs';
import type { GlobalOptions } from './context.js';

/** An option or a positional argument, as a command defines it. */
export interface Defined {
  readonly name: string;
  readonly words: Options;
}

/** What a command says of itself to the command line, with the commands below it. */
export interface Definition {
  /** With its arguments: `table get <table>`. */
  readonly usage: string;
  readonly describe: string;
  readonly options: readonly Defined[];
  readonly positionals: readonly Defined[];
  /** A command line, beginning with `$0`, and what it is good for. */
  readonly examples: readonly (readonly [line: string, what: string])[];
  readonly commands: readonly Definition[];
}

type Noted = Omit<Definition, 'usage' | 'describe'>;

/** What commands define, `above` being the words that stand before each. */
export function definitionsOf(
  commands: readonly CommandModule<GlobalOptions>[],
  above: readonly string[] = [],
): Definition[] {
  return commands.map((module) => {
    const usage = [...above, [module.command].flat()[0] ?? ''].join(' ');
    const { builder, describe } = module;
    const words = usage.split(' ').filter((word) => /^\w/.test(word));
    const noted = noteOf((yargs) => (typeof builder === 'function' ? builder(yargs) : yargs), words);
    return { usage, describe: typeof describe === 'string' ? describe : '', ...noted };
  });
}

/** What a builder tells yargs. It is given one that only takes notes, and that answers every call with itself. */
export function noteOf(
  builder: (yargs: Argv<GlobalOptions>) => unknown,
  above: readonly string[] = [],
): Noted {
  const options: Defined[] = [];
  const positionals: Defined[] = [];
  const examples: [string, string][] = [];
  const modules: CommandModule<GlobalOptions>[] = [];
  const notes: Readonly<Record<string, unknown>> = {
    option: (name: string, words: Options) => options.push({ name, words }),
    positional: (name: string, words: Options) => positionals.push({ name, words }),
    example: (line: string, what: string) => examples.push([line, what]),
    command: (module: CommandModule<GlobalOptions>) => modules.push(module),
  };
  const taker: unknown = new Proxy(
    {},
    {
      get(_target, method) {
        const note = notes[String(method)];
        return (...words: unknown[]) => {
          if (typeof note === 'function') note(...words);
          return taker;
        };
      },
    },
  );
  builder(taker as Argv<GlobalOptions>);
  return { options, positionals, examples, commands: definitionsOf(modules, above) };
}
