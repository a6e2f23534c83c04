// Removes what was built before, so that nothing of an earlier source gets into the package.
import { rmSync } from 'node:fs';
import { resolve } from 'node:path';

for (const name of ['.build', 'dist'])
  rmSync(resolve(import.meta.dirname, '../..', name), { recursive: true, force: true });
