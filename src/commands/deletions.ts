import { define } from '../cli/command.js';
import { choice, consent, onThisTerminal } from '../cli/consent.js';
import type { GlobalOptions } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer, complain } from '../cli/output.js';
import { counted, safe } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { quoted, shellWord } from '../lib/text.js';
import { type Forgetting, nothingHeld } from '../report/deletions.js';
import { knownFolder } from '../report/items.js';
import type { StatusReport } from '../report/status.js';
import { itemName } from '../state/entry.js';
import type { HeldDeletes } from '../watch/deletions.js';
import { askAnyoneOnce, configToAsk } from './daemon-access.js';

const YES = option.flag('Without asking');

/** Shows what a question is about, and asks it, unless --yes was given. */
async function assertMeant(
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

function exampleLines(folder: string, examples: readonly string[], of: number): string[] {
  const more =
    of > examples.length ? [`  and ${counted(of - examples.length, 'more', 'more')}`] : [];
  return [...examples.map((path) => `  ${itemName({ folder, path })}`), ...more];
}

/** Lets the documents of very many removed files be removed, too. */
export const approveDeletesCommand = define({
  positionals: { folder: option.needed('The name of the folder') },
  options: { yes: YES },
  examples: [
    ['$0 approve-deletes inbox', 'After `peersync status` said that removed files are held'],
  ],
  run: async (options) => {
    const { folder } = options;
    const config = await configToAsk(options);
    knownFolder(config, folder);
    const status = await askAnyoneOnce<StatusReport>(options, config, {
      ask: 'status',
      parameters: {},
    });
    const held = status.folders.find(({ name }) => name === folder)?.heldDeletes;
    if (held === undefined) throw nothingHeld(folder);
    const { examples, files, of } = held;
    await assertMeant(
      options,
      [
        `${files} of ${of} files of the folder ${quoted(folder)} were removed:`,
        ...exampleLines(folder, examples, files),
      ],
      `Remove their ${counted(files, 'document')} from the peer?`,
    );
    const question = { ask: 'approve-deletes', parameters: { folder, files } };
    const approved = await askAnyoneOnce<HeldDeletes>(options, config, question);
    const when = status.running ? 'removed from the peer' : 'removed from the peer by the next run';
    return answer(options, approved, () => [
      `Approved: ${counted(approved.files, 'document')} of the folder ${quoted(folder)} ${approved.files === 1 ? 'is' : 'are'} ${when}.`,
    ]);
  },
});

/**
 * Forgets a folder, or removes documents that the configuration does not account for any more. What
 * is forgotten cannot be removed afterwards by its folder, and so a person says which of both is
 * meant where there are documents.
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
    const ask = (parameters: object) =>
      askAnyoneOnce<Forgetting>(options, config, { ask: 'forget', parameters });
    // Of a configured folder nothing is forgotten, and this says so.
    if (!options.remove) await ask({ folder, remove: false });
    const { documents, examples, leaving, records } = await ask({ folder, remove: true });
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
    const done = await ask({ folder, remove, atMost: found });
    return answer(options, done, () => [doneText(folder, remove, done, documents + leaving)]);
  },
});

/** Asks whether the documents of a folder are to be removed, or kept. */
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
