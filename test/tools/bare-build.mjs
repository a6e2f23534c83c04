// Removes the maps to the source, which is not in the package, and the words that lead to them.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const dist = resolve(import.meta.dirname, '../../dist');
for (const name of readdirSync(dist, { recursive: true })) {
  const path = join(dist, name);
  if (name.endsWith('.map')) rmSync(path);
  else if (/\.(js|d\.ts)$/.test(name))
    writeFileSync(path, readFileSync(path, 'utf8').replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'));
}
