import type { ExitCode } from '../lib/errors.js';

/** Describes peersync in a sentence. */
export const ABOUT = 'Keeps folders on disk and a search peer in step.';

/** Shows the first steps. */
export const FIRST_EXAMPLES: readonly [line: string, what: string][] = [
  ['$0 init', 'Write a first configuration'],
  ['$0 run -c config.json', 'Watch, push and confirm until stopped'],
  ['$0 why ~/notes/plan.md', 'Tell everything about one file'],
];

/** Explains the exit codes. */
export const EXIT_WORDS: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  1: 'failure',
  2: 'wrong usage or configuration',
  3: 'done but items are quarantined or missing in the peer, or a mirror needs you',
  4: 'peer unreachable',
};
