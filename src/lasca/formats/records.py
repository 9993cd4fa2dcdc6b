"""JSON records of any origin that name who said what: a text or its tokens, and spans, tags or labels by annotator.

By annotator, in a list of objects, in lists side by side, or in a column each (a record on one line of a file):

    {"id": 1, "text": "Ada visited Rome", "annotations": {"ann": [[0, 3, "PER"]], "ben": []}}
    {"id": 2, "tokens": ["Ada", "left"], "annotations": [{"annotator": "ann", "labels": ["B-PER", "O"]}]}
    {"id": 3, "text": "so nice", "annotators": ["ann", "ben"], "labels": ["good", "bad"]}
    {"id": 4, "tokens": ["Ada", "left"], "ann": ["B-PER", "O"], "ben": ["O", "O"], "gpt-4": ["B-PER", "O"]}
    {"id": 5, "text": "Ada left", "annotator": "ann", "spans": [{"start": 0, "end": 3, "label": "PER"}]}
    {"id": 6, "text": "Ada left", "spans": [{"start": 0, "end": 3, "label": "PER", "annotators": ["ann", "ben"]}]}
    {"id": 7, "text": "Ada left", "model": "gpt-4", "entities": [{"text": "Ada", "label": "PER"}]}

Whoever is named with an empty list looked and marked nothing: all O; whoever is named nowhere in a record has not seen
it. A single label is one of the whole document; several of an annotator under names of their own (`intent`, `urgency`)
are answers to questions, of which `question` names one. Keys that say so by their names are golds (`gold`, `majority`,
`label` beside what annotators said) or models (`gpt-4`). Spans that are quotes only, also in JSON that a `model` wrote
as its `response` (`output`, `completion`), are looked for in the text (see llm-batch). Files of the tool Potato
(`annotated_instances.jsonl`, a folder per annotator) are read too; `question` names one of its schemes where there are
labels for several. Spans over tokens by their numbers are not read: nothing says whether the last one is inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Unpack

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats.base import (
    Collector,
    SourceFile,
    as_label,
    as_name,
    first,
    id_of,
    named_in,
    parse_json_items,
    pick,
    refuse_authors,
    refuse_undone,
    undone,
)
from lasca.formats.documents import Verdict
from lasca.formats.llm_batch_answers import PlainText, parse_answer, place_quotes, quoted_spans
from lasca.formats.names import (
    AUTHORS,
    END,
    NAMES,
    PAIRS,
    START,
    in_order,
    is_level,
    is_person,
    placed,
    plain_name,
    role_of,
    speaker,
)
from lasca.formats.sources import JSON
from lasca.formats.texts import Answer, Mark, Said, Spans, TextPool
from lasca.schemes import OUTSIDE

__all__ = ["NAME", "read", "sniff"]

NAME = "records"
TEXT = ("text", "sentence", "content", "body", "document", "document_text", "note_text", "tweet", "comment",
        "displayed_text")  # fmt: skip
TOKENS = ("tokens", "words", "post_tokens", "tokenized_text")
OWN = ("id", "item_id", "instance_id", "post_id", "note_id")
DOCUMENT, SENTENCE = ("doc_id", "document_id"), ("sentence_id", "sent_id", "sen_id")
IDS = (*OWN, *DOCUMENT, *SENTENCE)
WHO = (*NAMES["annotator"], "task_executor", "created_by", "createdby")
CROWD = ("annotators", "annotator_ids", "annotator_names", "workers", "worker_ids", "raters", "users", "coders")
SAID = ("annotations", "annotation", "labels", "label", "tags", "ner_tags", "entities", "spans", "answers", "votes",
        "responses", "result", "task_result", "annotators", "judgments", "ratings")  # fmt: skip
WRITTEN = ("response", "output", "completion", "generation", "prediction", "raw_output", "raw_response")  # by models
LABEL = ("label", "labels", "type", "tag", "category", "class", "entity_type", "concept_category", "annotation", "name")
QUOTE = ("text", "span", "entity", "quote", "mention", "value", "word")
PARTS = {"id", "title", "schema", *START, *END, *PAIRS, *LABEL, *QUOTE, *AUTHORS, *CROWD}  # of a span
OTHERS = ("_input_hash", "_task_hash", "_session_id", "annotation_sets", "versions", "lasca", "predictions",
          "data", "answer", "annotation_id")  # fmt: skip
REMARKS = ("comment", "comments", "note", "notes", "explanation", "rationale", "confidence", "lead_time", "duration")
NUMBERS = "spans over tokens: it is not clear whether they count tokens or characters"
RATHER = "Give a tag for every token, or places by the characters of the text"
ENOUGH = 4  # spans of which no two stand at one place, so that nobody spoke of what others did
OUTSIDES = (OUTSIDE, "_", "")
Voice = tuple[str, str, Any]  # role, name, what was said


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how sure it is: records that say who said what of a text."""
    mine = [file for file in files if file.name.lower().endswith(JSON)]
    rows = [row for file in mine for row in file.records]
    if not rows or any(key in row for row in rows for key in OTHERS):
        return 0.0
    if "displayed_text" in rows[0] and "label_annotations" in rows[0]:
        return 0.97
    if _typed(rows):
        return 0.0  # spans by their types: see `shapes`
    try:
        columns = _columns(rows)
        found = [_voices(row, "", columns) for row in rows]
    except FormatError:
        return 0.6  # reading says what is wrong
    said = [[row[key] for key in SAID if key in row and key not in CROWD] for row in rows]
    empty = [bool(own) and not any(own) for own in said]  # nobody labelled these
    if 2 * sum(bool(voices) for voices in found) <= len(rows) - sum(empty):
        return 0.0
    spans = any(said and _are_spans(said) for voices in found for _, _, said in voices)
    return 0.97 if spans or any(_listed(row.get(key)) for row in rows for key in CROWD) else 0.84


