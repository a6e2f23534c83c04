import type { Entry } from '../../state/entry.js';
import type { ItemLine, ItemsPage, RetryAnswer, RetryRequest } from '../api.js';
import { get, post, wordsOf } from './ask.js';
import type { PageClock } from './clock.js';
import { attr, byId, h, Rows, show, text } from './dom.js';
import { fileRow } from './file-row.js';
import type { Model } from './model.js';
import { act, say } from './notices.js';
import { Pager } from './pager.js';
import { filesHref } from './route.js';
import { isStatus, STATUS_WORDS, STATUSES } from './statuses.js';
import { count, counted } from './words.js';

const PAGE_SIZE = 10;
/** What is shown is asked for again at most this often, while it changes. */
const RELOAD_MS = 2_000;

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
  readonly #tabs = new Map<Entry['status'], { readonly link: HTMLElement; readonly number: HTMLElement }>();
  readonly #folderChoice = byId<HTMLSelectElement>('file-folder');
  readonly #retryAll = byId<HTMLButtonElement>('retry-all');
  readonly #list = h('ul', { class: 'files' });
  readonly #empty = h('p', { class: 'empty' });
  readonly #pager: Pager;
  readonly #rows: Rows<ItemLine>;
  #status: Entry['status'] = 'quarantined';
  #folder = '';
  /** What was sent as `after` for this page and those before it; the first page has none. */
  #cursors: (string | undefined)[] = [undefined];
  #page: ItemsPage | undefined;
  #shownCount: number | undefined;
  #isLoading = false;
  #loadedAt = Number.NEGATIVE_INFINITY;

  constructor(model: Model, clock: PageClock) {
    this.#model = model;
    this.#clock = clock;
    this.#rows = new Rows<ItemLine>(
      this.#list,
      ({ file, status }) => `${status} ${file}`,
      () => fileRow(model, (item, button) => this.#retry(item, button)),
    );
    this.#pager = new Pager('files', (step) => this.#go(step));
    byId('file-list').append(this.#list, this.#empty, this.#pager.element);
    for (const status of STATUSES) {
      const number = h('span', { class: 'tally' });
      const link = h(
        'a',
        { href: filesHref(status), class: `tab s-${status}` },
        STATUS_WORDS[status],
        ' ',
        number,
      );
      this.#tabs.set(status, { link, number });
      byId('file-tabs').append(link);
    }
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
    await act(this.#retryAll, async () =>
      answerText(await post<RetryAnswer>('/api/retry', { all: true } satisfies RetryRequest)),
    );
    void this.#load();
  }

  async #retry({ file }: ItemLine, button: HTMLButtonElement): Promise<void> {
    await act(button, async () =>
      answerText(await post<RetryAnswer>('/api/retry', { paths: [file] } satisfies RetryRequest)),
    );
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
    for (const [name, { link, number }] of this.#tabs) {
      text(number, count(this.#countOf(name)));
      attr(link, 'aria-current', name === this.#status ? 'true' : undefined);
      attr(link, 'href', filesHref(name, this.#folder === '' ? undefined : this.#folder));
    }
    this.#offerFolders(status.folders.map(({ name }) => name));
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

  #offerFolders(names: readonly string[]): void {
    show(byId('folder-pick'), names.length > 1);
    const known = [...this.#folderChoice.options].slice(1).map(({ value }) => value);
    if (names.join('\n') !== known.join('\n')) {
      const options = names.map((name) => h('option', { value: name }, name));
      this.#folderChoice.replaceChildren(h('option', { value: '' }, 'all folders'), ...options);
    }
    if (this.#folderChoice.value !== this.#folder) this.#folderChoice.value = this.#folder;
  }

  async #load(): Promise<void> {
    if (this.#isLoading) return;
    this.#isLoading = true;
    const [status, folder, after] = [this.#status, this.#folder, this.#cursors.at(-1)];
    const counted = this.#countOf(status);
    try {
      const page = await get<ItemsPage>('/api/items', {
        status,
        limit: String(PAGE_SIZE),
        ...(folder === '' ? {} : { folder }),
        ...(after === undefined ? {} : { after }),
      });
      this.#page = page;
      this.#shownCount = counted;
    } catch (error) {
      this.#page = undefined;
      text(this.#empty, wordsOf(error));
    } finally {
      this.#isLoading = false;
      this.#loadedAt = this.#clock.now();
    }
    const isOvertaken = status !== this.#status || folder !== this.#folder || after !== this.#cursors.at(-1);
    if (isOvertaken) await this.#load();
    else this.#draw();
  }

  #draw(): void {
    const items = this.#page?.items ?? [];
    this.#rows.set(items);
    show(this.#list, items.length > 0);
    show(this.#empty, items.length === 0);
    if (this.#page !== undefined) text(this.#empty, EMPTY[this.#status]);
    show(this.#retryAll, this.#status === 'quarantined' && this.#countOf('quarantined') > 0);
    const first = (this.#cursors.length - 1) * PAGE_SIZE;
    this.#pager.set(first, items.length, this.#countOf(this.#status), this.#page?.next !== undefined);
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
