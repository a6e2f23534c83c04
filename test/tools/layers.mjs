// Keeps the house in order: imports run downwards only, the rooms of one floor know nothing of each other, the
// clock is asked only through lib/clock.ts, third-party packages enter through the rooms that own them, and a file that a
// person waits for brings along no package but those that it cannot do without.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const src = resolve(import.meta.dirname, '../../src');

/** Which rooms a room may import from (besides itself). */
const allowed = {
  cli: ['commands', 'config', 'lib'],
  index: ['peer', 'lib'],
  'file-thread': ['content', 'watch', 'uplink', 'lib'],
  content: ['lib'],
  commands: [
    'daemon',
    'report',
    'watch',
    'uplink',
    'mirror',
    'content',
    'queue',
    'state',
    'peer',
    'config',
    'lib',
  ],
  daemon: [
    'page',
    'report',
    'watch',
    'uplink',
    'mirror',
    'queue',
    'state',
    'peer',
    'config',
    'lib',
    'embedded',
  ],
  page: ['web', 'report', 'watch', 'uplink', 'mirror', 'queue', 'state', 'peer', 'config', 'lib'],
  report: ['watch', 'uplink', 'mirror', 'queue', 'state', 'peer', 'config', 'lib'],
  watch: ['content', 'state', 'config', 'lib'],
  uplink: ['content', 'queue', 'state', 'peer', 'config', 'lib'],
  mirror: ['queue', 'state', 'peer', 'config', 'lib'],
  queue: ['lib'],
  state: ['lib'],
  peer: ['lib'],
  config: ['lib'],
  embedded: ['web', 'lib'],
  web: ['lib'],
  lib: [],
};
/** Single files that may reach a room their own room may not. */
const exceptions = [{ file: 'commands/peer.ts', room: 'embedded' }];
/**
 * What is part of quick commands, and the packages that each of these files may bring along, itself or by what it imports at
 * its top. Everything else is imported where it is used.
 */
const light = {
  'cli.ts': ['yargs'],
  'commands/check.ts': [],
  'commands/control.ts': [],
  'commands/documents.ts': [],
  'commands/items.ts': [],
  'commands/mirror.ts': [],
  'commands/peer.ts': [],
  'commands/status.ts': [],
  'commands/watch.ts': [],
  'config/load.ts': ['zod'],
  'report/status.ts': [],
  'report/why.ts': ['ignore'],
  'daemon/control.ts': [],
  'daemon/log.ts': [],
  'state/state.ts': ['lowdb'],
  // The status page may be off, and the peer another.
  'daemon/daemon.ts': ['chokidar', 'htmlparser2', 'ignore', 'lowdb', 'mime', 'p-queue', 'undici', 'zod'],
};
const clockWords = /\bDate\.now\(|\bnew Date\(\)|(?<!\.)\bsetTimeout\(|\bsetInterval\(|\bperformance\.now\(/;
/** The page in the browser has a clock of its own. */
const clockFree = new Set(['lib/clock.ts', 'page/browser/model.ts']);

const problems = [];
for (const entry of readdirSync(src, {
  recursive: true,
  withFileTypes: true,
})) {
  if (!entry.isFile() || !/\.tsx?$/.test(entry.name)) continue;
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
/** The import and export statements of a file that load something. */
const atTop = /^(?:import|export)\s+(?!type\s)(?:[\w*\s{},$]+\sfrom\s+)?'([^']+)'/gm;

/** How `file` comes to load each package: the files from itself to the one that imports it. */
function packagesOf(file) {
  const packages = new Map();
  const ways = new Map([[file, [file]]]);
  for (const [at, way] of ways) {
    for (const [, target] of readFileSync(join(src, at), 'utf8').matchAll(atTop)) {
      if (target.startsWith('node:')) continue;
      if (target.startsWith('.')) {
        const to = join(dirname(at), target).replace(/\.js$/, '.ts');
        if (!ways.has(to)) ways.set(to, [...way, to]);
        continue;
      }
      if (!packages.has(target)) packages.set(target, way);
    }
  }
  return packages;
}

for (const [file, may] of Object.entries(light))
  for (const [name, way] of packagesOf(file))
    if (!may.some((package_) => name === package_ || name.startsWith(`${package_}/`)))
      problems.push(`${file} brings '${name}' along, by ${way.join(' → ')}: import it where it is used`);

if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
console.log('layers: in order');
