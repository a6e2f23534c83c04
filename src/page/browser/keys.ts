import { post } from './ask.js';
import { byId, show, text } from './dom.js';
import type { Files } from './files.js';
import { complain } from './notices.js';
import type { Pausing } from './pausing.js';
import { setTheme, THEMES, type Theme, theme } from './theme.js';
import type { Why } from './why.js';

const THEME_WORDS: Readonly<Record<Theme, string>> = { auto: 'Auto', light: 'Light', dark: 'Dark' };

/** The shortcuts, the dialog that lists them, and the two buttons that they stand for. */
export function showKeys(files: Files, why: Why, pausing: Pausing): void {
  const dialog = byId<HTMLDialogElement>('keys');
  const showTheme = () => {
    text(byId('theme-text'), THEME_WORDS[theme()]);
    byId('theme').setAttribute('aria-label', `Colours: ${THEME_WORDS[theme()].toLowerCase()}`);
  };
  const nextTheme = () => {
    setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length] ?? 'auto');
    showTheme();
  };
  showTheme();
  byId('theme').addEventListener('click', nextTheme);
  const help = () => {
    dialog.showModal();
    void offerSignOut();
  };
  byId('help').addEventListener('click', help);
  byId('keys-close').addEventListener('click', () => dialog.close());
  byId('sign-out').addEventListener('click', () => {
    post('/sign-out', {}).then(() => location.assign('/sign-in'), complain);
  });

  const shortcuts: Readonly<Record<string, () => void>> = {
    '/': () => why.focus(),
    p: () => pausing.toggle(),
    r: () => void files.retryAll(),
    f: () => goTo('files'),
    m: () => goTo('mirrors'),
    t: nextTheme,
    '?': help,
  };
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches('input, select, textarea');
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector('dialog[open]') !== null) return;
    const shortcut = shortcuts[event.key];
    if (shortcut === undefined) return;
    event.preventDefault();
    shortcut();
  });
}

/** Who is let in without a token has nothing to sign out of: the sign-in leads straight back to the page. */
async function offerSignOut(): Promise<void> {
  const answer = await fetch('/sign-in', { redirect: 'manual' }).catch(() => undefined);
  show(byId('sign-out'), answer?.type === 'basic');
}

/** Brings a section into view, and the focus with it. */
function goTo(id: string): void {
  const section = byId(id);
  section.setAttribute('tabindex', '-1');
  section.scrollIntoView({ block: 'start' });
  section.focus({ preventScroll: true });
}
