import { lines } from './document.js';

/** Sentences of the English letters, minutes and notes. Names in braces are filled in. */

export interface LetterKind {
  readonly subject: string;
  readonly title: string;
  /** One of each is taken. */
  readonly paragraphs: readonly (readonly [string, ...string[]])[];
}

export interface NoteKind {
  readonly subject: string;
  readonly title: string;
  readonly sentences: readonly string[];
}

export const LETTERS: readonly [LetterKind, ...LetterKind[]] = [
  {
    subject: 'lease termination',
    title: 'Termination of my tenancy at {street}',
    paragraphs: [
      [
        'I hereby give notice to end the tenancy of my flat at {street} at the earliest date.',
        'I am ending the lease of the flat at {street}, because I am moving to another city.',
      ],
      [
        'Please confirm the date on which it ends, and suggest a day for handing over the keys.',
        'Please tell me when you would like to inspect the flat.',
      ],
      ['My deposit should be transferred to the account you know.'],
    ],
  },
  {
    subject: 'payment reminder',
    title: 'Payment reminder {number}',
    paragraphs: [
      [
        'You have surely overlooked our claim of {amount} under the reference {number}.',
        'The sum of {amount} under the reference {number} is still outstanding.',
      ],
      [
        'We ask you to settle it within ten days. Otherwise we have to charge interest.',
        'Should your payment have crossed this reminder, please ignore it.',
      ],
    ],
  },
  {
    subject: 'complaint',
    title: 'Complaint about {item}',
    paragraphs: [
      [
        'On {date} your people did the following for me: {item}. I am not satisfied with it.',
        'I am writing about this order: {item}. The work was late and left a mess.',
      ],
      [
        'I expect you to put it right within two weeks, and reserve the right to reduce the price.',
        'Please refund {amount}, which is half of what I paid.',
      ],
    ],
  },
  {
    subject: 'insurance claim',
    title: 'Claim under policy {number}',
    paragraphs: [
      [
        'A pipe burst in the kitchen on {date} and soaked the parquet floor.',
        'My bicycle was stolen from the yard on {date} although it was locked.',
        'Hail broke two panes of the greenhouse on {date}.',
      ],
      ['I put the loss at {amount}. Photographs and receipts are enclosed.'],
      ['Please let me know whether your assessor wants to see the damage.'],
    ],
  },
  {
    subject: 'application',
    title: 'Application as bookkeeper',
    paragraphs: [
      ['With great interest I read your advertisement of {date} for a bookkeeper in {city}.'],
      [
        'For eight years I have kept the books of a firm of forty people, payroll included.',
        'I have just finished my training, and know the usual programs well.',
      ],
      ['I could start within {amount} of removal costs, if you allow the joke, and three months.'],
    ],
  },
  {
    subject: 'rent increase',
    title: 'Increase of the rent for {street}',
    paragraphs: [
      ['As your landlord, we adjust the rent of the flat at {street} to the local level.'],
      ['From the first of the month after next, it rises by {amount} a month.'],
      ['Please give us your consent in writing within two months.'],
    ],
  },
  {
    subject: 'contract cancellation',
    title: 'Cancellation of the contract {number}',
    paragraphs: [
      [
        'I hereby cancel my contract {number} for telephone and broadband at the next possible date.',
        'Please cancel my membership {number} as of the end of the quarter.',
      ],
      ['Please do not call me to win me back. Confirm the date of the end in writing.'],
    ],
  },
  {
    subject: 'meter reading',
    title: 'Meter reading for {street}',
    paragraphs: [
      ['The electricity meter at {street} stood at {number} on {date}.'],
      [
        'Your estimate was much too high. Please correct the bill of {amount}.',
        'The reading was taken in the presence of the caretaker.',
      ],
    ],
  },
  {
    subject: 'invitation',
    title: 'Invitation to our summer party in {city}',
    paragraphs: [
      ['We are celebrating our jubilee on {date} in {city}, with music and a barbecue.'],
      ['Please let us know how many you will be, and whether anyone eats vegetarian.'],
    ],
  },
  {
    subject: 'quotation',
    title: 'Quotation {number}',
    paragraphs: [
      ['Thank you for your enquiry. We offer you {item} for {amount}.'],
      ['The quotation {number} is valid for four weeks. We could begin on {date}.'],
    ],
  },
];

export interface AgendaItem {
  readonly topic: string;
  readonly title: string;
  readonly text: string;
}

interface Meeting {
  readonly subject: string;
  readonly body: string;
}

