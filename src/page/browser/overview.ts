import type { RecentEvent, StatusReport } from '../../report/status.js';
import type { Entry } from '../../state/entry.js';
import { attr, byId, draw, h, icon, prose, show, text } from './dom.js';
import type { Model } from './model.js';
import { filesHref, STATUS_WORDS } from './statuses.js';
import {
  ahead,
  amount,
  concernsOf,
  count,
  hour,
  moment,
  rough,
  sentence,
  sentences,
  together,
} from './words.js';
import { type Level, lostWorld, waitingOf, worldOf } from './world.js';

const FAVICONS: Readonly<Record<Level, string>> = {
  ok: '/assets/favicon-ok.svg',
  busy: '/assets/favicon-busy.svg',
  warn: '/assets/favicon-wait.svg',
  bad: '/assets/favicon-bad.svg',
};

/** The state of the world: the sentence at the top, the title and icon of the window, and whether the page is up to date. */
export function showWorld(model: Model): void {
  const [sentence, detail, announce] = [byId('world'), byId('world-detail'), byId('announce')];
  const [favicon, connection] = [byId('favicon'), byId('connection-text')];
  let announced = '';

  model.follow(['status', 'connection', 'tick'], () => {
    const { status, lost } = model;
    const [state, words] =
      lost !== undefined
        ? ['lost', `tries again ${ahead(lost.nextAt, model.here())}`]
        : status === undefined
          ? ['connecting', 'connecting']
          : ['open', 'live'];
    attr(document.body, 'data-connection', state);
    text(connection, words);
    if (lost === undefined && status === undefined) return;
    const world =
      lost === undefined && status !== undefined
        ? worldOf(status, model.now())
        : lostWorld(lost?.at ?? model.here(), model.here(), status && waitingOf(status));
    attr(document.body, 'data-level', world.level);
    attr(favicon, 'href', FAVICONS[world.level]);
    text(sentence, together(world.sentence));
    draw(detail, prose(world.detail));
    const title = `${world.title} · peersync`;
    if (document.title !== title) document.title = title;
    // Who listens hears of each change, and not of each second.
    const gist = `${world.level} ${world.sentence.replaceAll(/[\d.,]+( (d|h|min|s|ms))?/g, '')}`;
    if (gist !== announced) text(announce, world.sentence);
    announced = gist;
  });
}

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
  const redraw = () => {
    draw(
      byId('way'),
      WAY.map((station) => stationOf(station, model.status)),
    );
    draw(
      byId('aside'),
      ASIDE.map((station) => stationOf(station, model.status)),
    );
  };
  redraw();
  model.follow(['status'], redraw);
}

function stationOf(station: Station, report: StatusReport | undefined): HTMLElement {
  const { status } = station;
  const n = report && station.count(report);
  const number = h('span.number', n === undefined ? '–' : count(n));
  const label = h('span.label', STATUS_WORDS[status]);
  return h(
    'li',
    { class: `station s-${status}`, 'data-empty': n === 0 },
    h('span.rail-line', icon(status)),
    h('a', { href: filesHref(status) }, number, ' ', label),
    h('span.note', report && station.note(report)),
  );
}

/** Which peersync this is, in the last line of the page. */
export function showAbout(model: Model): void {
  model.follow(['status', 'tick'], () => {
    const { status } = model;
    if (status === undefined) return;
    const { version, pid, startedAt } = status;
    const since = startedAt === undefined ? '' : ` · runs for ${rough(model.now() - startedAt)}`;
    text(byId('about'), `peersync ${version}${pid === undefined ? '' : ` · pid ${pid}`}${since}`);
  });
}

/** What needs a person, if anything does. */
export function showConcerns(model: Model): void {
  model.follow(['status'], () => {
    const concerns = model.status === undefined ? [] : concernsOf(model.status);
    show(byId('attention'), concerns.length > 0);
    const lines = concerns.map(({ key, level, href, about, text: words }) =>
      h(
        `li.s-${level}`,
        { 'data-key': key },
        icon(level === 'bad' ? 'error' : 'warn'),
        h('p', h('a', { href }, about), ' ', h('span.words', prose(words))),
      ),
    );
    draw(byId('concerns'), lines);
  });
}

/** Of many problems, so many are named. */
const NAMED = 30;

/** What could not be looked at on disk, and what opening the state repaired. */
export function showProblems(model: Model): void {
  model.follow(['status'], () => {
    const { problems = [], repairs = [] } = model.status ?? {};
    const all = [
      ...repairs.map((repair) => ['state', sentence(repair)] as const),
      ...problems.map(({ path, trouble }) => [path, sentences(trouble.message, trouble.hint)] as const),
    ];
    const lines = all
      .slice(0, NAMED)
      .map(([what, words]) => h('li.s-warn', icon('warn'), h('div', h('code', what), h('p', prose(words)))));
    const more = `and ${count(all.length - NAMED)} more, which \`peersync status\` names`;
    show(byId('problems'), all.length > 0);
    draw(byId('problem-list'), h('ul.plain', lines), all.length > NAMED && h('p.hint', more));
  });
}

const FEW = 12;
const MANY = 60;
const EVENTS = { info: ['info', 's-info'], warn: ['warn', 's-warn'], error: ['error', 's-bad'] } as const;

/** The last lines of the log that a person may want to see, the newest first. */
export function showEvents(model: Model): void {
  let most = FEW;
  const redraw = () => {
    const isOpen = most === MANY;
    const more = h(
      'button',
      {
        ...{ class: 'small', 'aria-expanded': String(isOpen), 'data-key': 'more' },
        onclick: () => {
          most = isOpen ? FEW : MANY;
          redraw();
        },
      },
      isOpen ? 'Show less' : 'Show more',
    );
    const { events } = model;
    draw(
      byId('event-list'),
      events.length === 0
        ? h('p.empty', 'Nothing has happened yet.')
        : h(
            'ol.events.separated',
            events.slice(0, most).map((event) => eventRow(event, model.now())),
          ),
      events.length > FEW && more,
    );
  };
  redraw();
  model.follow(['recents'], redraw);
}

function eventRow({ id, at, level, message }: RecentEvent, now: number): HTMLElement {
  const [shape, tone] = EVENTS[level];
  const datetime = new Date(at).toISOString();
  const spoken = h('span.unseen', level === 'info' ? '' : `${level}: `);
  return h(
    'li',
    { class: tone, 'data-key': String(id) },
    icon(shape),
    h('time', { title: moment(at, now), datetime }, hour(at, now)),
    h('p', spoken, h('span', prose(sentence(message)))),
  );
}
