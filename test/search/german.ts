import type { Random } from '../support/random.js';
import { docxOf, emlOf } from './bytes.js';
import { filled, lines, type SearchDocument, some, someDay } from './document.js';
import { CLAUSES, CONTRACTS, GENERAL_CLAUSES } from './german-contracts.js';
import { LETTERS, MINUTES, NOTES } from './german-texts.js';
import { GERMAN_PEOPLE, GERMAN_PLACES } from './names.js';
import { GERMAN_TRADES } from './trades.js';

const MONTHS = lines(`
  Januar
  Februar
  März
  April
  Mai
  Juni
  Juli
  August
  September
  Oktober
  November
  Dezember
`);

const COMPANIES = lines(`
  Alpenglück Versicherung AG
  Nordsee Telekommunikation
  Rechtsanwälte Fürst & Schütz
  Stadtwerke Mühlheim
  Bausparkasse Rebstock
  Fitnesshaus Löwenherz
  Weißdorn Software GmbH
  Hausverwaltung Steinmetz
  Verlag am Grünen Winkel
  Krankenkasse Lebensfroh
`);

/** German contracts, invoices, letters, minutes and notes. */
export function germanDocuments(random: Random, each: number): SearchDocument[] {
  const makers = [contract, invoice, letter, minutes, note];
  return makers.flatMap((make) => Array.from({ length: each }, (_, i) => make(random, i)));
}

/** A day as `17. März 2024`, or as `17.03.2024`. */
function dayText(day: string, isShort = false): string {
  const [year = '', month = '', date = ''] = day.split('-');
  if (isShort) return `${date}.${month}.${year}`;
  return `${Number(date)}. ${MONTHS[Number(month) - 1]} ${year}`;
}

function amount(random: Random, from: number, to: number): string {
  const cents = String(random.between(0, 99)).padStart(2, '0');
  return `${random.between(from, to).toLocaleString('de-DE')},${cents} €`;
}

function contract(random: Random, i: number): SearchDocument {
  const { subject, title, parties } = CONTRACTS[i % CONTRACTS.length] ?? CONTRACTS[0];
  const person = random.pick(GERMAN_PEOPLE);
  const other = random.pick(GERMAN_PEOPLE);
  const place = random.pick(GERMAN_PLACES);
  const [street = '', town = ''] = place.split(', ');
  const city = town.replace(/^\d+ /, '');
  const company = random.pick(COMPANIES);
  const date = someDay(random);
  const months = random.pick(['einen Monat', 'zwei Monate', 'drei Monate', 'sechs Monate']);
  const slots = {
    person,
    other,
    place,
    street,
    city,
    company,
    months,
    date: dayText(date),
    amount: amount(random, 400, 2_900),
    deposit: amount(random, 900, 4_000),
    days: String(random.between(24, 30)),
    hours: String(random.between(18, 40)),
    percent: `${random.between(2, 9)},${random.between(0, 9)}`,
  };
  const own = some(random, CLAUSES[subject] ?? [], 4);
  const general = some(random, GENERAL_CLAUSES, 3);
  const clauses = [...own, ...general].map((clause, n) => `§ ${n + 1} ${filled(clause, slots)}`);
  const heading = `${title}${subject.endsWith('lease') ? ` ${street}` : ''}`;
  const text = [filled(parties, slots), ...clauses, `${city}, den ${dayText(date)}`];
  const name = random.chance(0.7)
    ? `${heading} ${date.slice(0, 4)}`
    : `Scan-${date.replaceAll('-', '')}-${i}`;
  return {
    file: `deutsch/vertraege/${name}.docx`,
    title: heading,
    text: text.join('\n\n'),
    bytes: () => docxOf(heading, text),
    facts: {
      kind: 'contract',
      language: 'de',
      subject,
      person,
      other,
      company,
      place,
      date,
      months,
    },
  };
}

function invoice(random: Random, i: number): SearchDocument {
  const { topic, companies, items } = GERMAN_TRADES[i % GERMAN_TRADES.length] ?? GERMAN_TRADES[0];
  const company = random.pick(companies);
  const person = random.pick(GERMAN_PEOPLE);
  const place = random.pick(GERMAN_PLACES);
  const date = someDay(random);
  const number = `RE-${date.slice(0, 4)}-${String(1_000 + i)}`;
  const chosen = some(random, items, random.between(1, items.length));
  const text = `${company}

${person}
${place.replace(', ', '\n')}

Rechnung ${number}
Rechnungsdatum: ${dayText(date, true)}

Sehr geehrte Damen und Herren,

vielen Dank für Ihren Auftrag. Für unsere Arbeiten berechnen wir Ihnen:

${chosen.map((item) => `- ${item}: ${amount(random, 20, 900)}`).join('\n')}

Gesamtbetrag einschließlich 19 % Mehrwertsteuer: ${amount(random, 60, 3_900)}

${random.pick([
  'Bitte überweisen Sie den Betrag innerhalb von vierzehn Tagen unter Angabe der Rechnungsnummer.',
  'Der Betrag ist innerhalb von dreißig Tagen fällig. Bei Zahlung binnen einer Woche gewähren wir zwei Prozent Skonto.',
  'Der Betrag wird in der kommenden Woche per Lastschrift eingezogen.',
])}
${random.pick([
  'Wir freuen uns auf Ihren nächsten Auftrag.',
  'Auf die Arbeiten gewähren wir zwölf Monate Garantie, auf Ersatzteile zwei Jahre.',
  'Bei Rückfragen erreichen Sie unser Büro werktags von neun bis siebzehn Uhr.',
])}
`;
  const name = random.chance(0.6) ? `${number} ${company}` : `Scan-${number}`;
  return {
    file: `deutsch/rechnungen/${name}.txt`,
    text,
    facts: {
      kind: 'invoice',
      language: 'de',
      subject: topic,
      company,
      person,
      place,
      date,
      number,
    },
  };
}

