/** A text shows so many of its characters in a message. */
const SHOWN_CHARACTERS = 100;
/** What would move a cursor or hide text, and JSON leaves as it is. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;

/** A text of the peer in a message: in quotes, each blank seen, anything unprintable escaped, cut. */
export function quoted(text: string): string {
  const cut = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
  return JSON.stringify(cut).replace(UNSEEN, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}

export function rowOf(table: string, pk: string): string {
  return `row ${quoted(pk)} of the table ${quoted(table)}`;
}

/** Two texts, from just before where they part. */
export function difference(asked: string, shown: string): string {
  const length = Math.max(asked.length, shown.length);
  let at = 0;
  while (at < length && asked[at] === shown[at]) at += 1;
  const from = length <= SHOWN_CHARACTERS ? 0 : Math.max(0, at - SHOWN_CHARACTERS / 4);
  const place = from === 0 ? '' : ` (from character ${from} on)`;
  return `${quoted(asked.slice(from))}, and shows ${quoted(shown.slice(from))}${place}`;
}
