import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { pdf } from '../content/documents.js';
import { until } from '../support/wait.js';
import { Container, PACKAGE } from './container.js';
import { rootDirectory, whyNoSystemd } from './root-directory.js';

const CONFIG = '/etc/peersync/config.json';
const UNIT = 'peersync.service';
const LONG_MS = 120_000;
/** Finds the installed files below /etc apart from the configuration. */
const FIND_INSTALLED = 'find /etc -name "*peersync*" -not -path "/etc/peersync*"';
const reason = whyNoSystemd();

if (reason !== undefined) console.warn(`No real systemd is booted: ${reason}.`);

vi.setConfig({ testTimeout: 240_000 });

const folderOf = (name: string, path: string) => {
  return { name, path, collection: name, url: `http://h.example/${name}/`, settle: '150ms' };
};
// Systemd has a meaning of its own for much of this.
const [odd, slash, notes] = ['/home/my "docs" %n $HOME ü', '/srv/a\\b', '/home/ada/notes'] as const;
const config = {
  peer: { url: 'embedded', embedded: { dir: '/var/lib/peersync/peer', port: 0 } },
  folders: [folderOf('odd', odd), folderOf('slash', slash), folderOf('notes', notes)],
  state: { dir: '/var/lib/peersync/state' },
  log: { level: 'debug' },
  documents: { commands: { '.backwards': ['tac', '{file}'] } },
};
const SCANNED = 'The quick brown fox jumps over the lazy dog';

let container: Container;
const show = (property: string) => container.show(UNIT, property);
const hears = (words: RegExp, limitMs?: number) => container.hears(UNIT, words, limitMs);
const signal = (name: string) => container.sh(`systemctl kill --kill-whom=main -s ${name} ${UNIT}`);
const configure = (more: object = {}, path = CONFIG) =>
  container.write(path, JSON.stringify({ ...config, ...more }));
const isActive = () =>
  until(async () => (await show('ActiveState')) === 'active', 'it is active', LONG_MS);

/**
 * Another drop-in of the service, which is then started anew; resolves when it is another run of it
 * that is asked.
 */
async function startWith(
  env: Readonly<Record<string, string>>,
  ...settings: readonly string[]
): Promise<void> {
  const hooks = `--import=file://${PACKAGE}/test/systemd/hooks.mjs`;
  const all = { DIST: `file://${PACKAGE}/dist`, NODE_OPTIONS: hooks, ...env };
  const environment = Object.entries(all).map(([name, value]) => `Environment=${name}=${value}`);
  const text = ['[Service]', ...environment, 'RestartSec=200ms', ...settings, ''].join('\n');
  await container.write('/run/systemd/system/peersync.service.d/90-test.conf', text);
  const before = await show('InvocationID');
  await container.sh('systemctl daemon-reload; systemctl restart --no-block peersync.service');
  await until(async () => (await show('InvocationID')) !== before, 'it is started anew', LONG_MS);
}

