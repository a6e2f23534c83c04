// Writes the generated parts of the README anew: the configuration, from the schema. Needs the build.
import { readFileSync, writeFileSync } from 'node:fs';
import { configDocs } from '../../dist/config/docs.js';

const path = new URL('../../README.md', import.meta.url);
const readme = readFileSync(path, 'utf8');
const section = /<!-- config:start -->[\s\S]*<!-- config:end -->/;
writeFileSync(
  path,
  readme.replace(section, () => `<!-- config:start -->\n${configDocs()}\n<!-- config:end -->`),
);
