import { collection as collectionField } from '../config/fields.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { sentence } from '../lib/text.js';
import { DIALECTS, type PeerClient } from '../peer/client.js';
import {
  define,
  duration,
  needed,
  prepare,
  preset,
  print,
  printJson,
  several,
  UsageError,
  value,
} from './context.js';
import { withPeer } from './peer.js';
import {
  batchesOf,
  type Outcome,
  pushBatch,
  type ReadyFile,
  readyFiles,
  targetsOf,
  untilShown,
} from './push-files.js';
import { counted, safe } from './text.js';

/** Pushes single files, outside of all folders, and waits until the peer shows them. */
export const pushCommand = define({
  positionals: {
    file: several('Files; text, unless the peer takes others'),
  },
  options: {
    collection: needed('The collection that their documents are tagged with'),
    url: value('The URL of the document, or a base that ends in "/"; the file:// URL unless given'),
    timeout: preset('2m', 'How long the peer may take to show them'),
    wait: {
      type: 'boolean',
      default: true,
      describe: 'Wait until the peer shows them; --no-wait: do not',
    },
  },
  examples: [
    ['$0 push a.md --collection notes --url https://example.org/a.md', 'One file'],
    ['$0 push *.md --collection notes --url https://example.org/notes/', 'Several, each with its name'],
  ],
  run: async (options) => {
    const { collection } = options;
    if (options.file.length === 0) throw new UsageError('No file was named.');
    const right = collectionField().safeParse(collection);
    if (!right.success)
      throw new UsageError(
        `--collection: received "${collection}".`,
        `Give ${right.error.issues[0]?.message ?? 'a collection'}.`,
      );
    const timeoutMs = duration('--timeout', options.timeout);
    const { config, log } = await prepare(options);
    const { folders, push, confirm } = config;
    const targets = targetsOf(options.file, options.url, folders);
    const outcomes: Outcome[] = [];
    const tell = (file: ReadyFile, outcome: Outcome) => {
      outcomes.push(outcome);
      if (options.json) printJson({ file: file.file, url: file.url, ...outcome });
      else print(`${outcome.status.padEnd(9)}  ${safe(file.file)}  ${safe(file.url)}${reasonOf(outcome)}`);
    };
    await withPeer(config, log, async (client: PeerClient, signal) => {
      const dialect = DIALECTS[client.dialect ?? (await client.detect({ signal }))];
      const files = await readyFiles(targets, dialect.content);
      const hold = confirm.hold ?? dialect.holdMs;
      for (const batch of batchesOf(files, push)) {
        const deadline = systemClock.now() + timeoutMs;
        const patience = { deadline, maxInterval: confirm.maxInterval, hold };
        const how = { collection, synchronous: push.synchronous, commit: push.commit };
        const pushed = await pushBatch(client, batch, how, { clock: systemClock, deadline, signal });
        // One after the other: when the first is shown, the others mostly are.
        for (const { file, result, sent } of pushed) {
          if (!result.ok) tell(file, { status: 'refused', message: result.message });
          else if (!options.wait) tell(file, { status: 'accepted' });
          else tell(file, await untilShown(client, sent, patience, { clock: systemClock, signal }));
        }
      }
    });
    const failure = failureOf(outcomes, options.timeout);
    if (failure !== undefined) throw failure;
    return EXIT.done;
  },
});

function reasonOf(outcome: Outcome): string {
  if (outcome.status === 'refused' || outcome.status === 'unseen') return `: ${safe(outcome.message)}`;
  return outcome.status === 'confirmed' ? ` (${outcome.evidence.kind}: ${safe(outcome.evidence.shown)})` : '';
}

function failureOf(outcomes: readonly Outcome[], timeout: string): PeersyncError | undefined {
  const refused = outcomes.filter((outcome) => outcome.status === 'refused');
  const unseen = outcomes.filter((outcome) => outcome.status === 'unseen');
  if (refused[0] !== undefined)
    return new PeersyncError({
      code: 'REFUSED',
      message: `The peer refused ${refused.length} of ${counted(outcomes.length, 'file')}: ${sentence(refused[0].message)}`,
      hint: 'Mend what the peer complains about, then push again.',
    });
  if (unseen[0] === undefined) return undefined;
  return new PeersyncError({
    code: 'TIMEOUT',
    message: `The peer took ${unseen.length} of ${counted(outcomes.length, 'file')} and did not show that within ${timeout}: ${sentence(unseen[0].message)}`,
    hint: '`peersync doc URL` looks again later; a longer --timeout waits longer.',
  });
}
