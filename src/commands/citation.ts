import { EXIT } from '../lib/errors.js';
import type { Citation, CitationOptions, CitingDocument } from '../peer/citation.js';
import { type Command, prepare, print, printJson } from './context.js';
import { type DocumentOptions, documentOf, documentOptions, noDocument } from './document.js';
import { HEADS } from './heads.js';
import { wholeNumber } from './option-values.js';
import { withPeer } from './peer-access.js';
import { counted, named, safe } from './text.js';

interface CitationCommandOptions extends DocumentOptions {
  readonly filter: boolean | undefined;
  readonly ch: string | undefined;
}

/** What the peer knows of the sentences that one document has in common with others. */
export const citationCommand: Command<CitationCommandOptions> = {
  ...HEADS.citation,
  builder: (yargs) =>
    documentOptions(yargs)
      .option('filter', { type: 'boolean', describe: 'Only the sentences that occur elsewhere' })
      .option('ch', {
        type: 'string',
        describe: 'From how many common sentences on another document counts as similar',
        requiresArg: true,
      })
      .example('$0 citation https://example.org/a', 'All sentences, with where else they stand')
      .example('$0 citation --hash y4Zp1x3nLcAA --filter --ch 10', 'Only what is elsewhere too'),
  run: async (options) => {
    const asked = documentOf(options);
    const { filter } = options;
    const ch = options.ch === undefined ? undefined : wholeNumber('--ch', options.ch);
    const { loaded, log } = await prepare(options, { fd: 2, quiet: true });
    const how: CitationOptions = {
      ...(filter === undefined ? {} : { filter }),
      ...(ch === undefined ? {} : { ch }),
    };
    const citation = await withPeer(loaded.config, log, (client, signal) =>
      client.citation(asked, { ...how, signal }),
    );
    if (citation === undefined) throw noDocument(asked);
    if (options.json) printJson(citation);
    else for (const line of citationText(citation)) print(line);
    return EXIT.done;
  },
};

/** The citation record for a person, line by line. */
export function citationText({ title, url, urlhash, sentences, citing, similar }: Citation): string[] {
  const elsewhere = sentences.filter(({ appearsIn }) => appearsIn.length > 0).length;
  const digits = Math.max(0, ...sentences.map(({ number }) => String(number).length));
  return [
    ...named([
      ['title', title],
      ['document', url],
      ['hash', urlhash],
      ['sentences', `${sentences.length} shown, ${elsewhere} of them also in other documents`],
    ]),
    ...sentences.flatMap(({ number, text, appearsIn }) => [
      `  ${String(number).padStart(digits)}  ${safe(text)}`,
      ...appearsIn.map((other) => `  ${''.padStart(digits)}  also in ${safe(other)}`),
    ]),
    ...documentsText('cited by', citing),
    ...documentsText('similar', similar),
  ];
}

function documentsText(what: string, documents: readonly CitingDocument[]): string[] {
  if (documents.length === 0) return [`${what}: no other document`];
  return [
    `${what}: ${counted(documents.length, 'document')}`,
    ...documents.map(({ url, title, sentences }) => {
      const common = sentences === undefined ? '' : ` (${counted(sentences, 'sentence')})`;
      return `  ${safe(url)}${common}${title === undefined ? '' : ` ${safe(title)}`}`;
    }),
  ];
}
