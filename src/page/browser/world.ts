import type { StatusReport } from '../../report/status.js';
import { ahead, amount, calm, count, counted, hour, rough, sentence, sentences } from './words.js';

/** How the world is: `ok` at rest, `busy` at work, `warn` waits or wants a look, `bad` is in trouble. */
export type Level = 'ok' | 'busy' | 'warn' | 'bad';

export interface World {
  readonly level: Level;
  /** The state of the world in one sentence. */
  readonly sentence: string;
  /** What follows from it, or what to do. Empty where there is nothing to add. */
  readonly detail: string;
  /** In a few words, for the title of the window. */
  readonly title: string;
}

type Report = StatusReport;
const TROUBLE = {
  unreachable: 'has not answered',
  failing: 'has answered with errors',
  denied: 'has refused the credentials',
} as const;

/** How many files are on their way. */
export function waitingOf({ items }: Report): number {
  return items.pending + items.accepted;
}

function waits(files: number): string {
  return `${counted(files, 'file')} ${files === 1 ? 'waits' : 'wait'}`;
}

/** Says how everything stands; of several things that are so, the one that explains the others. */
export function worldOf(status: Report, now: number): World {
  const waiting = waitingOf(status);
  return (
    unrecorded(status, waiting) ??
    silentDisk(status, waiting, now) ??
    peerTrouble(status, waiting, now) ??
    paused(status, waiting, now) ??
    asksToWait(status, waiting, now) ??
    alerted(status) ??
    held(status) ??
    atWork(status, waiting) ??
    wantsALook(status) ??
    unseen(status) ??
    atRest(status)
  );
}

/** What is said while the daemon does not answer. */
export function lostWorld(lostAt: number, now: number, waiting: number | undefined): World {
  return {
    level: 'bad',
    sentence: 'peersync does not answer.',
    detail: `What you see below is how it stood ${calm(now - lostAt)} ago. It may be stopped, or starting again; this page connects by itself as soon as it is back.`,
    title: waiting === undefined ? 'no answer' : `no answer · ${count(waiting)} waited`,
  };
}

function unrecorded({ stateTrouble }: Report, waiting: number): World | undefined {
  if (stateTrouble === undefined) return undefined;
  const rest = waiting === 0 ? '' : `; ${waits(waiting)}`;
  return {
    level: 'bad',
    sentence: `What happens cannot be recorded${rest}.`,
    detail: sentences(stateTrouble.message, stateTrouble.hint),
    title: `state in trouble · ${count(waiting)} waiting`,
  };
}

function silentDisk({ diskTrouble }: Report, waiting: number, now: number): World | undefined {
  if (diskTrouble === undefined) return undefined;
  const rest = waiting === 0 ? '' : `; ${waits(waiting)}`;
  return {
    level: 'bad',
    sentence: `A disk has not answered for ${calm(now - diskTrouble.since)}${rest}.`,
    detail: sentences(diskTrouble.message, diskTrouble.hint),
    title: `disk silent · ${count(waiting)} waiting`,
  };
}

function peerTrouble({ peer }: Report, waiting: number, now: number): World | undefined {
  const circuit = peer.queue?.circuit;
  if (circuit?.reason === undefined) return undefined;
  const { reason, since, nextProbeAt } = circuit;
  const next =
    nextProbeAt === undefined ? 'It is tried again now.' : `It is tried again ${ahead(nextProbeAt, now)}.`;
  const rest = waiting === 0 ? 'nothing waits, and nothing is lost' : `${waits(waiting)}, nothing is lost`;
  return {
    level: 'bad',
    sentence: `The peer ${TROUBLE[reason.kind]} for ${calm(now - since)}; ${rest}.`,
    detail: `${sentences(reason.message, reason.hint)} ${next}`,
    title: `peer away · ${count(waiting)} waiting`,
  };
}

function paused({ peer }: Report, waiting: number, now: number): World | undefined {
  const pause = peer.queue?.paused;
  if (pause === undefined) return undefined;
  const until = pause.until === undefined ? 'until you resume' : `until ${hour(pause.until, now)}`;
  return {
    level: 'warn',
    sentence: `Paused ${until}; ${waiting === 0 ? 'nothing waits' : waits(waiting)}.`,
    detail: 'The folders are still watched, and nothing goes to the peer meanwhile.',
    title: `paused · ${count(waiting)} waiting`,
  };
}

function asksToWait({ peer }: Report, waiting: number, now: number): World | undefined {
  const until = peer.queue?.pausedUntil;
  if (until === undefined || until <= now || waiting === 0) return undefined;
  return {
    level: 'warn',
    sentence: `The peer asked to be left alone for a while; ${waits(waiting)}.`,
    detail: `It goes on ${ahead(until, now)}.`,
    title: `peer busy · ${count(waiting)} waiting`,
  };
}

