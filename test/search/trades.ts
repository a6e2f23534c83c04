/** A trade that sends invoices: what it does, and who does it. */
export interface Trade {
  readonly topic: string;
  readonly companies: readonly [string, ...string[]];
  readonly items: readonly [string, ...string[]];
}

const trade = (
  topic: string,
  companies: readonly [string, ...string[]],
  ...items: [string, ...string[]]
): Trade => ({ topic, companies, items });

export const ENGLISH_TRADES: readonly [Trade, ...Trade[]] = [
  trade(
    'boiler',
    ['Calder Heating Ltd', 'Northgate Plumbing'],
    'Annual service of the gas boiler',
    'Replacement of the expansion vessel',
    'Bleeding of eleven radiators',
  ),
  trade(
    'chimney',
    ['Ashworth Chimney Care', 'Soot & Sons'],
    'Sweeping of two flues',
    'Inspection of the chimney stack with a camera',
  ),
  trade(
    'tyres',
    ['Brightwell Garage', 'Kingsway Motors'],
    'Four winter tyres, fitted and balanced',
    'Storage of the summer wheels',
    'Disposal of the old tyres',
  ),
  trade(
    'brakes',
    ['Brightwell Garage', 'Kingsway Motors'],
    'Front brake pads and discs',
    'Brake fluid, changed and bled',
  ),
  trade(
    'dentist',
    ['Harborview Dental Practice', 'Molar & Partners'],
    'Professional cleaning of the teeth',
    'Ceramic crown, lower left molar',
    'X-ray of the jaw',
  ),
  trade(
    'piano',
    ['Winterbourne Pianos', 'Cadenza Instruments'],
    'Tuning of an upright piano to 440 Hz',
    'Two new hammers and a damper felt',
  ),
  trade(
    'translation',
    ['Babel Row Translations', 'Polyglot Bureau'],
    'Certified translation of a birth certificate',
    'Proofreading of a leaflet, German into English',
  ),
  trade(
    'gutter',
    ['Highline Roofing', 'Slate and Stone'],
    'Cleaning of the gutters, 46 metres',
    'Seven slipped slates replaced',
    'Lead flashing around the skylight',
  ),
  trade(
    'removal',
    ['Pickfair Removals', 'Two Men and a Lorry'],
    'Removal of the household of a three-bedroom house',
    'Forty packing boxes and wrapping paper',
    'Piano carried to the second floor',
  ),
  trade(
    'accountancy',
    ['Ledger & Lamb Accountants', 'Pemberton Tax Advisers'],
    'Preparation of the annual accounts',
    'Tax return for the past year',
    'Payroll of four employees',
  ),
  trade(
    'locksmith',
    ['Sesame Locksmiths', 'Bolt & Barrel'],
    'Opening of a locked front door at night',
    'New cylinder with five keys',
  ),
  trade(
    'electrician',
    ['Ampère Electrical', 'Sparks of Leeds'],
    'New consumer unit with residual current devices',
    'Twelve sockets in the kitchen',
    'Test of the installation with a certificate',
  ),
  trade(
    'catering',
    ['Juniper Table Catering', 'The Copper Ladle'],
    'Cold buffet for forty guests',
    'Vegetarian lasagne for twelve',
    'Hire of glasses and linen',
  ),
  trade(
    'printing',
    ['Gutenberg Lane Press', 'Foxglove Print'],
    'Five hundred leaflets, folded, on recycled paper',
    'Wedding invitations with gold lettering',
  ),
  trade(
    'garden',
    ['Greenfinch Gardens', 'Hedge & Border'],
    'Trimming of a yew hedge',
    'Felling of a dead ash tree',
    'Turf for 60 square metres',
  ),
  trade(
    'veterinary',
    ['Paws and Hooves Veterinary Clinic', 'Dr Tarrant Veterinary Surgery'],
    'Vaccination of a dog against rabies',
    'Removal of a tooth under anaesthetic, cat',
  ),
  trade(
    'solar',
    ['Helios Roof Energy', 'Sunfield Installations'],
    'Fourteen photovoltaic panels with an inverter',
    'Battery of 10 kWh, installed in the cellar',
  ),
  trade(
    'hosting',
    ['Cumulus Hosting', 'Rackspur Data'],
    'Virtual server with 8 GB of memory, one year',
    'Domain name and certificate, renewal',
  ),
];

