import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anchorsOf, linksOf } from './links.js';

const top = resolve(import.meta.dirname, '../..');
const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], {
  cwd: top,
  encoding: 'utf8',
});
const pages = listed.split('\n').filter((page) => page.endsWith('README.md'));

describe('the pages of the repository', () => {
  it('link to existing files and headings', () => {
    const links = pages.flatMap(linksOf(top));
    expect(links.length).toBeGreaterThan(20);
    for (const { page, target, anchor } of links) {
      expect(existsSync(join(top, target)), `${page}: ${target}`).toBe(true);
      if (anchor !== undefined)
        expect(anchorsOf(readFileSync(join(top, target), 'utf8')), `${page}: ${target}`).toContain(
          anchor,
        );
    }
  });

  it('can all be reached from the README', () => {
    const reached = new Set(['README.md']);
    for (const page of reached)
      for (const { target } of linksOf(top)(page)) if (target.endsWith('.md')) reached.add(target);
    expect(pages.filter((page) => !reached.has(page))).toEqual([]);
  });

  it('are named by messages in the form that works in an installation', () => {
    const sources = execFileSync(
      'git',
      ['ls-files', '-co', '--exclude-standard', 'src/*.ts', 'src/*.tsx'],
      {
        cwd: top,
        encoding: 'utf8',
      },
    );
    const naming = sources
      .split('\n')
      .filter((file) => file !== '' && file !== 'src/lib/documentation.ts')
      .filter((file) => {
        const lines = readFileSync(join(top, file), 'utf8').split('\n');
        const code = lines.filter((line) => !/^\s*(\/?\*|\/\/)/.test(line)).join('\n');
        return /README\.md/.test(code.replaceAll(/page(Path|InPackage|InShell)\('[^']*'\)/g, ''));
      });
    expect(naming).toEqual([]);
  });
});
