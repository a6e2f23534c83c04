import { z } from 'zod';
import { define } from '../cli/command.js';
import { configOf, type GlobalOptions } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer, restated } from '../cli/output.js';
import { untilStopped } from '../cli/signals.js';
import { counted, safe } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import type { CheckedPeer } from '../embedded/check-peer.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import { formatBytes } from '../lib/units.js';

const DATA = option.value('Directory of the peer; that of the configuration unless given');
const FILE = option.needed('The file of the backup');

const UNCHANGED = 'Nothing was changed.';

const counts = {
  documents: z.number(),
  tables: z.number(),
  sharedObjects: z.number(),
};

/** Copies the embedded peer into one file. It may run meanwhile. */
export const peerBackup = define({
  output: z.object({
    file: z.string(),
    bytes: z.number(),
    sha256: z.string().describe('Of the content, as it stands at the end of the file.'),
    ...counts,
    documents: counts.documents.optional().describe('Missing with --no-check.'),
    tables: counts.tables.optional().describe('Missing with --no-check.'),
  }),
  positionals: { file: FILE },
  options: {
    data: DATA,
    force: option.flag('Replace an existing file'),
    check: option.unlessNo(
      'Compare index and documents of the copy; --no-check: only its digest and format',
    ),
  },
  examples: [
    ['$0 peer backup /media/disk/peer.backup', 'Of the peer of the configuration'],
    ['$0 peer backup --data ./peer --force peer.backup', 'Of a peer that runs alone'],
  ],
  run: async (options) => {
    const { check, force } = options;
    const [dir, file] = [await directoryOf(options), writtenPath(options.file)];
    const { backUp } = await import('../embedded/backup.js');
    const backup = await stoppable('No backup was written.', (signal) =>
      backUp({ dir, file, force, check, clock: systemClock, signal }),
    );
    const { bytes, checked, sha256, shares: sharedObjects } = backup;
    const { documents, tables } = checked ?? {};
    const found = { ...(checked && { documents, tables }), sharedObjects };
    return answer(options, { file: backup.file, bytes, sha256, ...found }, () => [
      checked === undefined
        ? `Saved the peer with ${counted(sharedObjects, 'shared object')} in ${safe(backup.file)} (${formatBytes(bytes)}); index and documents were not compared.`
        : `Saved ${contentsOf({ ...checked, shares: sharedObjects })} in ${safe(backup.file)} (${formatBytes(bytes)}): index and documents agree.`,
      'The password of its administrator is not in it.',
    ]);
  },
});

/** Replaces a stopped peer by a backup. */
export const peerRestore = define({
  output: z.object({
    ...counts,
    documents: counts.documents.optional().describe('Missing with --no-check.'),
    tables: counts.tables.optional().describe('Missing with --no-check.'),
    kept: z.string().optional().describe('The directory with what was there before.'),
  }),
  positionals: { file: FILE },
  options: {
    data: DATA,
    discard: option.flag(
      'Delete what was there before, and what an earlier restore kept, instead of keeping it',
    ),
    check: option.unlessNo(
      'Compare index and documents of the backup; --no-check: only its digest and format',
    ),
  },
  examples: [
    ['$0 peer restore /media/disk/peer.backup', 'What was there before is kept beside it'],
  ],
  run: async (options) => {
    const { check, discard } = options;
    const [dir, file] = [await directoryOf(options), writtenPath(options.file)];
    const { restore } = await import('../embedded/restore.js');
    const restored = await stoppable(UNCHANGED, (signal) =>
      restore({ dir, file, check, discard, signal }),
    ).catch((error: unknown) => {
      throw stopFirst(error, 'Stop it, and run the command again. Nothing was changed.');
    });
    const { checked, isReplaced, kept, shares: sharedObjects } = restored;
    const { documents, tables } = checked ?? {};
    const found = { ...(checked && { documents, tables }), sharedObjects };
    const result = { ...found, ...(kept !== undefined && { kept }) };
    return answer(options, result, () => [
      checked === undefined
        ? `Restored the peer with ${counted(sharedObjects, 'shared object')} in ${safe(dir)}; index and documents were not compared.`
        : `Restored ${contentsOf({ ...checked, shares: sharedObjects })} in ${safe(dir)}.`,
      ...whatWasThere(isReplaced, kept),
      'At its next start, the daemon of this peer compares all documents with it, and pushes again what it lacks. A daemon that reaches it by its URL does so after `peersync verify --all --repair`.',
    ]);
  },
});

