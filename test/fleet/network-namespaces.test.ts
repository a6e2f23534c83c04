import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { NetworkNamespaces } from '../support/network-namespaces.js';

const ip = (...args: readonly string[]) => spawnSync('ip', args, { encoding: 'utf8' });
/** Makes the link and the namespace of a test run. @returns whether it could */
function leave(pid: number): boolean {
  afterwards('test', () => {
    ip('link', 'del', `ps${pid}xab`);
    ip('netns', 'del', `ps${pid}xabn0`);
  });
  return (
    ip('link', 'add', `ps${pid}xab`, 'type', 'bridge').status === 0 &&
    ip('netns', 'add', `ps${pid}xabn0`).status === 0
  );
}
const deadPid = spawnSync('true').pid;
const mayTry = spawnSync('ip', ['link', 'add', `ps${deadPid}xcd`, 'type', 'bridge']).status === 0;
if (mayTry) ip('link', 'del', `ps${deadPid}xcd`);

it.skipIf(!mayTry)(
  'network namespaces of test runs that were killed are removed by the next',
  () => {
    expect([deadPid, process.ppid].map(leave)).toEqual([true, true]);
    NetworkNamespaces.create(0);
    const left = `${ip('netns', 'list').stdout} ${ip('-brief', 'link').stdout}`;
    expect(left.match(/ps\d+xab(n0)?/g)).toEqual([
      `ps${process.ppid}xabn0`,
      `ps${process.ppid}xab`,
    ]);
  },
);
