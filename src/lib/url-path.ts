/**
 * A file's path as it stands in its URL: each name in NFC, percent-encoded, `/` between them. The state on disk leaves out
 * what follows from it: another encoding would be another schema there.
 */
export function encodePath(path: string): string {
  return /^[\w\-.~/]*$/.test(path) ? path : path.split('/').map(encodeName).join('/');
}

function encodeName(name: string): string {
  const wellFormed = name.replace(/\p{Surrogate}/gu, '\u{FFFD}').normalize('NFC');
  return encodeURIComponent(wellFormed).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
