import { EXIT, PeersyncError } from '../lib/errors.js';

/**
 * A path or word as it stands in a unit file, in quotes, with what systemd would expand or take for its own written out.
 *
 * @throws PeersyncError SERVICE_WORD for one with control characters, which some settings of systemd cannot name
 */
export function unitWord(word: string): string {
  if (/\p{Cc}/u.test(word))
    throw new PeersyncError({
      code: 'SERVICE_WORD',
      message: `${JSON.stringify(word)} has a control character in it, which a unit of systemd cannot name.`,
      hint: 'Use a path without line breaks and the like.',
      exitCode: EXIT.usage,
    });
  return `"${word.replace(/[\\"]/g, '\\$&').replaceAll('%', '%%')}"`;
}

/** A path that need not be there. */
export function unitWordIfThere(path: string): string {
  return unitWord(`-${path}`);
}

/** A command for `ExecStart=`; nothing in it stands for a variable. */
export function unitCommand([program = '', ...words]: readonly string[]): string {
  return [unitWord(`:${program}`), ...words.map(unitWord)].join(' ');
}
