// Bundles the compiled program into `dist`: a few files that start fast and contain the libraries,
// the files of the page, the types of the library, and the licences. Files that are found by a
// relative path (the threads, the page, package.json) have the same relative path from a chunk as
// from a module of the source.
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
  // This package loads its WebAssembly from its own directory.
  external: ['node-sqlite3-wasm'],
  resolve: {
    alias: {
      // The help uses this package. All copies are replaced by the version that is fast with ASCII.
      'string-width': join(root, 'node_modules/string-width'),
      undici$: join(import.meta.dirname, 'undici-parts.mjs'),
      // Fastify loads these on demand, and no server here needs them: no route has a schema. Even
      // code that never runs takes memory, as long as it is in the file of code that does.
      '@fastify/ajv-compiler': false,
      '@fastify/fast-json-stringify-compiler': false,
    },
  },
  output: {
    dir: dist,
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name].js',
    minify: true,
  },
});

for (const { imports = [], dynamicImports = [], fileName } of output)
  for (const name of [...imports, ...dynamicImports])
    if (!/^(node:|chunks\/|node-sqlite3-wasm$)/.test(name) && !isBuiltin(name))
      throw new Error(`${fileName} imports ${name}, which is not in the package`);
const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
copyTypes('index.d.ts');

// The page: two scripts that contain the libraries, one style sheet, and files that are copied.
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
// The script of the embedded peer is inlined in its pages, so it is one file.
const input = { search: join(from, 'search.ts') };
await build({ ...inBrowser, input, output: { ...files, format: 'iife' } });
for (const file of bundled.output) if (file.type === 'chunk') modules.push(...file.moduleIds);
for (const name of readdirSync(from))
  if (name === 'index.html' || name.endsWith('.svg')) cpSync(join(from, name), join(page, name));
for (const name of ['sign-in.html', 'not-found.html'])
  writeFileSync(join(page, name), standalonePage(readFileSync(join(from, name), 'utf8')));
const styles = [join(root, 'node_modules/uplot/dist/uPlot.min.css'), join(from, 'style.css')];
writeFileSync(join(page, 'style.css'), styles.map((path) => readFileSync(path, 'utf8')).join('\n'));
writeFileSync(join(dist, 'licenses.txt'), licenses(modules));
// The code tables of Asian fonts, with their licence: 1.2 MB, and 0.9 MB in the package.
cpSync(join(root, 'node_modules/pdfjs-dist/cmaps'), join(dist, 'cmaps'), { recursive: true });

/** Fills the template of the sign-in and of the 404 page. The first line of a page is its title. */
function standalonePage(text) {
  const [, title, content] = /^<title>(.*)<\/title>\n([\s\S]*)$/.exec(text);
  const template = readFileSync(join(from, 'standalone.html'), 'utf8');
  return template.replace('{title}', title).replace('{content}\n', () => content);
}

/** Copies the type declarations that users of the library need. */
function copyTypes(name) {
  const to = join(dist, name);
  if (existsSync(to)) return;
  const text = readFileSync(join(compiled, name), 'utf8');
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, text);
  for (const [, other] of text.matchAll(/from '(\.[^']+)\.js'/g))
    copyTypes(join(dirname(name), `${other}.d.ts`));
}

/** Returns the name, version and licence of each package that the bundle contains code of. */
function licenses(paths) {
  // The path of a module that was replaced by nothing does not begin with a slash.
  const homes = new Set(
    paths.map((path) => /^\/.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]),
  );
  homes.delete(undefined);
  const texts = [...homes].map((home) => {
    const { name, version, license } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
    const file = readdirSync(home).find((each) => /^licen[cs]e/i.test(each));
    return `${name}@${version}\n\n${file ? readFileSync(join(home, file), 'utf8').trim() : license}\n`;
  });
  return texts.sort().join(`\n${'-'.repeat(80)}\n\n`);
}
