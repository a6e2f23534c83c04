import { expect, it } from 'vitest';
import { until } from '../support/wait.js';
import { Engine, FakePeer } from './engine.js';

it('a mirror that runs and asks the peer for nothing is neglected; one that asks, waits for the disk of the state, or is done is not', async () => {
  const peer = new FakePeer();
  const engine = new Engine(peer);
  peer.objects.set('x.csv', { content: 'a,b\n' });
  const mirrors = await engine.open({ shares: [{ data: 'x.csv', every: '1h' }] });
  const duty = mirrors.duties.find(({ name }) => name === 'mirror runs');
  let answer: () => void = () => {};
  peer.onAsk = () =>
    new Promise<void>((resolve) => {
      answer = resolve;
    });
  const meanwhile: unknown[] = [];
  const setMeta = engine.state.setMeta.bind(engine.state);
  engine.state.setMeta = (...record) => {
    meanwhile.push(duty?.neglects());
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
  expect(duty?.neglects()).toBeUndefined();
  engine.start();
  await until(() => peer.asked.length === 1, 'the peer is asked');
  expect(duty?.neglects()).toBeUndefined();
  const moves = duty?.moves();
  answer();
  // A full disk keeps it waiting for as long as it is full.
  await until(() => isKeeping, 'the record is to be kept');
  expect(duty?.neglects()).toBeUndefined();
  expect(meanwhile.at(-1)).toBe('mirrors under way ask the peer for nothing');
  expect(duty?.moves()).not.toBe(moves);
  keep();
  await until(() => duty?.neglects() === undefined, 'done');
  await engine.stop();
});

it('a mirror that does not go on is seen beside others that do', async () => {
  const peer = new FakePeer();
  const engine = new Engine(peer);
  for (const name of ['hung.csv', 'well.csv']) peer.objects.set(name, { content: 'a,b\n' });
  let goOn: () => void = () => {};
  const hung = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  peer.onAsk = () => (peer.asked.length === 1 ? hung : Promise.resolve());
  const shares = ['hung.csv', 'well.csv'].map((data) => ({ data, every: '1h' }));
  const mirrors = await engine.open({ shares });
  const duty = mirrors.duties.find(({ name }) => name === 'mirror run');
  expect(duty?.neglects()).toBeUndefined();
  const running = mirrors.run(['hung.csv'])[Symbol.asyncIterator]().next();
  await until(() => peer.asked.length === 1, 'the peer is asked');
  const moves = duty?.moves();
  expect(duty?.neglects()).toBe('a mirror under way does not go on');
  for await (const report of mirrors.run(['well.csv'])) expect(report.changed).toBe(true);
  expect(duty?.moves()).toBe(moves);
  goOn();
  await running;
  await until(() => duty?.neglects() === undefined, 'done');
  expect(duty?.moves()).not.toBe(moves);
  await engine.stop();
});
