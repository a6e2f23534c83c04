import { z } from 'zod';
import { define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { counted, named, safe } from '../cli/text.js';
import type { Citation, CitationOptions, CitingDocument } from '../peer/citation.js';
import { DOCUMENT, documentOf, noDocument } from './doc.js';
import { askPeer } from './peer.js';

const documentList = z.array(
  z.object({
    url: z.string(),
    title: z.string().optional(),
    sentences: z.number().optional(),
  }),
);

/** Shows the sentences that a document has in common with others. */
export const citationCommand = define({
  output: z.object({
    url: z.string().optional(),
    urlhash: z.string().optional(),
    title: z.string().optional(),
    citing: documentList,
    similar: documentList,
    sentences: z.array(
      z.object({ number: z.number(), text: z.string(), appearsIn: z.array(z.string()) }),
    ),
  }),
  positionals: DOCUMENT.positionals,
  options: {
    ...DOCUMENT.options,
    filter: { type: 'boolean', describe: 'Only the sentences that occur elsewhere' },
    ch: option.value('From how many common sentences on another document counts as similar'),
  },
  examples: [
    ['$0 citation https://example.org/a', 'All sentences, with where else they stand'],
    ['$0 citation --hash y4Zp1x3nLcAA --filter --ch 10', 'Only what is elsewhere too'],
  ],
  run: async (options) => {
    const key = documentOf(options);
    const { filter } = options;
    const ch = options.ch === undefined ? undefined : option.wholeNumber('--ch', options.ch);
    const how: CitationOptions = {
      ...(filter === undefined ? {} : { filter }),
      ...(ch === undefined ? {} : { ch }),
    };
    const citation = await askPeer(options, (client, signal) =>
      client.citation(key, { ...how, signal }),
    );
    if (citation === undefined) throw noDocument(key);
    return answer(options, citation, () => citationText(citation));
  },
});

/** The citation record for a person, line by line. */
export function citationText({
  title,
  url,
  urlhash,
  sentences,
  citing,
  similar,
}: Citation): string[] {
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
