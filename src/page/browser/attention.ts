import type { Condition, StatusReport } from '../../report/status.js';
import { sentences } from './words.js';

/** Something that a person should look at. */
export interface Concern {
  readonly key: string;
  readonly level: 'warn' | 'bad';
  /** What it is about, in a word or a name. */
  readonly about: string;
  readonly text: string;
  /** The section of the page that says more. */
  readonly href: string;
}

/** The top of the page says these. */
const ON_TOP: ReadonlySet<string> = new Set(['PEER', 'PAUSED']);

/** Where the page says more, by how the code begins. */
const PLACES: readonly (readonly [code: string, href: string])[] = [
  ['TIME_TO_SEARCH', '#time-to-search'],
  ['FOLDER_', '#folders'],
  ['QUARANTINE', '#files=quarantined'],
  ['MIRROR_', '#mirrors'],
  ['PATH_', '#problems'],
  ['STATE_REPAIRED', '#problems'],
  ['CONFIG_', '#peer'],
  ['RESTART_', '#peer'],
];

/** Every condition that the top of the page does not say, the gravest first. */
export function concernsOf({ conditions }: StatusReport): readonly Concern[] {
  return conditions.filter(({ code }) => !ON_TOP.has(code)).map(concernOf);
}

function concernOf({ code, hint, message, severity, subject }: Condition): Concern {
  const [, href = '#files=pending'] = PLACES.find(([start]) => code.startsWith(start)) ?? [];
  return {
    key: `${code} ${subject} ${code.startsWith('PATH_') ? message : ''}`,
    level: severity === 'warning' ? 'warn' : 'bad',
    about: subject,
    text: sentences(message, hint),
    href,
  };
}
