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
        'a pattern without "!" (write "\\\\!" where a name begins with "!")',
      )
      .describe(
        'The files it is for: a pattern in gitignore syntax, relative to the folder. The first rule that matches wins: put the special ones first.',
      ),
    collection: collection()
      .optional()
      .describe(
        "The collection of these files instead of the folder's. Give either this or `skip`.",
      ),
    skip: z
      .literal(true, { error: 'true, or leave it out' })
      .optional()
      .describe('`true`: these files are skipped.'),
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
      'What commands and messages call the folder; the last name of `path` unless given. Give one when two folders end in the same name.',
    ),
  path: path('a folder to watch').describe(
    'The folder on disk; peersync only reads there. It may be made later: the folder is held until it is there. It may be a symbolic link; where that is pointed elsewhere later, the folder is held until `rescan FOLDER`.',
  ),
  collection: collection().describe(
    'The collection that its documents are tagged with: letters, digits and `- _ . : / + @`; no spaces and no commas, which separate collections for the peer.',
  ),
  url: folderUrl()
    .optional()
    .describe(
      "The base of its documents' URLs: a document's URL is this and the percent-encoded relative path; the `file://` URL of `path` unless given. Give the address where people can open the files, before the first push: it names the documents for ever.",
    ),
  include: z
    .array(pattern(), { error: 'a list of at least one pattern, such as ["*"]' })
    .min(1)
    .default(['*'])
    .describe(
      'The files that are taken: patterns in gitignore syntax. Narrow it, such as `["*.md", "*.txt"]`, when only some kinds of files matter.',
    ),
  ignore: z
    .array(pattern(), { error: 'a list of patterns' })
    .default([])
    .describe(
      'Files and directories that are left out: patterns in gitignore syntax, beside `.peersyncignore` files and `ignoreDefaults`. A pattern with `!` in front takes back what the defaults leave out, such as `"!.env.example"`.',
    ),
  ignoreDefaults: flag(true).describe(
    `Whether the usual secrets, caches and files of editors are left out: private keys, by name and by content, and, whatever the case of letters, ${DEFAULT_IGNORE.map((pattern) => `\`${pattern}\``).join(' ')}. Switch it off only where nothing in the folder is secret.`,
  ),
  rules: z
    .array(rule, { error: 'a list of rules' })
    .default([])
    .describe(
      'Other collections for some files, or none at all. Use it when one tree feeds several collections.',
    ),
  settle: duration('0s', '1d', '2s').describe(
    'How long a file must be unchanged before it is read. Raise it when programs write slowly, with pauses.',
  ),
  maxFileSize: size('1 B', '1 GiB', '20 MiB').describe(
    'Larger files are skipped. Keep it below what the peer takes in one request.',
  ),
  extract: z
    .enum(['auto', 'always'], { error: '"auto" or "always"' })
    .default('auto')
    .describe(
      'How PDF, office documents, books, RTF and e-mail travel: `auto` sends their text to a peer that takes only text, and a YaCy the text of those that it reads badly (e-mail, EPUB, Excel, PowerPoint) and the others as they are; `always` sends their text to every peer.',
    ),
  onDelete: z
    .enum(['remove', 'keep'], { error: '"remove" or "keep"' })
    .optional()
    .describe(
      'What becomes of the document when its file is removed, or becomes empty, binary or too large: `remove` removes it from the peer too, `keep` leaves it there. Unless given, `remove` with the embedded peer, also where `peersync peer` runs it as a process of its own, and `keep` with any other.',
    ),
  followSymlinks: flag(false).describe(
    'Whether symbolic links are followed; never out of the folder. Set it when the tree is built of links.',
  ),
});