/** Checks a stopped peer or a backup. */
export const peerCheck = define({
  output: z.object({
    agrees: z.boolean(),
    ...counts,
    differences: z.array(z.string()).describe('The first 20.'),
    found: z.number().describe('How many differences there are.'),
  }),
  positionals: {
    file: option.value('A backup; without it, the directory of the peer is checked'),
  },
  options: { data: DATA },
  examples: [
    ['$0 peer check', 'The peer of the configuration, which must not run'],
    ['$0 peer check /media/disk/peer.backup', 'A backup'],
  ],
  run: async (options) => {
    if (options.file !== undefined && options.data !== undefined)
      throw new UsageError('Both a file and --data were given.', 'Give one of them.');
    const checked =
      options.file === undefined
        ? await checkHere(await directoryOf(options))
        : await checkThere(writtenPath(options.file));
    const { differences, documents, found, shares: sharedObjects, tables } = checked;
    const agrees = found === 0;
    const result = { agrees, documents, tables, sharedObjects, differences, found };
    answer(options, result, () =>
      agrees
        ? [`${contentsOf(checked)}: index and documents agree.`]
        : [
            `${contentsOf(checked)}: ${counted(found, 'difference')}.`,
            ...differences.map((difference) => `  ${safe(difference)}`),
            ...(found > differences.length ? [`  … and ${found - differences.length} more`] : []),
            options.file === undefined
              ? 'Restore a backup (`peersync peer restore FILE`), or move peer.sqlite away and start peersync, which pushes the files of your folders again.'
              : 'Use another backup.',
          ],
    );
    return agrees ? EXIT.done : EXIT.failure;
  },
});

async function checkHere(dir: string): Promise<CheckedPeer> {
  const { checkPeer } = await import('../embedded/check-peer.js');
  return await stoppable(UNCHANGED, (signal) => checkPeer(dir, signal)).catch((error: unknown) => {
    throw stopFirst(
      error,
      'Stop it, or type `peersync peer backup FILE`, which checks a copy of the running peer.',
    );
  });
}

async function checkThere(file: string): Promise<CheckedPeer> {
  const { checkBackup } = await import('../embedded/check-peer.js');
  return await stoppable(UNCHANGED, (signal) => checkBackup(file, signal));
}

/** Says where the files before are, if there were any. */
function whatWasThere(isReplaced: boolean, kept: string | undefined): readonly string[] {
  if (!isReplaced) return [];
  if (kept === undefined) return ['Nothing of what was there before is left.'];
  return [`What was there before is in ${safe(kept)}. Delete it when you do not need it any more.`];
}

function contentsOf({
  documents,
  shares,
  tables,
}: {
  readonly documents: number;
  readonly shares: number;
  readonly tables: number;
}): string {
  return `${counted(documents, 'document')}, ${counted(tables, 'table')}, ${counted(shares, 'shared object')}`;
}

/**
 * Returns the directory of the peer.
 *
 * @throws UsageError if the configuration has another peer
 */
async function directoryOf(
  options: GlobalOptions & { readonly data: string | undefined },
): Promise<string> {
  if (options.data !== undefined) return writtenPath(options.data);
  const { config } = await configOf(options);
  if (config.peer.url === 'embedded') return config.peer.embedded.dir;
  throw new UsageError(
    `The peer of the configuration is ${config.peer.url}, and no embedded one.`,
    'Name the directory of an embedded peer with --data.',
  );
}

/** Runs work that the first SIGINT or SIGTERM ends. */
async function stoppable<T>(then: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return await untilStopped(async ({ signal }) => {
    try {
      return await work(signal);
    } catch (cause) {
      // An error of its own says what is true, such as that a restore is decided.
      if (!signal.aborted || cause instanceof PeersyncError) throw cause;
      throw new PeersyncError({
        code: 'STOPPED',
        message: `Stopped before it was done. ${then}`,
        hint: 'Run the command again.',
        cause,
      });
    }
  });
}

/** Names what to do if the peer runs. */
function stopFirst(error: unknown, hint: string): unknown {
  return error instanceof PeersyncError && error.code === 'EMBEDDED_DIR_LOCKED'
    ? restated(error, { hint })
    : error;
}
