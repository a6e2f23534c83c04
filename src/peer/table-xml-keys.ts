/** A row begins with at most so many characters, up to the name of what is in it. */
const LONGEST_BEGIN = 64;
/** A key of YaCy, in bytes: shorter ones are padded. */
const KEY_BYTES = 12;
const ROW = /(<row count="\d{1,9}" pk=")([\s\S]{1,12}?)(?=">\s*<(?:cell col=|\/row>))/g;
const MARKUP = /["&<]/g;

/**
 * Mends the keys of rows in XML that YaCy writes as they are, with quotes and angle brackets in them: escapes what would
 * end them early. Where it is escaped already, the key is longer than a key is, and stays. Text is given piece by piece.
 */
export class KeyEscaper {
  #held = '';

  /** As much of the text as is sure. */
  take(text: string): string {
    const all = this.#held + text;
    const end = Math.max(0, all.length - LONGEST_BEGIN);
    const begin = all.slice(end).search(/<row |<r?o?w?$/);
    const sure = begin === -1 ? all.length : outermost(all, end + begin);
    this.#held = all.slice(sure);
    return escaped(all.slice(0, sure));
  }

  /** The rest. */
  end(): string {
    return escaped(this.#held);
  }
}

/** A key may look like the begin of a row itself. */
function outermost(text: string, row: number): number {
  const before = row === 0 ? -1 : text.lastIndexOf('<row ', row - 1);
  return before !== -1 && row - before < LONGEST_BEGIN ? before : row;
}

function escaped(text: string): string {
  return text.replace(ROW, (row, begin: string, key: string) =>
    Buffer.byteLength(key) === KEY_BYTES ? begin + key.replace(MARKUP, (c) => `&#${c.charCodeAt(0)};`) : row,
  );
}
