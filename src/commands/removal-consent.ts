import { consent, onThisTerminal } from '../cli/consent.js';
import type { GlobalOptions } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { complain } from '../cli/output.js';
import { counted, safe } from '../cli/text.js';
import { itemName } from '../state/entry.js';

export const YES = option.flag('Without asking');

/** Shows what would be removed and asks a person, unless --yes was given. */
export async function assertMeant(
  { yes, json }: GlobalOptions & { readonly yes: boolean },
  lines: readonly string[],
  question: string,
): Promise<void> {
  if (yes) return;
  if (!json) complain(`${lines.map((line) => `${safe(line)}\n`).join('')}`);
  const asking = new AbortController();
  await consent(
    `${question} Type "yes": `,
    'yes',
    onThisTerminal(),
    asking.signal,
    'Nothing was removed',
  );
}

/** Returns lines that name some of the files. */
export function exampleLines(folder: string, examples: readonly string[], of: number): string[] {
  const more =
    of > examples.length ? [`  and ${counted(of - examples.length, 'more', 'more')}`] : [];
  return [...examples.map((path) => `  ${itemName({ folder, path })}`), ...more];
}
