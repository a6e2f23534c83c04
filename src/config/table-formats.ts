/** The formats of table files that can be edited. `mirror/formats` has what each of them is. */
export const EDITABLE_FORMATS = ['csv', 'json', 'ndjson'] as const;

/** All formats of table files. */
export const TABLE_FORMATS = [...EDITABLE_FORMATS, 'xml'] as const;

export type EditableFormat = (typeof EDITABLE_FORMATS)[number];
export type TableFormat = (typeof TABLE_FORMATS)[number];

/** Returns the formats as the end of a sentence: "a, b or c". */
export function formatNames(
  formats: readonly TableFormat[],
  nameOf: (format: TableFormat) => string,
): string {
  const names = formats.map(nameOf);
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}
