// Runs the command line in UTS and PID namespaces of its own, as a container does.
// CONTAINER_HOSTNAME is its host name. The command ends when this process is killed.
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';

const cli = resolve(import.meta.dirname, '../../dist/cli.js');
const script = 'hostname "$CONTAINER_HOSTNAME" && exec "$0" "$@"';
const namespaces = ['--uts', '--pid', '--fork', '--kill-child', '--mount-proc'];
const args = [...namespaces, 'sh', '-c', script, process.execPath, cli, ...process.argv.slice(2)];
// The death signal is sent to `unshare`, whose child ends with it.
const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...args], { stdio: 'inherit' });
child.on('exit', (code) => process.exit(code ?? 1));
