// Writes the generated parts of the README anew: the configuration, from the schema, and the metrics, from their table. Needs
// the build.
import { readFileSync, writeFileSync } from 'node:fs';
import { jsonSchema } from '../../.build/config/schema.js';
import { metricDocs } from '../../.build/page/metrics.js';
import { configDocs } from './config-docs.mjs';

const path = new URL('../../README.md', import.meta.url);
const parts = { config: configDocs(jsonSchema()), metrics: metricDocs() };
const readme = Object.entries(parts).reduce(
  (text, [name, docs]) =>
    text.replace(
      new RegExp(`<!-- ${name}:start -->[^]*<!-- ${name}:end -->`),
      () => `<!-- ${name}:start -->\n${docs}\n<!-- ${name}:end -->`,
    ),
  readFileSync(path, 'utf8'),
);
writeFileSync(path, readme);
