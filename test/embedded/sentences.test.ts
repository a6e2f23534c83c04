import { describe, expect, it } from 'vitest';
import { LONGEST_SENTENCE, sentencesOf } from '../../src/embedded/citations.js';

const cut = (text: string): string[] => [...sentencesOf(text)];

describe('a text is cut into sentences', () => {
  it.each([
    [
      'English',
      'One ends here. Two asks? Three cries! Four',
      ['One ends here.', 'Two asks?', 'Three cries!', 'Four'],
    ],
    [
      'German',
      'Es war am 3. Oktober, z. B. in Köln. „Schön war es.“ Danach kam Schnee.',
      ['Es war am 3. Oktober, z. B. in Köln.', '„Schön war es.“ Danach kam Schnee.'],
    ],
    [
      'Chinese',
      '今天下雨了。你带伞了吗？“带了！”他说。',
      ['今天下雨了。', '你带伞了吗？', '“带了！”', '他说。'],
    ],
    [
      'numbers',
      'It costs 3.5 euros, e.g. at noon. Then more.',
      ['It costs 3.5 euros, e.g. at noon.', 'Then more.'],
    ],
    [
      'quotes',
      'He said "Stop." Then he left (at once!) Nobody saw.',
      ['He said "Stop."', 'Then he left (at once!)', 'Nobody saw.'],
    ],
    ['dots', 'Well… Perhaps... Who knows?!  Nobody.', ['Well…', 'Perhaps...', 'Who knows?!', 'Nobody.']],
    ['nothing', ' \n\t \n\n ', []],
  ])('at their ends: %s', (_, text, sentences) => {
    expect(cut(text)).toEqual(sentences);
  });

  it('at blank lines and items of lists, while a line may break within a sentence', () => {
    const text =
      '# A heading\n\nA sentence that\r\ngoes on. Another\n\t\n- one item\n- another\n  item\n1. first\n';
    expect(cut(text)).toEqual([
      '# A heading',
      'A sentence that goes on.',
      'Another',
      '- one item',
      '- another item',
      '1. first',
    ]);
  });

  it('at every line where there are no blank lines, as in what was HTML', () => {
    expect(cut('A heading\nA paragraph. Its end\nThe next')).toEqual([
      'A heading',
      'A paragraph.',
      'Its end',
      'The next',
    ]);
  });

  it('that are never longer than the most, and lose nothing', () => {
    const words = Array.from({ length: 20_000 }, (_, n) => `word${n}`).join(' ');
    const sentences = cut(words);
    expect(sentences.join(' ')).toBe(words);
    expect(Math.max(...sentences.map((s) => s.length))).toBeLessThanOrEqual(LONGEST_SENTENCE);
    const faces = cut('😀'.repeat(35_001));
    expect(faces.join('')).toBe('😀'.repeat(35_001));
    expect(faces.every((face) => /^(?:😀)+$/u.test(face))).toBe(true);
  });

  it('in a time that grows with its length only', () => {
    for (const text of [
      '.'.repeat(65_536),
      ' \n'.repeat(40_000),
      '. '.repeat(40_000),
      'a.'.repeat(40_000),
      '"'.repeat(65_536),
      `.${'"'.repeat(65_536)}`,
    ])
      cut(text.repeat(8));
  }, 3_000);
});
