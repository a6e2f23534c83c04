/** Sentences of the English contracts. Names in braces are filled in. */

export interface ContractKind {
  readonly subject: string;
  readonly title: string;
  readonly parties: string;
}

export const CONTRACTS: readonly [ContractKind, ...ContractKind[]] = [
  {
    subject: 'lease',
    title: 'Residential Lease',
    parties: 'Lease between {person} as landlord and {other} as tenant, for the flat at {place}.',
  },
  {
    subject: 'employment',
    title: 'Employment Contract',
    parties: 'Agreement between {company}, the employer, and {person}, the employee, of {city}.',
  },
  {
    subject: 'loan',
    title: 'Loan Agreement',
    parties: '{person} lends {other} the sum of {amount} under the terms below.',
  },
  {
    subject: 'confidentiality',
    title: 'Non-Disclosure Agreement',
    parties: '{company} and {person} wish to exchange confidential information about a project.',
  },
  {
    subject: 'garage lease',
    title: 'Garage Lease',
    parties: 'Lease between {person} and {other} of a lock-up garage behind {place}.',
  },
  {
    subject: 'liability insurance',
    title: 'Personal Liability Insurance Policy',
    parties: '{company} insures {person}, resident at {place}, under this policy.',
  },
  {
    subject: 'services',
    title: 'Consultancy Agreement',
    parties: '{person} will advise {company} on its books and its processes in {city}.',
  },
  {
    subject: 'purchase',
    title: 'Contract for the Sale of a Car',
    parties: '{person} sells a used car to {other} for {amount}.',
  },
  {
    subject: 'office lease',
    title: 'Office Lease',
    parties: 'Lease between {company} and {person} of business premises at {place}.',
  },
  {
    subject: 'household insurance',
    title: 'Household Contents Insurance Policy',
    parties: '{company} insures the household of {person} at {place} under this policy.',
  },
  {
    subject: 'licence',
    title: 'Software Licence',
    parties: '{company} grants {person} a licence to use its accounting program.',
  },
  {
    subject: 'gym',
    title: 'Membership Agreement',
    parties: '{person} joins {company} as a member from {date} on.',
  },
];

const HOME_CLAUSES = [
  'The rent is {amount} a month, payable in advance on the third working day.',
  'The notice period is {months} months to the end of a month. Notice has to be given in writing.',
  'The tenant pays a deposit of {deposit}, which is returned within six weeks of moving out.',
  'Small repairs up to eighty pounds are paid by the tenant, all others by the landlord.',
  'Subletting needs the consent of the landlord, who may not refuse it without a reason.',
];

export const CLAUSES: Readonly<Record<string, readonly string[]>> = {
  lease: [
    ...HOME_CLAUSES,
    'Pets other than small animals are allowed only with permission.',
    'The walls are to be painted white when the tenant leaves.',
  ],
  'garage lease': [
    'The rent of the garage is {amount} a quarter.',
    'The notice period of the garage is {months} months. Either side may give notice without a reason.',
    'Petrol may be stored only in the tank of the vehicle.',
    'The door is opened with a remote control; a lost one costs the tenant {deposit}.',
  ],
  'office lease': [
    'The rent of the premises is {amount} a month, exclusive of VAT.',
    'The lease runs for five years; after that the notice period is {months} months.',
    'The tenant may fix a sign with the name of the firm beside the entrance.',
    'Service charges for the lift and the cleaning of the stairs are paid on account.',
  ],
  employment: [
    'The salary is {amount} a month, paid on the last working day.',
    'The employee works {hours} hours a week, and {days} days of annual leave are granted.',
    'After the probation of six months, the notice period is {months} months for both sides.',
    'Overtime is compensated by time off within the quarter.',
    'Inventions made at work belong to the employer.',
  ],
  loan: [
    'Interest of {percent} per cent a year is paid on what is outstanding.',
    'The borrower repays the loan in monthly instalments of at least one hundred pounds.',
    'Early repayment is allowed at any time without a fee.',
    'A violin, kept in a safe, serves as security.',
  ],
  confidentiality: [
    'Confidential information may be shown only to employees who need to know it.',
    'The duty of secrecy ends five years after the last disclosure.',
    'A breach costs a penalty of {amount} for each case.',
    'All copies are destroyed on request, and the destruction is confirmed in writing.',
  ],
  'liability insurance': [
    'Damage that the insured causes to others is covered up to five million pounds.',
    'Keys that are lost, of the home or of the employer, are covered up to {amount}.',
    'Damage done on purpose is excluded, and so is damage by motor vehicles.',
    'The premium is due once a year on the {date}.',
  ],
  'household insurance': [
    'The contents of the home are insured against fire, burglary, storm and burst pipes.',
    'Bicycles are covered against theft if they were locked, up to {amount}.',
    'Flooding of the cellar is covered only with the extension for natural hazards.',
    'The insured tells the company at once when the home stands empty for more than sixty days.',
  ],
  services: [
    'The consultant is paid {amount} a day; travel is refunded against receipts.',
    'Either side may end the agreement with a notice period of {months} months.',
    'The consultant is not an employee and pays his own taxes.',
    'Reports are handed over in writing at the end of each month.',
  ],
  purchase: [
    'The car was first registered on {date} and has run {days} thousand miles.',
    'The seller knows of no accident, and gives no guarantee.',
    'The price is paid in cash when the car and its two keys are handed over.',
    'Winter tyres on steel rims are included.',
  ],
  licence: [
    'The licence is for one user on up to three computers.',
    'Updates are free for twelve months; after that maintenance costs {amount} a year.',
    'The program may not be rented out or decompiled.',
    'The licensee makes a backup before installing an update.',
  ],
  gym: [
    'The membership fee of {amount} is debited each quarter.',
    'The membership may be cancelled with a notice period of {months} months.',
    'It can be suspended during pregnancy or illness, against a certificate.',
    'Lockers are emptied every night.',
  ],
};

export const GENERAL_CLAUSES: readonly string[] = [
  'Changes to this agreement have to be made in writing.',
  'If a provision is void, the others stay in force.',
  'The courts of {city} have jurisdiction.',
  'Each side receives a signed copy.',
  'The agreement begins on {date}.',
  'Side agreements have not been made.',
  'Personal data is kept only as long as the agreement needs it.',
];
