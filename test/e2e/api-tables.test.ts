import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { peersyncInPath, quoted } from '../support/system-tool.js';
import { peersync } from '../support/warm-cli.js';
import { atRemotePeer, atServer, fill, valuesOf } from './at-peer.js';

// Many processes, one after the other: on a busy machine each takes seconds.
vi.setConfig({ testTimeout: 240_000 });

describe('table', () => {
  it('sets, adds, shows and lists', async () => {
    const { run, cwd } = await atRemotePeer();
    writeFileSync(join(cwd, 'note.txt'), 'two\nlines');
    await fill('woods', { oak: { price: '1', note: 'old' } });
    const set = await run('table', 'set', 'woods', '--pk', 'oak', 'note=@note.txt', '--json');
    expect(valuesOf(set)).toEqual([{ table: 'woods', pk: 'oak', cells: { price: '1', note: 'two\nlines' } }]);
    const added = await run('table', 'add', 'woods', 'price=9', '--json');
    const [{ pk }] = valuesOf(added) as [{ pk: string }];
    expect(pk).toMatch(/^[0-9a-z]{12}$/);
    const rows = valuesOf(await run('table', 'get', 'woods', '--json')) as { pk: string }[];
    expect(rows.sort((a, b) => (a.pk === 'oak' ? -1 : b.pk === 'oak' ? 1 : 0))).toEqual([
      { pk: 'oak', price: '1', note: 'two\nlines' },
      { pk, price: '9', note: '' },
    ]);
    expect((await run('table', 'get', 'woods', '--search', 'lines', '--count', '1')).stdout).toBe(
      'pk,price,note\noak,1,"two\nlines"\n',
    );
    expect((await run('table', 'get', 'woods', '--format', 'table')).stdout).toContain('two\\nlines');
    const [{ tables }] = valuesOf(await run('table', 'list', '--json')) as [{ tables: string[] }];
    expect(tables).toContain('woods');
  });

  it('keeps keys and names as they are: numbers, blanks, dashes and other scripts', async () => {
    const { run } = await atRemotePeer();
    await fill('0042', { '007': { a: '1' }, '1e3': { a: '1' }, ' blank ': { a: '1' }, 東京: { a: '1' } });
    expect((await run('table', 'set', '0042', '--pk=-x', 'a b==1', '--', '-c=2')).code).toBe(0);
    expect(valuesOf(await run('table', 'get', '0042', '--json', '--search', '=1'))).toEqual([
      { pk: '-x', a: '', 'a b': '=1', '-c': '2' },
    ]);
    const keys = ['007', ' blank ', '東京', '--', '-x'];
    const { stdout } = await run('table', 'delete-rows', '0042', '--yes', '--json', ...keys);
    expect(JSON.parse(stdout)).toEqual({ table: '0042', deleted: ['007', ' blank ', '東京', '-x'] });
    expect(valuesOf(await run('table', 'get', '0042', '--json'))).toMatchObject([{ pk: '1e3' }]);
  });

  it('deletes nothing without --yes where nobody can be asked, and shows what would go', async () => {
    const { run } = await atRemotePeer();
    await fill(
      'doomed',
      Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`k${i}`, { a: `value ${i}` }])),
    );
    const rows = await run('table', 'delete-rows', 'doomed', 'k1', 'k2');
    expect(rows).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
    expect(rows.stdout).toMatch(/k1 +value 1\nk2 +value 2\n/);
    const drop = await run('table', 'drop', 'doomed');
    expect(drop.code).toBe(2);
    expect(drop.stdout).toContain('value 0');
    expect(drop.stdout).toContain('… and 5 rows more');
    const asJson = await run('table', 'drop', 'doomed', '--json');
    expect(asJson.code).toBe(2);
    expect(valuesOf(asJson)).toMatchObject([{ table: 'doomed', wouldDelete: 25 }]);
    expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: 'NOT_CONFIRMED' } });
    expect(valuesOf(await run('table', 'get', 'doomed', '--json'))).toHaveLength(25);
  });

  it('deletes exactly what was named, and nothing when one of the keys is not there', async () => {
    const { run } = await atRemotePeer();
    await fill('named', { a: { x: '1' }, b: { x: '1' }, c: { x: '1' } });
    const missing = await run('table', 'delete-rows', 'named', 'a', 'd', '--yes');
    expect(missing).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has no row "d"; nothing was deleted'),
    });
    expect((await run('table', 'delete-rows', 'named', '--yes')).code).toBe(2);
    expect((await run('table', 'delete-rows', 'named', 'a', 'c', '--yes')).code).toBe(0);
    expect(valuesOf(await run('table', 'get', 'named', '--json'))).toEqual([{ pk: 'b', x: '1' }]);
    const dropped = await run('table', 'drop', 'named', '--yes', '--json');
    expect(dropped.code).toBe(0);
    const [{ tables }] = valuesOf(dropped) as [{ tables: string[] }];
    expect(tables).not.toContain('named');
    const again = await run('table', 'drop', 'named', '--yes');
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('has no table "named"') });
  });

  it('suggests the table that was meant, and the command', async () => {
    const { run } = await atRemotePeer();
    await fill('addresses', { a: { x: '1' } });
    expect((await run('table', 'get', 'adresses')).stderr).toContain('Did you mean "addresses"?');
    const misspelt = await run('table', 'lsit');
    expect(misspelt).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean list?') });
    expect((await peersync(['table', 'get', '--help'])).stdout).toMatch(/Examples:[\s\S]*--format csv/);
    const completion = await peersync(['--get-yargs-completions', 'peersync', 'table', '']);
    expect(completion.stdout.split('\n')).toEqual(
      expect.arrayContaining(['delete-rows', 'drop', 'get', 'set']),
    );
  });

  it('ends with an error, and not as if that were all, when an answer is cut short', async () => {
    const { run } = await atServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"table":"t","columns":["a"],"rows":[\n{"pk":"k","cells":{"a":"x"}},\n', () =>
        response.destroy(),
      );
    });
    const cut = await run('table', 'get', 't');
    expect(cut.code).not.toBe(0);
    expect(cut.stderr).toMatch(/^peersync: http/);
  });
});

