import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ProgramFinder } from '../../src/content/helpers/finder.js';
import { NO_PROGRAMS, type OcrProgram, type Programs } from '../../src/content/helpers/programs.js';
import { Tools } from '../../src/content/helpers/tools.js';
import type { PageStore } from '../../src/content/page-store.js';
import { MarkedPrograms } from './marked-programs.js';
import { temporaryDirectory } from './temp.js';

const SETTINGS = { dpi: 300, maxPages: 1_000, pageTimeout: 120_000, commands: {} };

/** OCR as it is installed on this machine; undefined where tesseract or pdftoppm is missing. */
export const OCR = await installed();

if (OCR === undefined)
  console.log('no tesseract or no pdftoppm here: the tests of OCR with them are skipped');

async function installed(): Promise<OcrProgram | undefined> {
  const finder = new ProgramFinder(() => ({ ...SETTINGS, ocr: 'auto', languages: ['eng'] }));
  await finder.refresh();
  const { ocr } = finder.current;
  return ocr?.pdftoppm === undefined ? undefined : ocr;
}

/** Returns the programs for one document. */
export function toolsWith(programs: Partial<Programs>, pages?: PageStore): Tools {
  const tools = new Tools({ ...NO_PROGRAMS, ...programs }, temporaryDirectory(), pages);
  onTestFinished(() => tools.close());
  return tools;
}

/** Programs in place of tesseract and pdftoppm, which need no time and log what they were asked. */
export class FakeOcr {
  readonly #programs: MarkedPrograms;
  readonly #log: string;
  readonly ocr: OcrProgram;

  /**
   * @param script lines of shell that run for each page, whose number is in `$page`; a picture has
   *   `picture` there, and a page of a TIFF its number, from 0
   * @param blank pages that are drawn blank
   */
  constructor(script = '', blank: readonly number[] = []) {
    const root = temporaryDirectory();
    this.#programs = new MarkedPrograms(root);
    this.#log = join(root, 'tesseract.calls');
    const pdftoppm = this.#programs.add(
      'pdftoppm',
      `while [ "$1" != -f ]; do shift; done
       case "$2" in ${[0, ...blank].join('|')}) pixels='\\377\\377';; *) pixels='\\000\\377';; esac
       printf 'P5\\n%s 1\\n255\\n' "$2"
       for pixel in $(seq "$2"); do printf "$pixels"; done`,
    );
    const tesseract = this.#programs.add(
      'tesseract',
      `printf '%s\\n' "$*" >> '${this.#log}'
       all="$*"
       case "$all" in
         *tessedit_page_number=*) page="\${all##*tessedit_page_number=}"; page="\${page%% *}";;
         *)
           [ "$1" = stdin ] || exec < "$1"
           read -r kind; [ "$kind" = P5 ] && read -r page height || page=picture; cat > /dev/null;;
       esac
       ${script}
       printf '5\\t1\\t1\\t1\\t1\\t1\\t0\\t0\\t9\\t9\\t90.5\\tWord%s\\n' "$page"`,
    );
    this.ocr = {
      tesseract,
      pdftoppm,
      languages: 'eng',
      findsRotation: false,
      dpi: 300,
      maxPages: 1_000,
      pageTimeoutMs: 60_000,
    };
  }

  /** Arguments of each call of tesseract. */
  get calls(): readonly string[] {
    return this.#programs.calls('tesseract');
  }

  /** Returns the programs for one document. */
  tools(changed: Partial<OcrProgram> = {}, pages?: PageStore): Tools {
    return toolsWith({ ocr: { ...this.ocr, ...changed } }, pages);
  }
}
