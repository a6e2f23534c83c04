import { type Answer, type AnswerRecord, allRecords, fieldValue, fieldValues } from './record.js';

const NOT_FOUND =
  /\bnot (be )?found\b|\bno such\b|\bunknown (url|document|hash)\b|\bnot (yet )?indexed\b|\bnot in the index\b/i;

/** Whether a record says that there is no such document; its URL alone may be an echo of the question. */
export function deniesIt(record: AnswerRecord): boolean {
  const found = fieldValue(record, 'found', 'exists', 'indexed')?.toLowerCase();
  return found === 'false' || found === 'no' || found === '0' || saysSo(record);
}

/** Whether an answer says, in a record of it or on a page for people, that there is no such document. */
export function saysNotFound({ form, record, prose }: Answer): boolean {
  const isProse = form === 'html' || form === 'text';
  return [...allRecords(record)].some(deniesIt) || (isProse && NOT_FOUND.test(prose));
}

function saysSo(record: AnswerRecord): boolean {
  return fieldValues(record, 'error', 'message', 'status', 'result').some((words) => NOT_FOUND.test(words));
}
