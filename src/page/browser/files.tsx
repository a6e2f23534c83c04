import { useEffect, useRef, useState } from 'preact/hooks';
import { numberText as count, counted, escapeInvisible } from '../../lib/text.js';
import { formatBytes } from '../../lib/units.js';
import type { Entry } from '../../state/entry.js';
import type { ItemLine, ItemsPage, RetryAnswer, RetryRequest } from '../api.js';
import {
  ActionButton,
  Filter,
  filesHref,
  Name,
  Pager,
  type Props,
  Prose,
  SectionHead,
  STATUS_WORDS,
  Table,
  whyHref,
} from './components.js';
import { get, type Model, post } from './model.js';
import { joinSentences, timeAgo } from './words.js';

const PAGE_SIZE = 10;
/** Shortest time between two queries for the same page while it changes, in ms. */
const RELOAD_MS = 2_000;

const STATUSES = Object.keys(STATUS_WORDS) as Entry['status'][];

function countOf({ status }: Model, name: Entry['status'], folder: string): number {
  const of = folder === '' ? status : status?.folders.find((one) => one.name === folder);
  return of?.items[name] ?? 0;
}

/** Retries files. @returns the text of the notice */
export async function retry(request: RetryRequest): Promise<string> {
  const { retried, toRead } = await post<RetryAnswer>('/api/retry', request);
  const parts = [
    retried > 0 && `${counted(retried, 'file')} ${retried === 1 ? 'is' : 'are'} tried again`,
    toRead > 0 && `${counted(toRead, 'file')} ${toRead === 1 ? 'is' : 'are'} checked again`,
  ].filter(Boolean);
  return parts.length === 0 ? 'There was nothing to try again.' : `${parts.join(', and ')}.`;
}

/**
 * Statuses whose files have a button for another try. An accepted file that may never be shown can
 * be retried too, but only by `peersync retry`.
 */
const WITH_RETRY_BUTTON: ReadonlySet<string> = new Set(['quarantined', 'pending', 'skipped']);

/**
 * The files of one status, in all folders or in one. Only one page is loaded. It is loaded again
 * when the number of files of the status changed.
 */
export function Files({ model }: Props) {
  const { status, folder } = model.listed;
  const [name, setName] = useState('');
  /** The `after` parameters of this page and the pages before it. The first page has none. */
  const [paged, setPaged] = useState<{
    readonly list: string;
    readonly cursors: readonly string[];
  }>();
  /** The answer, or the message of the failure. */
  const [page, setPage] = useState<ItemsPage | string>({ items: [] });
  const last = useRef({ query: '', total: -1, at: 0, isOpen: false });
  const wantedQuery = useRef('');
  const total = countOf(model, status, folder);
  const wanted = {
    status,
    limit: String(PAGE_SIZE),
    ...(folder && { folder }),
    ...(name && { name }),
  };
  const list = new URLSearchParams(wanted).toString();
  const cursors = paged?.list === list ? paged.cursors : [];
  const after = cursors.at(-1);
  const query = `${list}${after === undefined ? '' : `&after=${encodeURIComponent(after)}`}`;
  // Runs with each draw, but sends one query at a time: a search by name among very many files
  // takes longer than typing a letter.
  useEffect(() => {
    const before = last.current;
    wantedQuery.current = query;
    const isStale = total !== before.total && model.localNow() - before.at > RELOAD_MS;
    if (before.isOpen || (query === before.query && !isStale)) return;
    last.current = { query, total, at: model.localNow(), isOpen: true };
    const take = (answer: ItemsPage | string) => {
      last.current.isOpen = false;
      if (query === wantedQuery.current) setPage(answer);
      else model.change();
    };
    get<ItemsPage>('/api/items', query).then(take, (error: Error) => {
      // The page is stale, so the query is sent again.
      last.current.total = -1;
      take(error.message);
    });
  });
  const retryAction = (request: RetryRequest) => async () => {
    const notice = await retry(request);
    last.current.at = 0;
    return notice;
  };
  const { items, next } = typeof page === 'string' ? { items: [] } : page;
  const empty =
    status === 'quarantined'
      ? 'Nothing is in quarantine. Files that cannot be delivered without a change appear here, with the reason and what to do.'
      : `No file is ${STATUS_WORDS[status].toLowerCase()}.`;
  const none =
    typeof page === 'string' ? page : name === '' ? empty : `No file has "${name}" in its name.`;
  const names = model.status?.folders.map((one) => one.name) ?? [];
  const cells = (item: ItemLine) => {
    const { attempts, code, file, folder: where, hint, message, path, since, size } = item;
    return [
      <a key={file} class="path" href={whyHref(file)}>
        <span class="in">
          <Name of={where} />/
        </span>
        <Name of={path} />
      </a>,
      timeAgo(since, model.now()),
      formatBytes(size),
      attempts ? count(attempts) : '–',
      WITH_RETRY_BUTTON.has(status) && (
        <ActionButton
          model={model}
          work={retryAction({ paths: [file] })}
          aria-label={`Retry ${escapeInvisible(path)}`}
        >
          Retry
        </ActionButton>
      ),
      message !== undefined && (
        <p class="voice">
          <Prose text={joinSentences(message, hint)} /> <span class="hint">{code}</span>
        </p>
      ),
    ];
  };
  return (
    <>
      <SectionHead id="files" title="Files">
        {status === 'quarantined' && total > 0 && (
          <ActionButton model={model} work={retryAction({ all: true })} aria-keyshortcuts="r">
            Retry all
          </ActionButton>
        )}
      </SectionHead>
      <div class="filters wrapped">
        <nav class="tabs" aria-label="Status of the files that are shown">
          {STATUSES.map((one) => (
            <a
              key={one}
              href={filesHref(one, folder)}
              class={`tab s-${one}`}
              aria-current={one === status ? 'true' : undefined}
            >
              {STATUS_WORDS[one]} <span class="tally">{count(countOf(model, one, folder))}</span>
            </a>
          ))}
        </nav>
        <Filter what="file" onInput={setName} />
        {names.length > 1 && (
          <label class="hint">
            in{' '}
            <select
              value={folder}
              onChange={({ currentTarget }) => {
                location.hash = filesHref(status, currentTarget.value);
              }}
            >
              <option value="">all folders</option>
              {names.map((one) => (
                <option key={one} value={one}>
                  {escapeInvisible(one)}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <Table
        caption={`Files: ${STATUS_WORDS[status]}`}
        what="file"
        columns={['File', 'Since', 'Size', 'Attempts', '']}
        rows={items}
        cells={cells}
        keyOf={({ file }) => file}
        empty={none}
      />
      <Pager
        of="files"
        first={cursors.length * PAGE_SIZE}
        shown={items.length}
        total={name === '' ? total : undefined}
        hasMore={next !== undefined}
        go={(step) =>
          setPaged({ list, cursors: step === 1 ? [...cursors, next ?? ''] : cursors.slice(0, -1) })
        }
      />
    </>
  );
}
