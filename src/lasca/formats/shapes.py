"""Records as research releases and tools write them, brought into shapes that a reader knows.

| of | a record | becomes |
|---|---|---|
| GLiNER | `tokenized_text`, `ner` (first and last token, label) | tokens and tags |
| DyGIE, SciERC | `sentences`, `ner` (by tokens of the document, the last one inside) | the same, a row per sentence |
| Stanza | lists of tokens with `text` and `ner` | the same, by the model "stanza" |
| others | words under `text` or `sentence`, or in an object each, and a tag for each | tokens and tags |
| Broad Twitter Corpus | `tokens`, `entities` (a tag each) | tokens and tags |
| WRENCH | `data`, `weak_labels`, `label` | annotators "lf_1", "lf_2", … and the gold; -1 is missing |
| GATE Teamware | `annotation_sets` with answers about the whole text | what annotators answered to questions |
| documents | `tokens` and tags, both by sentence, or `sentences` that have them | a row per sentence |
| `Dataset.to_dict` | a list for each column | rows |
| Flair, Transformers, Vertex AI, LangExtract, models | a text, spans by place or words | whom the file is called by |

Entities may stand under any name, if one list of them is all there is, or each under its type.

Nothing is guessed: a record that has not all of its shape's parts is left to `unclaimed` to describe.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, TypeGuard

from lasca.errors import FormatError
from lasca.formats.base import VOTES
from lasca.formats.llm_batch_answers import parse_answer
from lasca.formats.names import AUTHORS, DOCUMENTS, NAMES, is_person, placed, plain_name
from lasca.formats.sources import SourceFile, parse_json, parse_json_items

__all__ = ["known_shape"]

Row = dict[str, Any]
START = ("start", "begin", "start_pos", "start_offset", "begin_offset")
END = ("end", "end_pos", "end_offset")
LABEL = ("entity_group", "label", "type", "tag", "category", "entity_type", "display_name",
         "extraction_class")  # fmt: skip
WORDS = ("text", "word", "name", "span", "mention", "quote", "entity", "extraction_text")
TEXT = ("text", "text_content", "sentence", "input")
ENTITIES = ("entities", "ents", "text_segment_annotations", "output", "extractions")
TYPED = ("label", "labels", "ner")  # the same, if they stand under their types
EXTRAS = ("relations", "comments", "links", "cats", "attributes")  # beside spans; another empty list is another voice's
TAGS = ("ner_tags", "tags", "labels", "ner", "pos_tags")
PLACED = {"text", "token", "start", "end", "id", "ws"}  # what may be said of a word that is read
ROWS = ("text", "tokens", "words", "sentence", "data")  # by which columns are known to be those of texts


def known_shape(file: SourceFile) -> tuple[str, list[Row]] | None:
    """Return whose records these are and the same ones in another shape; None if they are nobody's we know."""
    if not file.values:
        return None
    try:
        whole = parse_json(file)
    except FormatError:  # JSON lines
        whole = None
    for name, make in SHAPES.items():
        rows = make(whole, file)
        if rows:
            return name, rows
    return None


def _records(file: SourceFile) -> list[Row]:
    return [row for _, row in parse_json_items(file)] if file.records else []


def _tags(n: int, spans: Any, before: int = 0) -> list[str] | None:
    """Return IOB2 tags of [first token, last token, label]; None if they are not such, or overlap."""
    tags = ["O"] * n
    for span in spans if isinstance(spans, list) else [None]:
        if not isinstance(span, list) or len(span) != 3 or not isinstance(span[2], str):
            return None
        if not all(isinstance(at, int) for at in span[:2]):
            return None
        first, last = span[0] - before, span[1] - before
        if not 0 <= first <= last < n or any(tag != "O" for tag in tags[first : last + 1]):
            return None
        tags[first : last + 1] = [f"B-{span[2]}", *[f"I-{span[2]}"] * (last - first)]
    return tags


def _are_words(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)


