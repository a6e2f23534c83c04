import { lines } from './document.js';
import type { MINUTES as ENGLISH_MINUTES, LetterKind, NoteKind } from './english-texts.js';

/** Sentences of the German letters, minutes and notes. Names in braces are filled in. */

export const LETTERS: readonly [LetterKind, ...LetterKind[]] = [
  {
    subject: 'lease termination',
    title: 'Kündigung der Wohnung {street}',
    paragraphs: [
      [
        'hiermit kündige ich das Mietverhältnis über die Wohnung {street} zum nächstmöglichen Zeitpunkt.',
        'ich kündige meine Wohnung {street}, weil ich in eine andere Stadt ziehe.',
      ],
      [
        'Bitte bestätigen Sie mir das Ende und nennen Sie einen Tag für die Schlüsselübergabe.',
        'Bitte teilen Sie mir mit, wann Sie die Wohnung besichtigen möchten.',
      ],
      ['Die Kaution überweisen Sie bitte auf das bekannte Konto.'],
    ],
  },
  {
    subject: 'payment reminder',
    title: 'Zahlungserinnerung {number}',
    paragraphs: [
      [
        'sicher haben Sie unsere Forderung von {amount} mit dem Zeichen {number} übersehen.',
        'unter dem Zeichen {number} ist noch ein Betrag von {amount} offen.',
      ],
      [
        'Wir bitten um Ausgleich binnen zehn Tagen, andernfalls müssen wir Verzugszinsen berechnen.',
        'Hat sich Ihre Zahlung mit diesem Schreiben überschnitten, betrachten Sie es als gegenstandslos.',
      ],
    ],
  },
  {
    subject: 'complaint',
    title: 'Mängelrüge',
    paragraphs: [
      [
        'am {date} haben Ihre Leute folgenden Auftrag ausgeführt: {item}. Damit bin ich nicht zufrieden.',
        'ich beanstande die Ausführung dieses Auftrags: {item}. Die Arbeit war verspätet und schlampig.',
      ],
      [
        'Ich setze Ihnen eine Frist zur Nachbesserung von zwei Wochen.',
        'Bitte erstatten Sie mir {amount}, die Hälfte des Preises.',
      ],
    ],
  },
  {
    subject: 'insurance claim',
    title: 'Schadensmeldung zum Vertrag {number}',
    paragraphs: [
      [
        'am {date} ist in der Küche ein Rohr geplatzt und hat das Parkett durchnässt.',
        'am {date} wurde mein abgeschlossenes Fahrrad aus dem Hof gestohlen.',
        'am {date} hat der Hagel zwei Scheiben des Gewächshauses zerschlagen.',
      ],
      ['Den Schaden beziffere ich auf {amount}. Fotos und Belege liegen bei.'],
      ['Bitte teilen Sie mir mit, ob ein Gutachter den Schaden besichtigen soll.'],
    ],
  },
  {
    subject: 'application',
    title: 'Bewerbung als Buchhalterin',
    paragraphs: [
      ['mit großem Interesse habe ich Ihre Stellenanzeige vom {date} gelesen.'],
      [
        'Seit acht Jahren führe ich die Bücher eines Betriebs mit vierzig Beschäftigten.',
        'Meine Ausbildung habe ich gerade abgeschlossen; die üblichen Programme kenne ich gut.',
      ],
      ['Über eine Einladung zum Vorstellungsgespräch in {city} freue ich mich.'],
    ],
  },
  {
    subject: 'rent increase',
    title: 'Mieterhöhung {street}',
    paragraphs: [
      ['wir passen die Miete der Wohnung {street} an die ortsübliche Vergleichsmiete an.'],
      ['Ab dem übernächsten Monat steigt sie um {amount}.'],
      ['Bitte erteilen Sie uns Ihre Zustimmung binnen zwei Monaten schriftlich.'],
    ],
  },
  {
    subject: 'service charges',
    title: 'Nebenkostenabrechnung {year} für {street}',
    paragraphs: [
      ['anbei erhalten Sie die Abrechnung der Nebenkosten für das Jahr {year}.'],
      [
        'Aus Heizkosten, Müllabfuhr und Hauswart ergibt sich eine Nachzahlung von {amount}.',
        'Aus Ihren Vorauszahlungen ergibt sich ein Guthaben von {amount}.',
      ],
      ['Die Belege können nach Terminabsprache eingesehen werden.'],
    ],
  },
  {
    subject: 'contract cancellation',
    title: 'Kündigung des Vertrags {number}',
    paragraphs: [
      [
        'hiermit kündige ich meinen Anschluss für Telefon und Internet, Vertrag {number}, fristgerecht.',
        'ich kündige meine Mitgliedschaft {number} zum Ende des Quartals.',
      ],
      [
        'Von Rückwerbeversuchen bitte ich abzusehen. Bestätigen Sie mir das Vertragsende schriftlich.',
      ],
    ],
  },
  {
    subject: 'meter reading',
    title: 'Zählerstand {street}',
    paragraphs: [
      ['der Stromzähler in der {street} stand am {date} bei {number}.'],
      [
        'Ihre Schätzung war viel zu hoch. Bitte berichtigen Sie die Rechnung über {amount}.',
        'Der Stand wurde im Beisein des Hausmeisters abgelesen.',
      ],
    ],
  },
  {
    subject: 'invitation',
    title: 'Einladung zum Sommerfest in {city}',
    paragraphs: [
      ['am {date} feiern wir in {city} unser Jubiläum mit Musik und Grillbüfett.'],
      ['Bitte geben Sie uns Bescheid, wie viele Sie sein werden und wer vegetarisch isst.'],
    ],
  },
  {
    subject: 'quotation',
    title: 'Angebot {number}',
    paragraphs: [
      ['vielen Dank für Ihre Anfrage. Wir bieten Ihnen an: {item} für {amount}.'],
      ['Das Angebot {number} gilt vier Wochen. Beginnen könnten wir am {date}.'],
    ],
  },
];

