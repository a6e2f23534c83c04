import { type FunctionComponent, render } from 'preact';
import { Charts } from './charts.js';
import { isStatus, type Props } from './components.js';
import { Notices, RecentEvents } from './events.js';
import { Files, retry } from './files.js';
import { Folders } from './folders.js';
import { About, ConnectionState, PauseButton, SiteLinks } from './header.js';
import { Mirrors } from './mirrors.js';
import { Model, post } from './model.js';
import { Attention, Headline, StatusCounts, TimesToSearch } from './overview.js';
import { Peer } from './peer.js';
import { nextTheme, showTheme } from './theme.js';
import { Why } from './why.js';
import { Workers } from './workers.js';

/** The component of each element in index.html, by the id of the element. */
const VIEWS: Readonly<Record<string, FunctionComponent<Props>>> = {
  connection: ConnectionState,
  site: SiteLinks,
  pausing: PauseButton,
  headline: Headline,
  'status-counts': StatusCounts,
  why: Why,
  attention: Attention,
  charts: Charts,
  'time-to-search': TimesToSearch,
  folders: Folders,
  files: Files,
  mirrors: Mirrors,
  workers: Workers,
  peer: Peer,
  recent: RecentEvents,
  about: About,
  notices: Notices,
};

/** The icon of the window for each level. */
const ICONS = { ok: 'ok', busy: 'busy', warn: 'wait', bad: 'bad' } as const;

/** Returns the element with this id, which must exist. */
function byId<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element as T;
}

const model = new Model(() => {
  const { connection, summary } = model;
  document.body.dataset.connection = connection.mode;
  if (summary) {
    document.body.dataset.level = summary.level;
    document.title = `${summary.title} · peersync`;
    byId('favicon').setAttribute('href', `/assets/favicon-${ICONS[summary.level]}.svg`);
  }
  for (const [id, View] of Object.entries(VIEWS)) render(<View model={model} />, byId(id));
});

/** Scrolls to a section and gives it the focus. */
function goTo(id: string): void {
  byId(id).scrollIntoView({ block: 'start' });
  byId(id).focus({ preventScroll: true });
}

/** Follows the fragment of the address: `#why=PATH`, or `#files=STATUS&folder=NAME`. */
function route(): void {
  const parameters = new URLSearchParams(location.hash.slice(1).replaceAll('+', '%2B'));
  const status = parameters.get('files') ?? '';
  const explainedBefore = model.explained;
  model.explained = parameters.get('why') ?? '';
  if (isStatus(status)) {
    model.listed = { status, folder: parameters.get('folder') ?? '' };
    byId('files').scrollIntoView({ block: 'start' });
  } else if (model.explained !== '') byId('why').scrollIntoView({ block: 'nearest' });
  else if (explainedBefore !== '') byId('why-path').focus();
  model.change();
}
addEventListener('hashchange', route);

const changeTheme = () => nextTheme(byId('theme'));

const keys = byId<HTMLDialogElement>('keys');
const help = async () => {
  keys.showModal();
  // Without a token there is no session to end. The address of the sign-in then redirects to the
  // page.
  const answer = await fetch('/sign-in', { redirect: 'manual' }).catch(() => undefined);
  byId('sign-out').hidden = answer?.type !== 'basic';
};
const signOut = async () => {
  await post('/sign-out');
  location.assign('/sign-in');
  return 'This browser is signed out.';
};
byId('theme').onclick = changeTheme;
byId('help').onclick = () => void help();
byId('sign-out').onclick = () => void model.act(signOut);

const SHORTCUTS: Readonly<Record<string, () => void>> = {
  '/': () => byId<HTMLInputElement>('why-path').select(),
  p: () => byId('pause').click(),
  r: () => void model.act(() => retry({ all: true })),
  f: () => goTo('files'),
  m: () => goTo('mirrors'),
  t: changeTheme,
  '?': () => void help(),
  // The browser closes dialogs and menus by itself.
  Escape: () => {
    if (model.explained !== '') location.hash = '';
  },
};
document.addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof HTMLElement && event.target.matches('input, select');
  const isOpen = document.querySelector('dialog[open], :popover-open') !== null;
  const isHeld = event.ctrlKey || event.metaKey || event.altKey;
  if ((isTyping && event.key !== 'Escape') || isOpen || isHeld) return;
  const shortcut = SHORTCUTS[event.key];
  if (shortcut === undefined) return;
  event.preventDefault();
  shortcut();
});

showTheme(byId('theme'));
route();
model.connect();
