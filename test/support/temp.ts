import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterwards, type Life } from './afterwards.js';

/** A fresh directory, removed after the test (or after all tests of the file). */
export function temporaryDirectory(life: Life = 'test'): string {
  const path = mkdtempSync(join(tmpdir(), 'peersync-'));
  afterwards(life, () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }));
  return path;
}