def read(files: Sequence[SourceFile], *, question: str | None = None, **spans: Unpack[Spans]) -> CrowdCorpus:
    """Read records; the options are those of all readers of spans, and `question` for labels of several kinds."""
    pool = TextPool(files, NAME, **spans)
    rows: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    mine = pick(files, JSON, pool.collector)
    for file in mine:
        if _typed(file.records):
            raise file.error("the spans stand under their types, and nobody is named who made them", 1)
        rows[file.shown] = list(parse_json_items(file))
    records = _Records(pool.collector, _columns(row for own in rows.values() for _, row in own))
    said: dict[str, list[Said]] = {}
    for file in mine:
        said[file.shown] = [s for line, row in rows[file.shown] for s in records.said(file, line, row)]
    keys = [key for file in files for row in file.records for key in row if plain_name(key) in WHO]
    if not records.n_tags:
        return refuse_authors(pool.corpus_of(said, "question", question), keys, files[0].shown)
    marks = [len(s.marks or ()) for given in said.values() for s in given if isinstance(s, Answer)]
    pool.collector.count("spans left out", sum(marks))
    return refuse_authors(pool.collector.corpus(), keys, files[0].shown)


class _Records:
    """Turns records into answers with spans, labels of documents, and, in the collector, tags of tokens."""

    def __init__(self, collector: Collector, columns: Sequence[str]) -> None:
        self.collector, self.columns = collector, columns
        self.n_tags = 0

    def said(self, file: SourceFile, line: int, row: dict[str, Any]) -> Iterator[Said]:
        """Yield the answers of one record."""
        where = f"{file.shown}:{line}"
        row = {key: _side_by_side(value) if key in SAID else value for key, value in row.items()}
        tokens, text = _tokens(row), _text(row)
        if tokens is None and text is None:
            raise FormatError("a record has no text", path=where, got=", ".join(row), hint="It must stand under 'text'")
        whole = text if text is not None else " ".join(tokens or ())
        parts = [first(row, keys) for keys in (DOCUMENT, SENTENCE)]
        both = first(row, OWN) is None and None not in parts  # sentences may be counted anew in each document
        known = "/".join(map(str, parts)) if both else first(row, IDS)
        id = id_of(known, whole, "the id of a record", where)
        if "label_annotations" in row:
            yield from self._potato(row, id, whole, where, PurePosixPath(file.name).parent.name or "annotator")
            return
        row = self._done(row, where)
        voices = _voices(row, where, self.columns)
        used = _used(row, voices)
        metadata = self._metadata(row, used, where)
        if not voices:
            self.collector.count("records that nobody labelled", 1, where)
            yield Answer(id, whole, where, metadata=metadata)
        self._count_further(row, where)
        by_tags = tokens is not None and (text is None or any(_is_tags(value, tokens) for _, _, value in voices))
        for role, name, value in voices:
            if value == []:
                self.collector.count("texts in which somebody marked nothing, all O", 1, f"{where}: {name}")
                value = [OUTSIDE] * len(tokens) if tokens is not None and by_tags else value
            if tokens is not None and _is_tags(value, tokens):
                self._tagged(id, tokens, value, role, name, metadata, where)
            elif isinstance(value, list) and all(isinstance(entry, list | dict) for entry in value):
                if tokens is not None and text is None:
                    raise FormatError(NUMBERS, path=where, got=repr(value), hint=RATHER)
                marks = self._marks(value, whole, where)
                _refuse_numbers(marks, tokens or (), whole, where)
                yield Answer(id, whole, where, name, marks, role, metadata=metadata)
            elif value is not None:
                for asked, said in value.items() if isinstance(value, dict) else [("", value)]:
                    labels = said if isinstance(said, list) else [said]
                    given = tuple(as_label(_plain(label), where) for label in labels if label not in (None, ""))
                    yield Verdict(id, whole, where, name, given, asked, role, None, metadata)
                yield Answer(id, whole, where, metadata=metadata)

    def _done(self, row: dict[str, Any], where: str) -> dict[str, Any]:
        """Return a record without annotations that were skipped, or do not count for another reason."""
        kept = dict(row)
        if undone(row) and any(plain_name(key) in WHO for key in row):
            kept = {key: value for key, value in row.items() if plain_name(key) not in SAID}
            self.collector.count(f"annotations that do not count ({undone(row)})", 1, where)
        for key, value in kept.items():
            gone = []
            if key in SAID and isinstance(value, list):
                gone = [e for e in value if isinstance(e, dict) and undone(e) and _of_object(e, where) is not None]
                kept[key] = [entry for entry in value if entry not in gone]
            elif key in SAID and isinstance(value, dict):
                gone = [said for said in value.values() if isinstance(said, dict) and undone(said)]
                kept[key] = {who: said for who, said in value.items() if said not in gone}
            for entry in gone:
                self.collector.count(f"annotations that do not count ({undone(entry)})", 1, where)
        return kept

    def _marks(self, entries: list[Any], text: str, where: str) -> list[Mark]:
        """Return spans by their places; those that are quotes only are looked for in the text."""
        if not all(map(_is_quote, entries)):
            for entry in entries:
                if isinstance(entry, dict):
                    self.collector.count_others("spans", entry, PARTS, where)
            return [_mark(entry, where) for entry in entries]
        quotes, unread = quoted_spans(entries)
        self.collector.count("spans that cannot be read", unread, f"{where}: {entries}")
        chars = align.tokenizer_of(None)(text)
        places = place_quotes(quotes, PlainText(text, chars), self.collector.count, where)
        return [Mark(place.start, place.end, place.label, None, where) for place in places]

    def _count_further(self, row: dict[str, Any], where: str) -> None:
        """Count what objects with an annotator say beside what is read."""
        entries = [e for key in SAID if isinstance(row.get(key), list) for e in row[key] if isinstance(e, dict)]
        for entry in entries:
            if (voice := _of_object(entry, where)) is not None and not isinstance(voice[2], dict):
                for key, value in entry.items():
                    if plain_name(key) not in (*WHO, *IDS) and value not in (voice[2], None, "", []):
                        self.collector.count(f"other values of annotations ({key})", 1, where)

    def _tagged(
        self, id: str, tokens: list[str], tags: list[Any], role: str, name: str, metadata: Mapping[str, str], where: str
    ) -> None:
        self.n_tags += 1
        self.collector.sequence(id, tokens, metadata={"document": id, **metadata}, where=where)
        labels = [None if tag is None or tag == -100 else as_label(_plain(tag), where) for tag in tags]
        self.collector.annotate(id, name, labels, role=role, where=where)

    def _potato(self, row: dict[str, Any], id: str, text: str, where: str, name: str) -> Iterator[Said]:
        """Read a line of Potato: labels by scheme, and spans in a list or by scheme."""
        spans, labels = row.get("span_annotations"), row["label_annotations"]
        spans = [s for each in spans.values() for s in each] if isinstance(spans, dict) else spans or []
        if not isinstance(labels, dict) or not isinstance(spans, list):
            raise FormatError("these annotations of Potato cannot be read", path=where, got=repr(labels))
        for scheme, chosen in labels.items():
            names = (
                [key for key, value in chosen.items() if value not in ("", None)] if isinstance(chosen, dict) else []
            )
            yield Verdict(id, text, where, name, tuple(as_label(n, where) for n in names), str(scheme))
        yield Answer(id, text, where, name, [_mark(span, where) for span in spans])

    def _metadata(self, row: dict[str, Any], used: set[str], where: str) -> dict[str, str]:
        found = {}
        for key, value in row.items():
            if key in used or value is None or value == "":
                continue
            if isinstance(value, str | int | float):
                found[key] = str(value)
            else:
                self.collector.count(f"other values of records ({key})", 1, where)
        return {key: value for key, value in found.items() if key not in ("document", "text")}


