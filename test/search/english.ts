import type { Random } from '../support/random.js';
import { docxOf, emlOf } from './bytes.js';
import { filled, lines, type SearchDocument, some, someDay } from './document.js';
import { CLAUSES, CONTRACTS, GENERAL_CLAUSES } from './english-contracts.js';
import { LETTERS, MINUTES, NOTES } from './english-texts.js';
import { ENGLISH_PEOPLE, ENGLISH_PLACES } from './names.js';
import { ENGLISH_TRADES } from './trades.js';

const MONTHS = lines(`
  January
  February
  March
  April
  May
  June
  July
  August
  September
  October
  November
  December
`);

const COMPANIES = lines(`
  Larkspur Insurance
  Meridian Telecom
  Fenwick & Rowe Solicitors
  Tidewater Energy
  Oakhampton Building Society
  Copperfield Fitness
  Alder Software
  Brambledown Holdings
  Saltmarsh Publishing
  Quayside Properties
`);

/** English contracts, invoices, letters, minutes and notes. */
export function englishDocuments(random: Random, each: number): SearchDocument[] {
  const makers = [contract, invoice, letter, minutes, note];
  return makers.flatMap((make) => Array.from({ length: each }, (_, i) => make(random, i)));
}

function dayText(day: string): string {
  const [year = '', month = '', date = ''] = day.split('-');
  return `${Number(date)} ${MONTHS[Number(month) - 1]} ${year}`;
}

function amount(random: Random, from: number, to: number): string {
  const pence = String(random.between(0, 99)).padStart(2, '0');
  return `£${random.between(from, to).toLocaleString('en-GB')}.${pence}`;
}

