import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { approveDeletes } from '../../src/api/approve-deletes.js';
import { forget } from '../../src/api/forget.js';
import { items, list } from '../../src/api/list.js';
import { pause, resume } from '../../src/api/pause.js';
import { type AnyRequest, hasShape } from '../../src/api/request.js';
import { REQUESTS } from '../../src/api/requests.js';
import { retry } from '../../src/api/retry.js';
import { status } from '../../src/api/status.js';
import { why } from '../../src/api/why.js';
import { shapesOf } from '../../src/cli/output-schema.js';
import { allCommands } from '../../src/commands/commands.js';
import { ExtractCache } from '../../src/content/extracts.js';
import { silentLogger } from '../../src/lib/logger.js';
import { State } from '../../src/state/state.js';
import { quarantined } from '../../src/state/transitions.js';
import { report } from '../commands/report.js';
import { setUp, TROUBLE } from '../report/world.js';
import { lifeOf, pendingRecord } from '../state/records.js';

/** Files in every kind of status, and a way to ask about them where no daemon runs. */
async function world() {
  const set = await setUp();
  const { clock, config, state } = set;
  for (const entry of lifeOf(pendingRecord('confirmed.md'))) state.put(entry);
  const item = pendingRecord('bad.md');
  state.put(quarantined(item, item, item.version, TROUBLE, clock.now()));
  state.put(pendingRecord('left.md', 'former'));
  await state.commit();
  const deps = { clock, config, log: silentLogger, state, view: state };
  const ask = async <Input, Line>(request: AnyRequest<Input, Line>, question: Input) => {
    if (request.needs === 'daemon') throw new Error('it needs a daemon');
    const lines: Line[] = [];
    for await (const lot of request.run(deps, question)) lines.push(...lot);
    return lines;
  };
  return { ...set, ask };
}

describe('a request', () => {
  it('refuses a question of another shape, and does nothing', async () => {
    const { ask, state } = await world();
    const wrong = [
      [pause, { forMs: 'an hour' }],
      [retry, { paths: [] }],
      [retry, {}],
      [forget, { folder: 7 }],
      [forget, { folder: 'former', atMost: -1 }],
      [approveDeletes, { folder: 'inbox', files: 0 }],
      [why, {}],
      [list, { status: 'odd' }],
      [items, { limit: 0 }],
    ] as const satisfies readonly (readonly [unknown, unknown])[];
    for (const [request, question] of wrong)
      await expect(
        ask(request as AnyRequest<unknown, unknown>, question),
        `${request.name} ${JSON.stringify(question)}`,
      ).rejects.toMatchObject({ code: 'BAD_REQUEST', exitCode: 2 });
    expect(state.counts()).toMatchObject({ confirmed: 1, quarantined: 1, pending: 1 });
  });

  it('to retry has documents read again that could not be read', async () => {
    const { ask, clock, config } = await world();
    const extracts = new ExtractCache(join(config.state.dir, 'extracts'), clock, () => 1e9);
    await extracts.storeRefusal('key', { kind: 'wordless', reader: 'PDF' });
    await ask(retry, { paths: ['inbox/bad.md'] });
    expect(await extracts.find('key')).toBeUndefined();
  });

  it('answers in the shape that it declares', async () => {
    const { ask, inbox } = await world();
    const asked = [
      [status, {}],
      [list, {}],
      [items, { limit: 2 }],
      [why, { path: 'inbox/bad.md' }],
      [why, { path: `${inbox}/confirmed.md` }],
      [why, { path: '/etc/hosts' }],
      [pause, { forMs: 60_000 }],
      [status, {}],
      [resume, {}],
      [forget, { folder: 'former' }],
      [retry, { all: true }],
    ] as const;
    for (const [request, question] of asked) {
      const lines = await ask(request as AnyRequest<unknown, unknown>, question);
      expect(lines.length, request.name).toBeGreaterThan(0);
      for (const line of lines) {
        const sent: unknown = JSON.parse(JSON.stringify(line));
        const { error } = request.line.safeParse(sent);
        expect([request.name, error?.issues]).toEqual([request.name, undefined]);
        expect(hasShape<unknown>(request.line, sent)).toBe(true);
        expect(hasShape<unknown>(request.line, null)).toBe(false);
      }
    }
  });

  it('of the status keeps how far documents are read, and how fast', () => {
    const documents = {
      waiting: 7,
      reading: 2,
      longest: { file: 'inbox/a.pdf', since: 1, page: 37, pages: 500 },
      perMinute: { documents: 3, pages: 140 },
    };
    const told = report({ uplink: { inFlight: 0, confirming: 0, documents } });
    expect(status.line.parse(JSON.parse(JSON.stringify(told))).uplink).toMatchObject({ documents });
  });

  it('of the status of a daemon that does not run says that none does', async () => {
    const { ask } = await world();
    const [answer] = await ask(status, {});
    expect(answer).toMatchObject({ running: false, items: { confirmed: 1, quarantined: 1 } });
    for (const field of ['pid', 'startedAt', 'page', 'uplink', 'figures', 'configuration'])
      expect(answer).toHaveProperty(field, undefined);
  });

  it('to pause is on disk when it is answered', async () => {
    const { ask, config, state } = await world();
    await ask(pause, {});
    expect((await State.read(config.state.dir)).meta('paused')).toMatchObject({
      since: expect.any(Number),
    });
    await ask(resume, {});
    expect((await State.read(config.state.dir)).meta('paused')).toBeUndefined();
    expect(state.meta('paused')).toBeUndefined();
  });

  it('to forget does no more than a person was shown', async () => {
    const { ask, state } = await world();
    const left = () => state.counts('former').pending;
    expect(await ask(forget, { folder: 'former' })).toMatchObject([{ records: 1, isDone: false }]);
    await expect(ask(forget, { folder: 'former', atMost: 0 })).rejects.toMatchObject({
      code: 'DELETES_CHANGED',
    });
    expect(left()).toBe(1);
    expect(await ask(forget, { folder: 'former', atMost: 1 })).toMatchObject([{ isDone: true }]);
    expect(left()).toBe(0);
  });
});

it('no two requests have the same name or place', () => {
  for (const key of ['name', 'path'] as const)
    expect(new Set(REQUESTS.map((request) => request[key])).size).toBe(REQUESTS.length);
});

/** Those that answer nothing in JSON; of `service`, `share` and `table` those below them do. */
const SILENT = ['completion', 'peer', 'run', 'schema', 'service', 'share', 'table', 'worker'];

it('every command declares the shape of its answer', async () => {
  const commands = await allCommands();
  const declared = shapesOf(commands);
  const names = commands.map(({ usage }) => usage.replace(/ .*/, ''));
  expect(names.filter((name) => !declared.has(name)).sort()).toEqual(SILENT);
});
