import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { SearchDocument } from './document.js';

/** Manual pages of packages that each Debian has. */
const PAGES = `
  addpart.8 adjtime_config.5 agetty.8 apt-cache.8 apt-cdrom.8 apt-config.8 apt-get.8 apt-key.8
  apt-mark.8 apt-secure.8 apt-transport-http.1 apt-transport-https.1 apt-transport-mirror.1 apt.8
  apt.conf.5 apt_auth.conf.5 apt_preferences.5 arch.1 b2sum.1 badblocks.8 base32.1 base64.1
  basename.1 basenc.1 bash.1 bashbug.1 blkdiscard.8 blkid.8 blkzone.8 blockdev.8 cat.1 chage.1
  chattr.1 chcon.1 chcpu.8 chfn.1 chgpasswd.8 chgrp.1 chmem.8 chmod.1 choom.1 chown.1 chpasswd.8
  chroot.8 chrt.1 chsh.1 cksum.1 clear_console.1 cmp.1 comm.1 cp.1 cppw.8 csplit.1 ctrlaltdel.8
  cut.1 date.1 dd.1 debugfs.8 delpart.8 df.1 diff.1 diff3.1 dir.1 dircolors.1 dirname.1 dmesg.1
  dpkg-deb.1 dpkg-divert.1 dpkg-fsys-usrunmess.8 dpkg-maintscript-helper.1 dpkg-query.1
  dpkg-realpath.1 dpkg-split.1 dpkg-statoverride.1 dpkg-trigger.1 dpkg.1 dpkg.cfg.5 du.1 dumpe2fs.8
  e2freefrag.8 e2fsck.8 e2fsck.conf.5 e2image.8 e2label.8 e2mmpstatus.8 e2scrub.8 e2scrub_all.8
  e2undo.8 e4crypt.8 e4defrag.8 echo.1 env.1 expand.1 expiry.1 expr.1 ext4.5 factor.1 fallocate.1
  false.1 filefrag.8 find.1 findfs.8 findmnt.8 flock.1 fmt.1 fold.1 free.1 fsck.8 fsck.cramfs.8
  fsck.minix.8 fsfreeze.8 fstab.5 fstrim.8 getopt.1 gpasswd.1 grep.1 groupadd.8 groupdel.8
  groupmems.8 groupmod.8 groups.1 grpck.8 gshadow.5 gzexe.1 gzip.1 hardlink.1 head.1 hostid.1
  hostname.1 id.1 install.1 ionice.1 ipcmk.1 ipcrm.1 ipcs.1 isosize.8 join.1 kill.1 last.1
  ldattach.8 link.1 ln.1 logger.1 logname.1 losetup.8 ls.1 lsattr.1 lsblk.8 lscpu.1 lsipc.1
  lslocks.8 lslogins.1 lsmem.1 lsns.8 mcookie.1 md5sum.1 mesg.1 mkdir.1 mke2fs.8 mke2fs.conf.5
  mkfifo.1 mkfs.8 mkfs.bfs.8 mkfs.cramfs.8 mkfs.minix.8 mklost+found.8 mknod.1 mkswap.8 mktemp.1
  more.1 mount.8 mountpoint.1 mv.1 namei.1 newusers.8 nice.1 nl.1 nohup.1 nproc.1 nsenter.1
  numfmt.1 od.1 partx.8 passwd.1 passwd.5 paste.1 pathchk.1 pgrep.1 pinky.1 pivot_root.8 pmap.1
  pr.1 printenv.1 printf.1 prlimit.1 ps.1 ptx.1 pwck.8 pwconv.8 pwd.1 pwdx.1 readlink.1
  readprofile.8 realpath.1 rename.ul.1 renice.1 resize2fs.8 resizepart.8 rev.1 rm.1 rmdir.1
  rmt-tar.8 rtcwake.8 runcon.1 runuser.1 script.1 scriptlive.1 scriptreplay.1 sdiff.1 sed.1 seq.1
  setarch.8 setpriv.1 setsid.1 setterm.1 sha1sum.1 sha224sum.1 sha256sum.1 sha384sum.1 sha512sum.1
  shadow.5 shred.1 shuf.1 skill.1 slabtop.1 sleep.1 sort.1 sources.list.5 split.1
  start-stop-daemon.8 stat.1 stdbuf.1 stty.1 su.1 subgid.5 subuid.5 sulogin.8 sum.1 swaplabel.8
  swapon.8 switch_root.8 sync.1 sysctl.8 sysctl.conf.5 tac.1 tail.1 tar.1 tarcat.1 taskset.1 tee.1
  terminal-colors.d.5 test.1 timeout.1 tload.1 top.1 touch.1 tr.1 true.1 truncate.1 tsort.1 tty.1
  tune2fs.8 uclampset.1 umount.8 uname.1 unexpand.1 uniq.1 unlink.1 unshare.1 update-alternatives.1
  uptime.1 useradd.8 userdel.8 usermod.8 users.1 utmpdump.1 vdir.1 vipw.8 vmstat.8 w.1 wall.1
  watch.1 wc.1 wdctl.8 whereis.1 who.1 whoami.1 wipefs.8 xargs.1 yes.1 zdiff.1 zforce.1 zgrep.1
  zless.1 zmore.1 znew.1 zramctl.8`;

const DIRECTORY = '/usr/share/man';
const WIDTH = '80';

/**
 * Renders the manual pages as text with `man`. Without `man`, or where the pages are left out of
 * the installation, there are none.
 *
 * @param kept a directory in which rendered pages are kept, since rendering takes a minute
 */
export function manualPages(kept: string): SearchDocument[] {
  if (!canRender()) return [];
  mkdirSync(kept, { recursive: true });
  return PAGES.trim()
    .split(/\s+/)
    .flatMap((page) => {
      const section = page.slice(page.lastIndexOf('.') + 1);
      const path = join(DIRECTORY, `man${section}`, `${page}.gz`);
      if (!existsSync(path)) return [];
      const text = rendered(path, join(kept, `${page}.txt`));
      return [{ file: `manual/${page}.txt`, text, facts: { kind: 'manual', page } }];
    });
}

function rendered(path: string, keptPath: string): string {
  if (existsSync(keptPath) && statSync(keptPath).mtimeMs > statSync(path).mtimeMs)
    return readFileSync(keptPath, 'utf8');
  const text = textOf(gunzipSync(readFileSync(path)));
  writeFileSync(keptPath, text);
  return text;
}

function textOf(source: Uint8Array): string {
  return execFileSync('man', ['-l', '-'], {
    input: source,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { PATH: process.env.PATH, MANWIDTH: WIDTH, LC_ALL: 'C.UTF-8' },
  });
}

function canRender(): boolean {
  try {
    return textOf(Buffer.from('.TH T 1\n.SH NAME\nt\n')).includes('NAME');
  } catch {
    return false;
  }
}