function contract(random: Random, i: number): SearchDocument {
  const { subject, title, parties } = CONTRACTS[i % CONTRACTS.length] ?? CONTRACTS[0];
  const person = random.pick(ENGLISH_PEOPLE);
  const other = random.pick(ENGLISH_PEOPLE);
  const place = random.pick(ENGLISH_PLACES);
  const [street = '', city = ''] = place.split(', ');
  const company = random.pick(COMPANIES);
  const date = someDay(random);
  const months = String(random.pick([1, 2, 3, 6]));
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
    percent: `${random.between(2, 9)}.${random.between(0, 9)}`,
  };
  const own = some(random, CLAUSES[subject] ?? [], 4);
  const general = some(random, GENERAL_CLAUSES, 3);
  const clauses = [...own, ...general].map((clause, n) => `${n + 1}. ${filled(clause, slots)}`);
  const heading = `${title}${subject.endsWith('lease') ? ` ${street}` : ''}`;
  const text = [filled(parties, slots), ...clauses, `Signed on ${dayText(date)} in ${city}.`];
  const name = random.chance(0.7)
    ? `${heading} ${date.slice(0, 4)}`
    : `scan-${date.replaceAll('-', '')}-${i}`;
  return {
    file: `english/contracts/${name}.docx`,
    title: heading,
    text: text.join('\n\n'),
    bytes: () => docxOf(heading, text),
    facts: {
      kind: 'contract',
      language: 'en',
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
  const { topic, companies, items } =
    ENGLISH_TRADES[i % ENGLISH_TRADES.length] ?? ENGLISH_TRADES[0];
  const company = random.pick(companies);
  const person = random.pick(ENGLISH_PEOPLE);
  const place = random.pick(ENGLISH_PLACES);
  const date = someDay(random);
  const number = `INV-${date.slice(0, 4)}-${String(1_000 + i)}`;
  const chosen = some(random, items, random.between(1, items.length));
  const total = amount(random, 60, 3_900);
  const text = `${company}

${person}
${place.replace(', ', '\n')}

Invoice ${number}
Date: ${dayText(date)}

Dear ${person},

thank you for your order. For our work in ${place.split(', ')[1]} we charge as follows:

${chosen.map((item) => `- ${item}: ${amount(random, 20, 900)}`).join('\n')}

Total including VAT: ${total}

${random.pick([
  'Please pay within fourteen days by bank transfer, and give the invoice number as reference.',
  'The amount is due within thirty days. A discount of two per cent is granted on payment within a week.',
  'The amount will be collected by direct debit in the coming week.',
])}
${random.pick([
  'We keep our prices steady, and look forward to your next order.',
  'Our guarantee covers labour for twelve months, and parts for two years.',
  'Should anything be unclear, our office is there on weekdays from nine to five.',
])}
`;
  const name = random.chance(0.6) ? `${number} ${company}` : `scan-${number.toLowerCase()}`;
  return {
    file: `english/invoices/${name}.txt`,
    text,
    facts: {
      kind: 'invoice',
      language: 'en',
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
  const person = random.pick(ENGLISH_PEOPLE);
  const company = random.pick(COMPANIES);
  const place = random.pick(ENGLISH_PLACES);
  const date = someDay(random);
  const number = `${random.pick(['CU', 'PL', 'REF'])}-${random.between(100_000, 999_999)}`;
  const trade = random.pick(ENGLISH_TRADES);
  const slots = {
    person,
    company,
    place,
    number,
    street: place.split(', ')[0] ?? '',
    city: place.split(', ')[1] ?? '',
    date: dayText(date),
    amount: amount(random, 30, 1_900),
    item: random.pick(trade.items).toLowerCase(),
  };
  const heading = filled(title, slots);
  const body = paragraphs.map((choices) => filled(random.pick(choices), slots));
  const text = `${person}\n${place}\n\n${company}\n\n${dayText(date)}\n\nDear Sir or Madam,\n\n${body.join('\n\n')}\n\nYours faithfully,\n${person}\n`;
  const isMail = random.chance(0.3);
  const name = random.chance(0.6) ? `${heading} - ${company}` : `letter-${date}`;
  return {
    file: `english/letters/${name.replaceAll('/', '-')}.${isMail ? 'eml' : 'txt'}`,
    title: heading,
    text: isMail ? text : `${heading}\n\n${text}`,
    ...(isMail ? { bytes: () => emlOf({ subject: heading, from: person, date, text }) } : {}),
    facts: { kind: 'letter', language: 'en', subject, person, company, place, date, number },
  };
}

function minutes(random: Random, i: number): SearchDocument {
  const { body, subject } = MINUTES.meetings[i % MINUTES.meetings.length] ?? MINUTES.meetings[0];
  const date = someDay(random);
  const place = random.pick(ENGLISH_PLACES);
  const people = some(random, ENGLISH_PEOPLE, random.between(3, 6));
  const agenda = some(random, MINUTES.items, random.between(3, 5));
  const slots = {
    amount: amount(random, 80, 4_000),
    person: people[0] ?? '',
    other: people[1] ?? '',
    street: place.split(', ')[0] ?? '',
  };
  const heading = `${body}, ${dayText(date)}`;
  const points = agenda.map(
    ({ title, text }, n) => `## ${n + 1}. ${title}\n\n${filled(text, slots)}`,
  );
  const text = `Present: ${people.join(', ')}. Apologies: ${random.pick(ENGLISH_PEOPLE)}.
Place: ${place}. Chair: ${people[0]}. Minutes: ${people[1]}.

${points.join('\n\n')}

${random.pick(MINUTES.endings)}
`;
  return {
    file: `english/minutes/${random.chance(0.7) ? `${date} ${body}` : `minutes-${date}`}.md`,
    title: heading,
    text: `# ${heading}\n\n${text}`,
    facts: {
      kind: 'minutes',
      language: 'en',
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
  const person = random.pick(ENGLISH_PEOPLE);
  const place = random.pick(ENGLISH_PLACES);
  const date = someDay(random);
  const slots = {
    person,
    first: person.split(' ')[0] ?? '',
    city: place.split(', ')[1] ?? '',
    day: dayText(date),
    number: String(random.between(2, 9)),
    minutes: String(random.between(10, 90)),
  };
  const heading = filled(title, slots);
  const text = some(random, sentences, random.between(4, sentences.length))
    .map((sentence) => filled(sentence, slots))
    .join(' ');
  return {
    file: `english/notes/${random.chance(0.6) ? `${heading} ${date}` : `note-${date}`}.md`,
    title: heading,
    text: `# ${heading}\n\n${dayText(date)}\n\n${text}\n`,
    facts: { kind: 'note', language: 'en', subject, person, place, date },
  };
}
