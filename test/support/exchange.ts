import { execFileSync, spawn } from 'node:child_process';
import { afterwards } from './afterwards.js';

/** Numbers of the system call renameat2, by machine; the flag 2 exchanges two names. */
const EXCHANGE = `
  my %calls = (x86_64 => 316, aarch64 => 276);
  my $call = $calls{(split ' ', \`uname -m\`)[0]} or exit 3;
  my ($one, $other, $end, $pause) = (@ARGV[0, 1], time + $ARGV[2], $ARGV[3]);
  do {
    syscall($call, -100, $one, -100, $other, 2) == 0 or exit 4;
    select undef, undef, undef, rand $pause;
  } while (time < $end);
`;

export function canExchange(): boolean {
  try {
    const names = ['/no/such/name', '/no/such/name'];
    execFileSync('perl', ['-e', EXCHANGE, ...names, '0', '0'], { stdio: 'ignore' });
    return true;
  } catch (error) {
    // Exchanging names that do not exist fails with code 4: perl and the system call are there.
    return error instanceof Error && 'status' in error && error.status === 4;
  }
}

/**
 * Lets two names change places again and again.
 *
 * @param pause the longest between two exchanges, in seconds
 */
export function exchanging(one: string, other: string, seconds: number, pause: number) {
  const names = [one, other, String(seconds), String(pause)];
  const attack = spawn('perl', ['-e', EXCHANGE, ...names], { stdio: 'ignore' });
  afterwards('test', () => void attack.kill('SIGKILL'));
  /** Resolves to the code of the end: 0 where all exchanges went well. */
  const ended = new Promise<number | null>((resolve) => attack.once('exit', resolve));
  return { isOver: () => attack.exitCode !== null, ended };
}
