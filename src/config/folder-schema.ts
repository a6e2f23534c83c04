import { z } from 'zod';
import { DEFAULT_IGNORE } from './default-ignore.js';
import {
  collection,
  duration,
  FOLDER_NAME,
  FOLDER_NAME_RIGHT,
  flag,
  folderUrl,
  path,
  pattern,
  size,
  text,
} from './fields.js';

const rule = z
  .strictObject({
    match: pattern()
      .refine(
        (value) => !value.startsWith('!'),
        'a pattern without "!" in front (write "\\\\!" for a name that begins with "!")',
      )
      .describe(
        'The files that the rule applies to: a pattern in gitignore syntax, relative to the folder. The first rule that matches wins, so put the special ones first.',
      ),
    collection: collection()
      .optional()
      .describe(
        "The collection of these files, instead of the folder's. Give either this or `skip`.",
      ),
    skip: z
      .literal(true, { error: 'true (or leave the key out)' })
      .optional()
      .describe('`true` skips these files.'),
  })
  .meta({ oneOf: [{ required: ['collection'] }, { required: ['skip'] }] })
  .refine(
    (given) => (given.skip === undefined) !== (given.collection === undefined),
    'either "collection" or "skip": true beside "match"',
  );

/** One entry of `folders` in the configuration file. */
export const folderSchema = z.strictObject({
  name: text(FOLDER_NAME_RIGHT, FOLDER_NAME)
    .optional()
    .describe(
      'The name of the folder in commands and messages. The default is the last part of `path`. Set it when two paths end in the same name.',
    ),
  path: path('a folder to watch').describe(
    'The folder on disk. peersync only reads there. If it does not exist yet, the folder is held until it does. It may be a symbolic link. If the link is later pointed elsewhere, the folder is held until `rescan FOLDER`.',
  ),
  collection: collection().describe(
    'The collection that its documents are tagged with: letters, digits and `- _ . : / + @`. Spaces and commas are not allowed, because the peer reads a comma as a separator.',
  ),
  url: folderUrl()
    .optional()
    .describe(
      "The base of the documents' URLs. The URL of a document is this base and the percent-encoded relative path. The default is the `file://` URL of `path`. Set it to the address where people can open the files, before the first push: it names the documents for ever.",
    ),
  include: z
    .array(pattern(), { error: 'a list of at least one pattern, such as ["*"]' })
    .min(1)
    .default(['*'])
    .describe(
      'The files that are taken: patterns in gitignore syntax. Set it, for example to `["*.md", "*.txt"]`, when only some kinds of files matter.',
    ),
  ignore: z
    .array(pattern(), { error: 'a list of patterns' })
    .default([])
    .describe(
      'Files and directories that are left out, in addition to `.peersyncignore` files and `ignoreDefaults`: patterns in gitignore syntax. A pattern with `!` in front lets in what the defaults leave out, such as `"!.env.example"`.',
    ),
  ignoreDefaults: flag(true).describe(
    `Whether the usual secrets, caches and files of editors are left out. These are private keys (by name and by content), and in upper and lower case ${DEFAULT_IGNORE.map((pattern) => `\`${pattern}\``).join(' ')}. Switch it off only where nothing in the folder is secret.`,
  ),
  rules: z
    .array(rule, { error: 'a list of rules' })
    .default([])
    .describe(
      'Rules that give some files another collection, or skip them. Use them when one tree feeds several collections.',
    ),
  settle: duration('0s', '1d', '2s').describe(
    'How long a file must be unchanged before it is read. Raise it when programs write slowly, with pauses.',
  ),
  maxFileSize: size('1 B', '1 GiB', '20 MiB').describe(
    'The largest file that is pushed. Larger files are skipped. Keep it below what the peer takes in one request.',
  ),
  extract: z
    .enum(['auto', 'always'], { error: '"auto" or "always"' })
    .default('auto')
    .describe(
      'When peersync extracts the text of PDF, office documents, EPUB, RTF and e-mail and sends that. `always` does so for every peer. `auto` does so for a peer that takes only text. For a YaCy, `auto` extracts only what a YaCy reads badly (e-mail, EPUB, Excel, PowerPoint), and sends the other files as they are.',
    ),
  onDelete: z
    .enum(['remove', 'keep'], { error: '"remove" or "keep"' })
    .optional()
    .describe(
      'What happens to the document when its file is removed, or becomes empty, binary or too large: `remove` removes it from the peer, `keep` leaves it there. The default is `remove` with the embedded peer, also when `peersync peer` runs it as a process of its own. With any other peer it is `keep`.',
    ),
  followSymlinks: flag(false).describe(
    'Whether symbolic links are followed, though never out of the folder. Set it when the tree is built of links.',
  ),
});
