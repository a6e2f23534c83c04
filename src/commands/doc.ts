import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import { formatBytes } from '../lib/units.js';
import type { Peerdoc } from '../peer/peerdoc.js';
import { type Command, prepare, print, printJson } from './context.js';
import { type DocumentOptions, documentOf, documentOptions, noDocument } from './document.js';
import { HEADS } from './heads.js';
import { withPeer } from './peer-access.js';
import { counted, named, timeText } from './text.js';

/** What the peer shows of one document. */
export const docCommand: Command<DocumentOptions> = {
  ...HEADS.doc,
  builder: (yargs) =>
    documentOptions(yargs)
      .example('$0 doc https://example.org/a.md', 'By its URL')
      .example('$0 doc --hash y4Zp1x3nLcAA --json', 'By its hash, with every field that the peer shows'),
  run: async (options) => {
    const asked = documentOf(options);
    const { loaded, log } = await prepare(options, { fd: 2, quiet: true });
    const query = 'url' in asked ? asked : { urlhash: asked.hash };
    const doc = await withPeer(loaded.config, log, (client, signal) => client.peerdoc(query, { signal }));
    if (doc === undefined) throw noDocument(asked);
    if (options.json) printJson(doc);
    else for (const line of docText(doc, systemClock.now())) print(line);
    return EXIT.done;
  },
};

/** The document for a person, line by line. */
function docText(doc: Peerdoc, now: number): string[] {
  const { size, words, digest, lastModified, loadDate, collections } = doc;
  const extent = [
    ...(size === undefined ? [] : [formatBytes(size)]),
    ...(words === undefined ? [] : [counted(words, 'word')]),
  ];
  return named([
    ['title', doc.title],
    ['document', doc.url],
    ['hash', doc.urlhash],
    ['collections', collections?.join(', ')],
    ['size', extent.length === 0 ? undefined : extent.join(', ')],
    ['content', digest === undefined ? undefined : `sha256 ${digest}`],
    ['modified', lastModified === undefined ? undefined : timeText(lastModified, now)],
    ['loaded', loadDate === undefined ? undefined : timeText(loadDate, now)],
  ]);
}