def _refuse_numbers(marks: Sequence[Mark], tokens: Sequence[str], text: str, where: str) -> None:
    """Refuse spans that may as well count the tokens of a record, and as characters would cut them."""
    edges = {edge for span in align.locate(tokens, text) or () for edge in span}
    cut = [mark for mark in marks if edges and mark.quoted is None and {mark.start, mark.end} - edges]
    if cut and all(mark.end <= len(tokens) for mark in marks):
        raise FormatError(NUMBERS, path=where, got=f"{cut[0].label} {cut[0].start}-{cut[0].end}", hint=RATHER)


def _plain(label: object) -> object:
    """Return true and false as words, and anything else as it is."""
    return str(label).lower() if isinstance(label, bool) else label


def _side_by_side(value: object) -> object:
    """Return lists side by side, of which one names the annotators, as a list of objects (so `datasets` turns them)."""
    columns = value if isinstance(value, dict) else {}
    lists = [own for own in columns.values() if isinstance(own, list)]
    even = len(lists) == len(columns) > 1 and len(set(map(len, lists))) == 1
    signed = even and not {*WHO}.isdisjoint(map(plain_name, columns))
    return [dict(zip(columns, own)) for own in zip(*lists)] if signed else value


def _text(row: Mapping[str, Any]) -> str | None:
    plain = {plain_name(key): value for key, value in row.items()}
    text = next((plain[key] for key in TEXT if plain.get(key)), None)
    if isinstance(text, dict) and all(isinstance(part, str) for part in text.values()):
        return "\n".join(text.values())  # a post and its reply
    return text if isinstance(text, str) else None


