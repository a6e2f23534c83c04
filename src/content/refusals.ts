import { opendir, rm } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { z } from 'zod';
import { systemCode } from '../lib/errors.js';

/** The extension of the files. `ExtractCache` writes them, and removes the oldest ones. */
export const REFUSAL_EXTENSION = '.none';

/** The record of a document of which there is nothing to send. */
export const REFUSAL_SCHEMA = z.object({
  key: z.string(),
  refusal: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('wordless'), reader: z.string() }),
    z.object({
      kind: z.literal('refused'),
      failure: z.object({ code: z.string(), message: z.string(), hint: z.string() }),
    }),
  ]),
});

/** Why there is nothing to send of a document. */
export type StoredRefusal = z.output<typeof REFUSAL_SCHEMA>['refusal'];

/**
 * Removes all records of documents of which there was nothing to send, so that each is read again
 * when it is needed next. The program may run meanwhile.
 *
 * @param directory of the cache; it need not exist
 */
export async function forgetRefusals(directory: string): Promise<void> {
  try {
    for await (const { name } of await opendir(directory))
      if (extname(name) === REFUSAL_EXTENSION) await rm(join(directory, name), { force: true });
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
  }
}
