"""Parts of a corpus, corpora behind each other, a corpus as a table, and annotators by number instead of name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lasca.arrays import Array, Codes, Ints, borders, ranges
from lasca.corpus.build import index_range, sorted_by_token
from lasca.corpus.evidence import KnownLabels, SoftVotes
from lasca.corpus.report import LoadReport
from lasca.corpus.strings import Strings
from lasca.errors import CorpusError, ParameterError
from lasca.estimator import check_choice, check_number, generator
from lasca.records import frame

if TYPE_CHECKING:
    from lasca.corpus.record import CrowdCorpus

__all__ = ["concat", "named", "pseudonymise", "select", "split_indices", "to_table"]

ABOUT_ANNOTATORS = ("annotators", "kinds", "families", "votes")
NEVER_SEEN = ("person", None, True)
"""Kind, family and vote of an annotator who is in none of the corpora."""


def select(corpus: CrowdCorpus, sequences: npt.ArrayLike | None, annotators: Iterable[str] | None) -> dict[str, Any]:
    """Return the fields that change when only some sequences and annotators are kept."""
    fields: dict[str, Any] = {} if sequences is None else _select_sequences(corpus, sequences)
    if annotators is None:
        return fields
    start = fields.get("token_start", corpus.token_start)
    annotator = fields.get("annotation_annotator", corpus.annotation_annotator)
    label = fields.get("annotation_label", corpus.annotation_label)
    position = {name: i for i, name in enumerate(corpus.annotators)}
    wanted = list(dict.fromkeys(annotators))
    for name in wanted:
        if name not in position:
            raise CorpusError("there is no annotator of that name", got=name)
    kept = sorted(position[name] for name in wanted)
    new_code = np.full(len(position), -1, np.int32)
    new_code[kept] = np.arange(len(kept), dtype=np.int32)
    stays = new_code[annotator] >= 0
    before = borders(stays)
    soft = fields.get("soft", corpus.soft)
    return fields | {
        **{name: tuple(getattr(corpus, name)[i] for i in kept) for name in ABOUT_ANNOTATORS},
        "soft": None if soft is None else soft.keep(new_code),
        "annotation_annotator": new_code[annotator[stays]],
        "annotation_label": label[stays],
        "token_start": before[start],
    }


def _select_sequences(corpus: CrowdCorpus, sequences: npt.ArrayLike) -> dict[str, Any]:
    chosen = _sequence_indices(corpus, sequences)
    tokens = ranges(corpus.offsets[chosen], corpus.offsets[chosen + 1])
    lengths = np.diff(corpus.offsets)[chosen]
    votes = np.diff(corpus.token_start)[tokens]
    at = ranges(corpus.token_start[tokens], corpus.token_start[tokens + 1])
    return {
        "tokens": corpus.tokens.take(tokens),
        "offsets": borders(lengths),
        "sequence_ids": corpus.sequence_ids.take(chosen),
        "annotation_annotator": corpus.annotation_annotator[at],
        "annotation_label": corpus.annotation_label[at],
        "token_start": borders(votes),
        "golds": {name: gold[tokens] for name, gold in corpus.golds.items()},
        "soft": None if corpus.soft is None else corpus.soft.take(tokens),
        "known": None if corpus.known is None else corpus.known.take(tokens),
        "metadata": {name: column.take(chosen) for name, column in corpus.metadata.items()},
        "token_metadata": {name: column.take(tokens) for name, column in corpus.token_metadata.items()},
        "token_chars": None if corpus.token_chars is None else corpus.token_chars[tokens],
    }


def _sequence_indices(corpus: CrowdCorpus, sequences: npt.ArrayLike) -> Ints:
    given = np.asarray(sequences)
    if given.size == 0 and given.dtype != np.bool_:
        return np.zeros(0, np.int64)
    if given.dtype == np.bool_:
        if given.shape != (corpus.n_sequences,):
            raise CorpusError(f"a mask of sequences needs {corpus.n_sequences} entries", got=given.shape)
        return np.flatnonzero(given)
    if given.dtype.kind in "iu":
        indices = given.astype(np.int64).ravel()
        if indices.min() < 0 or indices.max() >= corpus.n_sequences:
            raise CorpusError(f"sequence indices must lie in 0..{corpus.n_sequences - 1}", got=int(indices.max()))
        return indices
    return np.array([corpus.index(str(name)) for name in given.ravel()], np.int64)


def concat(
    corpora: Sequence[CrowdCorpus], labels: Sequence[str] | None = None, annotators: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the fields of one corpus made of several.

    `labels` and `annotators` are sorted by name unless all of them are given, and perhaps more, in an order.
    """
    if not corpora:
        raise CorpusError("there is no corpus to put together", hint="Give at least one")
    labels = sorted({label for c in corpora for label in c.labels}) if labels is None else labels
    who = _same_people(corpora)
    annotators = sorted(who) if annotators is None else annotators
    starts = borders([c.n_tokens for c in corpora])
    gold_names = sorted({name for c in corpora for name in c.golds})
    label_code = [_recode(c.labels, labels, np.int16) for c in corpora]
    annotator_code = [_recode(c.annotators, annotators, np.int32) for c in corpora]
    token = [c.annotation_token.astype(np.int64) + start for c, start in zip(corpora, starts)]
    offsets = [c.offsets[1:] + start for c, start in zip(corpora, starts)]
    chars = [c.token_chars for c in corpora if c.token_chars is not None]
    return {
        **sorted_by_token(
            np.concatenate(token),
            np.concatenate([code[c.annotation_annotator] for c, code in zip(corpora, annotator_code)]),
            np.concatenate([code[c.annotation_label] for c, code in zip(corpora, label_code)]),
            _joined([c.tokens for c in corpora]),
            np.concatenate([[0], *offsets]),
        ),
        "labels": tuple(labels),
        "annotators": tuple(annotators),
        **{
            field: tuple(who.get(name, NEVER_SEEN)[i] for name in annotators)
            for i, field in enumerate(ABOUT_ANNOTATORS[1:])
        },
        "soft": _soft(corpora, starts, annotator_code, label_code, len(labels)),
        "known": _known(corpora, starts, label_code, len(labels)),
        "sequence_ids": _joined([c.sequence_ids for c in corpora]),
        "golds": {
            name: np.concatenate([_gold(c, name, k) for c, k in zip(corpora, label_code)]) for name in gold_names
        },
        "metadata": _columns([(c.metadata, c.n_sequences) for c in corpora]),
        "token_metadata": _columns([(c.token_metadata, c.n_tokens) for c in corpora]),
        "token_chars": np.concatenate(chars) if len(chars) == len(corpora) else None,
        "load_report": LoadReport.merged(c.load_report for c in corpora),
    }


