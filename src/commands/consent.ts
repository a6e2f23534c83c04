import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { EXIT, PeersyncError } from '../lib/errors.js';

/** Where a person is asked; `isTerminal` tells whether somebody is there. */
export interface Asked {
  readonly input: Readable;
  readonly output: Writable;
  readonly isTerminal: boolean;
}

export const onThisTerminal: () => Asked = () => ({
  input: process.stdin,
  output: process.stderr,
  isTerminal: process.stdin.isTTY === true && process.stderr.isTTY === true,
});

/**
 * Resolves when a person typed what was asked for.
 *
 * @param nothing what did not happen, where it is refused
 * @throws PeersyncError NOT_CONFIRMED when something else was typed, or nobody could be asked (a wrong usage then)
 */
export async function consent(
  question: string,
  expected: string,
  asked: Asked,
  signal: AbortSignal,
  nothing = 'Nothing was deleted',
): Promise<void> {
  if (!asked.isTerminal)
    throw new PeersyncError({
      code: 'NOT_CONFIRMED',
      message: `${nothing}: there is no terminal to ask on.`,
      hint: 'Give --yes when that is what you want.',
      exitCode: EXIT.usage,
    });
  // The terminal's own line editing: then Ctrl-C stays a signal.
  const lines = createInterface({ input: asked.input, output: asked.output, terminal: false });
  try {
    const closed = new Promise<undefined>((resolve) => lines.once('close', () => resolve(undefined)));
    const answer = await Promise.race([lines.question(question, { signal }), closed]);
    if (answer?.trim() === expected) return;
  } finally {
    lines.close();
  }
  throw new PeersyncError({
    code: 'NOT_CONFIRMED',
    message: `${nothing}: "${expected}" was not typed.`,
    hint: 'Run the command again when you are sure.',
  });
}
