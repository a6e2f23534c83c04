import type { ContractKind } from './english-contracts.js';

/** Sentences of the German contracts. Names in braces are filled in. */

export const CONTRACTS: readonly [ContractKind, ...ContractKind[]] = [
  {
    subject: 'lease',
    title: 'Mietvertrag',
    parties: 'Zwischen {person} als Vermieter und {other} als Mieter über die Wohnung {place}.',
  },
  {
    subject: 'employment',
    title: 'Arbeitsvertrag',
    parties: 'Zwischen {company}, im Folgenden Arbeitgeber, und {person}, wohnhaft in {city}.',
  },
  {
    subject: 'loan',
    title: 'Darlehensvertrag',
    parties: '{person} gewährt {other} ein Darlehen in Höhe von {amount}.',
  },
  {
    subject: 'confidentiality',
    title: 'Geheimhaltungsvereinbarung',
    parties: '{company} und {person} tauschen vertrauliche Unterlagen über ein Vorhaben aus.',
  },
  {
    subject: 'garage lease',
    title: 'Garagenmietvertrag',
    parties: 'Zwischen {person} und {other} über die Garage hinter dem Haus {place}.',
  },
  {
    subject: 'liability insurance',
    title: 'Versicherungsschein Haftpflichtversicherung',
    parties: '{company} versichert {person}, wohnhaft {place}, nach diesem Schein.',
  },
  {
    subject: 'services',
    title: 'Beratervertrag',
    parties: '{person} berät {company} in {city} bei der Einführung einer Zeiterfassung.',
  },
  {
    subject: 'purchase',
    title: 'Kaufvertrag über ein gebrauchtes Kraftfahrzeug',
    parties: '{person} verkauft {other} ein gebrauchtes Fahrzeug für {amount}.',
  },
  {
    subject: 'office lease',
    title: 'Gewerbemietvertrag',
    parties: 'Zwischen {company} und {person} über die Geschäftsräume {place}.',
  },
  {
    subject: 'household insurance',
    title: 'Versicherungsschein Hausratversicherung',
    parties: '{company} versichert den Hausrat von {person} in der Wohnung {place}.',
  },
  {
    subject: 'legal insurance',
    title: 'Versicherungsschein Rechtsschutzversicherung',
    parties: '{company} trägt für {person} aus {city} die Kosten von Rechtsstreitigkeiten.',
  },
  {
    subject: 'gym',
    title: 'Mitgliedsvertrag',
    parties: '{person} wird ab {date} Mitglied bei {company}.',
  },
];

const LEASE_CLAUSES = [
  'Die Miete beträgt {amount} monatlich und ist bis zum dritten Werktag zu zahlen.',
  'Die Kündigungsfrist beträgt {months}. Die Kündigung bedarf der Schriftform.',
  'Die Kaution von {deposit} wird sechs Wochen nach dem Auszug zurückgezahlt.',
  'Schönheitsreparaturen übernimmt der Mieter nach einem gesonderten Plan.',
  'Eine Untervermietung ist nur mit Zustimmung des Vermieters gestattet.',
  'Haustiere mit Ausnahme von Kleintieren bedürfen der Erlaubnis.',
  'Die Betriebskosten werden als Vorauszahlung erhoben und jährlich abgerechnet.',
];

