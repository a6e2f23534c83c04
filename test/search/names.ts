import { lines } from './document.js';

/** Names of people and places that the generated documents are about. All are invented. */

export const ENGLISH_PEOPLE = lines(`
  Eleanor Whitcombe
  Marcus Oyelaran
  Priya Raghunathan
  Fiona MacAllister
  Declan O'Brien
  Harriet Smith-Jones
  Desmond Achebe
  Rosalind Featherstone
  Geoffrey Pemberton
  Aisha Rahman
  Callum Drummond
  Beatrix Langley
  Tobias Hargreaves
  Imogen Ashdown
  Winston Clarke
  Nadia Petrova
  Owen Llewellyn
  Margaret Thornbury
  Kwame Mensah
  Siobhan Gallagher
  José Hernández
  François Lefèvre
  Søren Nygård
  Łukasz Wiśniewski
  Abigail Stone
  Catherine Stein
  Katherine Steyn
  Jonathan Marsh
  Jon Marshall
  Henry Ford Baker
  Lydia Baker
  Grace Winterbourne
  Patrick Quigley
  Vera Holloway
  Edmund Tarrant
`);

export const GERMAN_PEOPLE = lines(`
  Jürgen Müller
  Käthe Schröder
  Sönke Köhler
  Günther Groß
  Annegret Weiß
  Matthias Strauß
  Renate Jäger
  Björn Krüger
  Ursula Böhm
  Hans-Peter Lindner
  Karl-Heinz Vogelsang
  Sabine Meyer
  Thomas Meier
  Claudia Maier
  Andreas Mayer
  Ingrid Hübner
  Wolfgang Schäfer
  Friederike Löwe
  Heinrich Überall
  Bärbel Kröger
  Detlef Brandt
  Elfriede Zöllner
  Lars Feldmann
  Gudrun Östermann
  Torsten Wächter
  Marianne Vogt
  Ayşe Yıldırım
  Jiří Dvořák
  Manfred Schütz
  Petra Kaiser
  Rüdiger Hölzl
  Anneliese Baumgärtner
  Ottokar Fürst
  Lieselotte Gärtner
  Christoph Steinmetz
`);

export const ENGLISH_PLACES = lines(`
  14 Mill Road, Cambridge
  27 Harbour Street, Whitstable
  3 Orchard Lane, Ludlow
  88 Canal Walk, Manchester
  5 Beacon Hill, Exeter
  112 Station Road, York
  41 Lighthouse Crescent, Whitby
  9 Foundry Court, Sheffield
  60 Abbey Gardens, Bath
  19 Weavers Yard, Leeds
  7 Ferry Terrace, Dundee
  33 Castle Mews, Durham
  2 Juniper Close, Bristol
  71 Market Square, Norwich
  16 Vicarage Drive, Winchester
  24 Kestrel Rise, Aberdeen
  105 Tannery Wharf, Bermondsey
  48 Priory Park, Shrewsbury
`);

export const GERMAN_PLACES = lines(`
  Sonnenallee 12, 12045 Berlin
  Lindenstraße 8, 50674 Köln
  Mühlweg 3, 79098 Freiburg
  Hauptstraße 117, 70563 Stuttgart
  Gänsemarkt 21, 20354 Hamburg
  Schloßplatz 5, 76131 Karlsruhe
  Königstraße 44, 90402 Nürnberg
  Brückenstraße 19, 97070 Würzburg
  Fährgasse 2, 01067 Dresden
  Am Weißen Stein 30, 60431 Frankfurt am Main
  Kastanienweg 15, 04277 Leipzig
  Rosenheimer Straße 77, 81667 München
  Höhenstraße 9, 52066 Aachen
  Deichstraße 61, 28203 Bremen
  Im Grünen Winkel 4, 55122 Mainz
  Uferpromenade 28, 88045 Friedrichshafen
  Goethestraße 101, 99423 Weimar
  Steinbruchweg 6, 34121 Kassel
`);