def _tokens(row: Mapping[str, Any]) -> list[str] | None:
    found = next((row[key] for key in TOKENS if key in row), None)
    fine = isinstance(found, list) and found and all(isinstance(token, str) and token.strip() for token in found)
    return found if fine else None


def _used(row: Mapping[str, Any], voices: Sequence[Voice]) -> set[str]:
    """Return the keys that are no metadata."""
    parts = {*TEXT, *TOKENS, *IDS, *WHO, *CROWD, *SAID, *((*_machine(row), *WRITTEN) if _machine(row) else ())}
    parts |= {name for _, name, _ in voices}
    spare = {key for key in SAID if isinstance(row.get(key), str | int) and key not in {name for _, name, _ in voices}}
    parts -= {key for key in spare if voices and _listed(row[key]) is None}  # a label of the text, beside spans
    return {key for key in row if plain_name(key) in parts or key in parts}


def _voices(row: Mapping[str, Any], where: str, columns: Sequence[str]) -> list[Voice]:
    """Return who said what, and the golds beside it; nobody if a record has none of the shapes of the module."""
    said = _spoken(row, where, columns)
    return said + [("gold", key, row[key]) for key in _golds(row, [value for _, _, value in said], columns)]


def _golds(row: Mapping[str, Any], said: Sequence[Any], columns: Sequence[str]) -> list[str]:
    """Return the keys that are called as decisions (gold, majority) and hold the same as what annotators said."""
    further = [key for key in SAID if key != "label" and isinstance(row.get(key), list | dict)]
    taken = {*SAID, *CROWD} - ({"label"} if further else set())  # a label beside what annotators said was decided
    called = [key for key in row if role_of(key) == "gold" and key not in taken]
    tokens = _tokens(row)
    if said and all(isinstance(value, str | int) or value is None for value in said):
        return [key for key in called if isinstance(row[key], str | int) and not isinstance(row[key], bool)]
    called = [key for key in (SAID if columns else called) if key in row and key not in columns]
    if tokens is not None and any(_is_tags(value, tokens) for value in said):
        return [key for key in called if _is_tags(row[key], tokens)]
    return [key for key in called if _are_spans(row[key])] if said and all(map(_are_spans, said)) else []