export const MINUTES: typeof ENGLISH_MINUTES = {
  meetings: [
    { subject: 'owners', body: 'Eigentümerversammlung' },
    { subject: 'allotment', body: 'Vorstandssitzung des Kleingartenvereins' },
    { subject: 'parents', body: 'Elternabend' },
    { subject: 'choir', body: 'Chorvorstand' },
    { subject: 'project', body: 'Projektbesprechung' },
  ],
  items: [
    {
      topic: 'roof',
      title: 'Dachsanierung',
      text: 'Drei Angebote wurden verglichen. Das günstigste über {amount} wurde einstimmig angenommen.',
    },
    {
      topic: 'bicycles',
      title: 'Fahrradschuppen',
      text: '{person} schlägt einen Schuppen für dreißig Fahrräder vor. Ein Plan folgt.',
    },
    {
      topic: 'budget',
      title: 'Haushaltsplan',
      text: 'Der Kassenwart stellte den Plan vor. Er weist einen Überschuss von {amount} aus.',
    },
    {
      topic: 'election',
      title: 'Vorstandswahl',
      text: '{other} wurde bei zwei Enthaltungen in den Vorsitz gewählt und nahm die Wahl an.',
    },
    {
      topic: 'playground',
      title: 'Spielplatz',
      text: 'Die Schaukel ist unsicher und wurde gesperrt. Eine neue kostet rund {amount}.',
    },
    {
      topic: 'heating',
      title: 'Heizungsanlage',
      text: 'Der Kessel ist zweiundzwanzig Jahre alt. Wärmepumpe und Pellets werden verglichen.',
    },
    {
      topic: 'noise',
      title: 'Ruhestörung',
      text: 'Proben nach zehn Uhr führten zu Beschwerden. {person} redet mit dem Schlagzeuger.',
    },
    {
      topic: 'website',
      title: 'Internetauftritt',
      text: 'Der Auftritt ist veraltet. {other} zieht ihn vor dem Sommer zu einem anderen Anbieter um.',
    },
    {
      topic: 'trip',
      title: 'Klassenfahrt',
      text: 'Die Fahrt geht in eine Jugendherberge am Meer. Jede Familie zahlt {amount}.',
    },
    {
      topic: 'insurance',
      title: 'Gebäudeversicherung',
      text: 'Der Versicherer hat den Beitrag erhöht. {person} fragt zwei Makler nach Alternativen.',
    },
    {
      topic: 'lease',
      title: 'Vermietung der Hausmeisterwohnung',
      text: 'Das Mietverhältnis endet. Die Wohnung wird ab dem Frühjahr neu vermietet.',
    },
  ],
  endings: [
    'Die nächste Sitzung ist in sechs Wochen. Ende der Sitzung um 22 Uhr.',
    'Da nichts Weiteres vorlag, wurde die Sitzung geschlossen.',
    'Verschiedenes wurde auf die nächste Sitzung vertagt.',
  ],
};

