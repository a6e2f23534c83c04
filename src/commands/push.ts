import { basename, dirname, resolve } from 'node:path';
import type { FolderConfig } from '../config/config.js';
import { collection as collectionField } from '../config/fields.js';
import { documentUrl, fileBase, normaliseBase } from '../config/url.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { sentence } from '../lib/text.js';
import { comparableUrl } from '../peer/answer.js';
import type { ContentRules } from '../peer/dialect.js';
import { DIALECTS } from '../peer/dialects.js';
import {
  answer,
  define,
  duration,
  needed,
  prepare,
  preset,
  several,
  UsageError,
  unlessNo,
  value,
} from './context.js';
import { deliver, type Outcome, type ReadFile, readTarget, type Target } from './deliver.js';
import { withPeer } from './peer.js';
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
    wait: unlessNo('Wait until the peer shows them; --no-wait: do not'),
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
    const targets = targetsOf(options.file, options.url, config.folders);
    const outcomes: Outcome[] = [];
    const tell = ({ file, url }: Target, outcome: Outcome) => {
      outcomes.push(outcome);
      const { status } = outcome;
      const shown = status === 'failed' ? { status, message: outcome.error.message } : outcome;
      answer(options, { file, url, ...shown }, () => [
        `${status.padEnd(9)}  ${safe(file)}  ${safe(url)}${reasonOf(outcome)}`,
      ]);
    };
    await withPeer(config, log, async (client, signal) => {
      const dialect = DIALECTS[client.dialect ?? (await client.detect({ signal }))];
      const files = await readTargets(targets, dialect.content);
      const { wait } = options;
      await deliver(client, dialect, files, { config, collection, timeoutMs, wait, log, signal }, tell);
    });
    const failure = failureOf(outcomes, options.timeout);
    if (failure !== undefined) throw failure;
    return EXIT.done;
  },
});

function reasonOf(outcome: Outcome): string {
  if (outcome.status === 'failed') return `: ${safe(outcome.error.message)}`;
  if ('message' in outcome) return `: ${safe(outcome.message)}`;
  return outcome.status === 'confirmed' ? ` (${outcome.evidence.kind}: ${safe(outcome.evidence.shown)})` : '';
}

function failureOf(outcomes: readonly Outcome[], timeout: string): PeersyncError | undefined {
  const failed = outcomes.find((outcome) => outcome.status === 'failed');
  const of = (status: Outcome['status']) =>
    outcomes.flatMap((outcome) => ('message' in outcome && outcome.status === status ? outcome.message : []));
  const [refused, unseen] = [of('refused'), of('unseen')];
  const all = counted(outcomes.length, 'file');
  if (failed !== undefined) return failed.error;
  if (refused[0] !== undefined)
    return new PeersyncError({
      code: 'REFUSED',
      message: `The peer refused ${refused.length} of ${all}: ${sentence(refused[0])}`,
      hint: 'Mend what the peer complains about, then push again.',
    });
  if (unseen[0] === undefined) return undefined;
  return new PeersyncError({
    code: 'TIMEOUT',
    message: `The peer took ${unseen.length} of ${all} and did not show that within ${timeout}: ${sentence(unseen[0])}`,
    hint: '`peersync doc URL` looks again later; a longer --timeout waits longer.',
  });
}

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
export async function readTargets(
  targets: readonly Target[],
  rules: ContentRules,
): Promise<readonly ReadFile[]> {
  const ready: ReadFile[] = [];
  const failures: PeersyncError[] = [];
  for (const target of targets) {
    const found = await readTarget(target, rules);
    if (!('code' in found)) ready.push(found);
    else {
      const { file } = target;
      const message = `${file}: ${found.message}`;
      failures.push(new PeersyncError({ code: found.code, message, hint: found.hint, details: { file } }));
    }
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, 'some files cannot be pushed');
  return ready;
}
