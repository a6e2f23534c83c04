import type { StatusReport } from '../../report/status.js';
import type { Entry } from '../../state/entry.js';
import { attr, byId, h, icon, text } from './dom.js';
import type { Model } from './model.js';
import { filesHref } from './route.js';
import { STATUS_WORDS } from './statuses.js';
import { amount, count } from './words.js';

interface Station {
  readonly status: Entry['status'];
  count(status: StatusReport): number;
  /** What the count means just now. */
  note(status: StatusReport): string;
}

const WAY: readonly Station[] = [
  {
    status: 'pending',
    count: ({ items }) => items.pending,
    note: ({ uplink, folders }) => {
      const settling = folders.reduce((sum, { watch }) => sum + (watch?.settling ?? 0), 0);
      if (uplink !== undefined && uplink.inFlight > 0) return `${count(uplink.inFlight)} on their way`;
      return settling > 0 ? `${count(settling)} being written` : 'to be pushed';
    },
  },
  {
    status: 'accepted',
    count: ({ items }) => items.accepted,
    note: () => 'at the peer, not shown yet',
  },
  {
    status: 'confirmed',
    count: ({ items }) => items.confirmed,
    note: ({ figures }) => {
      const rate = figures?.confirmedPerSecond ?? 0;
      return rate > 0 ? `searchable, +${amount(rate)}/s` : 'searchable';
    },
  },
];

const ASIDE: readonly Station[] = [
  {
    status: 'quarantined',
    count: ({ items }) => items.quarantined,
    note: ({ items }) => (items.quarantined > 0 ? 'need a change' : 'nothing stuck'),
  },
  { status: 'passed', count: ({ passedOver }) => passedOver, note: () => 'kept out by a rule' },
  { status: 'gone', count: ({ items }) => items.gone, note: () => 'removed from disk' },
];

/** The way of a file, with how many are at each station, and those that left it. */
export function showStations(model: Model): void {
  const drawn = [
    ...WAY.map((station) => make(byId('way'), station)),
    ...ASIDE.map((station) => make(byId('aside'), station)),
  ];
  model.follow(['status'], () => {
    if (model.status !== undefined) for (const draw of drawn) draw(model.status);
  });
}

function make(parent: HTMLElement, station: Station): (status: StatusReport) => void {
  const number = h('span', { class: 'number' }, '–');
  const note = h('span', { class: 'note' }, '');
  const item = h(
    'li',
    { class: `station s-${station.status}` },
    h('span', { class: 'rail-line' }, icon(station.status)),
    h(
      'a',
      { href: filesHref(station.status) },
      number,
      ' ',
      h('span', { class: 'label' }, STATUS_WORDS[station.status]),
    ),
    note,
  );
  parent.append(item);
  return (status) => {
    const n = station.count(status);
    text(number, count(n));
    text(note, station.note(status));
    attr(item, 'data-empty', n === 0);
  };
}
