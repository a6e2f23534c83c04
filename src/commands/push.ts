import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { FolderConfig } from '../config/config.js';
import { collection as collectionField } from '../config/fields.js';
import { documentUrl, fileBase, normaliseBase } from '../config/url.js';
import { fingerprint } from '../content/reader.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError, systemCode } from '../lib/errors.js';
import { fileStat } from '../lib/file.js';
import { sentence } from '../lib/text.js';
import { comparableUrl } from '../peer/answer.js';
import { DIALECTS } from '../peer/client.js';
import type { ContentRules } from '../peer/dialect.js';
import type { Trouble } from '../state/entry.js';
import { cannotTravel, streamed, withoutWords } from '../uplink/documents.js';
import { trouble } from '../watch/rules.js';
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
import { type Outcome, pushFile, type ReadyFile, untilShown } from './push-and-wait.js';
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
    await withPeer(config, log, async (client, signal) => {
      const dialect = DIALECTS[client.dialect ?? (await client.detect({ signal }))];
      const files = await readyFiles(targets, dialect.content);
      const clock = systemClock;
      const waits: (() => Promise<void>)[] = [];
      for (const file of files) {
        const deadline = clock.now() + timeoutMs;
        const sent = await pushFile(client, file, { ...push, collection }, { clock, deadline, signal });
        if ('refused' in sent) tell(file, { status: 'refused', message: sent.refused });
        else if (!options.wait) tell(file, { status: 'accepted' });
        const patience = { deadline, maxInterval: confirm.maxInterval, hold: confirm.hold ?? dialect.holdMs };
        if (!('refused' in sent) && options.wait)
          waits.push(async () => tell(file, await untilShown(client, sent, patience, { clock, signal })));
      }
      // One after the other: when the first is shown, the others mostly are.
      for (const wait of waits) await wait();
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

/** A file and the URL of the document that it is to become. */
type Target = Pick<ReadyFile, 'file' | 'url'>;

/**
 * The URL of each file: `url` where that is for one file, `url` and the file's name where it ends in "/", and the `file://` URL
 * of the file where none is given.
 *
 * @throws UsageError for a URL that is none, that is for one file where there are several, that two files would share, or
 *   that belongs to a watched folder
 */
export function targetsOf(
  files: readonly string[],
  url: string | undefined,
  folders: readonly FolderConfig[],
): readonly Target[] {
  const targets = files.map((file) => ({ file, url: urlOf(file, url, files.length) }));
  for (const [i, target] of targets.entries()) {
    const twin = targets.slice(0, i).find((other) => other.url === target.url);
    if (twin !== undefined)
      throw new UsageError(
        `${twin.file} and ${target.file} would both become the document ${target.url}.`,
        'Push them one by one, each with a --url of its own.',
      );
    const folder = folders.find((each) => comparableUrl(target.url).startsWith(comparableUrl(each.url)));
    if (folder !== undefined)
      throw new UsageError(
        `The document ${target.url} belongs to the folder ${folder.name}, whose files are pushed by themselves.`,
        `Give another --url, or put the file into ${folder.path}.`,
      );
  }
  return targets;
}

const SCHEMES = new Set(['http:', 'https:', 'ftp:', 'file:']);

function urlOf(file: string, url: string | undefined, count: number): string {
  const path = resolve(file);
  if (url === undefined) return documentUrl(fileBase(dirname(path)), basename(path));
  if (url.endsWith('/')) {
    const base = normaliseBase(url);
    if (base !== undefined) return documentUrl(base, basename(path));
  } else if (count > 1) {
    throw new UsageError(
      `--url: received "${url}" for ${count} files.`,
      'Give a base that ends in "/"; each file has its name behind it.',
    );
  } else if (URL.canParse(url)) {
    const { protocol, username, password, href } = new URL(url);
    if (SCHEMES.has(protocol) && username === '' && password === '') return href;
  }
  throw new UsageError(
    `--url: received "${url}".`,
    'Give an http, https, ftp or file URL without credentials, such as https://files.example.org/report.md.',
  );
}

/**
 * Reads the files and finds out whether each can go to the peer.
 *
 * @throws PeersyncError for a file that cannot, with the words that are used for files of folders; an AggregateError for
 *   several
 */
export async function readyFiles(
  targets: readonly Target[],
  rules: ContentRules,
): Promise<readonly ReadyFile[]> {
  const ready: ReadyFile[] = [];
  const failures: PeersyncError[] = [];
  for (const target of targets) {
    const found = await readyFile(target, rules);
    if ('code' in found) {
      const { code, hint, message } = found;
      const { file } = target;
      failures.push(new PeersyncError({ code, message: `${file}: ${message}`, hint, details: { file } }));
    } else ready.push(found);
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, 'some files cannot be pushed');
  return ready;
}

async function readyFile(target: Target, rules: ContentRules): Promise<ReadyFile | Trouble> {
  try {
    const path = await realpath(target.file);
    const stats = await stat(path);
    if (!stats.isFile()) return NOT_A_FILE;
    if (stats.size === 0) return { ...trouble.empty(), hint: 'Push it when something is in it.' };
    const found = await fingerprint({ file: path, stat: fileStat(stats) });
    if (found.kind === 'unreadable') return trouble.unreadable(found.code);
    if (found.kind !== 'version') return CHANGING;
    const refused = cannotTravel(found.version.encoding, rules);
    if (refused !== undefined) return refused;
    const packed = await streamed(path, found.version, rules);
    if (packed.kind === 'unreadable') return trouble.unreadable(packed.code);
    if (packed.kind === 'stale') return CHANGING;
    if (packed.kind === 'wordless') return withoutWords();
    return { ...target, ...packed, mtimeMs: found.version.mtimeMs };
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    return code === 'ENOENT' || code === 'ENOTDIR' ? NO_SUCH_FILE : trouble.unreadable(code);
  }
}

const NO_SUCH_FILE: Trouble = {
  code: 'NO_SUCH_FILE',
  message: 'There is no such file.',
  hint: 'Name files that exist.',
};
const NOT_A_FILE: Trouble = {
  code: 'NOT_A_FILE',
  message: 'It is a directory or a device, and no file.',
  hint: 'Name files; a whole directory is what `folders` of the configuration are for.',
};
const CHANGING: Trouble = {
  code: 'FILE_CHANGING',
  message: 'The file is being changed at this moment.',
  hint: 'Push it again when it is at rest.',
};