export const CLAUSES: Readonly<Record<string, readonly string[]>> = {
  lease: LEASE_CLAUSES,
  'garage lease': [
    'Die Miete der Garage beträgt {amount} im Vierteljahr.',
    'Die Kündigungsfrist beträgt {months}; Gründe müssen nicht genannt werden.',
    'Benzin darf nur im Tank des Fahrzeugs gelagert werden.',
    'Für einen verlorenen Torschlüssel zahlt der Mieter {deposit}.',
  ],
  'office lease': [
    'Die Miete beträgt {amount} monatlich zuzüglich Umsatzsteuer.',
    'Das Mietverhältnis läuft fünf Jahre; danach gilt eine Kündigungsfrist von {months}.',
    'Der Mieter darf neben dem Eingang ein Firmenschild anbringen.',
    'Die Kosten des Aufzugs und der Treppenhausreinigung werden umgelegt.',
  ],
  employment: [
    'Das Gehalt beträgt {amount} brutto und wird am Monatsende überwiesen.',
    'Die Arbeitszeit beträgt {hours} Wochenstunden, der Urlaubsanspruch {days} Tage.',
    'Nach der Probezeit von sechs Monaten beträgt die Kündigungsfrist {months}.',
    'Überstunden werden innerhalb des Quartals durch Freizeit ausgeglichen.',
    'Nebentätigkeiten sind dem Arbeitgeber anzuzeigen.',
  ],
  loan: [
    'Der Zinssatz beträgt {percent} Prozent im Jahr.',
    'Das Darlehen wird in monatlichen Raten von mindestens hundert Euro getilgt.',
    'Eine Sondertilgung ist jederzeit ohne Vorfälligkeitsentschädigung möglich.',
    'Als Sicherheit dient eine Geige, die im Tresor verwahrt wird.',
  ],
  confidentiality: [
    'Vertrauliche Unterlagen dürfen nur Beschäftigten gezeigt werden, die sie benötigen.',
    'Die Verschwiegenheitspflicht endet fünf Jahre nach der letzten Offenlegung.',
    'Jeder Verstoß kostet eine Vertragsstrafe von {amount}.',
    'Abschriften sind auf Verlangen zu vernichten.',
  ],
  'liability insurance': [
    'Versichert sind Schäden, die der Versicherte anderen zufügt, bis zehn Millionen Euro.',
    'Der Verlust fremder Schlüssel ist bis {amount} mitversichert.',
    'Vorsätzlich verursachte Schäden und solche durch Kraftfahrzeuge sind ausgeschlossen.',
    'Der Jahresbeitrag ist jeweils zum {date} fällig.',
  ],
  'household insurance': [
    'Der Hausrat ist gegen Feuer, Einbruchdiebstahl, Sturm und Leitungswasser versichert.',
    'Fahrräder sind gegen Diebstahl bis {amount} versichert, sofern sie abgeschlossen waren.',
    'Überschwemmungen sind nur mit dem Zusatzbaustein Elementarschäden versichert.',
    'Steht die Wohnung länger als sechzig Tage leer, ist dies anzuzeigen.',
  ],
  'legal insurance': [
    'Versichert sind Streitigkeiten aus Arbeitsverhältnissen und aus dem Straßenverkehr.',
    'Die Selbstbeteiligung beträgt {amount} je Rechtsfall.',
    'Die Wartezeit beträgt drei Monate ab Versicherungsbeginn.',
    'Scheidungen und Bauvorhaben sind nicht versichert.',
  ],
  services: [
    'Das Honorar beträgt {amount} je Tag; Reisekosten werden gegen Beleg erstattet.',
    'Beide Seiten können mit einer Frist von {months} kündigen.',
    'Der Berater ist kein Arbeitnehmer und versteuert seine Einkünfte selbst.',
    'Über die Arbeit wird am Monatsende schriftlich berichtet.',
  ],
  purchase: [
    'Die Erstzulassung war am {date}; der Kilometerstand beträgt {days} Tausend.',
    'Dem Verkäufer sind keine Unfallschäden bekannt; die Gewährleistung ist ausgeschlossen.',
    'Der Kaufpreis wird bei Übergabe des Fahrzeugs und beider Schlüssel bar gezahlt.',
    'Winterreifen auf Stahlfelgen gehören zum Lieferumfang.',
  ],
  gym: [
    'Der Mitgliedsbeitrag von {amount} wird vierteljährlich abgebucht.',
    'Die Mitgliedschaft kann mit einer Frist von {months} gekündigt werden.',
    'Bei Schwangerschaft oder Krankheit ruht sie gegen Vorlage eines Attests.',
    'Die Schließfächer werden jede Nacht geleert.',
  ],
};

export const GENERAL_CLAUSES: readonly string[] = [
  'Änderungen dieses Vertrags bedürfen der Schriftform.',
  'Ist eine Bestimmung unwirksam, so bleiben die übrigen in Kraft.',
  'Gerichtsstand ist {city}.',
  'Jede Partei erhält eine unterschriebene Ausfertigung.',
  'Der Vertrag beginnt am {date}.',
  'Mündliche Nebenabreden wurden nicht getroffen.',
  'Personenbezogene Daten werden nach Vertragsende gelöscht.',
];
