import type { Entry } from '../../state/entry.js';
import type { ItemLine, ItemsPage, RetryAnswer, RetryRequest } from '../api.js';
import { get, post, wordsOf } from './ask.js';
import type { PageClock } from './clock.js';
import { byId, draw, h, icon, prose, show } from './dom.js';
import type { Model } from './model.js';
import { act, say } from './notices.js';
import { pager } from './paged-table.js';
import { filesHref, isStatus, STATUS_WORDS, STATUSES, whyHref } from './statuses.js';
import { ago, count, counted, moment, sentences, size } from './words.js';

const PAGE_SIZE = 10;
/** What is shown is asked for again at most this often, while it changes. */
const RELOAD_MS = 2_000;
const RETRIED: ReadonlySet<string> = new Set(['quarantined', 'pending', 'passed']);

const EMPTY: Readonly<Record<Entry['status'], string>> = {
  quarantined:
    'Nothing is in quarantine. What cannot be delivered without a change waits here, with the reason and what to do.',
  pending: 'Nothing waits to be pushed.',
  accepted: 'Nothing waits to be shown by the peer.',
  confirmed: 'Nothing is confirmed yet.',
  passed: 'No file is passed over. Empty, too large and unreadable ones are listed here.',
  gone: 'No file was removed.',
};

/**
 * The files of one status, of all folders or one, page by page: only one page is known here, and it is asked for again
 * when the counts of the status say that it changed.
 */
export class Files {
  readonly #model: Model;
  readonly #clock: PageClock;
  readonly #folderChoice = byId<HTMLSelectElement>('file-folder');
  readonly #retryAll = byId<HTMLButtonElement>('retry-all');
  #status: Entry['status'] = 'quarantined';
  #folder = '';
  /** What was sent as `after` for this page and those before it; the first page has none. */
  #cursors: (string | undefined)[] = [undefined];
  #page: ItemsPage | undefined;
  /** Why there is no page. */
  #failure = '';
  #shownCount: number | undefined;
  #isLoading = false;
  #loadedAt = Number.NEGATIVE_INFINITY;

