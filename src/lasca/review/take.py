"""Decisions made elsewhere: a filled-in queue.csv, JSON, or an export of an annotation tool.

CSV has a column `decision` beside `item` (or `sequence`, `start`, `stop`): the number of a candidate of queue.csv, 0 or
"none" for no span, "1+2" to keep both, or spans written out as "3-5:PER; 7-8:LOC" (tokens of the sequence, half-open).
JSON is a list of {"item": …, "decision": …} or {"sequence": …, "start": …, "stop": …, "spans": [[3, 5, "PER"]]}.
Anything else is read as an export: what its golds – a curator's annotations, what Prodigy's review recipe wrote – say
of a sequence is a decision on all of it, and where there is none, what people say who did not annotate the run.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lasca import align, formats
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, count
from lasca.files import written
from lasca.formats.tabular import delimiter_of
from lasca.formats.write_tables import guarded
from lasca.review.decisions import Decision
from lasca.review.items import Reading
from lasca.review.spans import Labels

__all__ = ["read_alike", "read_decisions"]

MAX_BYTES = 200 << 20
_SPAN = re.compile(r"\s*(\d{1,9})-(\d{1,9})(?::(.*))?\s*")


def read_decisions(
    path: Path, corpus: CrowdCorpus, queue: Iterable[Mapping[str, Any]], *, who: str = "reviewer", format: str = "auto"
) -> list[Decision]:
    """Read decisions; `queue` are the rows of queue.jsonl, of which numbers choose."""
    if format == "auto" and path.suffix.lower() in (".csv", ".tsv", ".json"):
        found = _own(path)
        if found is not None:
            rows = {str(row["item"]): row for row in queue}
            made = [_decision(path, line, row, rows, who) for line, row in found]
            return [d for d in made if d is not None]
    return list(_export(path, corpus, format))


def _own(path: Path) -> list[tuple[int, dict[str, Any]]] | None:
    """Return the rows of a file of LASCA's own kind with their lines; None if it is of another kind."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise FormatError(f"more than {MAX_BYTES >> 20} MB: this is no list of decisions", path=path)
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError("this is not UTF-8", path=path) from error
    except OSError as error:
        raise FormatError(f"cannot read: {error.strerror or error}", path=path) from error
    if path.suffix.lower() == ".json":
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError("this is not JSON", path=path, got=str(error)) from error
        found = found.get("decisions", found) if isinstance(found, dict) else found
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            return None
        if not all({"item", "sequence"} & set(row) and {"decision", "spans"} & set(row) for row in found):
            return None
        return list(enumerate(found, 1))
    table = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter_of(text.split("\n", 1)[0]))
    limit = csv.field_size_limit(len(text) + 1)
    try:
        if table.fieldnames is None or "decision" not in table.fieldnames:
            return None
        return [(table.line_num, {k: _unguarded(v) for k, v in row.items() if isinstance(v, str)}) for row in table]
    except csv.Error as error:
        raise FormatError("this table cannot be read", path=path, line=table.line_num, got=str(error)) from error
    finally:
        csv.field_size_limit(limit)


def _unguarded(cell: str) -> str:
    """Take away the apostrophe that kept a spreadsheet from running a cell."""
    return cell[1:] if cell[:1] == "'" and guarded(cell[1:]) == cell else cell


def _decision(
    path: Path, line: int, row: dict[str, Any], queue: Mapping[str, Mapping[str, Any]], who: str
) -> Decision | None:
    said = row.get("decision", row.get("spans"))
    if said is None or said == "":
        return None  # not decided yet
    item = str(row.get("item", ""))
    place = queue.get(item)
    try:
        if place is None:
            place = {"sequence": str(row["sequence"]), "start": int(row["start"]), "stop": int(row["stop"])}
        start, stop = int(place["start"]), int(place["stop"])
    except (KeyError, ValueError, TypeError) as error:
        raise FormatError(
            "there is no such item in the queue of this run", path=path, line=line, got=item,
            hint="Give item as in queue.csv, or sequence, start and stop",
        ) from error  # fmt: skip
    candidates = place.get("candidates", [])
    readings = _readings(path, line, said, candidates)
    spans = [span for reading in readings for span in reading]
    start = min([start, *(s for s, _, _ in spans)])
    stop = max([stop, *(e for _, e, _ in spans)])
    shown = {
        "from": written(path.name),
        "candidates": [c.get("spans") for c in candidates],
        "reason": place.get("reason", ""),
    }
    if item in queue:  # a page that is open takes it for done
        shown["item"] = item
    name = row.get("who") or who
    return Decision(str(place["sequence"]), start, stop, readings, who=str(name), shown=shown)


