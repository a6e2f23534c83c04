import { EXIT, PeersyncError } from '../../lib/errors.js';

/**
 * A path or word as it stands in a unit file, in quotes, with what systemd would expand or take for its own written out.
 *
 * @throws PeersyncError SERVICE_WORD for one with control characters, which some settings of systemd cannot name
 */
export function unitWord(word: string): string {
  return `"${named(word).replace(/[\\"]/g, '\\$&').replaceAll('%', '%%')}"`;
}

function named(word: string): string {
  if (/\p{Cc}/u.test(word))
    throw new PeersyncError({
      code: 'SERVICE_WORD',
      message: `${JSON.stringify(word)} has a control character in it, which a unit of systemd cannot name.`,
      hint: 'Use a path without line breaks and the like.',
      exitCode: EXIT.usage,
    });
  return word;
}

/**
 * A path as it stands at the end of a setting that knows no quotes.
 *
 * @throws PeersyncError SERVICE_WORD also for one that ends so that systemd would read it otherwise
 */
export function unitRest(path: string): string {
  if (/[\s\\]$/.test(path))
    throw new PeersyncError({
      code: 'SERVICE_WORD',
      message: `${JSON.stringify(path)} ends in a blank or a backslash, which a unit of systemd would lose.`,
      hint: 'Use another path.',
      exitCode: EXIT.usage,
    });
  return named(path).replaceAll('%', '%%');
}

/** A path that need not be there. */
export function unitWordIfThere(path: string): string {
  return unitWord(`-${path}`);
}

/** A command for `ExecStart=`; nothing in it stands for a variable. */
export function unitCommand([program = '', ...words]: readonly string[]): string {
  return [unitWord(`:${program}`), ...words.map(unitWord)].join(' ');
}
