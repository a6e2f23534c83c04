import { approveDeletes, nothingHeld } from '../api/approve-deletes.js';
import { status } from '../api/status.js';
import { define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { counted } from '../cli/text.js';
import { quoted } from '../lib/text.js';
import { knownFolder } from '../report/items.js';
import { ask, configToAsk } from './ask.js';
import { assertMeant, exampleLines, YES } from './removal-consent.js';

/** Lets the documents of very many removed files be removed. */
export const approveDeletesCommand = define({
  positionals: { folder: option.needed('The name of the folder') },
  options: { yes: YES },
  output: approveDeletes.line,
  examples: [
    ['$0 approve-deletes inbox', 'After `peersync status` said that removed files are held'],
  ],
  run: async (options) => {
    const { folder } = options;
    const config = await configToAsk(options);
    knownFolder(config, folder);
    const { folders, running } = await ask(options, config, status, {});
    const held = folders.find(({ name }) => name === folder)?.massDeletion;
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
    const approved = await ask(options, config, approveDeletes, { folder, files });
    const when = running ? 'removed from the peer' : 'removed from the peer by the next run';
    return answer(options, approved, () => [
      `Approved: ${counted(approved.files, 'document')} of the folder ${quoted(folder)} ${approved.files === 1 ? 'is' : 'are'} ${when}.`,
    ]);
  },
});
