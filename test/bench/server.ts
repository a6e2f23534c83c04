import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/**
 * A server that the bench needs, as its own process, so that its work is not counted as ours. It
 * prints its URL.
 */
export class Server<Counted = never> {
  private constructor(
    readonly url: string,
    readonly child: ChildProcess,
  ) {}

  /** @param program the name of its file here */
  static async start<Counted>(program: string, ...args: readonly (string | number)[]) {
    const file = join(import.meta.dirname, `${program}.js`);
    const stdio = ['ignore', 'pipe', 'inherit', 'ipc'] as const;
    const child = fork(file, args.map(String), { execArgv: [], stdio: [...stdio] });
    if (child.stdout === null) throw new Error(`${program} says nothing`);
    const [line] = await once(child.stdout, 'data');
    return new Server<Counted>(String(line).trim(), child);
  }

  /** Returns the counts. @param question `reset` sets them to zero afterwards */
  async counted(question: 'read' | 'reset' = 'read'): Promise<Counted> {
    const message = once(this.child, 'message');
    this.child.send(question);
    const [counted] = await message;
    return counted as Counted;
  }

  end(): void {
    this.child.kill();
  }
}
