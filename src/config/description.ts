import { z } from 'zod';
import { configSchema } from './schema.js';

/** The part of a JSON Schema that this room reads; `change` and `otherwise` are ours, for the documentation. */
export interface Description {
  readonly description?: string;
  /** One sentence on when to change the value. */
  readonly change?: string;
  /** What holds when the value is not given, in words, where no fixed default can say it. */
  readonly otherwise?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Description>>;
  readonly required?: readonly string[];
  readonly items?: Description;
  readonly maxProperties?: number;
  readonly pattern?: string;
  readonly anyOf?: readonly Description[];
}

/** What the schema knows of every key of the configuration file. */
export function describeConfig(): Description {
  return z.toJSONSchema(configSchema, { io: 'input' }) as Description;
}

/** What is known of the key at `path`, such as `['folders', 0, 'settle']`. */
export function describeKey(root: Description, path: readonly PropertyKey[]): Description | undefined {
  let node: Description | undefined = root;
  for (const step of path) node = typeof step === 'number' ? node?.items : node?.properties?.[String(step)];
  return node;
}

/** Every key of the file that holds a value, outer ones first: `folders[].settle`. */
export function allKeys(node: Description, prefix = ''): string[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const key = prefix === '' ? name : `${prefix}.${name}`;
    return child.items?.properties
      ? [key, ...allKeys(child.items, `${key}[]`)]
      : [key, ...allKeys(child, key)];
  });
}