def _same_people(corpora: Sequence[CrowdCorpus]) -> dict[str, tuple[str, str | None, bool]]:
    """Return kind, family and vote of every annotator; corpora that differ in them are refused."""
    who: dict[str, tuple[str, str | None, bool]] = {}
    for corpus in corpora:
        for name, about in zip(corpus.annotators, zip(corpus.kinds, corpus.families, corpus.votes)):
            if who.setdefault(name, about) != about:
                one, other = (
                    f"{k}{'' if f is None else f' of family {f}'}, {'votes' if v else 'does not vote'}"
                    for k, f, v in (who[name], about)
                )
                raise CorpusError(f"annotator {name!r} is ({one}) in one corpus and ({other}) in another")
    return who


def _soft(
    corpora: Sequence[CrowdCorpus], starts: Any, annotator_code: list[Any], label_code: list[Any], n_labels: int
) -> SoftVotes | None:
    recoded = [
        None if c.soft is None else replace(c.soft.recoded(code, n_labels), annotator=who[c.soft.annotator])
        for c, who, code in zip(corpora, annotator_code, label_code)
    ]
    joined = SoftVotes.joined(zip(recoded, starts))
    return None if joined is None else SoftVotes.of(joined.token, joined.annotator, joined.proba)


def _known(corpora: Sequence[CrowdCorpus], starts: Any, label_code: list[Any], n_labels: int) -> KnownLabels | None:
    recoded = [None if c.known is None else c.known.recoded(code, n_labels) for c, code in zip(corpora, label_code)]
    return KnownLabels.joined(zip(recoded, starts))