def _gliner(whole: Any, file: SourceFile) -> list[Row] | None:
    made = []
    for row in _records(file):
        if not _are_words(row.get("tokenized_text")) or "ner" not in row:
            return None
        tags = _tags(len(row["tokenized_text"]), row["ner"])
        if tags is None:
            return None
        others = {key: value for key, value in row.items() if key not in ("tokenized_text", "ner")}
        made.append({**others, "tokens": row["tokenized_text"], "ner_tags": tags})
    return made


def _dygie(whole: Any, file: SourceFile) -> list[Row] | None:
    made = []
    for k, row in enumerate(_records(file)):
        sentences, ner = row.get("sentences"), row.get("ner")
        if not isinstance(sentences, list) or not isinstance(ner, list) or len(sentences) != len(ner):
            return None
        before, others = 0, {key: value for key, value in row.items() if key not in ("sentences", "ner", "doc_key")}
        for number, (words, spans) in enumerate(zip(sentences, ner)):
            tags = _tags(len(words), spans, before) if _are_words(words) else None
            if tags is None:
                return None
            document = str(row.get("doc_key", k))
            at = {"id": f"{document}/{number}", "document": document}
            made.append({**others, **at, "tokens": words, "ner_tags": tags})
            before, others = before + len(words), {}
    return made


def _stanza(whole: Any, file: SourceFile) -> list[Row] | None:
    made = []
    for sentence in whole if isinstance(whole, list) else []:
        tokens: list[Any] = sentence if isinstance(sentence, list) else [None]
        if not all(isinstance(t, dict) and isinstance(t.get("text"), str) and "start_char" in t for t in tokens):
            return None
        tags = [t.get("ner") for t in tokens]
        if not tokens or not all(isinstance(tag, str) for tag in tags):
            return None
        made.append({"tokens": [t["text"] for t in tokens], "ner_tags": tags, "annotator": "stanza"})
    return made


def _words(whole: Any, file: SourceFile) -> list[Row] | None:
    """Read words that stand under text or sentence, or in an object each, beside a tag for each of them."""
    made: list[Row] = []
    for row in _records(file):
        key = next((key for key in ("tokens", "words", "sentence", "text") if isinstance(row.get(key), list)), "")
        bare = (one if isinstance(one, dict) and {*one} <= PLACED else {"text": one} for one in row.get(key, ()))
        words = [one.get("text", one.get("token")) for one in bare]
        tags = [name for name in TAGS if _are_words(row.get(name)) and len(row[name]) == len(words)]
        if not _are_words(words) or not tags:
            return None
        made.append({**{name: value for name, value in row.items() if name != key}, "tokens": words})
    return made


def _tagged_entities(whole: Any, file: SourceFile) -> list[Row] | None:
    made = []
    for row in _records(file):
        tokens, tags = row.get("tokens"), row.get("entities")
        if not _are_words(tokens) or not _are_words(tags) or len(tokens) != len(tags):
            return None
        made.append({key: value for key, value in row.items() if key != "entities"} | {"ner_tags": tags})
    return made


def _wrench(whole: Any, file: SourceFile) -> list[Row] | None:
    made = []
    for id, row in whole.items() if isinstance(whole, dict) else ():
        if not isinstance(row, dict):
            return None
        data: Any = row.get("data")
        weak: Any = row.get("weak_labels")
        text = data.get("text") if isinstance(data, dict) else None
        if not isinstance(weak, list) or not weak:
            return None
        known = row.get("label") not in (None, -1)
        if isinstance(text, str) and all(isinstance(label, str | int) for label in weak):
            names = [f"lf_{k}" for k in range(1, len(weak) + 1)]
            labels = [None if label == -1 else label for label in weak]
            said = {"annotators": names, "labels": labels} if known or any(n != -1 for n in weak) else {}
            made.append({"id": id, "text": text, **said, **({"gold": row["label"]} if known else {})})
        elif _are_words(text) and len(weak) == len(text) and all(isinstance(w, list) for w in weak):
            if len({len(w) for w in weak}) > 1:
                return None
            columns = {f"lf_{k}": [None if t == -1 else t for t in c] for k, c in enumerate(zip(*weak), start=1)}
            gold = {"ner_tags": row["label"]} if known else {}
            made.append({"id": id, "tokens": text, "annotations": columns, **gold})
        else:
            return None
    return made


