import { expect, it } from 'vitest';
import { until } from '../support/wait.js';
import { Engine, FakePeer } from './engine.js';

it('a mirror that runs and asks the peer for nothing is busy by itself; one that asks, waits for the disk of the state, or is done is not', async () => {
  const peer = new FakePeer();
  const engine = new Engine(peer);
  peer.objects.set('x.csv', { content: 'a,b\n' });
  const mirrors = await engine.open({ shares: [{ data: 'x.csv', every: '1h' }] });
  const check = mirrors.health.find(({ name }) => name === 'mirror runs');
  let answer: () => void = () => {};
  peer.onAsk = () =>
    new Promise<void>((resolve) => {
      answer = resolve;
    });
  const meanwhile: unknown[] = [];
  const setMeta = engine.state.setMeta.bind(engine.state);
  engine.state.setMeta = (...record) => {
    meanwhile.push(check?.busy);
    setMeta(...record);
  };
  const commit = engine.state.commit.bind(engine.state);
  let isKeeping = false;
  let keep: () => void = () => {};
  const kept = new Promise<void>((resolve) => {
    keep = resolve;
  });
  engine.state.commit = async () => {
    isKeeping = true;
    await kept;
    await commit();
  };
  expect(check?.busy).toBe(false);
  engine.start();
  await until(() => peer.asked.length === 1, 'the peer is asked');
  expect(check?.busy).toBe(false);
  answer();
  // A full disk keeps it waiting for as long as it is full.
  await until(() => isKeeping, 'the record is to be kept');
  expect(check?.busy).toBe(false);
  expect(meanwhile.at(-1)).toBe(true);
  keep();
  await until(() => check?.busy === false, 'done');
  await engine.stop();
});
