import type { WhyReport } from '../../report/why.js';
import type { Entry } from '../../state/entry.js';

/** A status in the words of a person. Each has a shape and a colour of the same name. */
export const STATUS_WORDS: Readonly<Record<Entry['status'], string>> = {
  pending: 'Pending',
  accepted: 'Accepted',
  confirmed: 'Confirmed',
  quarantined: 'Quarantine',
  passed: 'Passed over',
  gone: 'Gone',
};

export const VERDICT_WORDS: Readonly<Record<WhyReport['verdict'], string>> = {
  pending: 'Pending: it is to be pushed.',
  accepted: 'Accepted by the peer, which does not show it yet.',
  confirmed: 'Confirmed: the peer shows this very version.',
  quarantined: 'In quarantine: it cannot succeed without a change.',
  gone: 'Gone: the file was removed.',
  passed: 'Passed over by a rule.',
  ignored: 'Ignored by a rule.',
  unknown: 'Not known yet.',
  outside: 'Not watched.',
};

/** Instead, where it is no regular file. */
export const KIND_WORDS: Readonly<Record<NonNullable<WhyReport['kind']>, string>> = {
  directory: 'A directory: only the files in it are pushed.',
  link: 'A symbolic link, which is passed over.',
  other: 'No regular file, and passed over.',
};

export const STATUSES = ['quarantined', 'pending', 'accepted', 'confirmed', 'passed', 'gone'] as const;

export function isStatus(word: string): word is Entry['status'] {
  return Object.hasOwn(STATUS_WORDS, word);
}

/** The address of the explanation of a path. */
export function whyHref(path: string): string {
  return `#why=${encodeURIComponent(path)}`;
}

/** The address of the list of the files that have a status, of all folders or of one. */
export function filesHref(status: Entry['status'], folder?: string): string {
  return folder === undefined ? `#files=${status}` : `#files=${status}&folder=${encodeURIComponent(folder)}`;
}
