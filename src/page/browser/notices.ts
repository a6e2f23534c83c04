import { wordsOf } from './ask.js';
import { pageClock } from './clock.js';
import { attr, byId, h, icon, text } from './dom.js';

const SHOWN_MS = 7_000;
const MOST = 4;

/** Says for a moment that something was done. */
export function say(words: string): void {
  const cancel = pageClock.after(SHOWN_MS, () => notice.remove());
  const notice = add(words, 'done', cancel);
}

/** Says what went wrong, until it is dismissed. */
export function complain(error: unknown): void {
  add(wordsOf(error), 'failed', () => {});
}

function add(words: string, kind: 'done' | 'failed', cancel: () => void): HTMLElement {
  const close = h('button', { class: 'quiet small', 'aria-label': 'Dismiss' }, icon('gone'));
  const notice = h(
    'div',
    { class: `notice ${kind}`, role: kind === 'failed' ? 'alert' : undefined },
    icon(kind === 'failed' ? 'error' : 'confirmed'),
    h('p', words),
    close,
  );
  close.addEventListener('click', () => {
    cancel();
    notice.remove();
  });
  const all = byId('notices');
  all.append(notice);
  while (all.childElementCount > MOST) all.firstElementChild?.remove();
  return notice;
}

/** Does something for a button: the button rests meanwhile, and what came of it is said. */
export async function act(button: HTMLButtonElement | undefined, work: () => Promise<string>): Promise<void> {
  rest(button, true);
  try {
    say(await work());
  } catch (error) {
    complain(error);
  } finally {
    rest(button, false);
  }
}

function rest(button: HTMLButtonElement | undefined, isBusy: boolean): void {
  if (button === undefined) return;
  button.disabled = isBusy;
  attr(button, 'aria-busy', isBusy && 'true');
}

/** Asks before something that cannot be taken back. @param yes the word on the button that does it */
export function sure(title: string, words: string, yes: string): Promise<boolean> {
  const dialog = byId<HTMLDialogElement>('confirm');
  text(byId('confirm-title'), title);
  text(byId('confirm-text'), words);
  text(byId('confirm-yes'), yes);
  byId('confirm-yes').onclick = () => dialog.close('yes');
  byId('confirm-no').onclick = () => dialog.close('no');
  dialog.returnValue = 'no';
  dialog.showModal();
  byId('confirm-no').focus();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}
