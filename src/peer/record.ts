/** One name with one value, as the peer wrote them; a repeated name stands once for each value. */
export interface Field {
  readonly name: string;
  readonly value: string;
}

/** Fields that belong together, and the records inside: an answer, an item of it, a row of a table. */
export interface AnswerRecord {
  /** As the peer wrote it; empty for what has no name. */
  readonly name: string;
  readonly fields: readonly Field[];
  readonly records: readonly AnswerRecord[];
}

/** What one answer says, whatever its form was. */
export interface Answer {
  readonly form: 'json' | 'xml' | 'html' | 'text';
  readonly record: AnswerRecord;
  /** The words for people that stand outside all fields. */
  readonly prose: string;
}

/** An answer that cannot be read; the message is the end of a sentence that begins with the peer. */
export class Unreadable extends Error {}

/** Names are compared without prefix (`dc:`), case, blanks and punctuation: `dc:format.extent` is `formatextent`. */
export function canonical(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replace(/^[a-z]+:(?=.)/, '')
    .replace(/[^a-z0-9]+/g, '');
}

/** The values of the fields that have one of these canonical names, in the order of the names. */
export function fieldValues(record: AnswerRecord, ...names: readonly string[]): readonly string[] {
  return names.flatMap((name) =>
    record.fields.filter((field) => canonical(field.name) === name).map((field) => field.value.trim()),
  );
}

/** The first value that is not empty. */
export function fieldValue(record: AnswerRecord, ...names: readonly string[]): string | undefined {
  return fieldValues(record, ...names).find((value) => value !== '');
}

/** A whole number of at least 0, or undefined. */
export function fieldNumber(record: AnswerRecord, ...names: readonly string[]): number | undefined {
  const value = fieldValue(record, ...names);
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** The record and all inside it, outermost first. */
export function* allRecords(record: AnswerRecord): Generator<AnswerRecord> {
  yield record;
  for (const inner of record.records) yield* allRecords(inner);
}
