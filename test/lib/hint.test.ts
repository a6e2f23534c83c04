import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { jsonWithConfig, withConfig, withFile } from '../../src/lib/hint.js';
import { temporaryDirectory } from '../support/temp.js';

describe('a command in a text', () => {
  it.each([
    ['`peersync retry --all` tries again.', '`peersync retry --all -c a.json` tries again.'],
    ['See `peersync search -- tea -milk`.', 'See `peersync search -c a.json -- tea -milk`.'],
    ['`peersync list | head`', '`peersync list -c a.json | head`'],
    ["`peersync retry 'in`box/it'\\''s.md'`.", "`peersync retry 'in`box/it'\\''s.md' -c a.json`."],
    ['`rm x`, then `peersync run`', '`rm x`, then `peersync run -c a.json`'],
    ['`sudo -u peersync peersync status`', '`sudo -u peersync peersync status -c a.json`'],
  ])('names the configuration: %s', (text, completed) => {
    expect(withConfig(text, 'a.json')).toBe(completed);
    expect(withConfig(text, undefined)).toBe(text);
  });

  it.each([
    'See `peersync why --help`.',
    '`peersync schema` explains it.',
    '`peersync run -c b.json`',
    '`peersync check --config=b.json`',
    '`sudo -u peersync peersync …`',
    'peersync is paused; `onDelete` says so.',
  ])('stays as it is where it needs no configuration, or has one: %s', (text) => {
    expect(withConfig(text, 'a.json')).toBe(text);
  });

  it('begins with npx where npm or npx started peersync, and no shell finds the command', () => {
    const bin = temporaryDirectory();
    writeFileSync(join(bin, 'peersync'), '');
    const checkout = join(temporaryDirectory(), 'node_modules', '.bin');
    mkdirSync(checkout, { recursive: true });
    writeFileSync(join(checkout, 'peersync'), '');
    const npm = { npm_execpath: '/usr/lib/npm-cli.js', PATH: `${checkout}:/nowhere` };
    const text = 'See `peersync why --help`, `peersync run` and `sudo -u peersync peersync …`.';
    const typed = 'See `npx peersync why --help`, `npx peersync run` and';
    expect(withConfig(text, undefined, npm)).toBe(`${typed} \`sudo -u peersync peersync …\`.`);
    const named = withConfig('`peersync run`', 'a.json', npm);
    expect(named).toBe('`npx peersync run -c a.json`');
    expect(withConfig(named, 'b.json', npm)).toBe(named);
    expect(withConfig(text, undefined, { ...npm, PATH: `${checkout}:${bin}` })).toBe(text);
    expect(withConfig(text, undefined, { ...npm, npm_execpath: '' })).toBe(text);
    expect(withConfig(text, undefined, { PATH: '/nowhere' })).toBe(text);
  });

  it('quotes the configuration for a shell', () => {
    expect(withConfig('`peersync run`', "/srv/it's mine.json")).toBe(
      "`peersync run -c '/srv/it'\\''s mine.json'`",
    );
  });

  it('gets the name of the file that a text is about, also in texts of earlier versions', () => {
    const file = 'inbox/a $& b.md';
    expect(withFile('`peersync retry PATH` pushes it.', file)).toBe(
      "`peersync retry 'inbox/a $& b.md'` pushes it.",
    );
    expect(withFile('Mend it, then `peersync retry` the file.', 'inbox/a.md')).toBe(
      'Mend it, then `peersync retry inbox/a.md` the file.',
    );
    expect(withFile('`peersync retry --all`', file)).toBe('`peersync retry --all`');
  });
});

it('in JSON sentences are completed, and names of files are not', () => {
  const value = { file: '/a/`peersync run`', failure: { hint: '`peersync run`' } };
  expect(JSON.parse(jsonWithConfig(value, 'a.json'))).toEqual({
    file: '/a/`peersync run`',
    failure: { hint: '`peersync run -c a.json`' },
  });
  expect(jsonWithConfig(value, undefined)).toBe(JSON.stringify(value));
});
