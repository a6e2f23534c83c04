import { z } from 'zod';
import { LISTED_STATUSES } from '../report/items.js';

// What commands answer with --json. Fields may come along at any time; whatever else changes makes
// another version. Times and durations are numbers, in ms; times since the epoch.

/** Of all shapes here. */
export const OUTPUT_VERSION = 3;

const text = z.string();
const texts = z.array(text);
const number = z.number();
const flag = z.boolean();
const maybe = { text: text.optional(), number: number.optional() };
const known = z.enum(LISTED_STATUSES);
const failure = z.looseObject({ code: maybe.text, message: text, hint: maybe.text });
const evidence = z.looseObject({ kind: text, shown: text });
const counts = z.record(known, number);
const cells = z.record(text, text);
const did = { unit: text, did: texts.describe('What was done, or would be done, in order.') };
const finding = z.looseObject({ check: text, ok: flag, message: text, hint: maybe.text });
const condition = z.looseObject({
  code: text,
  severity: z.enum(['critical', 'error', 'warning', 'info']),
  subject: text.describe(
    'peer, state, disk, configuration, or the name of a folder, collection or mirror.',
  ),
  message: text,
  hint: text,
  since: maybe.number,
});
const mirror = z.looseObject({
  name: text,
  kind: text,
  path: maybe.text,
  rows: maybe.number,
  bytes: maybe.number,
  changed: flag.optional().describe('Whether this run changed the file.'),
  condition: failure
    .optional()
    .describe('What keeps the file from following the peer until it is accepted.'),
  failure: failure.optional(),
});
const status = z.looseObject({
  version: text,
  running: flag,
  pid: maybe.number,
  startedAt: maybe.number,
  page: maybe.text,
  peer: z.looseObject({ url: text, dialect: maybe.text, embedded: flag.optional() }),
  items: counts,
  folders: z.array(z.looseObject({ name: text, path: text, collection: text, items: counts })),
  conditions: z.array(condition).describe('What a person should know, the gravest first.'),
  mirrors: z.array(mirror),
  quarantined: z
    .array(z.looseObject({ file: text, code: text, message: text }))
    .describe('The first ones.'),
  problems: z.array(z.looseObject({ path: text, failure })),
  truncated: z.record(text, z.looseObject({ total: number, shown: number })).optional(),
});
const file = { url: maybe.text, since: maybe.number, attempts: maybe.number };
const row = z.looseObject({ table: text, pk: text, cells });
const citing = z.array(z.looseObject({ url: text, title: maybe.text, sentences: maybe.number }));

