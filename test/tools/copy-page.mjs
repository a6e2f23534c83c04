// Lays what the compiler leaves aside beside the compiled page: the HTML, the style sheets and the icons.
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');
const [from, to] = [join(root, 'src/page/browser'), join(root, 'dist/page/browser')];
mkdirSync(to, { recursive: true });
for (const name of readdirSync(from)) {
  if (/\.(html|css|svg)$/.test(name)) cpSync(join(from, name), join(to, name));
}