def _spoken(row: Mapping[str, Any], where: str, columns: Sequence[str]) -> list[Voice]:
    """Return who said what, in whichever of the shapes of the module a record has."""
    tokens = _tokens(row)
    if tokens is None and _text(row) is None:
        return []
    names = next((_listed(row[key]) for key in CROWD if key in row and _listed(row[key])), None)
    for key in (key for key in SAID if key in row):
        value: Any = _side_by_side(row[key])
        if isinstance(value, dict):
            value = _unwrapped({who: one for who, one in value.items() if one is not None})
        if isinstance(value, dict) and value and _by_annotator(value, names, _text(row), tokens):
            return [(role_of(who), as_name(who, "an annotator", where), said) for who, said in value.items()]
        if value == [] and names is not None and key in ("annotations", "entities", "spans"):
            return _by_author([], [], names)
        if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
            authors = [_authors(entry, where) for entry in value]
            if all(authors):
                return _by_author(value, authors, names or [])
            found = [_of_object(entry, where) for entry in value]
            if all(voice is not None for voice in found):
                return [voice for voice in found if voice is not None]
        said = value if _is_lists(value) else _listed(value)
        if names is not None and key not in CROWD and said is not None:
            if len(said) != len(names):
                raise FormatError(f"{len(names)} annotators and {len(said)} {key}", path=where, got=repr(names))
            return [(speaker(str(who)), as_name(who, "an annotator", where), one) for who, one in zip(names, said)]
    own = [(role_of(key), key, row[key]) for key in columns if _is_column(key, row.get(key), tokens)]
    if own:
        return own
    plain = {**row, **{plain_name(key): value for key, value in row.items()}}
    plain = {key: named_in(value) if key in WHO else value for key, value in plain.items()}
    who = next((plain[name] for name in (*WHO, *_machine(row)) if isinstance(plain.get(name), str | int)), None)
    given = next((row[name] for name in SAID if isinstance(row.get(name), list)), None)
    if given is None and _machine(row):
        given = next((parse_answer(row[key]) for key in WRITTEN if isinstance(row.get(key), str)), None)
    if who is None or given is None or not all(isinstance(entry, list | dict) for entry in given):
        return []
    return [(speaker(str(who)), as_name(who, "an annotator", where), given)]


def _machine(row: Mapping[str, Any]) -> list[str]:
    """Return the key that names a language model, if there is one."""
    return [key for key in ("model", "model_name", "llm") if speaker(str(row.get(key, ""))) == "model"]


def _unwrapped(value: dict[str, Any]) -> dict[str, Any]:
    """Return what annotators said without the objects around it: {"ann": {"spans": [...]}} is {"ann": [...]}."""
    inner = {who: [said[key] for key in SAID if key in said] for who, said in value.items() if isinstance(said, dict)}
    plain = len(inner) == len(value) and all(len(lists) == 1 for lists in inner.values())
    return {who: lists[0] for who, lists in inner.items()} if plain else value


