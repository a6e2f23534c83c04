import { type Command, define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { print } from '../cli/output.js';
import { EXIT } from '../lib/errors.js';

/**
 * Prints the JSON Schema of the configuration, for editors, or that of the answers.
 *
 * @param allCommands returns all commands, which declare the shapes of their answers
 */
export const schemaCommandOf = (allCommands: () => Promise<readonly Command[]>) =>
  define({
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
        ? (await import('../cli/output-schema.js')).outputSchema(await allCommands())
        : (await import('../config/schema.js')).jsonSchema();
      print(JSON.stringify(schema, null, 2));
      return EXIT.done;
    },
  });
