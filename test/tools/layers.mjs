// Keeps the order of src: imports run downwards only and in no circle, the rooms of one floor know
// nothing of each other, the clock is asked only through lib/clock.ts, and a file that a person
// waits for brings along no package but those that it cannot do without.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

const src = resolve(import.meta.dirname, '../../src');

/** Which rooms a room may import from (besides itself). */
const allowed = {
  'cli.ts': 'commands cli lib',
  'index.ts': 'peer lib',
  'file-thread.ts': 'content watch uplink lib',
  'document-process.ts': 'content uplink lib',
  commands: 'cli daemon api report watch uplink mirror content queue state peer config lib',
  cli: 'daemon peer config lib',
  daemon:
    'page web api report fleet watch uplink mirror content queue state peer config embedded lib',
  page: 'web api report watch uplink mirror queue state peer config lib',
  api: 'web report watch uplink mirror queue state peer config lib',
  report: 'watch uplink mirror queue state peer config lib',
  fleet: 'uplink content state peer config lib',
  watch: 'content state config lib',
  uplink: 'content queue state peer config lib',
  mirror: 'queue state peer config lib',
  embedded: 'web content lib',
  web: 'lib',
  content: 'lib',
  queue: 'lib',
  peer: 'lib',
  state: 'lib',
  config: 'lib',
  lib: '',
};
/** Files that may reach a room which their own room may not. */
const exceptions = {
  'commands/peer.ts': 'embedded',
  'commands/peer-backup.ts': 'embedded',
  'commands/worker.ts': 'fleet',
  'commands/check-fleet.ts': 'fleet',
  // Only types.
  'report/fleet.ts': 'fleet',
};
/**
 * Files that quick commands load, with the packages that each of them may load statically, itself
 * or by its imports. All other packages are imported on demand.
 */
const light = {
  // Yargs measures texts, too.
  'cli.ts': 'string-width yargs',
  'commands/approve-deletes.ts': 'string-width zod',
  'commands/check.ts': 'string-width zod',
  'commands/citation.ts': 'string-width zod',
  'commands/doc.ts': 'string-width zod',
  'commands/share.ts': 'string-width zod',
  'commands/forget.ts': 'string-width zod',
  'commands/list.ts': 'string-width zod',
  'commands/mirror.ts': 'string-width zod',
  'commands/pause.ts': 'string-width zod',
  'commands/peer.ts': 'string-width zod',
  'commands/reload.ts': 'string-width zod',
  'commands/rescan.ts': 'string-width zod',
  'commands/retry.ts': 'string-width zod',
  'commands/status.ts': 'string-width zod',
  'commands/verify.ts': 'string-width zod',
  'commands/watch.ts': 'string-width zod',
  'commands/why.ts': 'string-width zod',
  'config/load.ts': 'zod',
  'report/status.ts': '',
  'report/why.ts': 'ignore',
  'api/client.ts': 'zod',
  'daemon/control.ts': 'htmlparser2 ignore zod',
  'daemon/log.ts': '',
  'state/state.ts': 'lowdb',
  // The status page may be off, and the peer another.
  'daemon/daemon.ts': 'chardet chokidar htmlparser2 ignore lowdb mime p-queue undici zod',
};
const clockWords =
  /\bDate\.now\(|\bnew Date\(\)|(?<!\.)\bsetTimeout\(|\bsetInterval\(|\bperformance\.now\(/;
/** The page in the browser has a clock of its own. */
const clockFree = ['lib/clock.ts', 'page/browser/model.ts'];

/** Any import, `import type` and `import()` included; and those at the top that load something. */
const anyImport = /(?:from|import)\s*\(?\s*'([^']+)'/g;
const loading = /^(?:import|export)\s+(?!type\s)(?:[\w*\s{},$]+\sfrom\s+)?'([^']+)'/gm;

const texts = new Map();
for (const entry of readdirSync(src, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name);
  if (entry.isFile() && /\.tsx?$/.test(path))
    texts.set(relative(src, path), readFileSync(path, 'utf8'));
}
const problems = [];
for (const [file, text] of texts) {
  const room = roomOf(file);
  if (allowed[room] === undefined) problems.push(`${file}: '${room}' is no room of src`);
  const mayUse = `${room} ${allowed[room]} ${exceptions[file]}`.split(' ');
  for (const to of importsOf(file, anyImport).files)
    if (!mayUse.includes(roomOf(to))) problems.push(`${file}: '${room}' may not import from ${to}`);
  if (file !== 'lib/slices.ts' && text.includes("'node:timers/promises'"))
    problems.push(`${file} cuts its work into slices by itself: use lib/slices.ts`);
  if (clockFree.includes(file)) continue;
  for (const [i, line] of text.split('\n').entries())
    if (clockWords.test(line) && !line.trimStart().startsWith('*'))
      problems.push(`${file}:${i + 1}: ask the clock of lib/clock.ts instead: ${line.trim()}`);
}
const circles = [...texts.keys()].flatMap((file) => reached(file, anyImport).back ?? []);
const [shortest] = circles.toSorted((a, b) => a.length - b.length);
if (shortest !== undefined) problems.push(`a circle of imports: ${shortest.join(' → ')}`);
for (const [file, may] of Object.entries(light))
  for (const [name, way] of reached(file, loading).packages)
    if (!may.split(' ').some((package_) => name === package_ || name.startsWith(`${package_}/`)))
      problems.push(
        `${file} brings '${name}' along, by ${way.join(' → ')}: import it where it is used`,
      );

if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
console.log('layers: in order');

function roomOf(file) {
  return file.split('/')[0];
}

/** The files of src, and the packages, that a file imports. */
function importsOf(file, kind) {
  const targets = [...texts.get(file).matchAll(kind)].map(([, target]) => target);
  const paths = targets
    .filter((target) => target.startsWith('.'))
    .map((target) => join(file, '..', target));
  const files = paths.flatMap((path) =>
    ['.ts', '.tsx'].map((end) => path.replace(/\.js$/, end)).filter((path) => texts.has(path)),
  );
  return { files, packages: targets.filter((target) => !/^(\.|node:)/.test(target)) };
}

/**
 * The packages that a file comes to load, each with the shortest way there; and in a list the way
 * back to itself, if there is one.
 */
function reached(file, kind) {
  const ways = new Map([[file, [file]]]);
  const packages = new Map();
  let back;
  for (const [at, way] of ways) {
    const imports = importsOf(at, kind);
    for (const name of imports.packages) if (!packages.has(name)) packages.set(name, way);
    for (const to of imports.files) {
      if (to === file) back ??= [[...way, file]];
      if (!ways.has(to)) ways.set(to, [...way, to]);
    }
  }
  return { packages, back };
}