function letter(random: Random, i: number): SearchDocument {
  const { subject, title, paragraphs } = LETTERS[i % LETTERS.length] ?? LETTERS[0];
  const person = random.pick(GERMAN_PEOPLE);
  const company = random.pick(COMPANIES);
  const place = random.pick(GERMAN_PLACES);
  const date = someDay(random);
  const number = `${random.pick(['KD', 'VS', 'AZ'])}-${random.between(100_000, 999_999)}`;
  const trade = random.pick(GERMAN_TRADES);
  const slots = {
    person,
    company,
    place,
    number,
    street: place.split(', ')[0] ?? '',
    city: (place.split(', ')[1] ?? '').replace(/^\d+ /, ''),
    date: dayText(date),
    year: date.slice(0, 4),
    amount: amount(random, 30, 1_900),
    item: random.pick(trade.items),
  };
  const heading = filled(title, slots);
  const body = paragraphs.map((choices) => filled(random.pick(choices), slots));
  const text = `${person}\n${place}\n\n${company}\n\n${dayText(date)}\n\nSehr geehrte Damen und Herren,\n\n${body.join('\n\n')}\n\nMit freundlichen Grüßen\n${person}\n`;
  const isMail = random.chance(0.3);
  const name = random.chance(0.6) ? `${heading} - ${company}` : `Brief-${date}`;
  return {
    file: `deutsch/briefe/${name.replaceAll('/', '-')}.${isMail ? 'eml' : 'txt'}`,
    title: heading,
    text: isMail ? text : `${heading}\n\n${text}`,
    ...(isMail ? { bytes: () => emlOf({ subject: heading, from: person, date, text }) } : {}),
    facts: { kind: 'letter', language: 'de', subject, person, company, place, date, number },
  };
}

function minutes(random: Random, i: number): SearchDocument {
  const { body, subject } = MINUTES.meetings[i % MINUTES.meetings.length] ?? MINUTES.meetings[0];
  const date = someDay(random);
  const place = random.pick(GERMAN_PLACES);
  const people = some(random, GERMAN_PEOPLE, random.between(3, 6));
  const agenda = some(random, MINUTES.items, random.between(3, 5));
  const slots = {
    amount: amount(random, 80, 4_000),
    person: people[0] ?? '',
    other: people[1] ?? '',
    street: place.split(', ')[0] ?? '',
  };
  const heading = `${body} vom ${dayText(date)}`;
  const points = agenda.map(
    ({ title, text }, n) => `## TOP ${n + 1}: ${title}\n\n${filled(text, slots)}`,
  );
  const text = `Anwesend: ${people.join(', ')}. Entschuldigt: ${random.pick(GERMAN_PEOPLE)}.
Ort: ${place}. Leitung: ${people[0]}. Protokoll: ${people[1]}.

${points.join('\n\n')}

${random.pick(MINUTES.endings)}
`;
  return {
    file: `deutsch/protokolle/${random.chance(0.7) ? `${date} ${body}` : `Protokoll-${date}`}.md`,
    title: heading,
    text: `# ${heading}\n\n${text}`,
    facts: {
      kind: 'minutes',
      language: 'de',
      subject,
      people,
      place,
      date,
      topics: agenda.map(({ topic }) => topic),
    },
  };
}

function note(random: Random, i: number): SearchDocument {
  const { subject, title, sentences } = NOTES[i % NOTES.length] ?? NOTES[0];
  const person = random.pick(GERMAN_PEOPLE);
  const place = random.pick(GERMAN_PLACES);
  const date = someDay(random);
  const slots = {
    person,
    first: person.split(' ')[0] ?? '',
    city: (place.split(', ')[1] ?? '').replace(/^\d+ /, ''),
    day: dayText(date),
    number: String(random.between(2, 9)),
    minutes: String(random.between(10, 90)),
  };
  const heading = filled(title, slots);
  const text = some(random, sentences, random.between(4, sentences.length))
    .map((sentence) => filled(sentence, slots))
    .join(' ');
  return {
    file: `deutsch/notizen/${random.chance(0.6) ? `${heading} ${date}` : `Notiz-${date}`}.md`,
    title: heading,
    text: `# ${heading}\n\n${dayText(date)}\n\n${text}\n`,
    facts: { kind: 'note', language: 'de', subject, person, place, date },
  };
}