def _columns(given: list[tuple[Mapping[str, Strings], int]]) -> dict[str, Strings]:
    """Join columns of metadata by name; where a corpus has none of that name, the entries are empty."""
    names = sorted({name for columns, _ in given for name in columns})
    return {name: _joined([cs.get(name, Strings([""] * n)) for cs, n in given]) for name in names}


def _recode(names: Sequence[str], all_names: Sequence[str], dtype: Any) -> Array:
    position = {name: i for i, name in enumerate(all_names)}
    return np.array([position[name] for name in names], dtype)


def _gold(corpus: CrowdCorpus, name: str, code: Codes) -> Codes:
    if name not in corpus.golds:
        return np.full(corpus.n_tokens, -1, np.int16)
    return np.append(code, np.int16(-1))[corpus.golds[name]]


def _joined(columns: list[Strings]) -> Strings:
    return Strings(pa.concat_arrays([column.arrow for column in columns]))


def split_indices(
    corpus: CrowdCorpus, fractions: Sequence[float], seed: int | np.random.Generator, by: str | None
) -> list[Ints]:
    """Return the sequence indices of each part, in rising order."""
    shares = [check_number("fractions", f, low=0, high=1) for f in fractions]
    if not shares or sum(shares) > 1 + 1e-9:
        raise ParameterError("fractions", tuple(fractions), "at least one number, adding up to at most 1")
    group: Array
    if by is None:
        group = np.arange(corpus.n_sequences)
    elif by in corpus.metadata:
        group = corpus.metadata[by].codes()[0]
    else:
        raise ParameterError("by", by, f"a metadata column ({', '.join(corpus.metadata) or 'there is none'})")
    n_groups = int(group.max()) + 1 if len(group) else 0
    order = generator(seed).permutation(n_groups)
    ends = np.rint(np.cumsum(shares) * n_groups).astype(np.int64)
    if sum(shares) < 1 - 1e-9:
        ends = np.append(ends, n_groups)
    part_of = np.empty(n_groups, np.int64)
    part_of[order] = np.searchsorted(ends, np.arange(n_groups), side="right")
    return [np.flatnonzero(part_of[group] == part) for part in range(len(ends))]


def to_table(corpus: CrowdCorpus, kind: str, backend: str) -> Any:
    """Return the annotations or the tokens as a frame of the wanted library."""
    check_choice("kind", kind, ("annotations", "tokens", "soft"))
    position = index_range(corpus.n_tokens) - np.repeat(corpus.offsets[:-1], np.diff(corpus.offsets))
    soft = corpus.soft
    if kind == "soft":
        at = pa.array(np.zeros(0, np.int64) if soft is None else soft.token)
    else:
        at = pa.array(corpus.annotation_token if kind == "annotations" else index_range(corpus.n_tokens))
    columns: dict[str, Any] = {
        "sequence": corpus.sequence_ids.arrow.take(pa.array(corpus.token_sequence)).take(at),
        "position": pa.array(position.astype(np.int32)).take(at),
        "token": corpus.tokens.arrow.take(at),
    }
    if kind == "annotations":
        columns["annotator"] = named(corpus.annotation_annotator, corpus.annotators)
        columns["label"] = named(corpus.annotation_label, corpus.labels)
    elif kind == "soft":
        columns["annotator"] = named(np.zeros(0, np.int32) if soft is None else soft.annotator, corpus.annotators)
        proba = np.zeros((0, corpus.n_labels), np.float32) if soft is None else soft.proba
        _add(columns, "label", {label: pa.array(proba[:, t]) for t, label in enumerate(corpus.labels)})
    else:
        _add(columns, "metadata", {name: column.arrow for name, column in corpus.token_metadata.items()})
        _add(columns, "gold", {name: named(gold, corpus.labels) for name, gold in corpus.golds.items()})
        if corpus.known is not None:
            _add(columns, "labels", {"known": _allowed_names(corpus.known, corpus.n_tokens, corpus.labels)})
    return frame(pa.table(columns), backend)


