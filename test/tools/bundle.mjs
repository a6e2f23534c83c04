// Makes `dist` of what was compiled: few files that start fast and hold the libraries too, the
// page's files, the types of the library, and the licences of what is in it. What is found by its
// place (the threads, the page, package.json) stands two levels above or beside a chunk just as it
// does for a module of the source.
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { build } from 'rolldown';

const root = resolve(import.meta.dirname, '../..');
const [compiled, dist] = [join(root, '.build'), join(root, 'dist')];

rmSync(dist, { recursive: true, force: true });
const { output } = await build({
  input: Object.fromEntries(
    ['cli', 'index', 'file-thread', 'document-process', 'embedded/worker'].map((name) => [
      name,
      join(compiled, `${name}.js`),
    ]),
  ),
  platform: 'node',
  logLevel: 'warn',
  // It finds its WebAssembly beside itself.
  external: ['node-sqlite3-wasm'],
  // One version of it, and the one that is quick with plain letters: the help is laid out by it.
  resolve: { alias: { 'string-width': join(root, 'node_modules/string-width') } },
  output: {
    dir: dist,
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name].js',
    minify: true,
  },
});

for (const { imports = [], fileName } of output)
  for (const name of imports)
    if (!/^(node:|chunks\/|node-sqlite3-wasm$)/.test(name) && !isBuiltin(name))
      throw new Error(`${fileName} imports ${name}, which is not in the package`);
const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
copyTypes('index.d.ts');

// The page: two scripts with the libraries in them, one style sheet, and what is sent as it is.
const [from, page] = ['src/page/browser', 'dist/page/browser'].map((path) => join(root, path));
const inBrowser = {
  platform: 'browser',
  logLevel: 'warn',
  tsconfig: join(from, 'tsconfig.json'),
  resolve: { extensionAlias: { '.js': ['.ts', '.tsx', '.js'] } },
};
const files = { dir: page, entryFileNames: '[name].js', chunkFileNames: '[name].js', minify: true };
const bundled = await build({
  ...inBrowser,
  input: { main: join(from, 'main.tsx'), theme: join(from, 'theme.ts') },
  output: files,
});
// The script of the embedded peer stands in its pages, whole.
const input = { search: join(from, 'search.ts') };
await build({ ...inBrowser, input, output: { ...files, format: 'iife' } });
for (const file of bundled.output) if (file.type === 'chunk') modules.push(...file.moduleIds);
for (const name of readdirSync(from))
  if (/\.(html|svg)$/.test(name)) cpSync(join(from, name), join(page, name));
const styles = [join(root, 'node_modules/uplot/dist/uPlot.min.css'), join(from, 'style.css')];
writeFileSync(join(page, 'style.css'), styles.map((path) => readFileSync(path, 'utf8')).join('\n'));
writeFileSync(join(dist, 'licenses.txt'), licenses(modules));

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
  const homes = new Set(
    paths.map((path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]),
  );
  homes.delete(undefined);
  const texts = [...homes].map((home) => {
    const { name, version, license } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
    const file = readdirSync(home).find((each) => /^licen[cs]e/i.test(each));
    return `${name}@${version}\n\n${file ? readFileSync(join(home, file), 'utf8').trim() : license}\n`;
  });
  return texts.sort().join(`\n${'-'.repeat(80)}\n\n`);
}
