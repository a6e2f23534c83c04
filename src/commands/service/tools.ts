import { execFile } from 'node:child_process';
import { PeersyncError, systemCode } from '../../lib/errors.js';

/** How long a program of the system may take, in ms: a service may need minutes until it is ready. */
const LONGEST_MS = 15 * 60_000;

/** Runs a program of the system to its end, and returns what it printed. */
export type RunTool = (command: readonly string[]) => Promise<string>;

/** @throws PeersyncError SERVICE_TOOL where it is not there or fails */
export const runTool: RunTool = ([program = '', ...args]) =>
  new Promise((resolve, reject) => {
    const options = { timeout: LONGEST_MS, maxBuffer: 16 * 2 ** 20 };
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) {
        resolve(stdout);
        return;
      }
      const isMissing = systemCode(error) === 'ENOENT';
      const said = (stderr.trim() || stdout.trim() || error.message).replace(/\s*\n\s*/g, ' ');
      reject(
        new PeersyncError({
          code: 'SERVICE_TOOL',
          message: isMissing
            ? `The program ${program} is not there.`
            : `"${[program, ...args].join(' ')}" failed: ${said}${/[.!?]$/.test(said) ? '' : '.'}`,
          hint: isMissing
            ? 'peersync installs itself as a service of systemd only; on this system start `peersync run` by other means.'
            : 'See why in `journalctl -e` (of a user service: `journalctl --user -e`), and try again.',
          cause: error,
        }),
      );
    });
  });
