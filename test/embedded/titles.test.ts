import { describe, expect, it } from 'vitest';
import { isOwnName } from '../../src/content/readers/own-names.js';
import { normaliseUrl, readContent } from '../../src/embedded/content.js';
import { bodyOf } from '../../src/embedded/snippets.js';

const USELESS = [
  'Sheet1',
  'Tabelle 12',
  'Feuil1',
  'Hoja1',
  'Лист1',
  'シート1',
  'Slide 1',
  'Folie 1',
  'Diapositive 3',
  'スライド 2',

  'untitled',
  '(untitled)',
  'Untitled-1',
  '"Untitled"',
  'Unbenannt',
  'Ohne Titel 2',
  'Sans titre',
  'Document1',
  'Dokument2',
  'Book1',
  'Mappe1',
  'Presentation1',
  'Präsentation2',
  'New Microsoft Word Document',
  'Neues Dokument (2)',
  'PowerPoint Presentation',
  'PowerPoint-Präsentation',
  'Présentation PowerPoint',
  'Microsoft Word - x.doc',
  'Microsoft PowerPoint - Talk.ppt',
  ' Microsoft Excel - a.xls',
  'Microsoft Office Word - Dokument1',
  'Microsoft Visio - a b.vsdx',
  'Dia1',
];
const USEFUL = [
  'Sheet music',
  'Slides of 2024',
  'The untitled',
  'Document',
  'Document 1 of the file',

  'Presentation of the year',
  'Book 2',
  'Microsoft Word for beginners',
  '1',
  'Dia de los Muertos',
  'Dia 25',
  "Microsoft Excel - a beginner's guide",
  'Microsoft Word - Documents of 2024',
];

function read(name: string, data: string) {
  const { author, date, title } = readContent(normaliseUrl(`http://h/${name}`), Buffer.from(data));
  const day = date === undefined ? undefined : new Date(date).toISOString().slice(0, 10);
  return { title, author, day };
}

describe('the name that a program gives to a document by itself', () => {
  it.each(USELESS)('%j says nothing', (name) => expect(isOwnName(name)).toBe(false));
  it.each(USEFUL)('%j says something', (name) => expect(isOwnName(name)).toBe(true));

  it.each(USELESS)('%j is never the title in the embedded peer', (useless) => {
    const page = `<!doctype html><title>${useless}</title><p>${useless}<p>Costs of 2024`;
    expect(read('a%20b.html', page).title).toBe('Costs of 2024');
    expect(read('a%20b.html', `<title>${useless}</title>`).title).toBe('a b.html');
    expect(read('a%20b.txt', `${useless}\nCosts of 2024\n`).title).toBe('Costs of 2024');
    expect(read('a%20b.txt', useless).title).toBe('a b.txt');
    expect(read('a%20b.md', `# ${useless}\n\n## Costs of 2024`).title).toBe('Costs of 2024');
  });
});

describe('the properties at the start of a Markdown file', () => {
  it('give its title, its author and its date', () => {
    const note =
      "---\nTitle: Tea: a history # draft\nauthor: 'Ada O''Neill'\ndate: 2024-05-01T23:00\n---\n# Other";
    expect(read('a.md', note)).toEqual({
      title: 'Tea: a history',
      author: "Ada O'Neill",
      day: '2024-05-01',
    });
    expect(read('a.md', '\ufeff---\r\ntitle: "A \\"b\\" # c"\r\n---\r\ntext').title).toBe(
      'A "b" # c',
    );
  });

  it.each([
    'tags:\n- a\n-\n  b\n\n# a comment',
    'cover: {\n  a: b\n}\n"tags": [\n  x\n]',
    'date created: 2024-01-01\nabstract: |\n  Text: a\n  # b',
    '',
  ])('may be other YAML: %j', (properties) => {
    expect(read('a.md', `---\n${properties}\n---\nText\n===`).title).toBe('Text');
    expect(bodyOf(`---\n${properties}\n---\nText`, '', true)).toBe('Text');
  });

  it.each([
    ['in another file', 'a.txt', '---\ntitle: x\nauthor: y\n---\nText', 'title: x'],
    ['that do not end', 'a.md', '---\ntitle: x\nauthor: y\n\n# Text', 'Text'],
    ['that do not begin the file', 'a.md', '\n---\ntitle: x\nauthor: y\n\n---\n# Text', 'Text'],
    [
      'that are lists and blocks',
      'a.md',
      '---\ntitle: >\n  x\nauthor: [y]\ndate: soon\n---\n# Text',
      'Text',
    ],
    ['within another one', 'a.md', '---\nbook:\n  title: x\n  author: y\n---\n# Text', 'Text'],
    ['that a program wrote', 'a.md', '---\ntitle: Untitled\n---\n# Text', 'Text'],
    ['that are text below a rule', 'a.md', '---\n\n# Real\n\n---\n\nbody here', 'Real'],
    ['that are prose below a rule', 'a.md', '---\nNote: it is\nlate.\n\n---\nbody', 'Note: it is'],
    ['without a text', 'a.md', '---\ntags: x\n---\n', 'a.md'],
  ])('are not read %s', (_, name, data, title) =>
    expect(read(name, data)).toEqual({ title, author: undefined, day: undefined }),
  );
});
