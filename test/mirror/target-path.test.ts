import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, posix, win32 } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fillTemplate, safeName } from '../../src/mirror/target-path.js';
import { temporaryDirectory } from '../support/temp.js';
import { anyName, wellFormed } from './tables.js';

const HASH = /~[\da-f]{8}(\.[A-Za-z][A-Za-z\d]{0,9})?$/;

describe('a name of the peer that is a file name already', () => {
  it.each([
    'prices',
    'Prices 2024',
    'a.b-c_d',
    'números',
    '価格',
    '👩‍👩‍👧',
    'a~b',
    'x'.repeat(200),
    "it's #1 (new)",
  ])('stays as it is: %j', (name) => {
    expect(safeName(name)).toBe(name);
  });
});

describe('a name of the peer that is none', () => {
  it.each([
    ['', /^_~/],
    ['.', /^_~/],
    ['..', /^_~/],
    ['../../etc/passwd', /^_.*_etc_passwd~[\da-f]{8}$/],
    ['/etc/cron.d/x', /^_etc_cron\.d_x~/],
    ['C:\\Windows', /^C__Windows~/],
    ['a\0b', /^a_b~/],
    ['a\nb\u007f\u0085', /^a_b__~/],
    ['a\u202egpj.exe', /^a_gpj~[\da-f]{8}\.exe$/],
    ['report?.pdf', /^report_~[\da-f]{8}\.pdf$/],
    ['CON', /^_CON~/],
    ['nul.txt', /^_nul~[\da-f]{8}\.txt$/],
    ['com7', /^_com7~/],
    ['lpt¹.x', /^_lpt¹~/],
    ['name.', /^name_~/],
    ['name ', /^name_~/],
    [' name', /^_name~/],
    ['.bashrc', /^_bashrc~/],
    ['.peersync-0123456789abcdef.tmp', /^_peersync-0123456789abcdef~[\da-f]{8}\.tmp$/],
    ['~root', /^_root~/],
    ['draft~', /^draft_~/],
    ['a:b*c"d<e>f|g', /^a_b_c_d_e_f_g~/],
    ['e\u0301', /^\u00e9~/],
    ['\ufeffa', /^_a~/],
    ['\ud800', /^_~/],
    ['a_b~0123abcd', /^a_b~0123abcd~[\da-f]{8}$/],
  ])('is made one: %j', (name, expected) => {
    const safe = safeName(name);
    expect(safe).toMatch(expected);
    expect(safe).toMatch(HASH);
  });

  it('because it is too long is cut at a character', () => {
    const safe = safeName(`${'🎉'.repeat(60)}.csv`);
    expect(safe).toMatch(/^(🎉)+~[\da-f]{8}\.csv$/u);
    expect(Buffer.byteLength(safe)).toBeGreaterThan(195);
    expect(Buffer.byteLength(safe)).toBeLessThanOrEqual(200);
  });

  it('becomes one that no system takes for anything but a file in its directory, and a second time stays', () => {
    const root = temporaryDirectory();
    fc.assert(
      fc.property(anyName, (name) => {
        const safe = safeName(name);
        expect(posix.normalize(`/r/${safe}`)).toBe(`/r/${safe}`);
        expect(posix.dirname(posix.resolve('/r', safe))).toBe('/r');
        expect(win32.basename(win32.resolve('C:\\r', safe))).toBe(safe);
        expect(safe).toBe(safe.normalize('NFC'));
        expect(safe).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]|^[.~\s]|[.\s]$/u);
        expect(Buffer.byteLength(safe)).toBeLessThanOrEqual(200);
        mkdirSync(join(root, safe), { recursive: true });
        expect(readdirSync(root)).toContain(safe);
      }),
      { numRuns: 500 },
    );
  });

  it('never becomes what another name is or becomes', () => {
    fc.assert(
      fc.property(anyName.map(wellFormed), anyName.map(wellFormed), (a, b) => {
        fc.pre(a !== b);
        expect(safeName(a)).not.toBe(safeName(b));
        expect(safeName(safeName(a))).not.toBe(a === safeName(a) ? '' : safeName(a));
      }),
      { numRuns: 1000 },
    );
  });
});

describe('a path template', () => {
  it('is filled with safe names, and what was changed is told', () => {
    expect(fillTemplate('tables/{table}.csv', { table: 'prices' })).toEqual({
      path: 'tables/prices.csv',
      notes: [],
    });
    const to = safeName('../x');
    expect(fillTemplate('tables/{table}.csv', { table: '../x' })).toEqual({
      path: `tables/${to}.csv`,
      notes: [`"../x" cannot be a file name as it is; it is called ${to}.`],
    });
  });

  it('takes a list for as many parts of the path, each made safe', () => {
    const { path } = fillTemplate('c/{folder}/{path}.json', { folder: 'inbox', path: ['a', '..', 'b.txt'] });
    expect(path).toBe(`c/inbox/a/${safeName('..')}/b.txt.json`);
  });

  it('is not filled a second time with what a name brings', () => {
    expect(fillTemplate('{a}/{b}', { a: '{b}', b: 'x' }).path).toBe('{b}/x');
    expect(fillTemplate('{constructor}', {}).path).toBe('{constructor}');
  });

  it('leaves room for versions and conflict files in a part that becomes long', () => {
    const { path, notes } = fillTemplate('{a}-{b}.csv', { a: 'ä'.repeat(90), b: 'b'.repeat(190) });
    expect(Buffer.byteLength(path)).toBeLessThanOrEqual(225);
    expect(path).toMatch(/~[\da-f]{8}\.csv$/);
    expect(notes).toHaveLength(1);
    writeFileSync(join(temporaryDirectory(), `${path}.conflict-20261121T081500Z`), '');
  });
});