def _add(columns: dict[str, Any], what: str, more: Mapping[str, Any]) -> None:
    """Add columns whose names come from files: one of a name that is taken says what it is as well."""
    for name, column in more.items():
        columns[name if name not in columns else f"{what} {name}"] = column


def _allowed_names(known: KnownLabels, n_tokens: int, labels: Sequence[str]) -> Any:
    rows: list[list[str] | None] = [None] * n_tokens
    for token, allowed in zip(known.token.tolist(), known.allowed):
        rows[token] = [labels[t] for t in np.flatnonzero(allowed).tolist()]
    return pa.array(rows, pa.list_(pa.large_string()))


def named(codes: Array, names: Sequence[str]) -> Any:
    """Return the names that codes stand for as an Arrow column; what is below 0 is null."""
    given = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.array(names, pa.large_string()).take(given)


def pseudonymise(corpus: CrowdCorpus) -> CrowdCorpus:
    """Return the corpus with annotators called A1, A2, …

    Numbers follow the volume of work, not the order of the names: anybody with a list of the names could undo that.
    What else may hold a name goes as well: the reader's examples and notes, the source's path, and columns of metadata
    with a value that is an annotator's name. Tokens and sequence ids stay as they are.
    """
    n = np.bincount(corpus.annotation_annotator, minlength=corpus.n_annotators)
    order = np.argsort(-n, kind="stable")
    code = np.empty(corpus.n_annotators, np.int64)
    code[order] = np.arange(corpus.n_annotators)
    names = tuple(f"A{i + 1}" for i in range(corpus.n_annotators))
    known = set(corpus.annotators)
    metadata = {name: column for name, column in corpus.metadata.items() if known.isdisjoint(set(column))}
    hidden = known.difference(corpus.tokens) if corpus.token_metadata else known  # what is said in the text stays
    of_tokens = {name: column for name, column in corpus.token_metadata.items() if hidden.isdisjoint(set(column))}
    dropped = len(corpus.metadata) - len(metadata) + len(corpus.token_metadata) - len(of_tokens)
    notes = ["names of annotators were replaced; notes and examples of the reader were left out"]
    if dropped:
        notes.append(f"{dropped} metadata columns were left out: they hold names of annotators")
    report = LoadReport("", corpus.load_report.format, corpus.load_report.counts, {}, tuple(notes))
    changed = corpus.with_annotations(
        names, corpus.annotation_token, code[corpus.annotation_annotator], corpus.annotation_label
    )
    about: dict[str, Any] = {name: tuple(getattr(corpus, name)[i] for i in order) for name in ("kinds", "votes")}
    families = _numbered([corpus.families[i] for i in order])
    soft = None if corpus.soft is None else corpus.soft.keep(code.astype(np.int32))
    return replace(
        changed, **about, families=families, soft=soft, metadata=metadata, token_metadata=of_tokens, load_report=report
    )


def _numbered(families: list[str | None]) -> tuple[str | None, ...]:
    """Call families F1, F2, … in the order of their first member: their names may name people."""
    number: dict[str, str] = {}
    return tuple(None if name is None else number.setdefault(name, f"F{len(number) + 1}") for name in families)
