// Removes what was built before, so that nothing of an earlier source gets into the package.
import { rmSync } from 'node:fs';
import { resolve } from 'node:path';

rmSync(resolve(import.meta.dirname, '../../dist'), { recursive: true, force: true });
