import { type Forgetting, nothingHeld } from '../report/deletions.js';
import { knownFolder } from '../report/items.js';
import type { StatusReport } from '../report/status.js';
import type { HeldDeletes } from '../watch/deletions.js';
import { answer, complain, define, type GlobalOptions } from './context.js';
import { askAnyoneOnce, configToAsk } from './daemon-access.js';
import * as option from './option.js';
import { consent, onThisTerminal } from './terminal.js';
import { counted, safe } from './text.js';

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
  await consent(`${question} Type "yes": `, 'yes', onThisTerminal(), asking.signal, 'Nothing was removed');
}

function exampleLines(folder: string, examples: readonly string[], of: number): string[] {
  const more = of > examples.length ? [`  and ${counted(of - examples.length, 'more', 'more')}`] : [];
  return [...examples.map((path) => `  ${folder}/${path}`), ...more];
}

/** Lets the documents of very many removed files be removed, too. */
export const approveDeletesCommand = define({
  positionals: { folder: option.needed('The name of the folder') },
  options: { yes: YES },
  examples: [['$0 approve-deletes inbox', 'After `peersync status` said that removed files are held']],
  run: async (options) => {
    const { folder } = options;
    const config = await configToAsk(options);
    knownFolder(config, folder);
    const status = await askAnyoneOnce<StatusReport>(options, config, { ask: 'status', parameters: {} });
    const held = status.folders.find(({ name }) => name === folder)?.heldDeletes;
    if (held === undefined) throw nothingHeld(folder);
    const { examples, files, of } = held;
    await assertMeant(
      options,
      [`${files} of ${of} files of ${folder} were removed:`, ...exampleLines(folder, examples, files)],
      `Remove their ${counted(files, 'document')} from the peer?`,
    );
    const question = { ask: 'approve-deletes', parameters: { folder, files } };
    const approved = await askAnyoneOnce<HeldDeletes>(options, config, question);
    const when = status.running ? 'removed from the peer' : 'removed from the peer by the next run';
    return answer(options, approved, () => [
      `Approved: ${counted(approved.files, 'document')} of ${safe(folder)} ${approved.files === 1 ? 'is' : 'are'} ${when}.`,
    ]);
  },
});

/** Forgets a folder, or removes documents that the configuration does not account for any more. */
export const forgetCommand = define({
  positionals: { folder: option.needed('The name of the folder') },
  options: {
    remove: option.flag(
      'Remove the documents from the peer; of a configured folder those of files that are skipped now',
    ),
    yes: YES,
  },
  examples: [
    ['$0 forget old', 'Forget a folder that left the configuration; the peer keeps its documents'],
    ['$0 forget old --remove', 'Remove its documents from the peer as well'],
  ],
  run: async (options) => {
    const { folder, remove } = options;
    const config = await configToAsk(options);
    const ask = (parameters: object) =>
      askAnyoneOnce<Forgetting>(options, config, { ask: 'forget', parameters });
    const { documents, examples, records } = await ask({ folder, remove });
    const found = remove ? documents : records;
    if (found > 0)
      await assertMeant(
        options,
        exampleLines(folder, examples, found),
        remove
          ? `Remove ${counted(documents, 'document')} of ${safe(folder)} from the peer?`
          : `Forget ${counted(records, 'file')} of ${safe(folder)}? The peer keeps their documents, and peersync cannot remove them afterwards: that takes --remove now.`,
      );
    const done = await ask({ folder, remove, atMost: found });
    const text = remove
      ? `${counted(done.documents, 'document')} of ${safe(folder)} to be removed from the peer.`
      : `${counted(done.records, 'file')} of ${safe(folder)} forgotten; the peer keeps the documents.`;
    return answer(options, done, () => [text]);
  },
});
