import { z } from 'zod';
import { configSchema } from './schema.js';

/** The JSON Schema (draft 2020-12) of the configuration file as a person writes it, for editors. */
export function jsonSchema(): object {
  return {
    title: 'peersync configuration',
    ...z.toJSONSchema(configSchema, {
      io: 'input',
      override: ({ jsonSchema: node }) => {
        delete node.change;
        delete node.otherwise;
      },
    }),
  };
}
