import { jsonSchema } from '../config/json-schema.js';
import { EXIT } from '../lib/errors.js';
import { type Command, print } from './context.js';
import { HEADS } from './heads.js';

/** The JSON Schema of the configuration, for editors. */
export const schemaCommand: Command<object> = {
  ...HEADS.schema,
  builder: (yargs) =>
    yargs.example(
      '$0 schema > config.schema.json',
      'Then add "$schema": "./config.schema.json" to the configuration',
    ),
  run: async () => {
    print(JSON.stringify(jsonSchema(), null, 2));
    return EXIT.done;
  },
};
