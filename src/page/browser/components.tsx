import { type ComponentChildren, Fragment, type JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { numberText as count, readableUrl, visibleParts } from '../../lib/text.js';
import type { Entry } from '../../state/entry.js';
import type { Model } from './model.js';

// Components that several sections of the page use.

export interface Props {
  readonly model: Model;
}

/** The label of each status. Each status has an icon and a colour of the same name. */
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

/** Returns the link to the explanation of a path. */
export function whyHref(path: string): string {
  return `#why=${encodeURIComponent(path)}`;
}

/** Returns the link to the list of files with a status, in all folders or in one. */
export function filesHref(status: Entry['status'], folder = ''): string {
  return folder === ''
    ? `#files=${status}`
    : `#files=${status}&folder=${encodeURIComponent(folder)}`;
}

/** Statuses that share an icon with another one. */
const SHARED_ICONS: Readonly<Record<string, string>> = { removing: 'gone', removed: 'gone' };

/** An icon of the sprite in index.html. A word beside it has the same meaning. */
export function Icon({ of }: { readonly of: string }) {
  return (
    <svg class="icon" aria-hidden="true">
      <use href={`#i-${SHARED_ICONS[of] ?? of}`} />
    </svg>
  );
}

/** Explains colours: each word stands beside a dot of its colour. */
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

/** A name of a file or folder. Invisible characters are written as escapes and highlighted. */
export function Name({ of }: { readonly of: string }) {
  return (
    <>{visibleParts(of).map((part, i) => (i % 2 === 1 ? <b class="written">{part}</b> : part))}</>
  );
}

/** A text of the daemon. Names between backticks are shown as code. */
export function Prose({ text }: { readonly text: string }) {
  const parts = text.split(/`([^`]+)`/).map((part) => <Name of={part} />);
  return <>{parts.map((part, i) => (i % 2 === 1 ? <code>{part}</code> : part))}</>;
}

/** The heading of a section, with its actions. */
export function SectionHead({
  id,
  title,
  children,
}: JSX.IntrinsicElements['div'] & { title: string }) {
  return (
    <div class="head wrapped">
      <h2 id={`${id}-title`}>{title}</h2>
      {children}
    </div>
  );
}

/** A button that performs an action. It is disabled meanwhile, and a notice shows the result. */
export function ActionButton({
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

interface ConfirmedActionProps extends Props {
  /** Text of the button that opens the dialog. */
  readonly short: string;
  /** The same for screen readers, which do not show the row that the button is in. */
  readonly label: string;
  readonly title: string;
  readonly text: string;
  /** Text of the button that confirms. */
  readonly yes: string;
  /** @returns the text of the notice */
  readonly work: () => Promise<string>;
}

/** A button for an action that cannot be undone. A dialog asks for confirmation first. */
export function ConfirmedAction({
  model,
  short,
  label,
  title,
  text,
  yes,
  work,
}: ConfirmedActionProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const confirm = () => {
    dialog.current?.close();
    return work();
  };
  return (
    <>
      <button
        type="button"
        class="small"
        aria-label={label}
        onClick={() => dialog.current?.showModal()}
      >
        {short}…
      </button>
      <dialog ref={dialog} aria-label={title}>
        <h2>{title}</h2>
        <p>
          <Prose text={text} />
        </p>
        <div class="row">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <ActionButton model={model} work={confirm} class="primary">
            {yes}
          </ActionButton>
        </div>
      </dialog>
    </>
  );
}

/** A list of named values. Undefined and empty values are omitted, and URLs become links. */
export function Facts({ of }: { readonly of: Readonly<Record<string, ComponentChildren>> }) {
  const given = Object.entries(of).filter(([, value]) => value !== undefined && value !== '');
  return (
    <dl class="facts">
      {given.map(([name, value]) => (
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
  /** Name of the listed things, in the plural: `folders`. */
  readonly of: string;
  readonly first: number;
  readonly shown: number;
  /** Undefined if it is unknown. */
  readonly total: number | undefined;
  readonly hasMore: boolean;
  readonly go: (step: -1 | 1) => void;
}

const PAGES = [
  [-1, 'Back', 'previous page'],
  [1, 'More', 'next page'],
] as const;

/** The line below a list, with buttons for the previous and the next page. Empty for one page. */
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

/** A field that filters a list by name. */
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
  /** Caption for screen readers. */
  readonly caption: string;
  /** Name of a listed thing, in the singular: `folder`. */
  readonly what: string;
  /** Titles of the columns. The first column names the row, the others contain figures. */
  readonly columns: readonly string[];
  readonly rows: readonly T[];
  /**
   * Returns the name of the row, then its figures. One more cell is shown below them, over the
   * whole width.
   */
  readonly cells: (item: T) => readonly ComponentChildren[];
  readonly keyOf: (item: T) => string;
  /** Text that replaces an empty table. */
  readonly empty: string;
  readonly pageSize?: number;
}

/**
 * A table with pages. Only the rows of the current page are in the document. A field filters the
 * rows by key if there is more than one page.
 *
 * Roles are explicit, because the style sheet draws the table as blocks on a phone, and blocks have
 * no roles.
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
              rows.length === 0
                ? empty
                : `None of the ${count(rows.length)} ${what}s has that name.`
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
