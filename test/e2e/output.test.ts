import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Command } from '../../src/cli/command.js';
import { shapesOf } from '../../src/cli/output-schema.js';
import { allCommands } from '../../src/commands/commands.js';
import { atRemotePeer, fill } from './at-peer.js';

/** Those that answer nothing in JSON. */
const SILENT = ['run', 'worker', 'peer', 'completion', 'schema'];

const shapes = async () => shapesOf(await allCommands());

function names({ usage, commands = [], run }: Command, above = ''): string[] {
  const name = `${above}${usage.split(' ')[0]}`;
  return [
    ...(run === undefined ? [] : [name]),
    ...commands.flatMap((each) => names(each, `${name} `)),
  ];
}

it('the shape of the answer of every command is documented', async () => {
  const all = (await allCommands()).flatMap((command) => names(command));
  const documented = [...(await shapes()).keys()].filter((name) => !name.includes(' --'));
  expect(documented.sort()).toEqual(all.filter((name) => !SILENT.includes(name)).sort());
});

it('`table list` reports that there are no tables', async () => {
  const { run } = await atRemotePeer();
  expect((await run('table', 'list')).stdout).toBe('The peer has no tables.\n');
});

it('answers with --json match `schema --output`', async () => {
  const { cwd, run } = await atRemotePeer();
  writeFileSync(join(cwd, 'inbox', 'a.md'), 'Some words of a file that is pushed.');
  writeFileSync(join(cwd, 'inbox', 'b.bin'), Buffer.alloc(0));
  writeFileSync(join(cwd, 'c.md'), 'Another file.');
  await fill('woods', { oak: { price: '1' } });
  const url = 'https://files.example.org/inbox/a.md';
  const lines: Readonly<Record<string, readonly string[]>> = {
    once: [],
    status: [],
    list: [],
    why: ['a.md'],
    verify: [],
    pause: [],
    resume: [],
    retry: ['--all'],
    check: [],
    'check --canary': ['--yes', '--url', 'https://canary.example.org/'],
    init: [join(cwd, 'inbox'), '-c', join(cwd, 'other.json')],
    doc: [url],
    citation: [url],
    push: ['c.md', '--collection', 'c', '--url', 'https://pushed.example.org/c.md'],
    'table list': [],
    'table get': ['woods'],
    'table set': ['woods', '--pk', 'elm', 'price=2'],
    'table add': ['woods', 'price=3'],
    'table delete-rows': ['woods', 'elm', '--yes'],
    'table drop': ['woods', '--yes'],
  };
  const schema = JSON.parse((await run('schema', '--output')).stdout);
  expect(schema).toMatchObject({ version: 4, $defs: { status: { type: 'object' } } });
  const declared = await shapes();
  for (const [command, more] of Object.entries(lines)) {
    const { stdout, stderr } = await run(...command.split(' '), ...more, '--json');
    const answers = stdout.trim().split('\n');
    expect(`${command}: ${stderr}`).toBe(`${command}: `);
    for (const line of answers)
      expect({
        command,
        problem: declared.get(command)?.safeParse(JSON.parse(line)).error,
      }).toEqual({
        command,
      });
  }
}, 60_000);