export const NOTES: readonly [NoteKind, ...NoteKind[]] = [
  {
    subject: 'travel',
    title: 'Wochenende in {city}',
    sentences: lines(`
      Wir nahmen den frühen Zug nach {city} und hatten das Abteil für uns.
      Das Gästehaus war voll, aber {first} kannte ein Zimmer über einer Bäckerei.
      Es regnete {number} Stunden lang, und wir lasen im Museumscafé.
      Auf der Rückfahrt verpassten wir den Anschluss um eine Minute.
      Der Dom war wegen einer Hochzeit geschlossen, also stiegen wir auf den Rathausturm.
      Nächstes Mal: Stiefel mitnehmen und die Schifffahrt vorher buchen.
    `),
  },
  {
    subject: 'recipe',
    title: 'Linsensuppe nach {first}',
    sentences: lines(`
      Die Linsen {minutes} Minuten einweichen und abgießen.
      Zwiebel, {number} Möhren und eine Stange Lauch in Öl anschwitzen, bis sie süß duften.
      Tomatenmark, Lorbeerblatt und einen Liter Brühe zugeben.
      Leise köcheln lassen und erst ganz am Ende mit Essig abschmecken.
      {first} sagt, das Geheimnis sei geräuchertes Paprikapulver.
      Am nächsten Tag schmeckt sie noch besser.
    `),
  },
  {
    subject: 'garden diary',
    title: 'Gartentagebuch',
    sentences: lines(`
      Spinat und Radieschen im Frühbeet gesät.
      Die Schnecken haben in einer Nacht {number} Salatköpfe gefressen.
      Den Birnbaum geschnitten; {first} nahm die Reiser zum Veredeln mit.
      Die Regentonne ist schon wieder leer.
      Die Kartoffeln sind da und zum ersten Mal angehäufelt.
      Tomaten angebunden und die erste Zucchini geerntet.
    `),
  },
  {
    subject: 'health',
    title: 'Termin bei Dr. {person}',
    sentences: lines(`
      Der Blutdruck war besser als im Frühjahr, {number} Punkte niedriger.
      Die Ergebnisse der Blutuntersuchung kommen mit der Post.
      Krankengymnastik zweimal in der Woche, Übungen {minutes} Minuten am Tag.
      Rezept gegen die Allergie bis zum Herbst verlängert.
      Beim nächsten Mal nach der Tetanusimpfung fragen.
      Die Überweisung zum Ohrenarzt liegt im blauen Ordner.
    `),
  },
  {
    subject: 'reading',
    title: 'Lektüre: Geschichte der Stadt {city}',
    sentences: lines(`
      Kapitel {number} über die Zünfte ist das beste.
      Der Verfasser traut den Steuerlisten mehr als den Chroniken, und zwar zu Recht.
      Weber und Färber stritten hundert Jahre lang um den Fluss.
      Die Karten sind zu klein zum Lesen.
      Den Bericht über den großen Brand mit dem vergleichen, was {first} erzählte.
      Verliehen an {person}; vor den Ferien zurückholen.
    `),
  },
  {
    subject: 'computer',
    title: 'Datensicherung des alten Rechners',
    sentences: lines(`
      Die Fotos auf die externe Festplatte kopiert; das dauerte {minutes} Minuten.
      Der Akku hält höchstens {number} Stunden.
      {first} rät zu einer zweiten Kopie an einem anderen Ort.
      Der Lüfter ist laut, also muss der Staub ausgeblasen werden.
      Die Passwörter stehen jetzt im Verwalter, nicht mehr auf Papier.
      Die alte Festplatte kommt gelöscht zum Wertstoffhof.
    `),
  },
];
