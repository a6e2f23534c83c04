import { type FunctionComponent, render } from 'preact';
import { Charts } from './charts.js';
import { Files, retry } from './files.js';
import { Folders, Mirrors, Times } from './lists.js';
import { Model, post } from './model.js';
import {
  About,
  Attention,
  Connection,
  Notices,
  Pausing,
  Peer,
  Recent,
  Site,
  Stations,
  World,
} from './overview.js';
import { isStatus, type Props } from './parts.js';
import { nextTheme, showTheme } from './theme.js';
import { Why } from './why.js';

/** What each element of index.html shows, by its id. */
const VIEWS: Readonly<Record<string, FunctionComponent<Props>>> = {
  connection: Connection,
  site: Site,
  pausing: Pausing,
  'state-of-the-world': World,
  stations: Stations,
  why: Why,
  attention: Attention,
  charts: Charts,
  'time-to-search': Times,
  folders: Folders,
  files: Files,
  mirrors: Mirrors,
  peer: Peer,
  recent: Recent,
  about: About,
  notices: Notices,
};

/** Of each level, the icon of the window. */
const ICONS = { ok: 'ok', busy: 'busy', warn: 'wait', bad: 'bad' } as const;

/** The element of the page with this id, which has to be there. */
function byId<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element as T;
}

const model = new Model(() => {
  const { lost, status, world } = model;
  document.body.dataset.connection = lost ? 'lost' : status ? 'open' : 'connecting';
  if (world) {
    document.body.dataset.level = world.level;
    document.title = `${world.title} · peersync`;
    byId('favicon').setAttribute('href', `/assets/favicon-${ICONS[world.level]}.svg`);
  }
  for (const [id, View] of Object.entries(VIEWS)) render(<View model={model} />, byId(id));
});

/** Brings a section into view, and the focus with it. */
function goTo(id: string): void {
  byId(id).scrollIntoView({ block: 'start' });
  byId(id).focus({ preventScroll: true });
}

/** Shows what the fragment of the address asks for: `#why=PATH`, `#files=STATUS&folder=NAME`. */
function route(): void {
  const asked = new URLSearchParams(location.hash.slice(1).replaceAll('+', '%2B'));
  const status = asked.get('files') ?? '';
  const before = model.explained;
  model.explained = asked.get('why') ?? '';
  if (isStatus(status)) {
    model.listed = { status, folder: asked.get('folder') ?? '' };
    byId('files').scrollIntoView({ block: 'start' });
  } else if (model.explained !== '') byId('why').scrollIntoView({ block: 'nearest' });
  else if (before !== '') byId('why-path').focus();
  model.change();
}
addEventListener('hashchange', route);

const changeTheme = () => nextTheme(byId('theme'));

const keys = byId<HTMLDialogElement>('keys');
const help = async () => {
  keys.showModal();
  // Who is let in without a token has nothing to sign out of: the sign-in leads straight back to
  // the page.
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
  // What is above the page closes by itself.
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
