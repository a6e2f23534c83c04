import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * A link of one page to a file of the repository: both paths from its top; `anchor` is a heading of
 * the target.
 */
export interface Link {
  readonly page: string;
  readonly target: string;
  readonly anchor: string | undefined;
}

/** Matches code, in which there are no links. */
const CODE = /```[\s\S]*?```|`[^`\n]*`/g;

/** @param top the directory that pages are read from, by their paths below it */
export function linksOf(top: string): (page: string) => Link[] {
  return (page) =>
    [
      ...readFileSync(join(top, page), 'utf8')
        .replace(CODE, '')
        .matchAll(/\]\(([^)\s]+)\)/g),
    ]
      .map(([, link = '']) => link.split('#'))
      .filter(([path = '']) => !/^\w+:/.test(path))
      .map(([path = '', anchor]) => ({
        page,
        target: path ? join(dirname(page), path) : page,
        anchor,
      }));
}

/** The anchors of a page's headings, as GitHub makes them. */
export function anchorsOf(text: string): string[] {
  const headings = text.replace(/```[\s\S]*?```/g, '').matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, words = '']) =>
    words
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
