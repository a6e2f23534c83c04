import type { Readable, Writable } from 'node:stream';
import { EXIT, PeersyncError } from '../lib/errors.js';

/** The streams on which a person is asked. `isTerminal` is false if no person can answer. */
export interface Prompt {
  readonly input: Readable;
  readonly output: Writable;
  readonly isTerminal: boolean;
}

export const onThisTerminal: () => Prompt = () => ({
  input: process.stdin,
  output: process.stderr,
  isTerminal: process.stdin.isTTY === true && process.stderr.isTTY === true,
});

/**
 * Resolves when a person typed the expected word.
 *
 * @param nothing the part of a sentence that says what did not happen
 * @throws PeersyncError NOT_CONFIRMED if something else was typed, or there is no terminal (wrong
 *   usage)
 */
export async function consent(
  question: string,
  expected: string,
  prompt: Prompt,
  signal: AbortSignal,
  nothing = 'Nothing was deleted',
): Promise<void> {
  const instead = 'Give --yes when that is what you want.';
  await choice(question, [expected], prompt, signal, { nothing, instead });
}

/**
 * Resolves to the word that a person typed, out of several.
 *
 * @param refusal the texts of the error: what did not happen, and what to do without a terminal
 * @throws PeersyncError as `consent`
 */
export async function choice<Word extends string>(
  question: string,
  words: readonly Word[],
  prompt: Prompt,
  signal: AbortSignal,
  { nothing, instead }: { readonly nothing: string; readonly instead: string },
): Promise<Word> {
  if (!prompt.isTerminal)
    throw new PeersyncError({
      code: 'NOT_CONFIRMED',
      message: `${nothing}: there is no terminal to ask on.`,
      hint: instead,
      exitCode: EXIT.usage,
    });
  const { createInterface } = await import('node:readline/promises');
  // The terminal's own line editing: then Ctrl-C stays a signal.
  const lines = createInterface({ input: prompt.input, output: prompt.output, terminal: false });
  try {
    const closed = new Promise<undefined>((resolve) =>
      lines.once('close', () => resolve(undefined)),
    );
    const answer = await Promise.race([lines.question(question, { signal }), closed]);
    const chosen = words.find((word) => word === answer?.trim());
    if (chosen !== undefined) return chosen;
  } finally {
    lines.close();
  }
  throw new PeersyncError({
    code: 'NOT_CONFIRMED',
    message: `${nothing}: ${words.map((word) => `"${word}"`).join(' or ')} was not typed.`,
    hint: 'Run the command again when you are sure.',
  });
}