export const GERMAN_TRADES: readonly [Trade, ...Trade[]] = [
  trade(
    'boiler',
    ['Heizungsbau Krüger GmbH', 'Wärmetechnik Lindner'],
    'Jährliche Wartung der Gasheizung',
    'Austausch der Umwälzpumpe',
    'Entlüftung von neun Heizkörpern',
  ),
  trade(
    'chimney',
    ['Schornsteinfegermeister Rußwurm', 'Kaminkehrer Schwarz'],
    'Schornsteinreinigung, zwei Züge',
    'Abgasmessung an der Feuerstätte mit Bescheinigung',
  ),
  trade(
    'tyres',
    ['Autohaus Feldmann', 'Kfz-Werkstatt Brömmel'],
    'Vier Winterreifen, montiert und gewuchtet',
    'Einlagerung der Sommerräder',
    'Altreifenentsorgung',
  ),
  trade(
    'brakes',
    ['Autohaus Feldmann', 'Kfz-Werkstatt Brömmel'],
    'Bremsbeläge und Bremsscheiben vorn',
    'Bremsflüssigkeit gewechselt',
  ),
  trade(
    'dentist',
    ['Zahnarztpraxis Dr. Hölzl', 'Zahnzentrum am Gänsemarkt'],
    'Professionelle Zahnreinigung',
    'Keramikkrone, Backenzahn unten links',
    'Röntgenaufnahme des Kiefers',
  ),
  trade(
    'piano',
    ['Klavierhaus Gärtner', 'Tastenwerkstatt Vogelsang'],
    'Klavierstimmung auf 440 Hz',
    'Zwei neue Hammerköpfe und ein Dämpferfilz',
  ),
  trade(
    'translation',
    ['Übersetzungsbüro Dvořák', 'Sprachdienst Nordlicht'],
    'Beglaubigte Übersetzung einer Geburtsurkunde',
    'Korrekturlesen einer Broschüre, Englisch-Deutsch',
  ),
  trade(
    'gutter',
    ['Dachdeckerei Hübner', 'Spenglerei Überall'],
    'Dachrinnenreinigung, 46 Meter',
    'Sieben verrutschte Dachziegel ersetzt',
    'Bleieinfassung am Dachfenster',
  ),
  trade(
    'removal',
    ['Umzüge Kaiser', 'Möbelspedition Wächter'],
    'Umzug einer Dreizimmerwohnung',
    'Vierzig Umzugskartons und Packpapier',
    'Klaviertransport in den zweiten Stock',
  ),
  trade(
    'accountancy',
    ['Steuerberatung Östermann', 'Kanzlei Zöllner & Partner'],
    'Erstellung des Jahresabschlusses',
    'Einkommensteuererklärung für das Vorjahr',
    'Lohnbuchhaltung für vier Beschäftigte',
  ),
  trade(
    'locksmith',
    ['Schlüsseldienst Brandt', 'Schloss und Riegel'],
    'Türöffnung bei Nacht',
    'Neuer Schließzylinder mit fünf Schlüsseln',
  ),
  trade(
    'electrician',
    ['Elektro Baumgärtner', 'Brandt Elektrotechnik'],
    'Neuer Sicherungskasten mit Fehlerstromschutzschaltern',
    'Zwölf Steckdosen in der Küche',
    'Prüfung der Anlage mit Protokoll',
  ),
  trade(
    'catering',
    ['Partyservice Löffelweise', 'Gasthaus zum Wacholder'],
    'Kaltes Büfett für vierzig Gäste',
    'Käsespätzle für zwölf Personen',
    'Leihgebühr für Gläser und Tischwäsche',
  ),
  trade(
    'printing',
    ['Druckerei Gänsefuß', 'Papier & Presse'],
    'Fünfhundert Faltblätter auf Umweltpapier',
    'Hochzeitseinladungen mit Goldprägung',
  ),
  trade(
    'garden',
    ['Gartenbau Böhm', 'Grünpflege Kastanie'],
    'Heckenschnitt an einer Eibenhecke',
    'Fällung einer abgestorbenen Esche',
    'Rollrasen für 60 Quadratmeter',
  ),
  trade(
    'veterinary',
    ['Tierarztpraxis Dr. Löwe', 'Kleintierklinik Pfötchen'],
    'Tollwutimpfung für einen Hund',
    'Zahnentfernung unter Narkose, Katze',
  ),
  trade(
    'solar',
    ['Sonnendach Energie GmbH', 'Solartechnik Schütz'],
    'Vierzehn Photovoltaikmodule mit Wechselrichter',
    'Batteriespeicher mit 10 kWh, im Keller montiert',
  ),
  trade(
    'water damage',
    ['Trocknungstechnik Weiß', 'Wasserwehr Köln'],
    'Trocknung nach einem Wasserschaden im Badezimmer',
    'Leckortung mit Wärmebildkamera',
  ),
];
