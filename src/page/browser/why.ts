import type { WhyReport } from '../../report/why.js';
import { get, wordsOf } from './ask.js';
import { byId, draw, h, icon, prose, show } from './dom.js';
import type { Model } from './model.js';
import { factsOf } from './peer.js';
import { isStatus, KIND_WORDS, STATUS_WORDS, VERDICT_WORDS, whyHref } from './statuses.js';
import { ago, ahead, moment, sentence, sentences, size } from './words.js';

/** The explanation of any path. What is explained stands in the address, so that it can be sent to somebody. */
export class Why {
  readonly #model: Model;
  readonly #field = byId<HTMLInputElement>('why-path');
  readonly #answer = byId('why-answer');
  #asked = '';
  #isFollowed = false;

  constructor(model: Model) {
    this.#model = model;
    byId<HTMLFormElement>('why-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const path = this.#field.value.trim();
      if (path === '') return this.close();
      if (location.hash === whyHref(path)) void this.explain(path);
      else location.hash = whyHref(path);
    });
    this.#answer.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close();
    });
    // What is shown follows the file, as long as the file is on its way.
    model.follow(['status'], () => {
      if (this.#isFollowed) void this.#show(this.#asked);
    });
  }

  focus(): void {
    this.#field.focus();
    this.#field.select();
  }

  close(): void {
    this.#asked = '';
    this.#isFollowed = false;
    this.#field.value = '';
    show(this.#answer, false);
    if (location.hash.startsWith('#why')) history.replaceState(null, '', location.pathname);
    this.#field.focus();
  }

  async explain(path: string): Promise<void> {
    this.#field.value = path;
    this.#asked = path;
    await this.#show(path);
    byId('why').scrollIntoView({ block: 'nearest' });
  }

  async #show(path: string): Promise<void> {
    this.#isFollowed = false;
    const content = await get<WhyReport>('/api/why', { path }).then(
      (report) => {
        this.#isFollowed =
          report.verdict === 'pending' || report.verdict === 'accepted' || report.verdict === 'unknown';
        return this.#draw(report);
      },
      (error: unknown) => [spoken(wordsOf(error))],
    );
    if (path !== this.#asked) return;
    const attributes = { class: 'small close', 'data-key': 'close' };
    draw(this.#answer, content, h('button', { ...attributes, onclick: () => this.close() }, 'Close'));
    show(this.#answer, true);
  }

  #draw(report: WhyReport): HTMLElement[] {
    const now = this.#model.now();
    const { verdict, trouble, evidence, version } = report;
    const when = (at: number) => `${moment(at, now)}, ${ago(at, now)}`;
    const next =
      report.nextAt === undefined
        ? ''
        : report.nextAt <= now
          ? ' It is due now.'
          : ` Next: ${ahead(report.nextAt, now)}.`;
    const facts = factsOf([
      ['File', report.file, 'path'],
      ['Rule', report.rule],
      ['Document', report.url, 'path'],
      ['Collection', report.collection],
      ['Version', version && `${size(version.size)}, modified ${when(version.mtimeMs)}`],
      ['sha256', version?.sha256, 'path'],
      ['Encoding', report.conversion],
      ['Attempts', report.attempts ? String(report.attempts) : undefined],
      ['Evidence', evidence && `${evidence.kind}, seen ${when(evidence.at)}`],
      ['Shown', evidence?.shown, 'path'],
      ['Error', trouble?.code, 'path'],
    ]);
    const shape = isStatus(verdict) ? verdict : 'unknown';
    const title = h(
      `h3.verdict.s-${verdict}`,
      icon(shape),
      h('span', report.kind === undefined ? VERDICT_WORDS[verdict] : KIND_WORDS[report.kind]),
    );
    const voice = [trouble && sentences(trouble.message, trouble.hint), `${sentence(report.next)}${next}`];
    const told = voice.filter((words) => words !== undefined).map(spoken);
    const history = report.history
      .toReversed()
      .map(({ status, at, note }) =>
        h(
          `li.s-${status}`,
          icon(status),
          h(
            'p',
            h('strong', STATUS_WORDS[status]),
            ` ${when(at)}`,
            note === undefined ? undefined : h('span.note', note),
          ),
        ),
      );
    const left = h('div', title, ...told, h('dl.facts', facts));
    if (history.length === 0) return [left];
    return [left, h('div', h('h3', 'What happened to it'), h('ol.history', ...history))];
  }
}

function spoken(words: string): HTMLElement {
  return h('p.voice', prose(words));
}
