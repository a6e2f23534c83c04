// Keeps the house in order: imports run downwards only, the rooms of one floor know nothing of each other, the
// clock is asked only through lib/clock.ts, and third-party packages enter through the rooms that own them.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const src = resolve(import.meta.dirname ?? dirname(new URL(import.meta.url).pathname), '../../src');

/** Which rooms a room may import from (besides itself). */
const allowed = {
  cli: ['commands', 'config', 'lib', 'service'],
  index: ['peer', 'lib'],
  'file-thread': ['watch', 'uplink', 'lib'],
  commands: [
    'daemon',
    'inspect',
    'figures',
    'watch',
    'uplink',
    'mirror',
    'service',
    'queue',
    'state',
    'peer',
    'config',
    'lib',
  ],
  daemon: [
    'page',
    'inspect',
    'figures',
    'watch',
    'uplink',
    'mirror',
    'service',
    'queue',
    'state',
    'peer',
    'config',
    'lib',
    'embedded',
  ],
  page: [
    'inspect',
    'figures',
    'watch',
    'uplink',
    'mirror',
    'service',
    'queue',
    'state',
    'peer',
    'config',
    'lib',
  ],
  inspect: ['figures', 'watch', 'uplink', 'mirror', 'service', 'queue', 'state', 'peer', 'config', 'lib'],
  figures: ['state', 'config', 'lib'],
  watch: ['state', 'config', 'lib'],
  uplink: ['queue', 'state', 'peer', 'config', 'lib'],
  mirror: ['queue', 'state', 'peer', 'config', 'lib'],
  service: ['queue', 'state', 'peer', 'config', 'lib'],
  queue: ['lib'],
  state: ['lib'],
  peer: ['lib'],
  config: ['lib'],
  embedded: ['lib'],
  lib: [],
};
/** Single files that may reach a room their own room may not. */
const exceptions = [{ file: 'commands/peer.ts', room: 'embedded' }];
const clockWords = /\bDate\.now\(|\bnew Date\(\)|\bsetTimeout\(|\bsetInterval\(|\bperformance\.now\(/;
/** The page in the browser has a clock of its own. */
const clockFree = new Set(['lib/clock.ts', 'page/browser/clock.ts']);

const problems = [];
for (const entry of readdirSync(src, {
  recursive: true,
  withFileTypes: true,
})) {
  if (!entry.isFile() || !entry.name.endsWith('.ts')) continue;
  const path = join(entry.parentPath, entry.name);
  const file = relative(src, path);
  const room = file.includes('/') ? file.split('/')[0] : file.replace(/\.ts$/, '');
  const mayUse = allowed[room];
  if (!mayUse) {
    problems.push(`${file}: '${room}' is no room of the house`);
    continue;
  }
  const text = readFileSync(path, 'utf8');
  for (const [, target] of text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
    const to = relative(src, resolve(dirname(path), target));
    const toRoom = to.includes('/') ? to.split('/')[0] : to.replace(/\.[jt]s$/, '');
    if (toRoom === room || mayUse.includes(toRoom)) continue;
    if (exceptions.some((e) => e.file === file && e.room === toRoom)) continue;
    problems.push(`${file}: '${room}' may not import from '${toRoom}' (${target})`);
  }
  if (!clockFree.has(file)) {
    text.split('\n').forEach((line, i) => {
      if (clockWords.test(line) && !line.trimStart().startsWith('*'))
        problems.push(`${file}:${i + 1}: ask the clock of lib/clock.ts instead: ${line.trim()}`);
    });
  }
}
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
console.log('layers: in order');
