import { z } from 'zod';
import { knownFolder, type ListedEntry, listEntries } from '../report/items.js';
import { manyLines } from './request.js';
import { itemStatus } from './shapes.js';

/** The filter of `list` and of `items`. */
export const filter = z.object({ status: itemStatus.optional(), folder: z.string().optional() });

/** The fields of one listed file. */
export const listedFields = {
  folder: z.string(),
  path: z.string(),
  status: itemStatus,
  since: z.number(),
  size: z.number(),
  sha256: z.string().optional(),
  url: z.string().optional(),
  attempts: z.number().optional(),
  isOlderSearchable: z.literal(true).optional(),
  code: z.string().optional(),
  message: z.string().optional(),
  hint: z.string().optional(),
};

const listLine: z.ZodType<ListedEntry> = z.object(listedFields);

/** All known files, by folder and path. */
export const list = manyLines({
  name: 'list',
  field: 'items',
  needs: 'reading',
  question: filter,
  line: listLine,
  lots: ({ config, view }, { folder, status }) =>
    listEntries(view, { folder: knownFolder(config, folder), status }),
});
