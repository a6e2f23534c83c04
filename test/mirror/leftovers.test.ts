import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { passes, records } from '../../src/mirror/plan.js';
import { temporaryOf } from '../../src/mirror/whole-file.js';
import { Engine, FakePeer } from './engine.js';

const LIST = { shares: [{ data: 'list', path: 'shares/list.txt' }] };

it('what a killed process left unfinished goes with the next run, and nothing else', async () => {
  const peer = new FakePeer();
  peer.objects.set('list', { content: 'whole' });
  const engine = new Engine(peer);
  await engine.open(LIST);
  engine.write('shares/notes.tmp', 'mine');
  engine.write('shares/.peersync-0123456789abcdef.tmp', 'of another peersync');
  const left = temporaryOf(join(engine.root, 'shares/list.txt'));
  writeFileSync(left, 'half');
  await engine.run();
  expect(existsSync(left)).toBe(false);
  const theirs = ['shares/.peersync-0123456789abcdef.tmp', 'shares/notes.tmp'];
  expect(engine.files()).toEqual([...theirs, 'shares/list.txt'].sort());
});

it('mirrors that are not configured any more are forgotten with all that is kept of them, which is said; their files stay', async () => {
  const engine = new Engine(new FakePeer());
  await engine.open(LIST);
  const { state, said } = engine;
  engine.write('shares/old.txt', 'whole');
  for (const name of ['list', 'old']) {
    records.keep(state, name, { kind: 'share', path: `shares/${name}.txt` });
    passes.keep(state, name, { beganAt: 1, files: 1, changed: false });
  }
  for await (const _ of engine.mirrors.run([]));
  for (const kept of [records, passes]) expect(kept.names(state)).toEqual(['list']);
  expect(said).toContain('info: mirror old is not configured any more: it is forgotten, its file stays');
  expect(engine.read('shares/old.txt')).toBe('whole');
});