def _is_lists(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(isinstance(entry, list) for entry in value)


def _is_quote(entry: object) -> bool:
    """Say whether a span has its words and a label, and no place; labels or words in lists are another shape's."""
    said = entry.items() if isinstance(entry, dict) else ()
    plain = {plain_name(key) for key, value in said if not isinstance(value, list | dict)}
    labelled = plain & (set(LABEL) - {"name"})
    quoted = (plain & set(QUOTE) and plain & set(LABEL)) or ("name" in plain and labelled)
    return bool(quoted) and not {*START, *END} & set(placed(entry) if isinstance(entry, dict) else ())


def _listed(value: object) -> list[Any] | None:
    """Return a list of plain values, also where commas stand between them."""
    if isinstance(value, str) and "," in value:
        return [part.strip() for part in value.split(",")]
    plain = isinstance(value, list) and len(value) > 0 and all(isinstance(v, str | int) or v is None for v in value)
    return list(value) if plain and isinstance(value, list) else None


def _is_labelled(entry: object, text: str | None) -> bool:
    """Say whether a span has a label of its own, and not only the words that stand there."""
    if isinstance(entry, dict):
        return _is_span(entry) and bool(
            {plain_name(key) for key in entry} & {"label", "labels", "type", "tag", "category"}
        )
    if not isinstance(entry, list) or not _is_span(entry):
        return False
    start, end, label = in_order(entry)
    return isinstance(label, str) and not (text is not None and isinstance(end, int) and text[start:end] == label)


def _by_annotator(
    value: Mapping[str, Any], names: list[Any] | None, text: str | None, tokens: list[str] | None
) -> bool:
    """Say whether an object maps annotators to what they said; single labels only where the keys are known names."""
    if all(isinstance(said, list) for said in value.values()):
        entries = [entry for said in value.values() for entry in said]
        tags = tokens is not None and all(not said or _is_tags(said, tokens) for said in value.values())
        return tags or all(_is_labelled(entry, text) for entry in entries)
    named = names is not None and {str(name) for name in names} >= set(value)
    return (named or all(map(is_person, value))) and all(isinstance(said, str | int) for said in value.values())


def _of_object(entry: Mapping[str, Any], where: str) -> Voice | None:
    """Return the annotator and what was said of one object, by its questions where these have names of their own.

    A span with its author is not meant.
    """
    plain = {key: named_in(value) if key in WHO else value for key, value in placed(entry).items()}
    who = first(plain, WHO)
    if who is None or any(key in plain for key in (*START, *END)) or not isinstance(who, str | int):
        return None
    asked = {
        key: _plain(value)
        for key, value in entry.items()
        if (isinstance(value, str | int) or _listed(value))
        and plain_name(key) not in (*WHO, *IDS, *NAMES["time"], *REMARKS)
    }
    said = next((plain[key] for key in SAID if key in plain), asked)
    return None if said == {} else (speaker(str(who)), as_name(who, "an annotator", where), said)


def _typed(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether spans stand under their types, and not under annotators.

    Then every key has one label: its own name, or at least one that no other key has, nor any of its places.
    """
    found: dict[str, list[tuple[int, Mark]]] = {}
    for k, row in enumerate(rows):
        text = _text(row)
        for value in (row[key] for key in SAID if isinstance(row.get(key), dict)):
            if all(isinstance(s, list) and all(_is_labelled(e, text) for e in s) for s in value.values()):
                for key, spans in value.items():
                    found.setdefault(key, []).extend((k, _mark(span, "")) for span in spans)
    marks = {key: spans for key, spans in found.items() if spans}
    labels = {key: {mark.label for _, mark in spans} for key, spans in marks.items()}
    if not marks or all(map(is_person, marks)) or any(len(own) > 1 for own in labels.values()):
        return False
    if all(_singular(key) == _singular(min(own)) for key, own in labels.items()):
        return True
    places = Counter(place for spans in marks.values() for place in {(k, mark.start) for k, mark in spans})
    distinct = len(marks) == len(set().union(*labels.values())) > 1
    return distinct and len(places) >= ENOUGH and max(places.values()) == 1


def _singular(name: str) -> str:
    return plain_name(name).removesuffix("s")


def _authors(entry: Mapping[str, Any], where: str) -> list[str]:
    """Return who marked a span, if it says so."""
    plain = placed(entry)
    if not set(plain) & set(START):
        return []
    who = first(plain, (*AUTHORS, *CROWD), (None, "", []))
    names = who if isinstance(who, list) else [who]
    return [as_name(name, "an annotator", where) for name in names if name is not None]


def _by_author(spans: list[Any], authors: list[list[str]], seen: list[Any]) -> list[Voice]:
    names = sorted({str(name) for own in (*authors, seen) for name in own})  # who has seen it and marked nothing, too
    return [(speaker(n), n, [span for span, own in zip(spans, authors) if n in own]) for n in names]


def _columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the keys under which annotators' tags or spans stand, a column each: at least two that speak alike."""
    lists, fitting, said, tagged = Counter[str](), Counter[str](), dict[str, set[str]](), False
    for row in rows:
        tokens = _tokens(row)
        tagged |= tokens is not None
        for key, value in row.items():
            lists[key] += isinstance(value, list) and value != []
            if _is_column(key, value, tokens):
                fitting[key] += value != []
                said.setdefault(key, set()).update(tag for tag in value if tokens is not None and tag not in OUTSIDES)
    found = [key for key in said if 2 * fitting[key] > lists[key] or (not lists[key] and is_person(key))]
    if sum(is_person(key) or speaker(key) == "model" for key in found) > 1:
        found = [key for key in found if key not in SAID]  # decided, beside columns that are called as people
    people = [key for key in found if is_person(key) or role_of(key) != "annotator"]
    if any(map(is_level, set(found) - set(people))):
        return []
    alike = tagged and all(
        not said[key] or any(said[key] & said[other] for other in found if other != key) for key in found
    )
    return found if len(found) > 1 and (len(people) == len(found) or alike) else []


def _is_column(key: str, value: object, tokens: Sequence[str] | None) -> bool:
    """Say whether a list holds a tag for every token, or, where there are none, spans."""
    if not isinstance(value, list) or key in (*TOKENS, *CROWD):
        return False
    return (
        all(map(_is_span, value))
        if tokens is None
        else _is_tags(value, tokens)
        and all(isinstance(tag, str) or (isinstance(tag, bool) and is_person(key)) for tag in value)
    )


def _is_tags(value: object, tokens: Sequence[str]) -> bool:
    plain = isinstance(value, list) and all(isinstance(tag, str | int) or tag is None for tag in value)
    return plain and isinstance(value, list) and len(value) == len(tokens) and not isinstance(tokens, str)


def _is_span(entry: object) -> bool:
    if isinstance(entry, dict):
        plain = set(placed(entry))
        return bool(plain & set(START) and plain & set(END))
    return isinstance(entry, list) and len(entry) == 3 and isinstance(in_order(entry)[0], int)


def _are_spans(value: object) -> bool:
    return isinstance(value, list) and all(_is_span(entry) or _is_quote(entry) for entry in value)


def _mark(entry: Any, where: str) -> Mark:
    """Read a span: [start, end, label], or an object that has them under usual names."""
    if isinstance(entry, list) and len(entry) == 3:
        (start, end, label), quoted = in_order(entry), None
    elif isinstance(entry, dict):
        refuse_undone(entry, where)
        plain = placed(entry)
        start, end, label, quoted = (
            next((plain[key] for key in names if key in plain), None) for names in (START, END, LABEL, QUOTE)
        )
        label = label[0] if isinstance(label, list) and len(label) == 1 else label
        if not isinstance(start, int | str):
            what = "a span must have one start and one end, in characters of the text"
            raise FormatError(what, path=where, got=repr(entry), hint=RATHER)
    else:
        raise FormatError("a span must be [start, end, label], or an object with these", path=where, got=repr(entry))
    return Mark.of(start, end, label, where, quoted)