export const MINUTES: {
  readonly meetings: readonly [Meeting, ...Meeting[]];
  readonly items: readonly AgendaItem[];
  readonly endings: readonly [string, ...string[]];
} = {
  meetings: [
    { subject: 'owners', body: "Owners' meeting" },
    { subject: 'allotment', body: 'Allotment society committee' },
    { subject: 'parents', body: "Parents' evening" },
    { subject: 'choir', body: 'Choir committee' },
    { subject: 'project', body: 'Project meeting' },
  ],
  items: [
    {
      topic: 'roof',
      title: 'Repair of the roof',
      text: 'Three quotations were compared. The cheapest, {amount}, was accepted unanimously.',
    },
    {
      topic: 'bicycles',
      title: 'Bicycle shed',
      text: '{person} proposes a shed for thirty bicycles beside the bins. A plan is to follow.',
    },
    {
      topic: 'budget',
      title: 'Budget',
      text: 'The treasurer presented the budget. It shows a surplus of {amount}. It was adopted.',
    },
    {
      topic: 'election',
      title: 'Election of the board',
      text: '{other} was elected to the chair with two abstentions, and accepted the election.',
    },
    {
      topic: 'playground',
      title: 'Playground',
      text: 'The swing is unsafe and was closed. A new one costs about {amount}.',
    },
    {
      topic: 'heating',
      title: 'Heating',
      text: 'The boiler is twenty-two years old. An adviser will compare a heat pump and wood pellets.',
    },
    {
      topic: 'noise',
      title: 'Noise',
      text: 'Rehearsals after ten at night led to complaints. {person} will talk to the drummer.',
    },
    {
      topic: 'website',
      title: 'Website',
      text: 'The website is outdated. {other} will move it to another provider before the summer.',
    },
    {
      topic: 'trip',
      title: 'Class trip',
      text: 'The trip goes to a youth hostel by the sea. Each family pays {amount}.',
    },
    {
      topic: 'insurance',
      title: 'Insurance of the building',
      text: 'The insurer raised its premium. {person} asks two brokers for alternatives.',
    },
    {
      topic: 'lease',
      title: 'Letting of the caretaker flat',
      text: 'The lease of the caretaker flat ends. It will be let again from the spring.',
    },
  ],
  endings: [
    'The next meeting is in six weeks. The meeting closed at ten.',
    'As there was no other business, the chair closed the meeting.',
    'Other business was put off to the next meeting.',
  ],
};

export const NOTES: readonly [NoteKind, ...NoteKind[]] = [
  {
    subject: 'travel',
    title: 'Weekend in {city}',
    sentences: lines(`
      We took the early train to {city} and had the compartment to ourselves.
      The guest house was full, but {first} knew a room above a bakery.
      It rained for {number} hours, and we read in the museum café.
      On the way back we missed the connection by a minute.
      The cathedral was closed for a wedding, so we climbed the tower of the town hall instead.
      Next time: bring boots, and book the boat trip in advance.
    `),
  },
  {
    subject: 'recipe',
    title: 'Lentil soup of {first}',
    sentences: lines(`
      Soak the lentils for {minutes} minutes, then drain them.
      Fry an onion, {number} carrots and a leek in olive oil until they smell sweet.
      Add tomato paste, a bay leaf and a litre of stock.
      Simmer it gently, and season with vinegar at the very end.
      {first} says that smoked paprika is the secret.
      Leftovers taste better the next day.
    `),
  },
  {
    subject: 'garden diary',
    title: 'Garden diary',
    sentences: lines(`
      Sowed spinach and radishes in the cold frame.
      The slugs ate {number} of the lettuces in one night.
      Pruned the pear tree; {first} took the cuttings for grafting.
      The water butt is empty again.
      Potatoes are through, and earthed up for the first time.
      Tied up the tomatoes, and picked the first courgette.
    `),
  },
  {
    subject: 'health',
    title: 'Appointment with Dr {person}',
    sentences: lines(`
      Blood pressure was better than in spring, {number} points lower.
      The results of the blood test come by post.
      Physiotherapy twice a week for the shoulder; exercises for {minutes} minutes a day.
      Prescription for the allergy renewed until autumn.
      Ask about the vaccination against tetanus next time.
      The referral to the ear specialist is in the blue folder.
    `),
  },
  {
    subject: 'reading',
    title: 'Reading notes: a history of {city}',
    sentences: lines(`
      Chapter {number} on the guilds is the best one.
      The author trusts the tax rolls more than the chronicles, and rightly.
      Weavers and dyers quarrelled over the river for a hundred years.
      The maps are too small to read.
      Compare the account of the great fire with what {first} told me.
      Lent to {person}; to be returned before the holidays.
    `),
  },
  {
    subject: 'computer',
    title: 'Backup of the old laptop',
    sentences: lines(`
      Copied the photographs to the external disk; it took {minutes} minutes.
      The battery lasts for {number} hours at most.
      {first} recommends keeping a second copy at another place.
      The fan is loud, so the dust should be blown out.
      Passwords are in the manager now, no longer on paper.
      The old disk goes to the recycling yard after it is wiped.
    `),
  },
];
