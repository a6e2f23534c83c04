import { type ComponentChildren, Fragment, type JSX } from 'preact';
import { useState } from 'preact/hooks';
import { numberText as count, readableUrl, visibleParts } from '../../lib/text.js';
import type { Entry } from '../../state/entry.js';
import type { Model } from './model.js';

// What several parts of the page are made of.

/** The page knows everything by its model. */
export interface Props {
  readonly model: Model;
}

/** A status in the words of a person. Each has a shape and a colour of the same name. */
export const STATUS_WORDS: Readonly<Record<Entry['status'], string>> = {
  quarantined: 'Quarantine',
  pending: 'Pending',
  accepted: 'Accepted',
  confirmed: 'Confirmed',
  skipped: 'Skipped',
  gone: 'Gone',
  removing: 'Removing',
  removed: 'Removed',
};

export function isStatus(word: string): word is Entry['status'] {
  return Object.hasOwn(STATUS_WORDS, word);
}

/** The address of the explanation of a path. */
export function whyHref(path: string): string {
  return `#why=${encodeURIComponent(path)}`;
}

/** The address of the list of the files that have a status, of all folders or of one. */
export function filesHref(status: Entry['status'], folder = ''): string {
  return folder === ''
    ? `#files=${status}`
    : `#files=${status}&folder=${encodeURIComponent(folder)}`;
}

/** Statuses that share a shape with another one. */
const SHAPES: Readonly<Record<string, string>> = { removing: 'gone', removed: 'gone' };

/** A shape of the sprite in index.html. It stands beside a word that says the same. */
export function Icon({ of }: { readonly of: string }) {
  return (
    <svg class="icon" aria-hidden="true">
      <use href={`#i-${SHAPES[of] ?? of}`} />
    </svg>
  );
}

/** What colours mean: for each tone its word, beside a dot of that colour. */
export function Legend({ of }: { readonly of: Readonly<Record<string, string>> }) {
  return (
    <ul class="legend wrapped hint">
      {Object.entries(of).map(([tone, word]) => (
        <li key={tone}>
          <i class={`dot s-${tone}`} />
          {word}
        </li>
      ))}
    </ul>
  );
}

/** A name from a disk, with what would not be seen written out, and marked as that. */
export function Name({ of }: { readonly of: string }) {
  return (
    <>{visibleParts(of).map((part, i) => (i % 2 === 1 ? <b class="written">{part}</b> : part))}</>
  );
}

/**
 * A text in which names stand between backticks, as in the words of the daemon; they are shown as
 * code.
 */
