import type { StatusReport } from '../../report/status.js';
import { count, counted, sentence, sentences } from './words.js';

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

/** Concerns of one kind are named one by one up to this many, then counted. */
const NAMED = 3;

/** Everything that does not mend itself, the gravest first. */
export function concernsOf(status: StatusReport): readonly Concern[] {
  return [
    ...unrecorded(status),
    ...silentDisk(status),
    ...alerts(status),
    ...watching(status),
    ...quarantine(status),
    ...mirrors(status),
    ...problems(status),
    ...repairs(status),
    ...refused(status),
    ...restart(status),
  ];
}

function unrecorded({ stateTrouble }: StatusReport): Concern[] {
  if (stateTrouble === undefined) return [];
  const text = sentences(stateTrouble.message, stateTrouble.hint);
  return [{ key: 'state', level: 'bad', about: 'state', text, href: '#files=pending' }];
}

function silentDisk({ diskTrouble }: StatusReport): Concern[] {
  if (diskTrouble === undefined) return [];
  const text = sentences(diskTrouble.message, diskTrouble.hint);
  return [{ key: 'disk', level: 'bad', about: 'disk', text, href: '#files=pending' }];
}

function alerts({ figures }: StatusReport): Concern[] {
  return (figures?.alerts ?? []).map((alert) => ({
    key: `alert ${alert.code} ${alert.collection}`,
    level: 'bad',
    about: alert.collection,
    text: sentences(alert.message, alert.hint),
    href: '#time-to-search',
  }));
}

function watching({ folders }: StatusReport): Concern[] {
  return folders.flatMap(({ name, watch }) => {
    if (watch?.trouble === undefined) return [];
    const { message, hint } = watch.trouble;
    return [
      {
        key: `folder ${name}`,
        level: 'warn' as const,
        about: name,
        text: sentences(message, hint),
        href: '#folders',
      },
    ];
  });
}

function quarantine({ items, quarantined }: StatusReport): Concern[] {
  const total = items.quarantined;
  if (total === 0) return [];
  const kinds = new Map(quarantined.map(({ code, message }) => [code, message]));
  const [only] = kinds.values();
  const why =
    kinds.size === 1 && only !== undefined && total <= quarantined.length ? ` ${sentence(only)}` : '';
  return [
    {
      key: 'quarantine',
      level: 'warn',
      about: 'quarantine',
      text: `${counted(total, 'file')} cannot be delivered without a change.${total === 1 ? why : ''}`,
      href: '#files=quarantined',
    },
  ];
}

function mirrors({ mirrors: all }: StatusReport): Concern[] {
  const alarmed = all.filter((mirror) => mirror.alarm !== undefined);
  const failing = all.filter((mirror) => mirror.failure !== undefined && mirror.alarm === undefined);
  const conflicts = all.reduce((sum, mirror) => sum + (mirror.conflicts?.length ?? 0), 0);
  const inConflict = all.filter((mirror) => (mirror.conflicts?.length ?? 0) > 0).length;
  return [
    ...named(alarmed, 'mirror alarm', 'bad', 'have an alarm', ({ alarm }) => alarm),
    ...named(failing, 'mirror failure', 'warn', 'fail, and are tried again', ({ failure }) => failure),
    ...(conflicts === 0
      ? []
      : [
          {
            key: 'conflicts',
            level: 'warn' as const,
            about: 'conflicts',
            text: `${counted(conflicts, 'cell')} of ${counted(inConflict, 'edited table')} changed on both sides; the peer's value was kept, yours is in a file beside it.`,
            href: '#mirrors',
          },
        ]),
  ];
}

type Mirror = StatusReport['mirrors'][number];

function named(
  of: readonly Mirror[],
  key: string,
  level: Concern['level'],
  what: string,
  trouble: (mirror: Mirror) => Mirror['alarm'],
): Concern[] {
  if (of.length > NAMED) {
    return [{ key, level, about: 'mirrors', text: `${count(of.length)} mirrors ${what}.`, href: '#mirrors' }];
  }
  return of.map((mirror) => {
    const { message, hint } = trouble(mirror) ?? {};
    return {
      key: `${key} ${mirror.name}`,
      level,
      about: mirror.name,
      text: sentences(message, hint),
      href: '#mirrors',
    };
  });
}

type Problem = StatusReport['problems'][number];

function problems({ problems: all }: StatusReport): Concern[] {
  const [first] = all;
  if (first === undefined) return [];
  const words = ({ path, trouble }: Problem) => `${path}: ${sentences(trouble.message, trouble.hint)}`;
  if (all.length > NAMED) {
    const isOne = all.every(({ folder }) => folder === first.folder);
    const text = `${counted(all.length, 'path')} could not be looked at, the first of them ${words(first)}`;
    return [
      { key: 'problems', level: 'warn', about: isOne ? first.folder : 'folders', text, href: '#problems' },
    ];
  }
  return all.map((problem) => ({
    key: `problem ${problem.trouble.code} ${problem.path} ${problem.trouble.message}`,
    level: 'warn',
    about: problem.folder,
    text: words(problem),
    href: '#problems',
  }));
}

function repairs({ repairs: all }: StatusReport): Concern[] {
  if (all.length === 0) return [];
  return [
    {
      key: 'repairs',
      level: 'warn',
      about: 'state',
      text: 'The state was repaired when peersync started.',
      href: '#problems',
    },
  ];
}

function refused({ configuration }: StatusReport): Concern[] {
  const why = configuration?.refused;
  if (why === undefined) return [];
  const what = `The file was changed and refused, and the one before holds. ${sentences(why.message, why.hint)}`;
  return [{ key: 'refused', level: 'warn', about: 'configuration', text: what, href: '#peer' }];
}

function restart({ restart: keys }: StatusReport): Concern[] {
  if (keys === undefined) return [];
  const values = keys.length === 1 ? 'value' : 'values';
  return [
    {
      key: 'restart',
      level: 'warn',
      about: 'configuration',
      text: `A restart is needed for the new ${values} of ${keys.join(', ')}.`,
      href: '#peer',
    },
  ];
}
