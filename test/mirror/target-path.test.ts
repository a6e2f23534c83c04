import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, posix, win32 } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Claim, fillTemplate, grantPaths, safeName } from '../../src/mirror/target-path.js';
import { temporaryDirectory } from '../support/temp.js';
import { anyName, wellFormed } from './any-table.js';

const FINE = "prices|Prices 2024|a.b-c_d|números|価格|👩‍👩‍👧|a~b|it's #1 (new)".split('|');

describe('a name of the peer', () => {
  it.each([...FINE, 'x'.repeat(200)])('stays as it is if it is a safe file name: %j', (name) => {
    expect(safeName(name)).toBe(name);
  });

  /** Each with "~" and eight digits before its extension. */
  it.each([
    ['', '_'],
    ['..', '_'],
    ['../../etc/passwd', '__.._etc_passwd'],
    ['a\0b', 'a_b'],
    ['a\u202egpj.exe', 'a_gpj~.exe'],
    ['CON', '_CON'],
    ['nul.txt', '_nul~.txt'],
    ['name.', 'name_'],
    ['.bashrc', '_bashrc'],
    ['.peersync-0123456789abcdef.tmp', '_peersync-0123456789abcdef~.tmp'],
    ['~root', '_root'],
    [' name', '_name'],
    ['draft~', 'draft_'],
    ['report?.pdf', 'report_~.pdf'],
    ['com7', '_com7'],
    ['lpt¹.x', '_lpt¹~.x'],
    ['a\ufeffb', 'a_b'],
    ['a:b*c"d<e>f|g', 'a_b_c_d_e_f_g'],
    ['e\u0301', '\u00e9'],
    ['a_b~0123abcd', 'a_b~0123abcd'],
  ])('is made a safe file name: %j', (name, expected) => {
    const safe = safeName(name);
    const withoutHash = safe.replace(/~[\da-f]{8}(?=(\.[A-Za-z][A-Za-z\d]{0,9})?$)/, '~');
    expect(withoutHash).toBe(/~\./.test(expected) ? expected : `${expected}~`);
  });

  it('is cut between two characters if it is too long', () => {
    const safe = safeName(`${'🎉'.repeat(60)}.csv`);
    expect(safe).toMatch(/^(🎉)+~[\da-f]{8}\.csv$/u);
    expect(Buffer.byteLength(safe)).toBeGreaterThan(195);
    expect(Buffer.byteLength(safe)).toBeLessThanOrEqual(200);
  });

  it('becomes a plain file name on every system, and does not change a second time', () => {
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

  it('never becomes the file name of another name', () => {
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
  it('is filled with safe names, a list as several parts, with a note for each change', () => {
    const fine = { path: 'tables/prices.csv', notes: [] };
    expect(fillTemplate('tables/{table}.csv', { table: 'prices' })).toEqual(fine);
    const up = safeName('..');
    expect(
      fillTemplate('c/{folder}/{path}.json', { folder: 'inbox', path: ['a', '..', 'b.txt'] }),
    ).toEqual({
      path: `c/inbox/a/${up}/b.txt.json`,
      notes: [`".." cannot be a file name as it is; it is called ${up}.`],
    });
    expect(fillTemplate('{a}/{b}', { a: '{b}', b: 'x' }).path).toBe('{b}/x');
    expect(fillTemplate('{constructor}', {}).path).toBe('{constructor}');
  });

  it('leaves room for versions and conflict files in a long part', () => {
    const { path, notes } = fillTemplate('{a}-{b}.csv', { a: 'ä'.repeat(90), b: 'b'.repeat(190) });
    expect(Buffer.byteLength(path)).toBeLessThanOrEqual(225);
    expect(path).toMatch(/~[\da-f]{8}\.csv$/);
    expect(notes).toHaveLength(1);
    writeFileSync(join(temporaryDirectory(), `${path}.conflict-20261121T081500Z`), '');
  });
});

describe('target paths', () => {
  /** The claim of the owner `a`, the next of `b` and so on. */
  type Wanted = string | ({ readonly path: string; readonly owner?: string } & Partial<Claim>);

  async function granted(...all: Wanted[]) {
    const claims = all.map((each, i): Claim => {
      const { path, ...more } = typeof each === 'string' ? { path: each } : each;
      const owner = String.fromCharCode(97 + i);
      return { owner, wanted: { path, notes: [] }, neighbours: false, ...more };
    });
    const paths = await grantPaths(claims);
    return claims.map(({ owner, wanted }) => paths.get(owner) ?? wanted);
  }
  /** Returns the granted paths without their hashes. */
  const paths = async (...all: Wanted[]) =>
    (await granted(...all)).map(({ path }) => path.replace(/~[\da-f]{8}/g, '~'));

  it.each([
    ['the same file', 'a.csv', 'a.csv', 'a~.csv'],
    ['what some disks take for the same file', 'Prices.csv', 'prices.csv', 'prices~.csv'],
    [
      'names that only differ in how they are composed',
      '\u00e9.csv',
      'e\u0301.csv',
      'e\u0301~.csv',
    ],
    ['names that only differ in case beyond ASCII', 'STRASSE.csv', 'straße.csv', 'straße~.csv'],
    ['in directories that some disks take for the same', 'A/x.csv', 'a/x.csv', 'a/x~.csv'],
    ['below the file of the other', 'x', 'x/y', 'x~/y~'],
    ['where the other has a directory', 'X/y', 'x', 'x~'],
  ])(
    'of two that would write %s differ: the first by name has it',
    async (_, one, other, instead) => {
      expect(await paths(one, other)).toEqual([one, instead]);
    },
  );

  it.each(['.1', '.12', '.conflict-20261121T081500Z'])(
    'are never NAME%s of a mirror that keeps such files',
    async (suffix) => {
      const keeping = { path: 'x.csv', neighbours: true };
      const [, beside] = await paths(keeping, `X.csv${suffix}`);
      expect(beside).toContain('~');
      expect(await paths(`X.csv${suffix}`, keeping)).toEqual([`X.csv${suffix}`, 'x~.csv']);
      expect((await paths(keeping, `x.csv${suffix}/y`))[1]).toContain('~');
      // Without versions such a name is like any other.
      expect(await paths('x.csv', `x.csv${suffix}`)).toEqual(['x.csv', `x.csv${suffix}`]);
    },
  );

  it('do not depend on the order of the claims', async () => {
    const all = ['a.csv', 'A.csv', 'á.csv', 'a.csv/b', 'A.CSV', 'x'].map((path, i) => ({
      path,
      owner: `m${i}`,
    }));
    const expected = await granted(...all);
    expect(new Set(expected.map(({ path }) => path)).size).toBe(6);
    expect((await granted(...all.toReversed())).toReversed()).toEqual(expected);
  });

  it('stay with their mirrors when others come or go, and a record cannot claim another path', async () => {
    expect(await paths('X.csv', { path: 'x.csv', current: 'x.csv' })).toEqual(['X~.csv', 'x.csv']);
    const [, second] = await granted('X.csv', 'x.csv');
    const held = second?.path ?? '';
    expect(await granted({ path: 'x.csv', owner: 'b', current: held })).toMatchObject([
      { path: held },
    ]);
    expect(await paths({ path: 'new.csv', current: 'old.csv' })).toEqual(['new.csv']);
    expect(await paths({ path: 'x.csv', current: '../../etc/passwd' })).toEqual(['x.csv']);
    const before = { path: 'x', granted: 'x' };
    expect(await paths({ path: 'X', current: 'X' }, before)).toEqual(['X~', 'x']);
    expect(await paths('x/y.csv', before)).toEqual(['x~/y~.csv', 'x']);
  });

  it('never conflict with each other', async () => {
    const PARTS = [
      'a',
      'A',
      'á',
      'b',
      'a.1',
      'b.2',
      'a.conflict-x',
      'a.conflict-x.conflict-y',
      'a.1.2',
    ];
    const path = fc
      .array(fc.constantFrom(...PARTS), { minLength: 1, maxLength: 3 })
      .map((all) => all.join('/'));
    const wanted = fc.record({ path, neighbours: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(wanted, { maxLength: 12 }), async (all) => {
        const upper = (await granted(...all)).map(({ path }) => path.toUpperCase());
        for (const [i, one] of upper.entries()) {
          for (const [j, other] of upper.entries()) {
            if (i === j) continue;
            expect(one).not.toBe(other);
            expect(one.startsWith(`${other}/`)).toBe(false);
            if (!all[j]?.neighbours || !one.startsWith(`${other}.`)) continue;
            expect(one.slice(other.length)).not.toMatch(/^\.(\d+|CONFLICT-[^/]*)(\/|$)/);
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});