/** By command: of one line of its answer. Most answer with one. */
export const OUTPUT: Readonly<Record<string, z.ZodType>> = {
  once: z.looseObject({
    items: counts,
    requests: z.looseObject({ push: number, peerdoc: number }),
    mirrors: z.looseObject({
      current: number,
      changed: number,
      conditions: number,
      failed: number,
    }),
    durationMs: number,
    conditions: z.array(condition).describe('What keeps files from their end.'),
  }),
  status,
  watch: z.union([
    z.looseObject({ kind: z.literal('status'), status }),
    z.looseObject({ kind: z.literal('samples'), samples: z.array(z.looseObject({ at: number })) }),
    z.looseObject({
      kind: z.literal('recents'),
      recents: z.array(z.looseObject({ id: number, at: number, level: text, message: text })),
    }),
  ]),
  list: z.looseObject({
    folder: text,
    path: text,
    status: known,
    size: number,
    sha256: maybe.text,
    ...file,
    code: maybe.text,
    message: maybe.text,
    hint: maybe.text,
  }),
  why: z.looseObject({
    file: text,
    folder: maybe.text,
    path: maybe.text,
    rule: text,
    ...file,
    collection: maybe.text,
    status: z.enum([...LISTED_STATUSES, 'ignored', 'unknown', 'outside']),
    version: z.looseObject({ size: number, mtimeMs: number, sha256: maybe.text }).optional(),
    evidence: evidence.optional(),
    failure: failure.optional(),
    conversion: maybe.text,
    extracted: z.looseObject({ reader: text, words: number }).optional(),
    renamed: maybe.text,
    history: z.array(z.looseObject({ status: text, at: number, note: maybe.text })),
    next: text,
    nextAt: maybe.number,
  }),
  retry: z.looseObject({ retried: number, lookedAt: number }),
  verify: z.union([
    z.looseObject({
      kind: z
        .enum(['lost', 'back'])
        .describe('Confirmed and not shown any more; removed and shown again.'),
      file: text,
      url: text,
      why: text,
      repaired: flag,
    }),
    z.looseObject({
      kind: z.literal('verified'),
      checked: number,
      removed: number.describe('How many of those were removed items.'),
      lost: number,
      back: number,
      failed: number,
    }),
  ]),
  'approve-deletes': z.looseObject({ files: number, of: number, examples: texts, since: number }),
  forget: z.looseObject({ documents: number, records: number, leaving: number, examples: texts }),
  rescan: z.looseObject({ folder: text, files: number, directories: number, durationMs: number }),
  reload: z.looseObject({
    changes: texts,
    restart: texts.describe('Keys that wait for a restart.'),
  }),
  pause: z.looseObject({ since: number, until: maybe.number }),
  resume: z.looseObject({ wasPaused: flag }),
  mirror,
  'mirror accept': mirror,
  check: finding,
  'check --canary': z.union([
    finding,
    z.looseObject({
      canary: z
        .looseObject({
          dialect: text,
          holdMs: number,
          timeToVisibleMs: maybe.number,
          dropped: texts,
          remaining: texts.describe('The URLs of the canaries that stay in the peer.'),
        })
        .nullable(),
    }),
  ]),
  init: z.looseObject({ path: text, folder: text, collection: text }),
  search: z.looseObject({
    query: text,
    total: number,
    totalIsExact: flag,
    corrected: maybe.text,
    items: z.array(
      z.looseObject({
        url: text,
        title: maybe.text,
        snippet: maybe.text,
        size: maybe.number,
        author: maybe.text,
        collections: texts.optional(),
        date: maybe.number,
        lastModified: maybe.number,
        loadDate: maybe.number,
      }),
    ),
  }),
  doc: z.looseObject({
    url: maybe.text,
    urlhash: maybe.text,
    title: maybe.text,
    size: maybe.number,
    words: maybe.number,
    digest: maybe.text,
    lastModified: maybe.number,
    loadDate: maybe.number,
    at: number,
    collections: texts.optional(),
    fields: z.record(text, texts).describe("All that the peer shows, under the peer's names."),
  }),
  citation: z.looseObject({
    url: maybe.text,
    urlhash: maybe.text,
    title: maybe.text,
    citing,
    similar: citing,
    sentences: z.array(z.looseObject({ number, text, appearsIn: texts })),
  }),
  push: z.looseObject({
    file: text,
    url: text,
    code: maybe.text,
    message: maybe.text,
    evidence: evidence.optional(),
    status: z.enum(['accepted', 'confirmed', 'unseen', 'failed']),
  }),
  'push --remove': z.looseObject({
    url: text,
    code: maybe.text,
    message: maybe.text,
    status: z.enum(['removed', 'emptied', 'remains', 'failed']),
  }),
  'share list': z.looseObject({ shares: texts }),
  'share get': z.looseObject({ data: text, file: text, bytes: number, sha256: text }),
  'table list': z.looseObject({ tables: texts }),
  'table get': cells.describe(
    'A row: its key is `pk`, its cells stand under the names of their columns.',
  ),
  'table set': row,
  'table add': row,
  'table delete-rows': z.looseObject({ table: text, deleted: texts }),
  'table drop': z.looseObject({ dropped: text, tables: texts.describe('Those that are left.') }),
  'service install': z.looseObject({ ...did, advice: texts }),
  'service uninstall': z.looseObject(did),
  'service status': z.looseObject({
    unit: text,
    installed: flag,
    enabled: flag,
    active: text,
    state: text,
  }),
};

/**
 * As one JSON Schema: an answer on the standard output by command, an error on the standard error.
 */
export function outputSchema() {
  const shape = (schema: z.ZodType) => z.toJSONSchema(schema, { reused: 'inline' });
  const error = z.looseObject({ error: z.looseObject({ code: text, message: text, hint: text }) });
  const commands = Object.entries(OUTPUT).map(([command, schema]) => [command, shape(schema)]);
  return {
    title: 'What peersync commands answer with --json, one object a line',
    version: OUTPUT_VERSION,
    $defs: { ...Object.fromEntries(commands), error: shape(error) },
  };
}
