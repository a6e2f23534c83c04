import { z } from 'zod';
import {
  type ItemsPage,
  itemsPage,
  knownFolder,
  type ListedEntry,
  listEntries,
} from '../report/items.js';
import { manyLines, oneLine } from './request.js';
import { itemStatus } from './shapes.js';

/** The filter of `list` and of `items`. */
const filter = z.object({ status: itemStatus.optional(), folder: z.string().optional() });

/** The fields of one listed file. */
const listedFields = {
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

const itemsLine: z.ZodType<ItemsPage> = z.object({
  items: z.array(z.object({ ...listedFields, file: z.string() })),
  next: z.string().optional(),
});

const MAX_ITEMS = 500;
const USUAL_ITEMS = 100;

/** One page of `list`. */
export const items = oneLine({
  name: 'items',
  needs: 'reading',
  question: filter.extend({
    /** A part of the path, in upper or lower case. */
    name: z.string().optional(),
    /** The `next` of the page before. */
    after: z.string().optional(),
    limit: z.coerce.number().int().min(1).max(MAX_ITEMS).default(USUAL_ITEMS),
  }),
  line: itemsLine,
  answer: async ({ config, view }, asked) => {
    knownFolder(config, asked.folder);
    return await itemsPage(config, view.entries, asked);
  },
});