function alerted({ figures }: Report): World | undefined {
  const [first, ...others] = figures?.alerts ?? [];
  if (first === undefined) return undefined;
  const more = others.length === 0 ? '' : ` ${counted(others.length, 'more alert')} below.`;
  return {
    level: 'bad',
    sentence: sentence(first.message),
    detail: `${sentence(first.hint)}${more}`,
    title: 'alert',
  };
}

function held({ folders }: Report): World | undefined {
  const one = folders.find((folder) => folder.watch?.state === 'held');
  if (one === undefined) return undefined;
  const trouble = one.watch?.trouble;
  return {
    level: 'warn',
    sentence: `The folder ${one.name} cannot be trusted right now, so nothing is concluded from it.`,
    detail: sentences(trouble?.message, trouble?.hint),
    title: `${one.name} held`,
  };
}

function atWork({ figures, peer, items }: Report, waiting: number): World | undefined {
  if (waiting === 0) return undefined;
  if (peer.dialect === undefined) {
    return {
      level: 'busy',
      sentence: `${waits(waiting)} while peersync finds out how the peer speaks.`,
      detail: '',
      title: `${count(waiting)} waiting`,
    };
  }
  const rate = figures?.confirmedPerSecond ?? 0;
  const become = rate === 1 ? 'document becomes' : 'documents become';
  const left = waiting / rate > 10 ? `, about ${rough((waiting / rate) * 1000)} to go` : '';
  const pace = rate > 0 ? `${amount(rate)} ${become} searchable a second${left}` : undefined;
  const which = items.pending === 0 ? 'them' : `${count(items.accepted)} of them`;
  const where = items.accepted > 0 ? `The peer has ${which} already and will show them soon.` : '';
  return {
    level: 'busy',
    sentence: `${counted(waiting, 'file')} ${waiting === 1 ? 'is' : 'are'} on the way.`,
    detail: sentences(pace, where),
    title: `${count(waiting)} waiting`,
  };
}

function wantsALook(status: Report): World | undefined {
  const { items, mirrors } = status;
  const all = hasUnseen(status) ? 'Everything that could be looked at' : 'Everything';
  const stuck = items.quarantined;
  if (stuck > 0) {
    return {
      level: 'warn',
      sentence: `${all} is searchable but ${counted(stuck, 'file')} that ${stuck === 1 ? 'needs' : 'need'} you.`,
      detail:
        stuck === 1
          ? 'It waits in quarantine, with the reason and what to do.'
          : 'They wait in quarantine, each with its reason and what to do.',
      title: `${count(stuck)} in quarantine`,
    };
  }
  const alarms = mirrors.filter((mirror) => mirror.alarm !== undefined).length;
  if (alarms === 0) return undefined;
  return {
    level: 'warn',
    sentence: `${all} is searchable; ${counted(alarms, 'mirror')} ${alarms === 1 ? 'has an alarm' : 'have alarms'}.`,
    detail: 'The files on disk stay as they were until you decide.',
    title: counted(alarms, 'alarm'),
  };
}

function hasUnseen({ folders, problems }: Report): boolean {
  return problems.length > 0 || folders.some(({ watch }) => watch?.trouble !== undefined);
}

/** What nobody could look at, or not in time, may not be searchable. */
function unseen(status: Report): World | undefined {
  if (!hasUnseen(status)) return undefined;
  const { folders, items, problems } = status;
  const [first, ...others] = problems;
  const folder = folders.find(({ watch }) => watch?.trouble !== undefined);
  const trouble = folder?.watch?.trouble ?? first?.trouble;
  const about = folder === undefined ? counted(problems.length, 'path') : `the folder ${folder.name}`;
  const wants = folder === undefined && others.length > 0 ? 'want' : 'wants';
  const path = folder === undefined && first !== undefined ? `${first.path}: ` : '';
  return {
    level: 'warn',
    sentence:
      items.confirmed > 0
        ? `Everything that could be looked at is searchable; ${about} ${wants} a look.`
        : `Nothing is searchable yet; ${about} ${wants} a look.`,
    detail: `${path}${sentences(trouble?.message, trouble?.hint)}`,
    title: `${about} ${wants} a look`,
  };
}

function atRest({ items, folders, mirrors }: Report): World {
  if (items.confirmed > 0) {
    return {
      level: 'ok',
      sentence: 'Everything that is at rest is searchable.',
      detail: '',
      title: 'all searchable',
    };
  }
  const [first] = folders;
  if (first === undefined) {
    const what =
      mirrors.length === 0
        ? 'Nothing is watched yet.'
        : 'No folder is watched; the mirrors are kept up to date.';
    return { level: 'ok', sentence: what, detail: 'Folders are named in the configuration.', title: 'idle' };
  }
  return {
    level: 'ok',
    sentence: 'Nothing here yet.',
    detail: `Put a file into ${first.path} and watch it become searchable.`,
    title: 'nothing yet',
  };
}
