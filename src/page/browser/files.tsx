import { useEffect, useRef, useState } from 'preact/hooks';
import { numberText as count, counted, escapeInvisible } from '../../lib/text.js';
import { formatBytes } from '../../lib/units.js';
import type { Entry } from '../../state/entry.js';
import type { ItemLine, ItemsPage, RetryAnswer, RetryRequest } from '../api.js';
import { get, type Model, post } from './model.js';
import {
  Act,
  Filter,
  filesHref,
  Head,
  Name,
  Pager,
  type Props,
  Prose,
  STATUS_WORDS,
  Table,
  whyHref,
} from './parts.js';
import { ago, sentences } from './words.js';

const PAGE_SIZE = 10;
/** What is shown is asked for again at most this often, in ms, while it changes. */
const RELOAD_MS = 2_000;

const STATUSES = Object.keys(STATUS_WORDS) as Entry['status'][];

function countOf({ status }: Model, name: Entry['status'], folder: string): number {
  const of = folder === '' ? status : status?.folders.find((one) => one.name === folder);
  return of?.items[name] ?? 0;
}

/** Gives files another try. @returns what came of it */
export async function retry(request: RetryRequest): Promise<string> {
  const { retried, lookedAt } = await post<RetryAnswer>('/api/retry', request);
  const parts = [
    retried > 0 && `${counted(retried, 'file')} ${retried === 1 ? 'is' : 'are'} tried again`,
    lookedAt > 0 && `${counted(lookedAt, 'file')} ${lookedAt === 1 ? 'is' : 'are'} looked at again`,
  ].filter(Boolean);
  return parts.length === 0 ? 'There was nothing to try again.' : `${parts.join(', and ')}.`;
}

const RETRIED: ReadonlySet<string> = new Set(['quarantined', 'pending', 'skipped']);

/**
 * The files of one status, of all folders or one, page by page: only one page is known here, and it
 * is asked for again when the count of the status says that it changed.
 */
export function Files({ model }: Props) {
  const { status, folder } = model.listed;
  const [name, setName] = useState('');
  /**
   * What was sent as `after` for this page of a list and those before it; the first page has none.
   */
  const [paged, setPaged] = useState<{
    readonly list: string;
    readonly cursors: readonly string[];
  }>();
  /** What was answered, or why nothing was. */
  const [page, setPage] = useState<ItemsPage | string>({ items: [] });
  const asked = useRef({ query: '', total: -1, at: 0, isOpen: false });
  const latest = useRef('');
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
  // Each second. One question at a time: among very many files a name is looked for longer than it
  // takes to type a letter.
  useEffect(() => {
    const before = asked.current;
    latest.current = query;
    const isStale = total !== before.total && model.here() - before.at > RELOAD_MS;
    if (before.isOpen || (query === before.query && !isStale)) return;
    asked.current = { query, total, at: model.here(), isOpen: true };
    const take = (answer: ItemsPage | string) => {
      asked.current.isOpen = false;
      if (query === latest.current) setPage(answer);
      else model.change();
    };
    get<ItemsPage>('/api/items', query).then(take, (error: Error) => {
      // It is asked for again.
      asked.current.total = -1;
      take(error.message);
    });
  });
  const again = (request: RetryRequest) => async () => {
    const words = await retry(request);
    asked.current.at = 0;
    return words;
  };
  const { items, next } = typeof page === 'string' ? { items: [] } : page;
  const empty =
    status === 'quarantined'
      ? 'Nothing is in quarantine. What cannot be delivered without a change waits here, with the reason and what to do.'
      : `No file is ${STATUS_WORDS[status].toLowerCase()}.`;
  const none =
    typeof page === 'string' ? page : name === '' ? empty : `No name of a file holds "${name}".`;
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
      ago(since, model.now()),
      formatBytes(size),
      attempts ? count(attempts) : '–',
      RETRIED.has(status) && (
        <Act
          model={model}
          work={again({ paths: [file] })}
          aria-label={`Retry ${escapeInvisible(path)}`}
        >
          Retry
        </Act>
      ),
      message !== undefined && (
        <p class="voice">
          <Prose text={sentences(message, hint)} /> <span class="hint">{code}</span>
        </p>
      ),
    ];
  };
  return (
    <>
      <Head id="files" title="Files">
        {status === 'quarantined' && total > 0 && (
          <Act model={model} work={again({ all: true })} aria-keyshortcuts="r">
            Retry all
          </Act>
        )}
      </Head>
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
