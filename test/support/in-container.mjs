// Runs the command line in another UTS and PID namespace and under another host name; what kills this kills it.
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';

const cli = resolve(import.meta.dirname, '../../dist/cli.js');
const script = 'hostname in-a-container && exec "$0" "$@"';
const namespaces = ['--uts', '--pid', '--fork', '--kill-child', '--mount-proc'];
const args = [...namespaces, 'sh', '-c', script, process.execPath, cli, ...process.argv.slice(2)];
// Its own death signal is for `unshare`, whose child dies with it.
const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...args], { stdio: 'inherit' });
child.on('exit', (code) => process.exit(code ?? 1));
