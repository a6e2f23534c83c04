"""Answers queries with Xapian, as a competent person sets it up.

Reads {"documents": [...], "queries": [...], "shown": N} from the standard input, and writes the
names of the documents that were found, the best first, for each query.

Each document is indexed with the stemmer of its language, which is guessed by its frequent words.
A query is read with both stemmers. All words are needed. If no document has all of them, the
spelling is corrected; if that does not help, any word is enough.
"""

import json
import re
import sys
import tempfile
import unicodedata

import xapian

STEMMERS = {"en": xapian.Stem("english"), "de": xapian.Stem("german2")}
FREQUENT = {
    "en": {"the", "and", "of", "is", "for", "with"},
    "de": {"der", "die", "das", "und", "ist", "für", "mit", "den"},
}
STOP_WORDS = """
    a an and are as at be but by can did do does for from had has have how i in is it its me my of
    on or our so that the their there these they this to was we were what when where which who why
    will with you your
    aber als am an auch auf aus bei bin bis das dass dem den der des die du ein eine einem einen
    einer er es für hat ich ihr im in ist kann mein meine mir mit nach nicht oder sich sie sind so
    über um und uns von vom war was wann wer werden wie wir wird wo wurde zu zum zur
"""
TITLE_WEIGHT = 4
BASE_FLAGS = (
    xapian.QueryParser.FLAG_BOOLEAN
    | xapian.QueryParser.FLAG_PHRASE
    | xapian.QueryParser.FLAG_LOVEHATE
    | xapian.QueryParser.FLAG_PURE_NOT
    | xapian.QueryParser.FLAG_SPELLING_CORRECTION
)


def folded(text):
    """Removes the marks of letters."""
    text = text.replace("ł", "l").replace("Ł", "L").replace("ø", "o").replace("Ø", "O")
    apart = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


def language_of(text):
    words = re.findall(r"\w+", text.lower())
    counts = {name: sum(word in own for word in words) for name, own in FREQUENT.items()}
    return max(counts, key=counts.get)


def lowered(query):
    """Xapian takes words in capitals for names, which are not stemmed; German nouns have them."""
    return re.sub(r"\S+", lambda m: m[0] if m[0] in ("AND", "OR", "NOT") else m[0].lower(), query)


def indexed(documents, path):
    database = xapian.WritableDatabase(path, xapian.DB_CREATE_OR_OVERWRITE)
    generator = xapian.TermGenerator()
    generator.set_database(database)
    generator.set_flags(xapian.TermGenerator.FLAG_SPELLING)
    for document in documents:
        record = xapian.Document()
        record.set_data(document["file"])
        generator.set_document(record)
        generator.set_stemmer(STEMMERS[language_of(document["text"])])
        for text, weight in (
            (re.sub(r"[/._-]", " ", document["file"]), TITLE_WEIGHT),
            (document["file"].rsplit("/", 1)[-1], TITLE_WEIGHT),
            (document["title"], TITLE_WEIGHT),
            (document["text"], 1),
        ):
            generator.index_text(folded(text), weight)
            generator.increase_termpos()
        database.add_document(record)
    database.commit()
    return database


def parsed(database, text, operator, flags):
    """Returns the query in both languages, and the text with its spelling corrected."""
    stopper = xapian.SimpleStopper()
    for word in folded(STOP_WORDS).split():
        stopper.add(word)
    queries = []
    corrected = ""
    for stemmer in STEMMERS.values():
        parser = xapian.QueryParser()
        parser.set_stemmer(stemmer)
        parser.set_stemming_strategy(xapian.QueryParser.STEM_SOME)
        parser.set_stopper(stopper)
        parser.set_database(database)
        parser.set_default_op(operator)
        queries.append(parser.parse_query(text, flags))
        corrected = corrected or parser.get_corrected_query_string().decode()
    return xapian.Query(xapian.Query.OP_OR, queries), corrected


def found(database, query, shown):
    enquire = xapian.Enquire(database)
    enquire.set_query(query)
    return [match.document.get_data().decode() for match in enquire.get_mset(0, shown)]


def answer(database, question, shown):
    text = lowered(folded(question["query"]))
    flags = BASE_FLAGS | (xapian.QueryParser.FLAG_PARTIAL if question.get("typed") else 0)
    query, corrected = parsed(database, text, xapian.Query.OP_AND, flags)
    files = found(database, query, shown)
    if files:
        return {"files": files, "isAnnounced": False}
    if corrected:
        query, _ = parsed(database, corrected, xapian.Query.OP_AND, flags)
        files = found(database, query, shown)
        if files:
            return {"files": files, "isAnnounced": True}
    words = re.sub(r'"', " ", corrected or text)
    query, _ = parsed(database, words, xapian.Query.OP_OR, flags)
    return {"files": found(database, query, shown), "isAnnounced": True}


def main():
    given = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as path:
        database = indexed(given["documents"], path)
        answers = [answer(database, query, given["shown"]) for query in given["queries"]]
        database.close()
    json.dump(answers, sys.stdout)


main()
