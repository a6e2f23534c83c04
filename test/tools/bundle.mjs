// Makes `dist` of what was compiled: few files that start fast and hold the libraries too, the page's files, the types of the
// library, and the licences of what is in it. What is found by its place (the threads, the page, package.json) stands two levels
// above or beside a chunk just as it does for a module of the source.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { build } from 'rolldown';

const root = resolve(import.meta.dirname, '../..');
const [source, compiled, dist] = [join(root, 'src'), join(root, '.build'), join(root, 'dist')];

rmSync(dist, { recursive: true, force: true });
const { output } = await build({
  input: Object.fromEntries(
    ['cli', 'index', 'file-thread', 'embedded/worker'].map((name) => [name, join(compiled, `${name}.js`)]),
  ),
  platform: 'node',
  logLevel: 'warn',
  // It finds its WebAssembly beside itself.
  external: ['node-sqlite3-wasm'],
  // hdr-histogram-js looks for zlib by eval, and does without it where there is no require.
  checks: { eval: false },
  output: { dir: dist, entryFileNames: '[name].js', chunkFileNames: 'chunks/[name].js', minify: true },
});

for (const { imports = [], fileName } of output)
  for (const name of imports)
    if (!/^(node:|chunks\/|node-sqlite3-wasm$)/.test(name) && !isBuiltin(name))
      throw new Error(`${fileName} imports ${name}, which is not in the package`);
const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
copyTypes('index.d.ts');

const page = join(dist, 'page/browser');
mkdirSync(page, { recursive: true });
// What was compiled may hold scripts that the source has no more.
for (const file of readdirSync(join(source, 'page/browser'))) {
  const name = file.replace(/(?<!\.d)\.ts$/, '.js');
  if (/\.(html|css|svg|js)$/.test(name))
    cpSync(join(name === file ? source : compiled, 'page/browser', name), join(page, name));
}
for (const name of ['uPlot.esm.js', 'uPlot.min.css'])
  cpSync(join(root, 'node_modules/uplot/dist', name), join(page, name));
writeFileSync(join(dist, 'licenses.txt'), licenses([...modules, join(root, 'node_modules/uplot/dist')]));

/** The declarations that a user of the library needs. */
function copyTypes(name) {
  const to = join(dist, name);
  if (existsSync(to)) return;
  const text = readFileSync(join(compiled, name), 'utf8');
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, text);
  for (const [, other] of text.matchAll(/from '(\.[^']+)\.js'/g))
    copyTypes(join(dirname(name), `${other}.d.ts`));
}

/** Name, version and licence of each package of which there is something in the files. */
function licenses(paths) {
  const homes = new Set(paths.map((path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]));
  homes.delete(undefined);
  const texts = [...homes].map((home) => {
    const { name, version, license } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
    const file = readdirSync(home).find((each) => /^licen[cs]e/i.test(each));
    return `${name}@${version}\n\n${file ? readFileSync(join(home, file), 'utf8').trim() : license}\n`;
  });
  return texts.sort().join(`\n${'-'.repeat(80)}\n\n`);
}
