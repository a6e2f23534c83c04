import { type Answer, emptyPage, escapedXml, failed, page } from './answer.js';
import type { DocumentIndex } from './document-index.js';
import { first, type ReadForm } from './form.js';
import { hashAsked } from './yacydoc.js';

/**
 * `citation`: fails for a URL that the peer does not know, and has empty lists for a hash that it
 * does not know, which it commits for. The lists of the model are always empty: how the peer fills
 * them is recorded.
 */
export function citation(index: DocumentIndex, path: string, form: ReadForm): Answer {
  if (!path.endsWith('.html')) return emptyPage();
  const given = first(form, 'hash');
  const hash = hashAsked(first(form, 'url'), given);
  const document = hash === undefined ? undefined : index.find(hash);
  if (document === undefined && given === undefined) return failed(path);
  if (document === undefined) index.commitAtOnce();
  return page('text/html', html(document?.url ?? ''));
}

function html(given: string): string {
  const url = escapedXml(given);
  return `<html xmlns="http://www.w3.org/1999/xhtml">
<head><title>YaCy 'model': Document Citations for url ${url}</title></head>
<body>
  <h1>Document Citations for<br><a href="${url}">${url}</a></h1>
  <dl></dl>
  <dl></dl>
</body>
</html>
`;
}
