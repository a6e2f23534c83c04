import { byId, text } from './dom.js';

export interface Question {
  readonly title: string;
  readonly text: string;
  /** The word on the button that does it. */
  readonly yes: string;
}

/** Asks before something that cannot be taken back. */
export function sure({ title, text: words, yes }: Question): Promise<boolean> {
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
