import { type Answer, emptyPage, escapedXml, page } from './answer.js';
import type { Document, DocumentIndex } from './document-index.js';
import { first, type ReadForm } from './form.js';
import { BadUrl, hashOf, normalUrl } from './urls.js';

/** `yacydoc`: a document that is not there is shown with every field empty. */
export function yacydoc(index: DocumentIndex, path: string, form: ReadForm): Answer {
  const kind = path.slice(path.lastIndexOf('.') + 1);
  const hash = hashAsked(first(form, 'url'), first(form, 'urlhash'));
  const document = hash === undefined ? undefined : index.find(hash);
  if (kind === 'xml') return page('text/xml', xml(document));
  return emptyPage();
}

/** The hash that a URL or a hash means. */
export function hashAsked(url: string | undefined, hash: string | undefined): string | undefined {
  if (hash !== undefined) return hash;
  try {
    return hashOf(normalUrl(url ?? ''));
  } catch (error) {
    if (error instanceof BadUrl) return undefined;
    throw error;
  }
}

function javaDate(ms: number): string {
  const [, weekday, day, month, year, time] =
    /^(\w+), (\d+) (\w+) (\d+) (\S+)/.exec(new Date(ms).toUTCString()) ?? [];
  return `${weekday} ${month} ${day} ${time} UTC ${year}`;
}

function xml(document: Document | undefined): string {
  const known = <T>(show: (document: Document) => T) =>
    document === undefined ? '' : show(document);
  const language = known(() => 'en');
  const none = known(() => 0);
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE metadata [ <!ELEMENT metadata (#PCDATA)> ]>

<!-- 
this is a xml file with embedded dublin core properties
you can validate it with http://www.stg.brown.edu/service/xmlvalid/
-->

<metadata xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:yacy="http://yacy.net/" xmlns:geo="http://www.w3.org/2003/01/geo/wgs84_pos#">
  <record>
  <dc:title LANG="${language}">${known(({ title }) => escapedXml(title))}</dc:title>
  <dc:creator></dc:creator>
  <dc:contributor></dc:contributor>
  <dc:subject SCHEME="item-list"></dc:subject>
  <dc:description LANG="${language}"></dc:description>
  <dc:publisher.URL></dc:publisher.URL>
  <dc:date>${known(({ lastModified }) => new Date(lastModified).toISOString().replace('.000', ''))}</dc:date>
  <dc:type>yacy:doctype:${known(({ doctype }) => doctype)}</dc:type>
  <dc:identifier SCHEME="yacy:urlhash">yacy:urlhash:${known(({ hash }) => hash)}</dc:identifier>
  <dc:identifier SCHEME="URL">${known(({ url }) => escapedXml(url))}</dc:identifier>
  <dc:format.extent>${known(({ size }) => size)}</dc:format.extent>
  <dc:language SCHEME="ISO639-2">${language}</dc:language>
  <collections>${known(({ collections }) => `[${collections.join(', ')}]`)}</collections>
  <geo:Point>
    <geo:long>${known(() => '0.0')}</geo:long>
    <geo:lat>${known(() => '0.0')}</geo:lat>
  </geo:Point>
  
  <yacy:loaddate>${known(({ loadDate }) => javaDate(loadDate))}</yacy:loaddate>
  <yacy:referrer.hash>yacy:urlhash:</yacy:referrer.hash>
  <yacy:referrer.url></yacy:referrer.url>
  <yacy:words>${known(({ words }) => words)}</yacy:words>

  <yacy:inbound>${none}</yacy:inbound>
  <yacy:outbound>${none}</yacy:outbound>
  <yacy:citations>${none}</yacy:citations>
  </record>
</metadata>
`;
}
