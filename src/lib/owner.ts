import { readFile, stat } from 'node:fs/promises';

/** A user of this machine, as files belong to. */
export interface Owner {
  readonly uid: number;
  /** What a person calls the user: the name, or `uid 1000` where there is none. */
  readonly name: string;
  /** What `sudo -u` and `chown` are given for the user. */
  readonly argument: { readonly sudo: string; readonly chown: string };
}

/** Whose the file or directory is, or what a link leads to; undefined where that cannot be found out. */
export async function ownerOf(path: string): Promise<Owner | undefined> {
  const uid = await stat(path).then(
    ({ uid }) => uid,
    () => undefined,
  );
  return uid === undefined ? undefined : await ownerNamed(uid);
}

async function ownerNamed(uid: number): Promise<Owner> {
  const users = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const row = users.split('\n').find((line) => line.split(':')[2] === String(uid));
  const name = row?.split(':')[0];
  return name === undefined || name === ''
    ? { uid, name: `uid ${uid}`, argument: { sudo: `'#${uid}'`, chown: String(uid) } }
    : { uid, name, argument: { sudo: name, chown: name } };
}