  constructor(model: Model, clock: PageClock) {
    this.#model = model;
    this.#clock = clock;
    this.#folderChoice.addEventListener('change', () => this.choose(this.#status, this.#folderChoice.value));
    this.#retryAll.addEventListener('click', () => void this.retryAll());
    model.follow(['status', 'tick'], () => this.#follow());
  }

  /** Shows the files of a status, of one folder or of all (`''`). */
  choose(status: string, folder: string): void {
    if (!isStatus(status)) return;
    this.#status = status;
    this.#folder = folder;
    this.#cursors = [undefined];
    this.#page = undefined;
    this.#shownCount = undefined;
    this.#follow();
    byId('files').scrollIntoView({ block: 'start' });
    void this.#load();
  }

  async retryAll(): Promise<void> {
    if ((this.#model.status?.items.quarantined ?? 0) === 0) return say('Nothing is in quarantine.');
    await this.#retry({ all: true }, this.#retryAll);
  }

  async #retry(request: RetryRequest, button: HTMLButtonElement): Promise<void> {
    await act(button, async () => answerText(await post<RetryAnswer>('/api/retry', request)));
    void this.#load();
  }

  #go(step: -1 | 1): void {
    if (step === 1 && this.#page?.next !== undefined) this.#cursors.push(this.#page.next);
    if (step === -1 && this.#cursors.length > 1) this.#cursors.pop();
    void this.#load();
  }

  #follow(): void {
    const { status } = this.#model;
    if (status === undefined) return;
    const tabs = STATUSES.map((name) => {
      const isCurrent = name === this.#status && 'true';
      const href = filesHref(name, this.#folder === '' ? undefined : this.#folder);
      const tally = h('span.tally', count(this.#countOf(name)));
      const attributes = { href, class: `tab s-${name}`, 'aria-current': isCurrent };
      return h('a', attributes, STATUS_WORDS[name], ' ', tally);
    });
    draw(byId('file-tabs'), h('legend.unseen', 'Status of the files that are shown'), tabs);
    const names = status.folders.map(({ name }) => name);
    show(byId('folder-pick'), names.length > 1);
    const options = names.map((name) => h('option', { value: name, 'data-key': name }, name));
    draw(this.#folderChoice, h('option', { value: '' }, 'all folders'), options);
    if (this.#folderChoice.value !== this.#folder) this.#folderChoice.value = this.#folder;
    const isStale = this.#countOf(this.#status) !== this.#shownCount;
    if (isStale && this.#clock.now() - this.#loadedAt > RELOAD_MS) void this.#load();
    else if (!isStale) this.#draw();
  }

  #countOf(name: Entry['status']): number {
    const { status } = this.#model;
    const of = this.#folder === '' ? status : status?.folders.find((folder) => folder.name === this.#folder);
    if (of === undefined) return 0;
    return name === 'passed' ? of.passedOver : of.items[name];
  }

  async #load(): Promise<void> {
    if (this.#isLoading) return;
    this.#isLoading = true;
    const [status, folder, after] = [this.#status, this.#folder, this.#cursors.at(-1)];
    const counted = this.#countOf(status);
    try {
      this.#page = await get<ItemsPage>('/api/items', {
        status,
        limit: String(PAGE_SIZE),
        ...(folder === '' ? {} : { folder }),
        ...(after === undefined ? {} : { after }),
      });
      this.#shownCount = counted;
    } catch (error) {
      this.#page = undefined;
      this.#failure = wordsOf(error);
    } finally {
      this.#isLoading = false;
      this.#loadedAt = this.#clock.now();
    }
    const isOvertaken = status !== this.#status || folder !== this.#folder || after !== this.#cursors.at(-1);
    if (isOvertaken) await this.#load();
    else this.#draw();
  }

  #draw(): void {
    const { items = [], next } = this.#page ?? {};
    const total = this.#countOf(this.#status);
    const first = (this.#cursors.length - 1) * PAGE_SIZE;
    const empty = this.#page === undefined ? this.#failure : EMPTY[this.#status];
    draw(
      byId('file-list'),
      items.length === 0
        ? h('p.empty', empty)
        : h(
            'ul.files.separated',
            items.map((item) => this.#row(item)),
          ),
      pager('files', first, items.length, total, next !== undefined, (step) => this.#go(step)),
    );
    show(this.#retryAll, this.#status === 'quarantined' && total > 0);
  }

  /** One file of a list: its name leads to its explanation. */
  #row(item: ItemLine): HTMLElement {
    const { file, folder, path, status, message, hint, since } = item;
    const now = this.#model.now();
    const facts = h('p.hint', { title: moment(since, now) }, factsOf(item, now));
    const retry = h(
      'button',
      {
        ...{ class: 'small', 'aria-label': `Retry ${path}` },
        onclick: (button) => void this.#retry({ paths: [file] }, button),
      },
      'Retry',
    );
    return h(
      'li',
      { 'data-key': `${status} ${file}` },
      h(`span.shape.s-${status}`, icon(status)),
      h(
        'div',
        h('a.path', { href: whyHref(file) }, h('span.in', `${folder}/`), h('span', path)),
        h('span.unseen', ` ${STATUS_WORDS[status]}`),
        message !== undefined && h('p.voice', prose(sentences(message, hint))),
        facts,
      ),
      RETRIED.has(status) && retry,
    );
  }
}

function answerText({ retried, lookedAt }: RetryAnswer): string {
  const parts = [
    retried > 0 ? `${counted(retried, 'file')} ${retried === 1 ? 'is' : 'are'} tried again` : undefined,
    lookedAt > 0
      ? `${counted(lookedAt, 'file')} ${lookedAt === 1 ? 'is' : 'are'} looked at again`
      : undefined,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? 'There was nothing to try again.' : `${parts.join(', and ')}.`;
}

function factsOf(item: ItemLine, now: number): string {
  const tries = item.attempts === undefined || item.attempts === 0 ? [] : [counted(item.attempts, 'attempt')];
  const code = item.code === undefined ? [] : [item.code];
  return [
    `since ${ago(item.since, now)}`.replace('since just now', 'just now'),
    size(item.size),
    ...tries,
    ...code,
  ].join(' · ');
}
