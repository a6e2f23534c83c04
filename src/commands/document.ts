import type { Argv } from 'yargs';
import { PeersyncError } from '../lib/errors.js';
import { type GlobalOptions, UsageError } from './context.js';

/** Which document a command is about. */
export interface DocumentOptions {
  readonly url: string | undefined;
  readonly hash: string | undefined;
}

export function documentOptions(yargs: Argv<GlobalOptions>): Argv<GlobalOptions & DocumentOptions> {
  return yargs
    .positional('url', { type: 'string', describe: 'The URL of the document (`peersync why FILE` tells it)' })
    .option('hash', {
      type: 'string',
      describe: 'The hash that the peer gave the document, in place of its URL',
      requiresArg: true,
    }) as Argv<GlobalOptions & DocumentOptions>;
}

/** @throws UsageError unless exactly one of the two was given */
export function documentOf({
  url,
  hash,
}: DocumentOptions): { readonly url: string } | { readonly hash: string } {
  if (url !== undefined && hash !== undefined) throw new UsageError('Both a URL and --hash were given.');
  if (hash !== undefined) return { hash };
  if (url === undefined) throw new UsageError('Neither a URL nor --hash was given.');
  if (!URL.canParse(url))
    throw new UsageError(
      `"${url}" is no URL.`,
      'Give the URL of a document, such as https://files.example.org/a.md; `peersync why FILE` tells that of a file.',
    );
  return { url };
}

/** The peer has no such document. */
export function noDocument(asked: { readonly url: string } | { readonly hash: string }): PeersyncError {
  const name = 'url' in asked ? asked.url : `with the hash ${asked.hash}`;
  return new PeersyncError({
    code: 'NOT_FOUND',
    message: `The peer has no document ${name}.`,
    hint: 'If it was pushed a moment ago, ask again; `peersync why FILE` tells what became of a file.',
    details: asked,
  });
}
