import { z } from 'zod';
import { type Command, nameOf } from './command.js';

/**
 * The version of all shapes of answers with --json. Fields may be added at any time; any other
 * change makes a new version. Times and durations are numbers in ms, times since the epoch.
 */
const OUTPUT_VERSION = 4;

/** The shape of an error, on the standard error. */
const error = z.object({
  error: z.object({ code: z.string(), message: z.string(), hint: z.string() }),
});

/** Returns the shapes that the commands declare, by command line: `check`, `check --canary`. */
export function shapesOf(commands: readonly Command[], above = ''): Map<string, z.ZodType> {
  const shapes = new Map<string, z.ZodType>();
  for (const { usage, output, outputWith = {}, commands: below = [] } of commands) {
    const name = `${above}${nameOf(usage)}`;
    if (output !== undefined) shapes.set(name, output);
    for (const [option, shape] of Object.entries(outputWith))
      shapes.set(`${name} ${option}`, shape);
    for (const [each, shape] of shapesOf(below, `${name} `)) shapes.set(each, shape);
  }
  return shapes;
}

/** Returns one JSON Schema with the shapes of all commands and of errors. */
export function outputSchema(commands: readonly Command[]): object {
  // A program may meet fields that a later version adds, so no shape forbids others.
  const jsonSchema = (shape: z.ZodType) => z.toJSONSchema(shape, { reused: 'inline', io: 'input' });
  const all = [...shapesOf(commands), ['error', error] as const];
  return {
    title: 'What peersync commands answer with --json, one object a line',
    version: OUTPUT_VERSION,
    $defs: Object.fromEntries(all.map(([name, shape]) => [name, jsonSchema(shape)])),
  };
}
