import { type Answer, emptyPage, failed, page } from './answer.js';
import type { Document, DocumentIndex } from './document-index.js';
import { first, type ReadForm } from './form.js';
import { hashAsked } from './yacydoc.js';

const MIN_SENTENCE = 40;

/** `citation`: fails for a URL that the peer does not know, and has empty lists for a hash that it does not know. */
export function citation(index: DocumentIndex, path: string, form: ReadForm): Answer {
  if (!path.endsWith('.html')) return emptyPage();
  const url = typeof form === 'string' ? undefined : first(form, 'url');
  const given = typeof form === 'string' ? undefined : first(form, 'hash');
  const onlyCited = typeof form !== 'string' && first(form, 'filter') === 'true';
  if (given !== undefined && given.length !== 12) return failed(path);
  const hash = hashAsked(url, given);
  if (hash === undefined) return page('text/html', html('', [], [], onlyCited));
  const document = index.find(hash);
  if (document !== undefined) return page('text/html', cited(index, document, onlyCited));
  if (given === undefined) return failed(path);
  index.commitAtOnce();
  return page('text/html', html('', [], [], onlyCited));
}

function cited(index: DocumentIndex, document: Document, onlyCited: boolean): string {
  const { url, text } = document;
  const others = index.searched().filter((other) => other.url !== url);
  const sentences = sentencesOf(text).map((sentence) => ({
    sentence,
    by: sentence.length < MIN_SENTENCE ? [] : others.filter((other) => other.text.includes(sentence)),
  }));
  const list = sentences
    .filter(({ by }) => !onlyCited || by.length > 0)
    .map(({ sentence, by }, n) => `    <dt>${n}</dt><dd>${quoted(sentence)}${appearances(by)}</dd>\n    `);
  const citing = others.flatMap((other) => {
    const taken = sentences.filter(({ by }) => by.includes(other)).map(({ sentence }) => quoted(sentence));
    if (taken.length === 0) return [];
    const links = taken.map(
      (sentence) => `<a href="../solr/select?q=text_t:%22${sentence}%22">${sentence}</a><br/>`,
    );
    return `    <dt><a href="${other.url}">${other.url}</a></dt><dd>makes ${taken.length} citations: of ${url}<br/>${links.join('')}</dd>\n    `;
  });
  return html(url, list, citing, onlyCited);
}

function sentencesOf(text: string): string[] {
  return text.split(/(?<=[.!?])\s+/).filter((sentence) => sentence !== '');
}

function quoted(sentence: string): string {
  return sentence.replace(/"/g, "'");
}

function appearances(by: readonly Document[]): string {
  if (by.length === 0) return '';
  const links = by.map(({ url }) => `<a href="${url}">${new URL(url).host}</a>`);
  return `<br/>appears in: ${links.join(' ')}`;
}

function html(url: string, list: readonly string[], citing: readonly string[], onlyCited: boolean): string {
  const [value, label] = onlyCited ? ['false', 'filter off'] : ['true', 'filter cited sentences'];
  return `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml">
<head>
<title>YaCy 'model': Document Citations for url ${url}</title>
</head>
<body>
  <h1>Document Citations for<br><a href="${url}">${url}</a></h1>
  
  <form action="citation.html?url=${url}" name="" method="post" enctype="multipart/form-data" accept-charset="UTF-8">
    <fieldset>
    <table width="100%">
      <tr>
        <td>
          <legend><label>List of ${onlyCited ? 'Cited' : ''} Sentences in ${url}</label></legend>
        </td>
        <td align="right">
          <button type="submit" name="filter" class="btn btn-default btn-sm" value="${value}">${label}</button>
        </td>
      </tr>
    </table>
    <dl>${list.join('')}</dl>
    </fieldset>
  </form>
  <form action="#" name="" method="post" enctype="multipart/form-data" accept-charset="UTF-8">
    <fieldset>
    <legend><label>List of other web pages with citations</label></legend>
    <dl>${citing.join('')}</dl>
    </fieldset>
  </form>
  </div>
</div>

</body>
</html>
`;
}
