import { expect, it } from 'vitest';
import { PeerProcess } from '../support/peer-process.js';
import { temporaryDirectory } from '../support/temp.js';
import { expectShown, isConfirmed, Setting } from './setting.js';

const CRASHES = 3;

it(`a daemon that is killed together with its embedded peer, ${CRASHES} times, loses nothing, and the peer has all that is confirmed`, async () => {
  const dir = temporaryDirectory();
  const setting = new Setting({ url: 'embedded', embedded: { dir, port: 0 } });
  const { random, user } = setting;

  user.work();
  for (let crash = 1; crash <= CRASHES; crash += 1) {
    const event = crash % 2 === 0 ? 'confirmed' : 'pushing to';
    const ms = random.between(0, 600);
    setting.note(`${ms} ms after "${event}"`);
    const daemon = setting.start();
    await daemon.says(event);
    await new Promise((resolve) => setTimeout(resolve, ms));
    expect((await daemon.kill('SIGKILL')).signal).toBe('SIGKILL');

    const listed = (await setting.list()).filter(isConfirmed);
    const peer = await PeerProcess.start(dir);
    for (const { url = '', sha256 } of listed) {
      expect(await peer.peerdoc(url)).toMatchObject({ url, digest: sha256 });
    }
    await peer.running.kill('SIGKILL');
  }
  await setting.settle();
  const peer = await PeerProcess.start(dir);
  await expectShown(peer, user);
}, 400_000);