def _readings(path: Path, line: int, said: Any, candidates: list[Any]) -> tuple[Reading, ...]:
    def wrong(hint: str) -> FormatError:
        return FormatError("this is no decision", path=path, line=line, got=said, hint=hint)

    chosen = {c.get("key", str(i)): c["spans"] for i, c in enumerate(candidates, 1)}

    def candidate(number: str) -> Reading:
        if number not in chosen and number != "0":
            raise wrong(f"The item has {count(len(chosen), 'candidate')} ({', '.join(chosen)}); 0 is none of them")
        return tuple((int(s), int(e), str(k)) for s, e, k in chosen.get(number, ()))

    if isinstance(said, list):
        try:
            return (tuple(sorted((int(s), int(e), str(k)) for s, e, k in said)),)
        except (TypeError, ValueError):
            raise wrong("Spans are lists of start, stop and type") from None
    text = str(said).strip()
    if text.lower() == "none":
        return ((),)
    if re.fullmatch(r"[0-9]{1,4}(\+[0-9]{1,4})*", text):
        return tuple(dict.fromkeys(candidate(number) for number in text.split("+")))
    spans = [_SPAN.fullmatch(part) for part in text.split(";")]
    if any(span is None for span in spans):
        raise wrong('Write a number, 0, "1+2", or spans as START-STOP:TYPE; …; what is not decided is left empty')
    return (tuple(sorted((int(m[1]), int(m[2]), (m[3] or "").strip()) for m in spans if m is not None)),)


def _export(path: Path, corpus: CrowdCorpus, format: str) -> Iterable[Decision]:
    """Yield what golds say of whole sequences (a curator's, Prodigy's review), and new people where no gold does."""
    theirs = read_alike(path, corpus, format)
    labels = Labels.of(theirs)
    golds = {name: codes.astype(np.int64) for name, codes in theirs.golds.items()}
    people = {
        name: _column(theirs, theirs.annotation_annotator == a)
        for a, name in enumerate(theirs.annotators)
        if name not in corpus.annotators and theirs.votes[a]
    }
    if not golds and not people:
        raise FormatError(
            "there is nobody in it who is not an annotator of the run, and no gold", path=path,
            hint="Decisions are what other people said; new votes join a run with: lasca update",
        )  # fmt: skip
    for s, id in enumerate(theirs.sequence_ids):
        a, b = int(theirs.offsets[s]), int(theirs.offsets[s + 1])
        found = [_whole(columns, a, b) for columns in (golds, people)]
        for name, codes in (found[0] or found[1]).items():
            if id not in corpus.places or corpus.sequence(id) != theirs.sequence(s):
                raise FormatError(
                    f"sequence {id!r} is not in the run, or has other tokens there", path=path,
                    hint="Decide on what the run wrote, or give the decisions as CSV or JSON with tokens",
                )  # fmt: skip
            yield Decision(id, 0, b - a, (labels.of_sequence(codes),), who=name, shown={"from": written(path.name)})


def _whole(columns: Mapping[str, Any], start: int, stop: int) -> dict[str, list[int]]:
    """Return what columns say of a sequence, those that say something of all of it."""
    parts = {name: codes[start:stop] for name, codes in columns.items()}
    return {name: codes.tolist() for name, codes in parts.items() if stop > start and (codes >= 0).all()}


def read_alike(source: Any, corpus: CrowdCorpus, format: str = "auto", **options: Any) -> CrowdCorpus:
    """Read an export with the tokens that a corpus has for the same texts, where the format lets one choose them."""
    known: dict[str, align.Chars] = {}
    texts = corpus.metadata.get("text")
    for s in range(corpus.n_sequences):
        text, chars = align.spelled(corpus.sequence(s))
        known[text] = chars
        if texts is not None and texts[s] and corpus.token_chars is not None:
            a, b = int(corpus.offsets[s]), int(corpus.offsets[s + 1])
            known[texts[s]] = [(int(x), int(y)) for x, y in corpus.token_chars[a:b]]
    usual = align.tokenizer_of(None)
    try:
        return formats.read(source, format=format, tokenizer=lambda text: known.get(text) or usual(text), **options)
    except ParameterError as error:
        if "tokenizer" not in str(error):
            raise
        return formats.read(source, format=format, **options)


def _column(corpus: CrowdCorpus, mine: Any) -> Any:
    codes = np.full(corpus.n_tokens, -1, np.int64)
    codes[corpus.annotation_token[mine]] = corpus.annotation_label[mine]
    return codes