def _teamware(whole: Any, file: SourceFile) -> list[Row] | None:
    made = []
    for row in _records(file):
        sets = row.get("annotation_sets")
        said: list[Any] = []
        for name, own in sets.items() if isinstance(sets, dict) else ():
            entries = own.get("annotations") if isinstance(own, dict) else None
            said += [(name, entry) for entry in entries] if isinstance(entries, list) else [(name, None)]
        if not isinstance(sets, dict) or any(
            not isinstance(e, dict) or e.get("type") != "Document" or not isinstance(e.get("features"), dict)
            for _, e in said
        ):
            return None  # GATE's own documents: spans, in sets that are no annotators
        others = {key: value for key, value in row.items() if key not in ("annotation_sets", "name")}
        answers = [{"annotator": name, **entry["features"]} for name, entry in said]
        made.append({"id": row.get("name"), **others, "annotations": answers})
    return made


def _sentences(whole: Any, file: SourceFile) -> list[Row] | None:
    """Read documents whose tokens and tags stand by sentence, in two lists or in a list of objects."""
    made: list[Row] = []
    for k, row in enumerate(_records(file)):
        key = next((key for key in TAGS if isinstance(row.get(key), list)), "")
        inner = row.get("sentences")
        if key and isinstance(row.get("tokens"), list) and len(row["tokens"]) == len(row[key]):
            inner = [{"tokens": words, key: tags} for words, tags in zip(row["tokens"], row[key])]
        if not isinstance(inner, list) or not inner or not all(isinstance(sentence, dict) for sentence in inner):
            return None
        document = str(next((row[name] for name in (*DOCUMENTS, "id", "doc_key") if name in row), k))
        others = {name: value for name, value in row.items() if name not in ("tokens", "sentences", key, "id")}
        for number, sentence in enumerate(inner):
            tags = next((sentence[name] for name in TAGS if name in sentence), None)
            if not _are_words(sentence.get("tokens")) or not isinstance(tags, list):
                return None
            made.append({**others, **sentence, "id": f"{document}/{number}", "document": document})
    return made


def _by_column(whole: Any, file: SourceFile) -> list[Row] | None:
    """Read one object that holds a list for each column."""
    columns = whole if isinstance(whole, dict) and len(whole) > 1 else {}
    known: Any = next((columns[name] for name in ROWS if name in columns), None)
    if not isinstance(known, list) or not all(isinstance(c, list) and len(c) == len(known) for c in columns.values()):
        return None
    if not all(_are_words(one) or (isinstance(one, str) and " " in one) for one in known):
        return None  # words of one text
    return [dict(zip(columns, cells)) for cells in zip(*columns.values())]


def _entities(whole: Any, file: SourceFile) -> list[Row] | None:
    """Read texts with entities by their places or words, whatever these are called."""
    made: list[Row] = []
    marked = 0
    rows = [({plain_name(key): value for key, value in row.items()}, row) for row in _records(file)]
    others = {key for plain, _ in rows for key, value in plain.items() if _are_placed(value)}
    others |= {key for plain, _ in rows for key, value in plain.items() if value == [] and key not in EXTRAS}
    usual = (*ENTITIES, *others) if len(others) == 1 else ENTITIES
    for plain, row in rows:
        at = next((key for key in TEXT if isinstance(plain.get(key), str)), "")
        by = next((key for key in usual if key in plain), "")
        by = by or next((key for key in TYPED if plain.get(key) == {} or _are_placed(_by_type(plain.get(key)))), "")
        given = _answer(plain[by]) if isinstance(plain.get(by), str) else plain.get(by)
        given = _by_type(given)
        if not at or not isinstance(given, list) or ("spans" in plain and by != "spans"):  # would be written over
            return None
        found = [_entity(entry) for entry in given]
        if None in found:
            return None
        if any("start" not in one for one in found if one) and all("text" in one for one in found if one):
            found = [{"text": one["text"], "label": one["label"]} for one in found if one]  # some have no place
        marked += len(found)
        inner = plain.get("metadata")
        names = [plain.get(name) for name in (*NAMES["annotator"], "model", "model_name")]
        names += [inner.get("model_name")] if isinstance(inner, dict) else []
        usually = f"{'langextract: ' * (by == 'extractions')}{PurePosixPath(file.name).stem}"
        name = next((name for name in names if isinstance(name, str | int) and name != ""), usually)
        taken = (at, by, "model", "model_name", *NAMES["annotator"])
        kept = {key: value for key, value in row.items() if plain_name(key) not in taken}
        made.append({**kept, "text": plain[at], "annotator": name, "spans": found})
    return made if marked else None


