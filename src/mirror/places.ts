import { compareByCodePoint } from '../lib/text.js';
import { MirrorError } from './errors.js';
import { type Place, withHash } from './place.js';

/** Somebody who wants a file below the root. */
export interface Claim {
  /** Who: the name of the mirror. */
  readonly owner: string;
  readonly place: Place;
  /** Where its file stands already, from its record: that stays its place as long as it is one that it may have. */
  readonly held?: string | undefined;
  /** Whether files appear beside it: NAME.1 and so on, NAME.conflict-TIME. */
  readonly neighbours: boolean;
}

/**
 * All targets of one root: no two owners ever write the same file, also on a disk that takes upper and lower case or composed and
 * decomposed characters for the same, and no file of one stands where another has a directory, a version or a conflict file.
 *
 * A claim gets the place that it asks for unless that is in the way of one granted before; then its name gets "~" and 8 hex
 * digits of the sha256 of its owner's name. Claims made together are granted in an order that is not theirs: first those whose
 * file stands there already, then by the owner's name, by code point.
 */
export class Places {
  readonly #granted = new Map<string, Footprint>();
  /** Whether files appear beside it, by the file. */
  readonly #files = new Map<string, boolean>();
  readonly #directories = new Tally();
  /** Of files and directories that are called like a version or conflict file: of what. */
  readonly #stems = new Tally();

  /**
   * Grants a place to each; who had one gives it back first.
   *
   * @returns the places in the order of the claims
   * @throws MirrorError MIRROR_BLOCKED when there is none left for one, which takes names made for that
   */
  claimAll(claims: readonly Claim[]): readonly Place[] {
    for (const { owner } of claims) this.release(owner);
    const inTurn = [...claims].sort(
      (a, b) => Number(isHeld(b)) - Number(isHeld(a)) || compareByCodePoint(a.owner, b.owner),
    );
    const granted = new Map(inTurn.map((claim) => [claim, this.#grant(claim)]));
    return claims.map((claim) => granted.get(claim) ?? claim.place);
  }

  /** Gives a place back; it does not matter whether there was one. */
  release(owner: string): void {
    const footprint = this.#granted.get(owner);
    if (footprint === undefined) return;
    this.#granted.delete(owner);
    this.#files.delete(footprint.file);
    for (const directory of footprint.directories) this.#directories.remove(directory);
    for (const stem of footprint.stems) this.#stems.remove(stem);
  }

  #grant(claim: Claim): Place {
    const { owner, place, neighbours, held } = claim;
    const possible = candidates(place.path, owner);
    for (const path of held !== undefined && isHeld(claim) ? [held, ...possible] : possible) {
      const footprint = footprintOf(path);
      if (!this.#isFree(footprint, neighbours)) continue;
      this.#granted.set(owner, footprint);
      this.#files.set(footprint.file, neighbours);
      for (const directory of footprint.directories) this.#directories.add(directory);
      for (const stem of footprint.stems) this.#stems.add(stem);
      if (path === place.path) return place;
      return { path, changed: [...place.changed, { from: place.path, to: path }] };
    }
    throw new MirrorError('MIRROR_BLOCKED', { what: place.path, detail: 'the file of another mirror' });
  }

  #isFree({ file, directories, stems }: Footprint, neighbours: boolean): boolean {
    if (this.#files.has(file) || this.#directories.has(file)) return false;
    if (directories.some((directory) => this.#files.has(directory))) return false;
    if (stems.some((stem) => this.#files.get(stem))) return false;
    return !(neighbours && this.#stems.has(file));
  }
}

/** What a file takes up, in the eyes of a disk that is not particular about names. */
interface Footprint {
  readonly file: string;
  readonly directories: readonly string[];
  /** What the file, or a directory of it, is a version or conflict file of, by its name. */
  readonly stems: readonly string[];
}

function footprintOf(path: string): Footprint {
  const file = folded(path);
  const parts = file.split('/');
  const directories = parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'));
  const stems = [...directories, file].flatMap(stemsOf);
  return { file, directories, stems };
}

/** Of which files this could be a version or a conflict file. */
function stemsOf(name: string): readonly string[] {
  const suffixes = name.matchAll(/\.(?:[1-9]\d{0,3}$|conflict-(?=[^/]*$))/g);
  return [...suffixes].map(({ index }) => name.slice(0, index));
}

function folded(path: string): string {
  return path.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC');
}

function isHeld({ held, place, owner }: Claim): boolean {
  return held !== undefined && candidates(place.path, owner).includes(held);
}

/** The path as it is, then with the owner's hash in the last part, then in all parts. */
function candidates(path: string, owner: string): readonly string[] {
  const parts = path.split('/');
  const hashed = parts.map((part) => withHash(part.replace(/\.(?=conflict-)/gi, '_'), owner));
  return [path, [...parts.slice(0, -1), ...hashed.slice(-1)].join('/'), hashed.join('/')];
}

/** How many there are of each. */
class Tally {
  readonly #counts = new Map<string, number>();

  has(name: string): boolean {
    return this.#counts.has(name);
  }

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  remove(name: string): void {
    const left = (this.#counts.get(name) ?? 0) - 1;
    if (left > 0) this.#counts.set(name, left);
    else this.#counts.delete(name);
  }
}
