import { describe, expect, it } from 'vitest';
import { normaliseUrl, readContent, urlHash } from '../../src/embedded/content.js';

const read = (url: string, data: string): { title: string; text: string } => {
  const { title, text } = readContent(normaliseUrl(url), Buffer.from(data));
  return { title, text: text.toString() };
};

describe('the title of a document', () => {
  it('is its first Markdown heading, else its first line with a word, else the name of its file', () => {
    expect(read('http://h/a.md', '---\nx: 1\n---\n\n## The **Plan** ##\n').title).toBe('The Plan');
    const badges = '# [![CI](http://b/x.svg)](http://ci/)\n# [stream](http://s/) `api` [![CI][1]][2]\n';
    expect(read('http://h/a.md', badges).title).toBe('stream api');
    expect(read('http://h/a.txt', '\n----\n  Dear all,\nmore\n').title).toBe('Dear all,');
    expect(read('http://h/d/caf%C3%A9%20%231.txt', '***\n').title).toBe('café #1.txt');
  });

  it('stays one short line', () => {
    const { title } = read('http://h/a.txt', `${'long '.repeat(100)}\n`);
    expect(title.length).toBeLessThanOrEqual(200);
    expect(title.endsWith('…')).toBe(true);
  });
});

describe('a line that is nearly a heading', () => {
  it('takes no longer than another', () => {
    const began = Date.now();
    const text = `# ${' '.repeat(1_500)}\u2028x\n`.repeat(5);
    expect(read('http://h/a.txt', text).title).toBe('x');
    expect(Date.now() - began).toBeLessThan(500);
  });
});

describe('an HTML document', () => {
  const html = `<!DOCTYPE html><html><head><title>Tea &amp; Cake</title><style>p{color:red}</style></head>
    <body><h1>Menu</h1><p>Green <b>t</b>ea &mdash; 3&nbsp;€</p><script>alert("x")</script><p>Cake</p></body></html>`;

  it('is read as text with its title, without scripts and styles', () => {
    const { title, text } = read('http://h/page', html);
    expect(title).toBe('Tea & Cake');
    expect(text).toContain('Green tea —');
    expect(text).toMatch(/Menu\nGreen/);
    expect(text).not.toMatch(/alert|color/);
  });

  it('takes no longer for hundreds of thousands of elements that are never closed', () => {
    const began = Date.now();
    const { title, text } = read('http://h/x.html', `<title>T</title>${'<b>a</i>'.repeat(250_000)}<p>end`);
    expect([title, text]).toEqual(['T', `${'a'.repeat(250_000)}\nend`]);
    expect(Date.now() - began).toBeLessThan(5_000);
  });

  it('is known by its file name too, and broken markup is survived', () => {
    expect(read('http://h/x.html', '<p>one<p>two<b><i>three</b').text).toContain('two');
    expect(read('http://h/x.txt', 'if (a <b> c) <p>').text).toBe('if (a <b> c) <p>');
  });
});

describe('a URL', () => {
  it('has one normal form and from it a hash of 12 characters', () => {
    expect(normaliseUrl('HTTP://Example.ORG:80/a b#part')).toBe('http://example.org/a%20b');
    expect(urlHash(normaliseUrl('http://example.org/'))).toMatch(/^[A-Za-z0-9_-]{12}$/);
    expect(urlHash(normaliseUrl('http://example.org/a'))).not.toBe(
      urlHash(normaliseUrl('http://example.org/b')),
    );
  });

  it.each([
    'not a url',
    '/a/b',
    'example.org',
    'mailto:a@b.c',
    'javascript:alert(1)',
    'http://',
    'http://a\nb/',
    'javascript://x/%0aalert(1)',
  ])('that is none is refused with the reason: %j', (url) => {
    expect(() => normaliseUrl(url)).toThrow(/^The URL /);
  });

  it('may be as long as a path of 4,096 bytes becomes, and no longer', () => {
    expect(normaliseUrl(`https://h/${'%C3%BC'.repeat(2_040)}`)).toHaveLength(12_250);
    expect(() => normaliseUrl(`https://h/${'a'.repeat(17_000)}`)).toThrow('longer than 16384 bytes');
  });
});