export function Prose({ text }: { readonly text: string }) {
  const parts = text.split(/`([^`]+)`/).map((part) => <Name of={part} />);
  return <>{parts.map((part, i) => (i % 2 === 1 ? <code>{part}</code> : part))}</>;
}

/** The heading of a section, with what can be done in it. */
export function Head({ id, title, children }: JSX.IntrinsicElements['div'] & { title: string }) {
  return (
    <div class="head wrapped">
      <h2 id={`${id}-title`}>{title}</h2>
      {children}
    </div>
  );
}

/** A button that does something: it rests meanwhile, and what came of it is said. */
export function Act({
  model,
  work,
  ...others
}: JSX.IntrinsicElements['button'] & Props & { work: () => Promise<string> }) {
  const [isBusy, setBusy] = useState(false);
  const act = async () => {
    setBusy(true);
    await model.act(work);
    setBusy(false);
  };
  return (
    <button type="button" class="small" {...others} disabled={isBusy} onClick={() => void act()} />
  );
}

/** A list of facts by name; what is not known is left out, and an address of the web is a link. */
export function Facts({ of }: { readonly of: Readonly<Record<string, ComponentChildren>> }) {
  const known = Object.entries(of).filter(([, value]) => value !== undefined && value !== '');
  return (
    <dl class="facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof value === 'string' ? <Fact of={value} /> : value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Fact({ of }: { readonly of: string }) {
  if (/^https?:/.test(of)) return <a href={of}>{readableUrl(of)}</a>;
  return <Name of={of} />;
}

interface PagerProps {
  /** What is listed. */
  readonly of: string;
  readonly first: number;
  readonly shown: number;
  /** Undefined where it is not known. */
  readonly total: number | undefined;
  readonly hasMore: boolean;
  readonly go: (step: -1 | 1) => void;
}

const PAGES = [
  [-1, 'Back', 'page before'],
  [1, 'More', 'next page'],
] as const;

/** The line below a list that goes to the page before and after, where there is one. */
export function Pager({ of, first, shown, total, hasMore, go }: PagerProps) {
  if (first === 0 && !hasMore) return null;
  const range = shown === 0 ? 'none' : `${count(first + 1)}–${count(first + shown)}`;
  return (
    <div class="pager line">
      <p class="hint" aria-live="polite">
        {range}
        {total !== undefined && ` of ${count(total)}`}
      </p>
      {PAGES.map(([step, label, which]) => {
        const disabled = step === -1 ? first === 0 : !hasMore;
        const props = { 'aria-label': `${of}: the ${which}`, disabled, onClick: () => go(step) };
        return (
          <button type="button" class="small" key={step} {...props}>
            {label}
          </button>
        );
      })}
    </div>
  );
}

/** A field that narrows a list down by name. */
export function Filter({ what, onInput }: { what: string; onInput: (wanted: string) => void }) {
  return (
    <input
      type="search"
      spellcheck={false}
      placeholder={`Find a ${what}`}
      aria-label={`Find a ${what}`}
      onInput={({ currentTarget }) => onInput(currentTarget.value.trim().toLowerCase())}
    />
  );
}

interface TableProps<T> {
  /** For those who do not see it. */
  readonly caption: string;
  /** What one of the things is called: `folder`. */
  readonly what: string;
  /** The first names the row, the others hold figures. */
  readonly columns: readonly string[];
  readonly rows: readonly T[];
  /**
   * What names the row, then its figures; one more is what stands below them, over the whole width.
   */
  readonly cells: (item: T) => readonly ComponentChildren[];
  readonly keyOf: (item: T) => string;
  /** Said in place of the table while there is nothing. */
  readonly empty: string;
  readonly pageSize?: number;
}

/**
 * A table of which one page is in the document, however many rows there are; with a field that
 * narrows it down by key as soon as there is more than a page. Roles are said, for a phone draws
 * the table as blocks, and a block has none by itself.
 */
export function Table<T>({
  caption,
  what,
  columns,
  rows,
  cells,
  keyOf,
  empty,
  pageSize = 20,
}: TableProps<T>) {
  const [wanted, setWanted] = useState('');
  const [page, setPage] = useState(0);
  const found =
    wanted === '' ? rows : rows.filter((row) => keyOf(row).toLowerCase().includes(wanted));
  const first = Math.max(0, Math.min(page, Math.ceil(found.length / pageSize) - 1)) * pageSize;
  const shown = found.slice(first, first + pageSize);
  return (
    <>
      {rows.length > pageSize && (
        <div class="filters wrapped">
          <Filter what={what} onInput={setWanted} />
        </div>
      )}
      {shown.length === 0 ? (
        <p class="empty">
          <Prose
            text={
              rows.length === 0 ? empty : `None of the ${count(rows.length)} ${what}s is called so.`
            }
          />
        </p>
      ) : (
        <div class="scroll">
          {/* biome-ignore-start lint/a11y/noRedundantRoles: a block has no role by itself */}
          <table role="table">
            <caption class="unseen">{caption}</caption>
            <thead role="rowgroup">
              <tr role="row">
                {columns.map((title, i) => (
                  <th key={title} scope="col" role="columnheader" class={i > 0 ? 'number' : ''}>
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody role="rowgroup">
              {shown.map((row) => {
                const [head, ...figures] = cells(row);
                const below = figures[columns.length - 1];
                return (
                  <Fragment key={keyOf(row)}>
                    <tr role="row">
                      <th scope="row" role="rowheader">
                        {head}
                      </th>
                      {columns.slice(1).map((title, i) => (
                        <td key={title} role="cell" class="number" data-label={title}>
                          {figures[i]}
                        </td>
                      ))}
                    </tr>
                    {below && (
                      <tr role="row" class="below">
                        <td role="cell" colspan={columns.length}>
                          {below}
                        </td>
                      </tr>
                    )}
                  </Fragment>
                );
              })}
            </tbody>
          </table>
          {/* biome-ignore-end lint/a11y/noRedundantRoles: above */}
        </div>
      )}
      <Pager
        of={`${what}s`}
        first={first}
        shown={shown.length}
        total={found.length}
        hasMore={first + pageSize < found.length}
        go={(step) => setPage(first / pageSize + step)}
      />
    </>
  );
}
