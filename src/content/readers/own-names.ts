/** Names of documents, workbooks and presentations, as below. */
const DOCUMENTS: readonly string[] = [
  '(?:document|dokument|documento|документ|文档|文書|book|mappe|classeur|cartel|libro|pasta|zeszyt|книга|工作簿)\\d{1,3}',
  '(?:presentation|pr[aä]sentation|présentation|presentación|presentazione|apresentação|presentatie|prezentacja|презентация|演示文稿)\\d{1,3}',
];

/**
 * Names that programs give to documents, sheets and slides by themselves, as patterns in lower
 * case. A word with a meaning of its own counts only with a number, as the program writes it:
 * `Document1`, but not `Document` and not `Document 1`.
 */
const DEFAULT_NAMES: readonly string[] = [
  // Without a name: "untitled", "Untitled 1", "unbenannt-2".
  '(?:untitled|unnamed|no ?title|unbenannt|ohne ?titel|sans ?titre|sin ?t[ií]tulo|senza ?titolo|sem ?t[ií]tulo|naamloos|bez ?tytułu|без ?имени|без ?названия|無題|无标题|無標題)(?:[ _-]?\\d{1,3})?',
  '(?:new|neues|nouveau) (?:microsoft word |word-)?(?:document|dokument)(?: ?\\(?\\d{1,3}\\)?)?',
  ...DOCUMENTS,
  // Sheets and slides.
  '(?:sheet|tabelle|feuil|hoja|foglio|planilha|blad|arkusz|лист|工作表|シート) ?\\d{1,3}',
  '(?:slide|folie|diapositive|diapositiva|slajd|слайд|幻灯片|スライド) ?\\d{1,3}',
  // "Dia 25" is also a day.
  'dia\\d{1,3}',
  // Presentations, as PowerPoint calls them.
  'powerpoint[- ]pr[eä]sentation|powerpoint-presentatie|pr[eé]sentation powerpoint|presentaci[oó]n de powerpoint|presentazione standard di powerpoint|apresentaç[aã]o do powerpoint|prezentacja programu powerpoint|презентация powerpoint|powerpoint (?:プレゼンテーション|演示文稿)',
  // Printers put the program before the name of a file.
  `microsoft (?:office )?(?:word|excel|powerpoint|outlook|publisher|visio) - (?:.*\\.(?:doc[xm]?|xls[xmb]?|ppt[xm]?|ppsx?|rtf|txt|csv|pub|vsdx?|msg)|${DOCUMENTS.join('|')})`,
];
const DEFAULT_NAME = new RegExp(`^[("'<[]?(?:${DEFAULT_NAMES.join('|')})[)"'>\\]]?$`, 'iu');

/** Whether a name says something about the content of a document: no program gave it by itself. */
export function isOwnName(name: string): boolean {
  return !DEFAULT_NAME.test(name.trim());
}
