import type { Random } from '../../support/random.js';

/** Makes texts of real words in sentences that nobody wrote, always the same for a seed. */

export type Language = 'en' | 'de';

interface Vocabulary {
  readonly nouns: readonly string[];
  /** The same nouns after a preposition. */
  readonly objects: readonly string[];
  readonly adjectives: readonly string[];
  readonly verbs: readonly string[];
  readonly prepositions: readonly string[];
  readonly adverbs: readonly string[];
  /** The articles before a subject, an object, and a noun after a preposition. */
  readonly articles: readonly [string, string, string];
}

const list = (text: string): readonly string[] => text.trim().split(/\s+/);

const ENGLISH_NOUNS = list(`
  river mountain garden window bridge market letter teacher doctor farmer soldier painter village
  castle forest island harbour kitchen library station valley meadow school church tower engine
  vessel blanket basket bottle candle mirror pencil ticket journal picture machine hammer ladder
  shelter feather sparrow horse rabbit spider turtle monkey dragon winter summer autumn spring
  morning evening century moment silence thunder weather shadow fortune promise question language
  country journey stranger neighbour brother sister daughter cousin captain prisoner merchant
  servant student`);

const ENGLISH: Vocabulary = {
  nouns: ENGLISH_NOUNS,
  objects: ENGLISH_NOUNS,
  adjectives: list(`
    quiet narrow ancient golden bitter careful curious distant empty famous gentle heavy hollow
    honest hungry modern patient pleasant polite proud purple rapid rough secret simple slender
    smooth sudden tender thirsty tired useful wooden worried young yellow`),
  verbs: list(`
    carried followed watched painted borrowed measured repaired gathered noticed covered crossed
    entered visited described remembered discovered protected surrounded admired ignored collected
    delivered imagined inspected`),
  prepositions: list('behind beside beneath beyond near towards without across before after'),
  adverbs: list('slowly quickly often seldom suddenly quietly always never yesterday'),
  articles: ['the', 'the', 'the'],
};

const GERMAN_NOUNS = list(`
  Häuser Gärten Brücken Wälder Flüsse Berge Straßen Fenster Türen Bücher Briefe Lehrer Schüler
  Ärzte Bauern Maler Dörfer Städte Schlösser Inseln Küchen Bahnhöfe Täler Wiesen Kirchen Türme
  Maschinen Schiffe Decken Körbe Flaschen Kerzen Spiegel Stifte Karten Bilder Leitern Federn Vögel
  Pferde Hasen Spinnen Affen Löwen Bären Füchse Hühner Kühe Schafe Äpfel Birnen Kirschen Bäume
  Blätter Blumen Wolken Sterne Träume Geschichten Fragen Antworten Sprachen Länder Reisen Nachbarn
  Brüder Schwestern Töchter Söhne Händler Diener Könige Gäste Geräusche`);

const GERMAN: Vocabulary = {
  nouns: GERMAN_NOUNS,
  // The dative has an n at its end.
  objects: GERMAN_NOUNS.map((noun) => (/[ns]$/.test(noun) ? noun : `${noun}n`)),
  adjectives: list(`
    ruhigen schmalen uralten goldenen bitteren vorsichtigen neugierigen fernen leeren berühmten
    sanften schweren hohlen ehrlichen hungrigen modernen geduldigen höflichen stolzen rauen geheimen
    einfachen schlanken glatten zarten durstigen müden nützlichen hölzernen jungen gelben grünen
    schönen kühlen süßen`),
  verbs: list(`
    trugen sahen malten liehen zählten flickten sammelten bemerkten bedeckten überquerten betraten
    besuchten beschrieben vergaßen entdeckten schützten umgaben bewunderten lieferten prüften
    öffneten fanden suchten hörten verließen begrüßten`),
  prepositions: list('hinter neben unter über zwischen vor bei mit nach'),
  adverbs: list('langsam schnell oft selten plötzlich leise immer niemals gestern heute'),
  articles: ['die', 'die', 'den'],
};

const VOCABULARIES: Readonly<Record<Language, Vocabulary>> = { en: ENGLISH, de: GERMAN };

/** Returns sentences with at least this number of words. */
export function sentences(language: Language, random: Random, words = 160): readonly string[] {
  const made: string[] = [];
  for (let count = 0; count < words; ) {
    const sentence = sentenceOf(VOCABULARIES[language], random);
    made.push(sentence);
    count += sentence.split(' ').length;
  }
  return made;
}

function sentenceOf(vocabulary: Vocabulary, random: Random): string {
  const { adjectives, adverbs, nouns, objects, prepositions, verbs } = vocabulary;
  const one = (words: readonly string[]) => words[random.between(0, words.length - 1)] ?? '';
  const [subject, object, place] = vocabulary.articles;
  const who = [subject, one(adjectives), one(nouns)];
  const what = [object, one(adjectives), one(nouns)];
  const where = [one(prepositions), place, one(adjectives), one(objects)];
  const words = random.chance(0.5)
    ? [...who, one(verbs), one(adverbs), ...what, ...where]
    : [...who, ...where, one(verbs), ...what];
  const text = words.join(' ');
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Returns every word that the texts of a language may have, each once. */
export function allWords(language: Language): readonly string[] {
  const { articles, ...lists } = VOCABULARIES[language];
  return distinctWords([...articles, ...Object.values(lists).flat()].join(' '));
}

/** Returns the words of a text in lower case, each once. */
export function distinctWords(text: string): readonly string[] {
  return [...new Set(text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [])];
}
