import type { Answer, Field } from './record.js';

const LONGEST_NAME = 80;

/** Plain text: a line `key: value` or `key=value` is a field; all of it is prose. */
export function readText(text: string): Answer {
  return { form: 'text', record: { name: '', fields: lineFields(text), records: [] }, prose: text };
}

export function lineFields(text: string): Field[] {
  return text.split(/\r\n|\n|\r/).flatMap((line) => {
    const at = separator(line.slice(0, LONGEST_NAME));
    const name = line.slice(0, Math.max(at, 0)).trim();
    return /\w/.test(name) ? [{ name, value: line.slice(at + 1).trim() }] : [];
  });
}

/** Names may hold a colon (`dc:title: …`), and so may values (`http://…`). */
function separator(line: string): number {
  const sure = line.search(/=|:(?=\s)|:$/);
  return sure === -1 ? line.search(/:(?!\/\/)/) : sure;
}
