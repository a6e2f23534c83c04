import { readFileSync } from 'node:fs';

/** The version in package.json, which stands two levels above this file in the source and in the build. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version;