describe('on a terminal', () => {
  const hasScript = spawnSync('script', ['--version']).status === 0;

  /** Runs a command as on a terminal of 60 columns where something is typed once it asks. */
  async function onTerminal(args: readonly string[], typed: string) {
    const line = ['peersync', ...args].map(quoted).join(' ');
    const child = spawn('script', ['-qec', `stty cols 60; ${line}`, '/dev/null'], {
      env: { ...process.env, ...peersyncInPath() },
    });
    afterwards('test', () => void child.kill('SIGKILL'));
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
      if (/Type [^\n]*: $/.test(shown)) child.stdin.write(typed);
    });
    const code = await new Promise<number | null>((done) => void child.on('close', done));
    return { code, shown: shown.replaceAll('\r\n', '\n') };
  }

  it.skipIf(!hasScript)(
    'a table is aligned, and nothing goes before its name was typed (needs script)',
    async () => {
      const { config } = await atRemotePeer();
      await fill('asked', { k: { long: 'x'.repeat(200), escape: '\x1b[31mred' } });
      const got = await onTerminal(['table', 'get', 'asked', '-c', config], '');
      expect(got.shown).toMatch(/^pk {2}long +escape\n──.*\nk {3}x+… {2}\\x1b\[31mred\n1 row\n$/);
      for (const line of got.shown.split('\n')) expect(line.length).toBeLessThanOrEqual(60);
      const csv = await onTerminal(['table', 'get', 'asked', '--format', 'csv', '-c', config], '');
      expect(csv.shown).toContain('\\x1b[31mred');

      const other = await onTerminal(['table', 'drop', 'asked', '-c', config], 'yes\n');
      expect(other).toMatchObject({ code: 1, shown: expect.stringContaining('Nothing was deleted') });
      const named = await onTerminal(['table', 'drop', 'asked', '-c', config], 'asked\n');
      expect(named).toMatchObject({ code: 0, shown: expect.stringContaining('Deleted the table asked') });
    },
  );

  it.skipIf(!hasScript)(
    'a shared object does not act there: control characters are shown as escapes (needs script)',
    async () => {
      const { cwd } = await atServer((request, response) => {
        request.resume();
        response.writeHead(200, { 'content-type': 'text/plain' }).end('\x1b]0;gotcha\x07');
      });
      const got = await onTerminal(['share', 'get', '--data', 'x', '-c', join(cwd, 'config.json')], '');
      expect(got).toMatchObject({ code: 0, shown: expect.stringContaining('\\x1b]0;gotcha\\x07') });
      expect(got.shown).not.toContain('\x1b]0;gotcha');
    },
  );
});
