import { z } from 'zod';
import {
  collection,
  duration,
  FOLDER_NAME,
  FOLDER_NAME_RIGHT,
  flag,
  folderUrl,
  path,
  pattern,
  positivePattern,
  size,
  text,
} from './fields.js';

/** Ignored unless a folder says otherwise; shown to the user as the default of `ignore`. */
const DEFAULT_IGNORE: readonly string[] = [
  // version control
  '.git',
  '.hg',
  '.svn',
  // editors: backups, swap files, autosaves and locks of vim, emacs and LibreOffice
  '*~',
  '.*.swp',
  '.*.swo',
  '.*.swx',
  '4913',
  '.#*',
  '\\#*#',
  '.~lock.*#',
  // files that are still being written
  '*.part',
  '*.crdownload',
  '*.tmp',
  // desktops
  '.DS_Store',
  'Thumbs.db',
];

const rule = z
  .strictObject({
    match: positivePattern().meta({
      description: 'The files it is for: a pattern in gitignore syntax, relative to the folder.',
      change: 'The first rule that matches wins: put the special ones first.',
    }),
    collection: collection().optional().meta({
      description: "The collection of these files instead of the folder's.",
      change: 'Give either this or `skip`.',
    }),
    skip: z.literal(true, { error: 'true, or leave it out' }).optional().meta({
      description: '`true`: these files are passed over.',
      change: 'Give either this or `collection`.',
    }),
  })
  .meta({ oneOf: [{ required: ['collection'] }, { required: ['skip'] }] })
  .transform((given, context) => {
    const { match, collection: other, skip } = given;
    if (skip === true && other === undefined) return { match, skip };
    if (skip === undefined && other !== undefined) return { match, collection: other };
    context.issues.push({
      code: 'custom',
      message: 'either "collection" or "skip": true beside "match"',
      input: given,
    });
    return z.NEVER;
  });

/** One of the `folders` of the configuration file. */
export const folderSchema = z.strictObject({
  name: text(FOLDER_NAME_RIGHT, FOLDER_NAME).optional().meta({
    description: 'What commands and messages call the folder; the last name of `path` unless given.',
    change: 'Give one when two folders end in the same name.',
    otherwise: 'last name of `path`',
  }),
  path: path('a folder to watch').meta({
    description: 'The folder on disk; peersync only reads there.',
    change: 'It may be made later: the folder is held until it is there.',
  }),
  collection: collection().meta({
    description: 'The collection that its documents are tagged with.',
    change:
      'Letters, digits and `- _ . : / + @`; no spaces and no commas, which separate collections for the peer.',
  }),
  url: folderUrl().optional().meta({
    description:
      "The base of its documents' URLs: a document's URL is this and the percent-encoded relative path.",
    change:
      'Give the address where people can open the files, before the first push: it names the documents for ever.',
    otherwise: '`file://` URL of `path`',
  }),
  include: z
    .array(pattern(), { error: 'a list of at least one pattern, such as ["*"]' })
    .min(1)
    .default(['*'])
    .meta({
      description: 'The files that are taken: patterns in gitignore syntax.',
      change: 'Narrow it, such as `["*.md", "*.txt"]`, when only some kinds of files matter.',
    }),
  ignore: z
    .array(pattern(), { error: 'a list of patterns' })
    .default([...DEFAULT_IGNORE])
    .meta({
      description:
        'Files and directories that are left out: patterns in gitignore syntax, beside `.peersyncignore` files.',
      change: 'A list of your own replaces this one; repeat what you want to keep.',
    }),
  rules: z.array(rule, { error: 'a list of rules' }).default([]).meta({
    description: 'Other collections for some files, or none at all.',
    change: 'Use it when one tree feeds several collections.',
  }),
  settle: duration('0s', '1d').prefault('2s').meta({
    description: 'How long a file must be unchanged before it is read.',
    change: 'Raise it when programs write slowly, with pauses.',
  }),
  maxFileSize: size('1 B', '1 GiB').prefault('20 MiB').meta({
    description: 'Larger files are passed over.',
    change: 'Keep it below what the peer takes in one request.',
  }),
  followSymlinks: flag().default(false).meta({
    description: 'Whether symbolic links are followed; never out of the folder.',
    change: 'Set it when the tree is built of links.',
  }),
});
