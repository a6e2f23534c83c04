import { type Forgetting, forget } from '../api/forget.js';
import { define } from '../cli/command.js';
import { choice, onThisTerminal } from '../cli/consent.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { counted } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { quoted, shellWord } from '../lib/text.js';
import { ask, configToAsk } from './ask.js';
import { assertMeant, exampleLines, YES } from './removal-consent.js';

/**
 * Forgets a folder, or removes documents that the configuration no longer accounts for. Documents
 * of a forgotten folder cannot be removed by its name later, so a person chooses between the two if
 * there are documents.
 */
export const forgetCommand = define({
  positionals: { folder: option.needed('The name of the folder') },
  options: {
    remove: option.flag(
      'Remove the documents from the peer; of a configured folder those of files that are skipped now',
    ),
    keep: option.flag('Leave the documents in the peer, and forget the folder'),
    yes: YES,
  },
  output: forget.line,
  examples: [
    [
      '$0 forget old',
      'Of a folder that left the configuration: asks what is to become of its documents',
    ],
    [
      '$0 forget old --remove',
      'Remove its documents from the peer; a later `forget old` forgets the rest',
    ],
    ['$0 forget old --keep --yes', 'Forget it in a script; the peer keeps its documents'],
  ],
  run: async (options) => {
    const { folder, keep } = options;
    if (keep && options.remove)
      throw new UsageError('--remove and --keep were both given.', 'Give one.');
    const config = await configToAsk(options);
    // Fails for a configured folder, of which nothing can be forgotten.
    if (!options.remove) await ask(options, config, forget, { folder, remove: false });
    const { documents, examples, leaving, records } = await ask(options, config, forget, {
      folder,
      remove: true,
    });
    const isChosen = keep || options.remove;
    const remove =
      options.remove ||
      (!isChosen && documents + leaving > 0 && (await isRemoval(options, documents + leaving)));
    const found = remove ? documents : records;
    const question = remove
      ? `Remove ${counted(documents, 'document')} of the folder ${quoted(folder)} from the peer?`
      : `Forget ${counted(records, 'file')} of the folder ${quoted(folder)}? The peer keeps their documents.`;
    if (isChosen && found > 0)
      await assertMeant(options, exampleLines(folder, examples, documents), question);
    const done = await ask(options, config, forget, { folder, remove, atMost: found });
    return answer(options, done, () => [doneText(folder, remove, done, documents + leaving)]);
  },
});

/** Asks whether the documents of a folder are removed or kept. */
async function isRemoval(
  { folder }: { readonly folder: string },
  documents: number,
): Promise<boolean> {
  const question = `The peer has ${counted(documents, 'document')} of the folder ${quoted(folder)}. Once they are forgotten, \`forget\` cannot remove them. Type "remove" or "keep": `;
  const word = shellWord(folder);
  const refusal = {
    nothing: `Nothing was forgotten, for the peer has ${counted(documents, 'document')} of the folder ${quoted(folder)}`,
    instead: `\`peersync forget ${word} --remove --yes\` removes them, \`peersync forget ${word} --keep --yes\` leaves them there.`,
  };
  const asking = new AbortController();
  const chosen = await choice(
    question,
    ['remove', 'keep'],
    onThisTerminal(),
    asking.signal,
    refusal,
  );
  return chosen === 'remove';
}

function doneText(folder: string, remove: boolean, done: Forgetting, documents: number): string {
  if (remove)
    return `${counted(done.documents, 'document')} of the folder ${quoted(folder)} to be removed from the peer.`;
  const forgotten = `${counted(done.records, 'file')} of the folder ${quoted(folder)} forgotten`;
  if (documents === 0) return `${forgotten}.`;
  return `${forgotten}; the peer keeps ${counted(documents, 'document')}. \`peersync push --remove URL\` removes single ones.`;
}
