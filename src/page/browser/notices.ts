import { wordsOf } from './ask.js';
import { pageClock } from './clock.js';
import { byId, h, icon } from './dom.js';

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
  const close = h('button', { type: 'button', class: 'quiet small', 'aria-label': 'Dismiss' }, icon('gone'));
  const notice = h(
    'div',
    { class: `notice ${kind}`, role: kind === 'failed' ? 'alert' : undefined },
    icon(kind === 'failed' ? 'error' : 'confirmed'),
    h('p', {}, words),
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
  if (button !== undefined) button.disabled = true;
  try {
    say(await work());
  } catch (error) {
    complain(error);
  } finally {
    if (button !== undefined) button.disabled = false;
  }
}
