import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Claim, grantPaths, type TargetPath } from '../../src/mirror/target-path.js';

function claim(owner: string, path: string, more: Partial<Claim> = {}): Claim {
  return { owner, wanted: { path, notes: [] }, neighbours: false, ...more };
}

async function granted(...claims: Claim[]): Promise<TargetPath[]> {
  const all = await grantPaths(claims);
  return claims.map(({ owner, wanted }) => all.get(owner) ?? wanted);
}

async function paths(...claims: Claim[]): Promise<string[]> {
  return (await granted(...claims)).map(({ path }) => path);
}

const hashed = (path: string) => new RegExp(`^${path.replace(/(\.\w+)?$/, '~[\\da-f]{8}$1')}$`);

describe('two mirrors that would write', () => {
  it.each([
    ['the same file', 'a.csv', 'a.csv'],
    ['what some disks take for the same file', 'Prices.csv', 'prices.csv'],
    ['names that only differ in how they are composed', '\u00e9.csv', 'e\u0301.csv'],
    ['names that only differ in case beyond ASCII', 'STRASSE.csv', 'straße.csv'],
    ['in directories that some disks take for the same', 'A/x.csv', 'a/x.csv'],
  ])('%s get different ones: the first by name has it', async (_, one, other) => {
    const [first, second] = await paths(claim('a', one), claim('b', other));
    expect(first).toBe(one);
    expect(second).toMatch(hashed(other));
  });

  it('a file where the other has a directory get different ones', async () => {
    expect(await paths(claim('a', 'x'), claim('b', 'x/y'))).toEqual([
      'x',
      expect.stringMatching(/^x~\w{8}\/y~\w{8}$/),
    ]);
    expect(await paths(claim('a', 'X/y'), claim('b', 'x'))).toEqual([
      'X/y',
      expect.stringMatching(/^x~\w{8}$/),
    ]);
  });

  it.each(['.1', '.12', '.conflict-20261121T081500Z'])(
    'a file that is NAME%s of the other',
    async (suffix) => {
      const keeping = claim('a', 'x.csv', { neighbours: true });
      expect(await paths(keeping, claim('b', `X.csv${suffix}`))).toEqual([
        'x.csv',
        expect.stringContaining('~'),
      ]);
      expect(await paths(claim('a', `X.csv${suffix}`), { ...keeping, owner: 'b' })).toEqual([
        `X.csv${suffix}`,
        expect.stringMatching(/^x~\w{8}\.csv$/),
      ]);
      expect((await paths(keeping, claim('b', `x.csv${suffix}/y`)))[1]).toContain('~');
      // Where no versions are kept such a name is as good as any.
      expect(await paths(claim('a', 'x.csv'), claim('b', `x.csv${suffix}`))).toEqual([
        'x.csv',
        `x.csv${suffix}`,
      ]);
    },
  );
});

describe('target paths', () => {
  it('do not depend on the order of the claims', async () => {
    const claims = ['a.csv', 'A.csv', 'á.csv', 'a.csv/b', 'A.CSV', 'x'].map((path, i) =>
      claim(`m${i}`, path),
    );
    const expected = await paths(...claims);
    expect(new Set(expected).size).toBe(6);
    expect((await paths(...claims.toReversed())).toReversed()).toEqual(expected);
  });

  it('stay with who has them, also when somebody comes whose name is before, or who made it necessary goes', async () => {
    expect(await paths(claim('a', 'X.csv'), claim('b', 'x.csv', { held: 'x.csv' }))).toEqual([
      expect.stringMatching(/^X~\w{8}\.csv$/),
      'x.csv',
    ]);
    const [, held = ''] = await paths(claim('a', 'X.csv'), claim('b', 'x.csv'));
    expect(await paths(claim('b', 'x.csv', { held }))).toEqual([held]);
  });

  it('follow the configuration when it names another path, and no record that names any', async () => {
    expect(await paths(claim('a', 'new.csv', { held: 'old.csv' }))).toEqual(['new.csv']);
    expect(await paths(claim('a', 'x.csv', { held: '../../etc/passwd' }))).toEqual(['x.csv']);
  });

  it('that were granted before stay, whoever comes and wherever his file stands', async () => {
    const before = claim('b', 'x', { granted: 'x' });
    expect(await paths(claim('a', 'X', { held: 'X' }), before)).toEqual([
      expect.stringMatching(/^X~\w{8}$/),
      'x',
    ]);
    expect((await paths(claim('a', 'x/y.csv'), before))[0]).toMatch(/^x~\w{8}\/y~\w{8}\.csv$/);
  });

  it('say what was changed', async () => {
    const [, second] = await granted(claim('a', 'x'), claim('b', 'x'));
    expect(second?.notes).toEqual([`"x" cannot be a file name as it is; it is called ${second?.path}.`]);
  });

  it('never are in the way of each other', async () => {
    const part = fc.constantFrom(
      'a',
      'A',
      'á',
      'b',
      'a.1',
      'b.2',
      'a.conflict-x',
      'a.conflict-x.conflict-y',
      'a.1.2',
    );
    const path = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
    const wanted = fc.record({ path, neighbours: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(wanted, { maxLength: 12 }), async (all) => {
        const claims = all.map(({ path, neighbours }, i) => claim(`m${i}`, path, { neighbours }));
        const upper = (await paths(...claims)).map((path) => path.toUpperCase());
        for (const [i, one] of upper.entries()) {
          for (const [j, other] of upper.entries()) {
            if (i === j) continue;
            expect(one).not.toBe(other);
            expect(one.startsWith(`${other}/`)).toBe(false);
            if (all[j]?.neighbours)
              expect(one).not.toMatch(new RegExp(`^${literally(other)}\\.(\\d+|CONFLICT-[^/]*)(/|$)`));
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});

function literally(text: string): string {
  return text.replaceAll('.', '\\.');
}
