import { TextDecoder } from 'node:util';

/** Article 1 of the Universal Declaration of Human Rights, in languages with older encodings. */
const RUSSIAN =
  'Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства.';
const UKRAINIAN =
  'Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю і повинні діяти у відношенні один до одного в дусі братерства.';
const CHINESE =
  '人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。';
const TRADITIONAL =
  '人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心,並應以兄弟關係的精神相對待。';
const JAPANESE =
  'すべての人間は、生れながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。';
const KOREAN =
  '모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.';
const GREEK =
  'Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα αδελφοσύνης.';
export const GERMAN =
  'Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geiste der Brüderlichkeit begegnen.';
export const FRENCH =
  'Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience et doivent agir « les uns envers les autres » dans un esprit de fraternité.';

/** Texts and their encodings. */
export const LEGACY_TEXTS: readonly (readonly [encoding: string, text: string])[] = [
  ['koi8-u', RUSSIAN],
  ['koi8-u', UKRAINIAN],
  ['windows-1251', RUSSIAN],
  ['windows-1251', UKRAINIAN],
  ['iso-8859-5', RUSSIAN],
  ['iso-8859-7', GREEK],
  ['gb18030', CHINESE],
  ['big5', TRADITIONAL],
  ['euc-jp', JAPANESE],
  ['shift_jis', JAPANESE],
  ['euc-kr', KOREAN],
  ['windows-1252', GERMAN],
  ['windows-1252', FRENCH],
];

const tables = new Map<string, ReadonlyMap<string, Uint8Array>>();

/** Returns the bytes of each character of an encoding with one or two bytes a character. */
function tableOf(encoding: string): ReadonlyMap<string, Uint8Array> {
  const known = tables.get(encoding);
  if (known !== undefined) return known;
  const table = new Map<string, Uint8Array>();
  const decoder = new TextDecoder(encoding);
  const add = (...bytes: number[]) => {
    const character = decoder.decode(Uint8Array.from(bytes));
    if ([...character].length === 1 && !table.has(character))
      table.set(character, Uint8Array.from(bytes));
  };
  for (let byte = 0; byte < 0x100; byte += 1) add(byte);
  if (/^(gb|big5|euc|shift)/.test(encoding))
    for (let first = 0x81; first < 0xff; first += 1)
      for (let second = 0x40; second < 0xff; second += 1) add(first, second);
  tables.set(encoding, table);
  return table;
}

/** Encodes a text, which Node does to UTF-8 and UTF-16 only. */
export function encoded(text: string, encoding: string): Buffer {
  const table = tableOf(encoding);
  return Buffer.concat(
    [...text].map((character) => {
      const bytes = table.get(character);
      if (bytes === undefined) throw new Error(`${encoding} has no ${character}`);
      return bytes;
    }),
  );
}