describe.skipIf(reason !== undefined)(
  `a service of systemd${reason ? ` (skipped: ${reason})` : ''}`,
  () => {
    beforeAll(async () => {
      container = await Container.boot(rootDirectory());
      await container.sh('mkdir -p "$@"; chmod 777 "$@"', odd, slash, notes);
      await container.write(`${slash}/s.txt`, 'hello from a place with a backslash');
      await configure();
    }, 600_000);
    afterAll(() => container?.stop(), 60_000);

    it('is shown by --dry-run, which changes nothing', async () => {
      const { code, stdout } = await container.peersync(
        'service',
        'install',
        '--dry-run',
        '-c',
        CONFIG,
      );
      expect(code).toBe(0);
      expect(stdout).toContain('would write /etc/systemd/system/peersync.service:\n');
      expect(stdout).toContain('would run systemctl restart peersync.service\nNothing was done.\n');
      const found = await container.sh(`${FIND_INSTALLED}; id peersync 2>&1 || true`);
      expect(found).toBe('id: ‘peersync’: no such user\n');
    });

    it('is installed and started by one command, which reports each step', async () => {
      const { code, stdout, stderr } = await container.peersync('service', 'install', '-c', CONFIG);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/^wrote \/etc\/systemd\/system\/peersync\.service$/m);
      expect(stdout).toMatch(/^made the directory \/var\/lib\/peersync\/state$/m);
      expect(stdout).toMatch(/^peersync\.service runs\.$/m);
      expect(stdout).toMatch(/journalctl -u peersync\.service -f/);
      expect(stdout).not.toMatch(/^!/m);
      expect(await show('ActiveState')).toBe('active');
      expect(await show('UnitFileState')).toBe('enabled');
      const status = await container.peersync('service', 'status', '--json');
      expect(JSON.parse(status.stdout)).toMatchObject({
        installed: true,
        enabled: true,
        active: 'active',
      });
      expect(status.code).toBe(0);
    });

    it('confirms files that are dropped, in folders with odd names and in homes', async () => {
      await container.write(`${odd}/a.txt`, 'hello from an odd place');
      await container.write(`${notes}/b.txt`, 'hello from a home');
      await hears(/^confirmed slash\/s\.txt/);
      await hears(/^confirmed odd\/a\.txt/);
      // A thread that reads files may step back behind the others, and ends half a minute later.
      const pid = await show('MainPID');
      expect(
        (await container.sh(`cat /proc/${pid}/task/*/stat | cut -d" " -f19`)).split('\n'),
      ).toContain('5');
      await hears(/^confirmed notes\/b\.txt/);
      const isKnown = async () =>
        /^3 documents confirmed, nothing waiting, last/.test(await show('StatusText'));
      await until(isKnown, 'systemd knows it');
    });

    it('reads scans and rare formats by programs, under all limits of the unit', async () => {
      await container.write('/srv/text.base64', Buffer.from(pdf(SCANNED)).toString('base64'));
      await container.sh(
        'base64 -d /srv/text.base64 > /srv/text.pdf; pdftoppm -png -gray -r 200 -singlefile /srv/text.pdf "$1/scan"',
        notes,
      );
      await container.write(`${notes}/a.backwards`, 'last\nmiddle\nfirst\n');
      await hears(/^confirmed notes\/scan\.png/, LONG_MS);
      await hears(/^confirmed notes\/a\.backwards/, LONG_MS);
      const why = async (file: string) => {
        const cli = ['runuser', '-u', 'peersync', '--', 'node', `${PACKAGE}/dist/cli.js`] as const;
        const { stderr, stdout } = await container.run(...cli, 'why', file, '-c', CONFIG, '--json');
        expect(stderr).toBe('');
        return JSON.parse(stdout);
      };
      expect((await why(`${notes}/scan.png`)).extracted).toMatchObject({ words: 9, ocrPages: 1 });
      const backwards = await why(`${notes}/a.backwards`);
      expect(backwards.extracted).toMatchObject({ reader: 'tac', words: 3 });
    });

    it('logs to the journal with priorities, as peersync', async () => {
      await container.sh('mkdir "$1"; chmod 000 "$1"', `${slash}/closed`);
      const warning = await hears(/The directory cannot be listed/);
      expect(warning).toMatchObject({ PRIORITY: '4', SYSLOG_IDENTIFIER: 'peersync' });
      await container.sh('rmdir "$1"', `${slash}/closed`);
      const confirmed = await hears(/^confirmed odd\/a\.txt/);
      expect(confirmed.PRIORITY).toBe('6');
      expect((await hears(/^pushed \d+ items/)).PRIORITY).toBe('7');
    });

    it('reports readiness only when it is ready', async () => {
      await startWith({ HOLD_START: '/run/start-now' });
      await hears(/^held back$/);
      const pid = await show('MainPID');
      for (let i = 0; i < 10; i += 1)
        expect((await container.run('systemctl', 'is-active', UNIT)).stdout).toBe('activating\n');
      expect(await show('StatusText')).toBe('starting: reading what is known');
      await container.sh('touch /run/start-now');
      await isActive();
      expect(await show('MainPID')).toBe(pid);
    });

    it('can write to its own directories, and nowhere else', async () => {
      const refused = [
        '/etc/peersync',
        '/usr',
        '/opt/peersync/dist',
        notes,
        '/srv/plain',
        '/sys/fs/cgroup',
      ];
      // Directories that the unit sees as empty are private: files in them are visible to no one
      // else.
      const hidden = ['/home/ada', '/home/eve', '/root', '/run/user', '/tmp', '/var/tmp'];
      const paths = ['/var/lib/peersync', ...refused, ...hidden].map(
        (directory) => `${directory}/probe-x`,
      );
      await container.sh(
        'mkdir -p /srv/plain /home/eve; chmod 777 /srv/plain /home/eve /home/ada /root',
      );
      const result = '/var/lib/peersync/state/probe.json';
      await startWith({ AT_SIGUSR2: 'probe', PROBE: paths.join(':'), PROBE_RESULT: result });
      await isActive();
      await signal('USR2');
      await until(
        async () => (await container.run('test', '-s', result)).code === 0,
        'the result is there',
      );
      const came = JSON.parse(await container.sh('cat "$1"', result));
      expect(came).toMatchObject({
        '/var/lib/peersync/probe-x': 'written',
        ...Object.fromEntries(refused.map((directory) => [`${directory}/probe-x`, 'EROFS'])),
      });
      expect(Object.keys(came)).toHaveLength(paths.length);
      expect(
        await container.sh('find / -xdev -name probe-x -not -path "*/systemd-private-*"'),
      ).toBe('/var/lib/peersync/probe-x\n');
    });

    it('applies a changed configuration without a restart, and reports its errors', async () => {
      await startWith({});
      await isActive();
      const pid = await show('MainPID');
      await container.write('/srv/more/m.txt', 'hello from a new folder');
      await configure({ folders: [...config.folders, folderOf('more', '/srv/more')] });
      await container.sh('systemctl reload peersync.service');
      await hears(/^confirmed more\/m\.txt/);
      await isActive();
      await container.write(CONFIG, '{ "peer": ');
      expect((await container.run('systemctl', 'reload', UNIT)).code).not.toBe(0);
      expect((await hears(/is not valid JSON/)).PRIORITY).toBe('3');
      await isActive();
      await configure();
      await signal('HUP');
      await hears(/^reloaded the configuration: .*more.*: removed/);
      await container.write(`${notes}/after.txt`, 'it works on as it did');
      await hears(/^confirmed notes\/after\.txt/);
      expect(await show('MainPID')).toBe(pid);
      expect(await show('NRestarts')).toBe('0');
    });

    it('is killed by the watchdog when a loop is stuck, and recovers by itself', async () => {
      await startWith({ AT_SIGUSR2: 'deaf' }, 'WatchdogSec=8s');
      await isActive();
      await hears(/^Started/);
      await signal('USR2');
      await container.write(`${notes}/stuck.txt`, 'who takes me along?');
      const stuck = await hears(/^stuck: items that are due are not pushed/, LONG_MS);
      expect(stuck.PRIORITY).toBe('3');
      await hears(/^peersync\.service: Watchdog timeout/, LONG_MS);
      await hears(/^confirmed notes\/stuck\.txt/, LONG_MS);
      expect(await show('ActiveState')).toBe('active');
      expect(await show('NRestarts')).toBe('1');
    });

    it('is killed by the watchdog when its event loop is blocked, and recovers by itself', async () => {
      await startWith({ AT_SIGUSR2: 'spin' }, 'WatchdogSec=8s');
      await isActive();
      const pid = await show('MainPID');
      await signal('USR2');
      await until(async () => (await show('NRestarts')) === '1', 'restarted', LONG_MS);
      await isActive();
      expect(await show('MainPID')).not.toBe(pid);
      await container.write(`${notes}/spun.txt`, 'after the spin');
      await hears(/^confirmed notes\/spun\.txt/, LONG_MS);
    });

    it('stops cleanly within 10 s', async () => {
      await container.sh('for i in $(seq 200); do echo "text $i" > "$1/many-$i.txt"; done', notes);
      await hears(/^confirmed notes\/many-/);
      const began = performance.now();
      await container.sh('systemctl stop peersync.service');
      expect(performance.now() - began).toBeLessThan(10_000);
      expect(await show('Result')).toBe('success');
      expect(await show('ActiveState')).toBe('inactive');
      await hears(/^stopped; everything known is on disk$/);
      expect((await container.peersync('service', 'status')).code).toBe(1);
    });

    it('is not restarted repeatedly with a wrong configuration, and logs the errors', async () => {
      await configure({ folders: [] });
      expect((await container.run('systemctl', 'start', UNIT)).code).not.toBe(0);
      expect(await show('ActiveState')).toBe('failed');
      expect(await show('NRestarts')).toBe('0');
      expect((await hears(/^peersync: .*has an error/)).PRIORITY).toBe('3');
      const refused = await container.peersync('service', 'install', '-c', CONFIG);
      expect(refused.code).toBe(2);
      await configure();
    });

    it('is uninstalled completely, except for its state', async () => {
      const { code, stdout } = await container.peersync('service', 'uninstall');
      expect(code).toBe(0);
      expect(stdout).toContain('removed /etc/systemd/system/peersync.service\n');
      expect(stdout).toContain('The configuration, what peersync remembers, and its user stay.\n');
      expect(await container.sh(FIND_INSTALLED)).toBe('');
      await container.sh(
        'test -s /var/lib/peersync/state/journal-1 -o -n "$(ls /var/lib/peersync/state)"',
      );
      const again = await container.peersync('service', 'uninstall');
      expect(again.code).toBe(1);
      expect(again.stderr).toContain('was not installed by');
    });

    it('runs as a user service without root', async () => {
      await container.sh(
        'useradd -m bob; loginctl enable-linger bob; install -d -o bob /home/bob/notes',
      );
      const peer = { url: 'embedded', embedded: { dir: './ps/peer', port: 0 } };
      const folders = [folderOf('notes', './notes')];
      await configure({ peer, folders, state: { dir: './ps/state' } }, '/home/bob/config.json');
      await container.write('/home/bob/notes/n.txt', 'hello from bob');
      const runtime = '/run/user/$(id -u bob)';
      const as = (line: string): Promise<string> =>
        container.sh(
          `runuser -u bob -- env HOME=/home/bob XDG_RUNTIME_DIR=${runtime} bash -ec '${line}'`,
        );
      const hasManager = `test -S ${runtime}/systemd/private`;
      await until(
        async () => (await container.run('bash', '-c', hasManager)).code === 0,
        'bob has a manager',
      );
      const output = await as(`cd; node ${PACKAGE}/dist/cli.js service install --user`);
      expect(output).toContain('peersync.service runs.\n');
      expect(output).not.toContain('enable-linger');
      const journal = () => as('journalctl --user -u peersync -o cat');
      await until(
        async () => (await journal()).includes('confirmed notes/n.txt'),
        'it is confirmed',
      );
      const status = () => as('systemctl --user show -P StatusText peersync');
      await until(
        async () => /^\d documents? confirmed/.test(await status()),
        'systemd knows how it stands',
      );
      expect(await as(`node ${PACKAGE}/dist/cli.js service uninstall --user`)).toContain(
        'removed ',
      );
      expect(await as('find ~/.config -name "*peersync*"')).toBe('');
    });

    it('runs one instance per configuration, each with its credential', async () => {
      const run = `systemd-run --unit=a-peer -E PATH="$PATH" node ${PACKAGE}/dist/cli.js`;
      await container.sh(`${run} peer --data /var/tmp/a-peer --port 8399 --require-auth`);
      const password = '/var/tmp/a-peer/admin-password';
      await until(
        async () => (await container.run('test', '-s', password)).code === 0,
        'it has a password',
      );
      await container.sh('install -m 600 "$1" /etc/peersync/docs.peer-password', password);
      const auth = { username: 'admin', password: { credential: 'peer-password' } };
      const peer = { url: 'http://127.0.0.1:8399', auth };
      const folders = [folderOf('docs', '/srv/docs')];
      await configure(
        { peer, folders, state: { dir: '/var/lib/peersync/docs' } },
        '/etc/peersync/docs.json',
      );
      await container.write('/srv/docs/d.txt', 'with a credential');
      const words = ['service', 'install', '--name', 'docs', '-c', '/etc/peersync/docs.json'];
      const { code, stderr } = await container.peersync(...words);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      await container.hears('peersync@docs.service', /^confirmed docs\/d\.txt/);
      expect((await container.peersync('service', 'uninstall', '--name', 'docs')).code).toBe(0);
      expect(await container.sh(FIND_INSTALLED)).toBe('');
    });

    it('runs a worker that reads documents in a sandbox of its own, and keeps nothing', async () => {
      const pings = async () => (await container.run('redis-cli', 'ping')).stdout === 'PONG\n';
      await until(pings, 'Redis runs');
      const slowly = ['sh', '-c', 'sleep 0.5; tac "$1"', 'sh', '{file}'];
      await configure({
        folders: [folderOf('many', '/srv/many')],
        documents: { concurrency: 1, commands: { '.slow': slowly } },
        fleet: { redis: 'redis://127.0.0.1:6379' },
      });
      await container.sh(
        'mkdir -p /srv/many; for i in $(seq 40); do echo "$i" > "/srv/many/$i.slow"; done',
      );
      const install = async (...words: readonly string[]) => {
        const done = await container.peersync('service', 'install', ...words, '-c', CONFIG);
        expect({ code: done.code, stderr: done.stderr }).toEqual({ code: 0, stderr: '' });
        return done.stdout;
      };
      const worker = 'peersync-worker@config.service';
      expect(await install('--worker')).toContain(`${worker} runs.\n`);
      await container.hears(worker, /^takes jobs$/);
      await install();
      const cli = ['runuser', '-u', 'peersync', '--', 'node', `${PACKAGE}/dist/cli.js`] as const;
      await until(async () => {
        const { stdout } = await container.run(...cli, 'status', '--json', '-c', CONFIG);
        return (JSON.parse(stdout || '{}').fleet?.workers[0]?.done ?? 0) > 0;
      }, 'the worker reads documents');
      await container.sh(`systemctl stop ${worker}`);
      expect(await container.show(worker, 'Result')).toBe('success');
      expect(await container.sh('find /tmp /var/tmp -name "peersync-worker-*"')).toBe('');
      // The unit of the daemon stays, and what both need.
      const removed = await container.peersync('service', 'uninstall', '--worker');
      expect(removed.stdout).toContain(`removed /etc/systemd/system/peersync-worker@.service\n`);
      expect(removed.stdout).not.toContain('sysusers');
      expect(await show('ActiveState')).toBe('active');
      expect((await container.peersync('service', 'uninstall')).code).toBe(0);
      expect(await container.sh(FIND_INSTALLED)).toBe('');
    });
  },
);
