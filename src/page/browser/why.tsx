import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { escapeInvisible } from '../../lib/text.js';
import { formatBytes, wallClockText } from '../../lib/units.js';
import type { WhyReport } from '../../report/why.js';
import {
  Facts,
  Icon,
  isStatus,
  Name,
  type Props,
  Prose,
  STATUS_WORDS,
  whyHref,
} from './components.js';
import { get } from './model.js';
import { joinSentences, timeAgo, timeUntil } from './words.js';

/** The meaning of each status of a file, and of each kind of path that is not a file. */
const STATUS_TEXTS: Readonly<Record<WhyReport['status'] | NonNullable<WhyReport['kind']>, string>> =
  {
    pending: 'Pending: it will be pushed.',
    accepted: 'Accepted by the peer, which does not show it yet.',
    confirmed: 'Confirmed: the peer shows this version.',
    quarantined: 'In quarantine: it cannot succeed without a change.',
    gone: 'Gone: the file was removed.',
    removing: 'Removing: the file was removed, and its document is being removed.',
    removed: 'Removed: the file and its document were removed.',
    skipped: 'Skipped: a rule keeps it out.',
    ignored: 'Ignored by a rule.',
    unknown: 'Not known yet.',
    outside: 'Not watched.',
    directory: 'A directory: only the files in it are pushed.',
    link: 'A symbolic link: it is not followed.',
    other: 'Not a regular file: it is never taken.',
    absent: 'There is no such file, and peersync has no record of one.',
    mirrored: 'Below the mirror root: it comes from the peer.',
  };
/** Statuses that change soon. The explanation is loaded again with each status of the daemon. */
const FOLLOWED: ReadonlySet<string> = new Set(['pending', 'accepted', 'removing', 'unknown']);

/**
 * The form that asks for a path, and the explanation of the path. The address of the page contains
 * the path, so that a link leads to the explanation.
 */
export function Why({ model }: Props) {
  const { explained: path, status } = model;
  const [typed, setTyped] = useState('');
  const [times, setTimes] = useState(0);
  /** The answer, or the message of the failure. */
  const [answer, setAnswer] = useState<{
    readonly path: string;
    readonly report: WhyReport | string;
  }>();
  const report = answer?.path === path ? answer.report : undefined;
  const isFollowed = typeof report === 'object' && FOLLOWED.has(report.status);
  // Runs before the draw, so that it does not overwrite letters that are typed afterwards. A path
  // with invisible characters appears only in the answer, where they are written as escapes.
  useLayoutEffect(() => setTyped(escapeInvisible(path) === path ? path : ''), [path]);
  useEffect(() => {
    if (path === '') return;
    const take = (found: WhyReport | string) =>
      model.explained === path && setAnswer({ path, report: found });
    get<WhyReport>('/api/why', String(new URLSearchParams({ path }))).then(take, ({ message }) =>
      take(message),
    );
  }, [path, times, isFollowed && status]);
  const close = () => {
    location.hash = '';
  };
  return (
    <>
      <form
        class="ask"
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          setTimes(times + 1);
          location.hash = typed.trim() === '' ? '' : whyHref(typed.trim());
        }}
      >
        <h2 id="why-title">
          <label for="why-path">Why?</label>
        </h2>
        <div class="field line">
          <Icon of="search" />
          <input
            id="why-path"
            type="text"
            spellcheck={false}
            autocapitalize="off"
            placeholder="/path/to/a/file, or folder/file"
            aria-keyshortcuts="/"
            aria-describedby="why-help"
            value={typed}
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
          <kbd class="wide-only">/</kbd>
        </div>
        <button type="submit" class="primary">
          Explain
        </button>
        <p id="why-help" class="hint">
          Explains any path: its status, the rule that decides it, and what happens next.
        </p>
      </form>
      <div
        id="why-answer"
        class="answered"
        aria-live="polite"
        hidden={path === '' || report === undefined}
      >
        {typeof report === 'string' && (
          <p class="voice">
            <Prose text={report} />
          </p>
        )}
        {typeof report === 'object' && <Answer report={report} now={model.now()} />}
        <button type="button" class="small close" onClick={close}>
          Close
        </button>
      </div>
    </>
  );
}

function Answer({ report, now }: { readonly report: WhyReport; readonly now: number }) {
  const { conversion, evidence, history, kind, next, nextAt, status, failure, url, version } =
    report;
  const when = (at: number) => `${wallClockText(at)}, ${timeAgo(at, now)}`;
  const mono = (text: string | undefined) =>
    text && (
      <code>
        <Name of={text} />
      </code>
    );
  const due =
    nextAt !== undefined && (nextAt <= now ? 'It is due now' : `Next: ${timeUntil(nextAt, now)}`);
  return (
    <>
      <div>
        <h3 class={`status-line line s-${isStatus(status) ? status : 'gone'}`}>
          <Icon of={isStatus(status) ? status : 'unknown'} />
          <span>{STATUS_TEXTS[kind ?? status]}</span>
        </h3>
        {failure && (
          <p class="voice">
            <Prose text={joinSentences(failure.message, failure.hint)} />
          </p>
        )}
        <p class="voice">
          <Prose text={joinSentences(next, due)} />
        </p>
        <Facts
          of={{
            File: mono(report.file),
            Rule: report.rule,
            'Up to date': report.upToDateAt && when(report.upToDateAt),
            Document: url,
            Collection: report.collection,
            Version: version && `${formatBytes(version.size)}, modified ${when(version.mtimeMs)}`,
            sha256: mono(version?.sha256),
            Text: conversion,
            Attempts: report.attempts || undefined,
            Evidence: evidence && `${evidence.kind}, seen ${when(evidence.at)}`,
            Shown: mono(evidence?.shown),
            Error: mono(failure?.code),
          }}
        />
      </div>
      {history.length > 0 && (
        <div>
          <h3>History</h3>
          <ol class="history">
            {history.toReversed().map(({ status, at, note }) => (
              <li key={`${status} ${at}`} class={`line s-${status}`}>
                <Icon of={status} />
                <p class="hint">
                  <strong>{STATUS_WORDS[status]}</strong> {when(at)}
                  {note !== undefined && (
                    <span class="note">
                      <Name of={note} />
                    </span>
                  )}
                </p>
              </li>
            ))}
          </ol>
        </div>
      )}
    </>
  );
}
