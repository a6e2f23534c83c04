import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLI } from './cli.js';
import { temporaryDirectory } from './temp.js';

/** An environment in which a program of the system is a line of shell. */
export function systemTool(name: string, line: string): { readonly PATH: string } {
  const directory = temporaryDirectory();
  const program = join(directory, name);
  writeFileSync(program, `#!/bin/sh\n${line}\n`);
  chmodSync(program, 0o755);
  return { PATH: `${directory}:${process.env.PATH}` };
}

/**
 * An environment in which `peersync` is the command line, so that what is typed, and what a
 * terminal shows of it, is the same wherever the checkout is.
 */
export function peersyncInPath(cli: string = CLI): { readonly PATH: string } {
  return systemTool('peersync', `exec ${quoted(process.execPath)} ${quoted(cli)} "$@"`);
}

/** A word of a line of shell, whatever is in it. */
export function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
