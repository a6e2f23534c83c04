/** The names of languages for tesseract, by the language of a locale. */
const TESSERACT_NAMES: Readonly<Record<string, string>> = {
  ar: 'ara',
  bg: 'bul',
  ca: 'cat',
  cs: 'ces',
  cy: 'cym',
  da: 'dan',
  de: 'deu',
  el: 'ell',
  en: 'eng',
  es: 'spa',
  et: 'est',
  eu: 'eus',
  fa: 'fas',
  fi: 'fin',
  fr: 'fra',
  ga: 'gle',
  gl: 'glg',
  he: 'heb',
  hi: 'hin',
  hr: 'hrv',
  hu: 'hun',
  id: 'ind',
  is: 'isl',
  it: 'ita',
  ja: 'jpn',
  ko: 'kor',
  lt: 'lit',
  lv: 'lav',
  nb: 'nor',
  nl: 'nld',
  nn: 'nor',
  no: 'nor',
  pl: 'pol',
  pt: 'por',
  ro: 'ron',
  ru: 'rus',
  sk: 'slk',
  sl: 'slv',
  sr: 'srp',
  sv: 'swe',
  th: 'tha',
  tr: 'tur',
  uk: 'ukr',
  vi: 'vie',
  zh: 'chi_sim',
  zh_HK: 'chi_tra',
  zh_TW: 'chi_tra',
};

/** The variables that name the languages of a person, as gettext reads them. */
export type LocaleVariables = Readonly<
  Partial<Record<'LANGUAGE' | 'LC_ALL' | 'LC_MESSAGES' | 'LANG', string>>
>;

/** Returns the languages of the locale as tesseract names them, the preferred one first. */
export function localeLanguages(variables: LocaleVariables): readonly string[] {
  const { LANG, LANGUAGE = '', LC_ALL, LC_MESSAGES } = variables;
  const locales = [...LANGUAGE.split(':'), LC_ALL || LC_MESSAGES || LANG || ''];
  const names = locales.flatMap((locale) => {
    const plain = locale.replace(/[.@].*$/, '');
    return TESSERACT_NAMES[plain] ?? TESSERACT_NAMES[plain.replace(/_.*$/, '')] ?? [];
  });
  return [...new Set(names)];
}