def _are_placed(value: Any) -> bool:
    """Say whether these are entities that all have their places."""
    found = [_entity(entry) for entry in value] if isinstance(value, list) else []
    return bool(found) and all(entity is not None and "start" in entity for entity in found)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [None]


def _by_type(given: Any) -> Any:
    """Return entities under their types as a list: {"PER": ["Ada"]}, {"PER": [[0, 3]]}, {"PER": {"Ada": [[0, 2]]}}."""
    if not isinstance(given, dict) or any(is_person(key) and key.lower() not in ("person", "persons") for key in given):
        return given
    found: list[Any] = []
    for label, own in given.items():
        quoted = own if isinstance(own, dict) else {}  # CLUENER: the places of each word
        entries = [{"text": words, "at": at} for words, places in quoted.items() for at in _list(places)]
        for entry in entries or _list(own):
            entry = entry if isinstance(entry, dict) else {"at": entry} if isinstance(entry, list) else {"text": entry}
            at = entry.get("at")
            if isinstance(at, list) and len(at) == 2:
                entry = {**entry, "start": at[0], "end": at[1]}
            found.append({"label": label, **entry})
    return found


def _answer(text: str) -> list[Any] | None:
    """Return what a model wrote: JSON, or a list as Python prints it, of "words <> type"."""
    if " <> " in text and len(text) < 20_000:
        try:
            items = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
        pairs = [item.split(" <> ") for item in items if isinstance(item, str)] if isinstance(items, list) else []
        return [{"text": pair[0], "label": pair[-1]} for pair in pairs]
    return parse_answer(text)


def _entity(entry: Any) -> Row | None:
    """Return a span with start, end and label, or with its words and label; None if it is neither."""
    if not isinstance(entry, Mapping):
        return None
    plain = placed(entry)
    inside = next((v for v in entry.values() if isinstance(v, dict) and set(v) & set(START)), {})
    plain |= {plain_name(key): value for key, value in inside.items()}  # places in an object of their own
    if any(plain.get(key) for key in (*AUTHORS, *VOTES)):
        return None  # whoever marked it would be lost
    label = next((plain[key] for key in LABEL if isinstance(plain.get(key), str) and plain[key]), None)
    inner = plain.get("labels")
    if label is None and isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], dict):
        label = inner[0].get("value")  # Flair
    if label is None and "word" in plain and str(plain.get("entity"))[1:2] != "-":  # else B-PER: pieces of spans
        label = plain.get("entity")
    words = next((plain[key] for key in WORDS if isinstance(plain.get(key), str) and plain[key]), None)
    start, end = (next((plain[key] for key in keys if key in plain), None) for keys in (START, END))
    if not isinstance(label, str) or not label:
        return None
    if isinstance(start, int) and isinstance(end, int):
        quoted = {} if words is None or "entity_group" in plain else {"text": words}  # Transformers change their case
        return {"start": start, "end": end, "label": label, **quoted}
    return {"text": words, "label": label} if words is not None and start is None and end is None else None


SHAPES: dict[str, Callable[[Any, SourceFile], list[Row] | None]] = {
    "GLiNER": _gliner,
    "DyGIE (SciERC)": _dygie,
    "Stanza": _stanza,
    "words with a tag each": _words,
    "tokens with a tag each": _tagged_entities,
    "WRENCH": _wrench,
    "GATE Teamware": _teamware,
    "sentences of documents": _sentences,
    "a list for each column": _by_column,
    "texts with entities": _entities,
}
