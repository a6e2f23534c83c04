// Writes the generated parts of the pages anew: the configuration, from the schema, and the
// metrics, from their table. Needs the build.
import { readFileSync, writeFileSync } from 'node:fs';
import { jsonSchema } from '../../.build/config/schema.js';
import { metricDocs } from '../../.build/page/metric-table.js';
import { configDocs } from './config-docs.mjs';

const parts = [
  ['config', 'src/config/README.md', configDocs(jsonSchema())],
  ['metrics', 'src/report/README.md', metricDocs()],
];
for (const [name, page, docs] of parts) {
  const path = new URL(`../../${page}`, import.meta.url);
  const part = new RegExp(`<!-- ${name}:start -->[^]*<!-- ${name}:end -->`);
  const text = readFileSync(path, 'utf8');
  if (!part.test(text)) throw new Error(`${page} lacks the markers of the generated part.`);
  writeFileSync(
    path,
    text.replace(part, () => `<!-- ${name}:start -->\n${docs}\n<!-- ${name}:end -->`),
  );
}
