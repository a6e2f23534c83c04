import { descendants, type Element, elementsOf, parseMarkup, textOf, visible } from './markup-tree.js';
import { lineFields } from './read-text.js';
import { type Answer, type AnswerRecord, type Field, Unreadable } from './record.js';

/**
 * XML and RSS: an element without elements in it is a field, any other a record. Attributes are fields too, where the
 * element is a record or has no text. Declared entities are not expanded; an answer whose outermost element is not closed
 * was cut short.
 */
export function readXml(text: string): Answer {
  const { root, unclosed } = parseMarkup(text, true);
  const outermost = elementsOf(root)[0];
  if (outermost === undefined)
    throw new Unreadable('gave an answer that looks like XML and holds no element');
  if (unclosed.size > 0) throw new Unreadable('gave an answer in XML that breaks off');
  return { form: 'xml', record: xmlRecord(outermost), prose: '' };
}

function xmlRecord(element: Element): AnswerRecord {
  const fields: Field[] = attributeFields(element);
  const records: AnswerRecord[] = [];
  for (const child of elementsOf(element)) {
    const isLeaf = elementsOf(child).length === 0;
    const value = isLeaf ? textOf(child).trim() : '';
    if (isLeaf) fields.push({ name: child.name, value });
    if (!isLeaf || (value === '' && attributeFields(child).length > 0)) records.push(xmlRecord(child));
  }
  if (elementsOf(element).length === 0 && fields.length === 0) {
    fields.push({ name: element.name, value: textOf(element).trim() });
  }
  return { name: element.name, fields, records };
}

function attributeFields({ attributes }: Element): Field[] {
  return Object.entries(attributes)
    .filter(([name]) => !/^xmlns(:|$)/.test(name))
    .map(([name, value]) => ({ name, value }));
}

/**
 * HTML: the terms of a definition list are fields (under their RDFa `property`, where they have one), so are two-celled
 * rows of a table; a row under a heading row is a record. A page with nothing of the kind is read as plain text.
 */
export function readHtml(text: string): Answer {
  const { root, unclosed } = parseMarkup(text, false);
  if (['html', 'dl', 'table'].some((name) => unclosed.has(name))) {
    throw new Unreadable('gave an answer in HTML that breaks off');
  }
  const page = new PageReader();
  page.read(root);
  const { fields, records, prose } = page;
  if (fields.length + records.length > 0)
    return { form: 'html', record: { name: '', fields, records }, prose };
  return {
    form: 'html',
    record: { name: '', fields: lineFields(prose), records },
    prose: `${page.title}\n${prose}`,
  };
}

const UNSEEN = new Set(['script', 'style', 'template', 'noscript', 'select', 'option', 'button']);
const INLINE = new Set([
  'a',
  'abbr',
  'b',
  'bdi',
  'code',
  'em',
  'i',
  'mark',
  'small',
  'span',
  'strong',
  'sub',
  'sup',
  'time',
  'u',
]);

class PageReader {
  readonly fields: Field[] = [];
  readonly records: AnswerRecord[] = [];
  prose = '';
  title = '';

  read(element: Element): void {
    for (const child of element.children) {
      if (typeof child === 'string') this.prose += child;
      else this.#element(child);
    }
  }

  #element(element: Element): void {
    if (UNSEEN.has(element.name)) return;
    const { property } = element.attributes;
    if (element.name === 'title') this.title = visible(element);
    else if (element.name === 'dl') this.#definitions(element);
    else if (element.name === 'table') this.#table(element);
    else if (property !== undefined) this.#field(property, element);
    else {
      this.read(element);
      if (!INLINE.has(element.name)) this.prose += '\n';
    }
  }

  #definitions(list: Element): void {
    let term = '';
    for (const part of descendants(list, ['dt', 'dd'])) {
      if (part.name === 'dt') term = visible(part);
      else this.#field(propertyOf(part) ?? term, part);
    }
  }

  #table(table: Element): void {
    let heading: readonly string[] | undefined;
    for (const row of descendants(table, ['tr'])) {
      const cells = descendants(row, ['th', 'td']);
      const [first, second] = cells;
      if (cells.length > 0 && cells.every((cell) => cell.name === 'th')) heading = cells.map(visible);
      else if (heading !== undefined) this.#row(heading, cells);
      else if (cells.length === 2 && first !== undefined && second !== undefined)
        this.#field(visible(first), second);
    }
  }

  #row(heading: readonly string[], cells: readonly Element[]): void {
    const fields = cells.map((cell, i) => ({ name: heading[i] ?? '', value: visible(cell) }));
    this.records.push({ name: 'row', fields, records: [] });
  }

  #field(name: string, element: Element): void {
    this.fields.push({ name, value: visible(element) });
  }
}

function propertyOf(element: Element): string | undefined {
  return (
    element.attributes.property ??
    elementsOf(element)
      .map(propertyOf)
      .find((property) => property !== undefined)
  );
}
