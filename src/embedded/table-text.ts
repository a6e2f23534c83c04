// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that XML 1.0 cannot hold.
const UNFIT = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/;

/** Whether a text can stand in XML and in a page as it is. */
export function fitsMarkup(text: string): boolean {
  return !UNFIT.test(text);
}

/** Whether a browser sends a text back as it got it; ends of lines it changes. */
export function survivesBrowser(text: string): boolean {
  return fitsMarkup(text) && !/[\r\n]/.test(text);
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

const CHUNK = 65_536;

/** Gathers pieces into chunks of about 64 KB; an empty piece goes out as a chunk with what there is, for others to have a turn. */
export function* gathered(pieces: Iterable<string>): Generator<string> {
  let held: string[] = [];
  let size = 0;
  for (const piece of pieces) {
    held.push(piece);
    size += piece.length;
    if (piece !== '' && size < CHUNK) continue;
    yield held.join('');
    held = [];
    size = 0;
  }
  yield held.join('');
}
