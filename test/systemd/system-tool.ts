import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '../support/temp.js';

/** An environment in which a program of the system is a line of shell. */
export function systemTool(name: string, line: string): { readonly PATH: string } {
  const directory = temporaryDirectory();
  const program = join(directory, name);
  writeFileSync(program, `#!/bin/sh\n${line}\n`);
  chmodSync(program, 0o755);
  return { PATH: `${directory}:${process.env.PATH}` };
}
