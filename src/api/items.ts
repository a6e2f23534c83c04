import { z } from 'zod';
import { type ItemsPage, itemsPage, knownFolder } from '../report/items.js';
import { filter, listedFields } from './list.js';
import { oneLine } from './request.js';

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
