/** How the bytes of a file are to be read. Never reordered: the state on disk holds positions in this list. */
export const ENCODINGS = ['utf-8', 'utf-16le', 'utf-16be', 'windows-1252', 'binary'] as const;
export type Encoding = (typeof ENCODINGS)[number];
