import type { PauseAnswer, PauseRequest } from '../api.js';
import { post } from './ask.js';
import { byId, show } from './dom.js';
import type { Model } from './model.js';
import { act } from './notices.js';
import { hour } from './words.js';

/** Pause and resume. */
export class Pausing {
  readonly #model: Model;
  readonly #pause = byId<HTMLButtonElement>('pause');
  readonly #resume = byId<HTMLButtonElement>('resume');
  readonly #menu = byId('pause-menu');

  constructor(model: Model) {
    this.#model = model;
    this.#resume.addEventListener('click', () => void this.resume());
    for (const choice of this.#menu.querySelectorAll<HTMLButtonElement>('[data-pause-ms]')) {
      choice.addEventListener('click', () => {
        this.#menu.hidePopover();
        const ms = choice.dataset.pauseMs ?? '';
        void this.#pauseFor(ms === '' ? undefined : Number(ms));
      });
    }
    this.#menu.addEventListener('toggle', () => {
      if (this.#menu.matches(':popover-open')) this.#menu.querySelector('button')?.focus();
    });
    model.follow(['status'], () => {
      const isPaused = model.status?.peer.queue?.paused !== undefined;
      const hadFocus = document.activeElement === this.#pause || document.activeElement === this.#resume;
      show(this.#resume, isPaused);
      show(this.#pause, !isPaused);
      if (hadFocus) (isPaused ? this.#resume : this.#pause).focus();
    });
  }

  /** What the key does: pauses, by asking for how long, or resumes. */
  toggle(): void {
    if (this.#pause.hidden) void this.resume();
    else this.#menu.showPopover();
  }

  resume(): Promise<void> {
    return act(this.#resume, async () => {
      await post<PauseAnswer>('/api/resume', {});
      return 'It goes on.';
    });
  }

  #pauseFor(forMs: number | undefined): Promise<void> {
    return act(this.#pause, async () => {
      const { paused } = await post<PauseAnswer>(
        '/api/pause',
        (forMs === undefined ? {} : { forMs }) satisfies PauseRequest,
      );
      const until =
        paused?.until === undefined ? 'until you resume' : `until ${hour(paused.until, this.#model.now())}`;
      return `Paused ${until}.`;
    });
  }
}
