import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { loadConfig } from '../../src/config/load.js';
import { type JsonSchema, jsonSchema } from '../../src/config/schema.js';
import { configDocs } from '../tools/config-docs.mjs';
import { inbox } from './setup.js';

const root = resolve(import.meta.dirname, '../..');
const readme = join(root, 'src/config/README.md');

/** Returns every key below `node`, with its schema. */
function entries(node: JsonSchema, prefix = ''): [string, JsonSchema][] {
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const key = `${prefix}${name}`;
    const inner = child.items?.properties ? child.items : child;
    return [[key, child], ...entries(inner, `${key}.`)] as [string, JsonSchema][];
  });
}

describe('the documentation of the configuration', () => {
  it('describes every key', () => {
    const bare = entries(jsonSchema()).filter(([, { description }]) => !description);
    expect(bare).toEqual([]);
  });

  it('is in src/config/README.md as `npm run docs` writes it', () => {
    const [, section] = readFileSync(readme, 'utf8').split(
      /<!-- config:start -->\n|<!-- config:end -->/,
    );
    expect(section?.trim()).toBe(configDocs(jsonSchema()).trim());
  });
});

describe('the JSON Schema', () => {
  it('accepts and refuses the same values as loading does', () => {
    // The validator in this test supports only patterns without the "u" that JSON Schema demands.
    const plain = JSON.stringify(jsonSchema()).replaceAll('\\\\p{L}\\\\p{M}\\\\p{N}', 'a-z');
    const schema = z.fromJSONSchema(JSON.parse(plain));
    const takes = (config: object) => schema.safeParse(config).success;
    expect(takes(JSON.parse(readFileSync(join(root, 'config.example.json'), 'utf8')))).toBe(true);
    expect(takes({ folders: [{ ...inbox, settle: '1h30m', maxFileSize: 5000 }] })).toBe(true);
    for (const wrong of [
      {},
      { folders: [] },
      { folders: [inbox], pushh: {} },
      { folders: [{ ...inbox, settle: '2 parsecs' }] },
      { folders: [{ ...inbox, maxFileSize: '8' }] },
      { folders: [{ ...inbox, collection: 'a,b' }] },
      { folders: [inbox], peer: { auth: { username: 'a', password: 'b' } } },
      { folders: [inbox], push: { maxItems: 0 } },
    ])
      expect(takes(wrong), JSON.stringify(wrong)).toBe(false);
  });
});

it('the example configuration is valid', async () => {
  const { config } = await loadConfig(join(root, 'config.example.json'));
  expect(config.peer.url).toBe('embedded');
  expect(config.folders[0]?.path).toBe(join(root, 'data/inbox'));
});
