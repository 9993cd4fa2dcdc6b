"""More data for an earlier run: new texts, new annotators, new votes on old texts – and what they change.

Sequences are the same if their ids and tokens are; what a new file says of them joins what the run has, and a later
word of the same annotator on the same token replaces the earlier one. All other sequences are new; one whose id is
taken by another text gets a name of its own. Nothing goes unsaid: see `Joined` and `changes`.

Where the model can go on from its statistics (`history=`) and no old text is touched, only the new texts are inferred:
old votes are not read again, and old labels stay. Else the model is run anew on everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from lasca.arrays import Array, Bools, Ints
from lasca.corpus import CrowdCorpus, Strings
from lasca.errors import CorpusError, StoreError
from lasca.files import check_output, whole_folder
from lasca.pipeline.folder import save_truth
from lasca.pipeline.source import paths
from lasca.pipeline.way import run
from lasca.review.project import Project, same_model
from lasca.review.take import read_alike
from lasca.truth import Truth, TruthModel
from lasca.truth.base import Progress, annotator_table

__all__ = ["Joined", "changes", "go_on", "join", "update"]

EXAMPLES = 10
MOVED = 0.02
"""An annotator's reliability moved if it left its earlier interval, and by at least this much."""


@dataclass(frozen=True)
class Joined:
    """Two corpora as one: the sequences of the first, then those of the second that are new."""

    corpus: CrowdCorpus
    n_old: int
    """How many sequences were there before."""
    renamed: tuple[str, ...]
    """New sequences whose ids were taken by other texts, as they are called now."""
    new_votes: int
    """Votes that were not there, on old and new texts."""
    changed_votes: int
    """Votes on old texts that replace others of the same annotator."""
    same_votes: int
    """Votes on old texts that were there already."""
    touched: int
    """Old sequences of which something was said that is new."""

    @property
    def n_new(self) -> int:
        """How many sequences are new."""
        return self.corpus.n_sequences - self.n_old


def update(
    folder: str | Path,
    data: Any,
    *,
    output: str | Path,
    format: str = "auto",
    reader: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Let new annotations, annotators or texts join an earlier run; write the whole into `output`, say what changed.

    The folder is one that `lasca run` or `lasca aggregate` wrote, and what is written is of the same kind, and
    run.json holds what is returned. Decisions go along. How old and new become one: see above.
    """
    project = Project(folder)
    asked = project.record.get("parameters", {})
    if asked.get("pseudonyms"):
        raise StoreError(
            "the run holds pseudonyms: new votes cannot be matched with those who gave the old ones",
            where=str(folder),
            hint="Run all files together: lasca run OLD NEW --pseudonyms",
        )
    check_output(output, folder, *([] if isinstance(data, CrowdCorpus) else paths(data)), overwrite=overwrite)
    new = data if isinstance(data, CrowdCorpus) else read_alike(data, project.corpus, format, **(reader or {}))
    joined = join(project.corpus, new)
    model = same_model(project.truth)
    half = _part(progress, 0, 0.5) if project.record else progress
    truth, how = go_on(model, project.truth, joined, half)
    said = {"how": how, "source": new.load_report.source, "load_report": new.load_report.to_dict()} | changes(
        project.corpus, project.truth, joined, truth
    )
    said["decisions"] = len(project.standing())
    with whole_folder(output, overwrite=overwrite) as made:  # never without the decisions
        if project.record:
            files = new.load_report.source or "NEW"
            run(
                joined.corpus, preset=asked["preset"], model=model, method=asked["method"],
                fraction=asked["fraction"], objective=asked["objective"], tagger=asked["tagger_parameters"],
                seed=project.record["seeds"]["tagger"], gold=asked["gold"], title=project.record.get("title"),
                truth=truth, facts={"command": f"lasca update OLD {files} -o OUT", "update": said},
                progress=_part(progress, 0.5, 1),
            ).save(made)  # fmt: skip
        else:
            save_truth(joined.corpus, truth, made)
        project.log.copy(made)
    return said


def _part(progress: Progress | None, first: float, last: float) -> Progress:
    """Return the progress callback of a part of the whole."""

    def report(share: float, words: str = "") -> None:
        if progress is not None:
            progress(first + (last - first) * share, words)

    return report


def join(old: CrowdCorpus, new: CrowdCorpus) -> Joined:
    """Put new annotations to those of a run (see the module's docstring)."""
    place = old.places
    same = np.array(
        [place[id] if id in place and old.sequence(id) == new.sequence(s) else -1
         for s, id in enumerate(new.sequence_ids)], np.int64,
    )  # fmt: skip
    if new.soft is not None and (same[new.token_sequence[new.soft.token]] >= 0).any():
        raise CorpusError(
            "soft votes on texts that the run has cannot join it", hint="Run all files together: lasca run OLD NEW"
        )
    fresh = new.select(sequences=np.flatnonzero(same < 0))
    names, renamed = _free_names(fresh.sequence_ids, set(place))
    whole = CrowdCorpus.concat([old, replace(fresh, sequence_ids=Strings(names))])
    votes = _Votes.on_old_texts(old, new, same, whole)
    added, changed, touched = _compared(votes, whole)
    whole = _with(whole, votes, added | changed)
    for name, gold in new.golds.items():  # what experts said of old texts fills what they had not said before
        whole = _with_gold(whole, name, gold, new, same)
    return Joined(
        whole, old.n_sequences, renamed, int(added.sum()) + fresh.n_annotations, int(changed.sum()),
        int((~added & ~changed).sum()), touched,
    )  # fmt: skip


def _free_names(ids: Sequence[str], taken: set[str]) -> tuple[list[str], tuple[str, ...]]:
    """Give sequences whose id is taken another one: the id with a number behind it."""
    used, names, renamed = taken | set(ids), [], []
    for id in ids:
        name = id
        if id in taken:
            name = next(name for n in count(2) if (name := f"{id} ({n})") not in used)
            used.add(name)
            renamed.append(name)
        names.append(name)
    return names, tuple(renamed)


@dataclass(frozen=True)
class _Votes:
    token: Ints
    annotator: Ints
    label: Ints

    @classmethod
    def on_old_texts(cls, old: CrowdCorpus, new: CrowdCorpus, same: Ints, whole: CrowdCorpus) -> _Votes:
        """Return what the new corpus says of texts that the run has, in the codes of the whole."""
        sequence = new.token_sequence[new.annotation_token] if new.n_annotations else np.zeros(0, np.int64)
        mine = np.flatnonzero(same[sequence] >= 0)
        where = new.annotation_token[mine].astype(np.int64)
        moved = old.offsets[same[sequence[mine]]] - new.offsets[sequence[mine]]
        person = np.array([whole.annotators.index(name) for name in new.annotators], np.int64)
        label = np.array([whole.labels.index(name) for name in new.labels], np.int64)
        return cls(where + moved, person[new.annotation_annotator[mine]], label[new.annotation_label[mine]])


def _compared(votes: _Votes, whole: CrowdCorpus) -> tuple[Bools, Bools, int]:
    """Say which votes are new, which change one that was there, and how many sequences they touch."""
    key = votes.token * whole.n_annotators + votes.annotator
    known = whole.annotation_token.astype(np.int64) * whole.n_annotators + whole.annotation_annotator  # rises
    at = np.searchsorted(known, key).clip(max=max(len(known) - 1, 0))
    there = known[at] == key if len(known) else np.zeros(len(key), bool)
    before = whole.annotation_label[at] if len(known) else key
    added, changed = ~there, there & (before != votes.label)
    touched = np.unique(whole.token_sequence[votes.token[added | changed]]) if (added | changed).any() else ()
    return added, changed, len(touched)


def _with(whole: CrowdCorpus, votes: _Votes, used: Bools) -> CrowdCorpus:
    """Return the corpus with further votes; they replace those of the same annotator on the same token."""
    if not used.any():
        return whole
    key = votes.token[used] * whole.n_annotators + votes.annotator[used]
    known = whole.annotation_token.astype(np.int64) * whole.n_annotators + whole.annotation_annotator
    stays = ~np.isin(known, key)
    made = whole.with_annotations(
        whole.annotators,
        np.concatenate((whole.annotation_token[stays], votes.token[used])),
        np.concatenate((whole.annotation_annotator[stays], votes.annotator[used])),
        np.concatenate((whole.annotation_label[stays], votes.label[used])),
    )
    return replace(made, kinds=whole.kinds, families=whole.families, votes=whole.votes, soft=whole.soft)


def _with_gold(whole: CrowdCorpus, name: str, gold: Array, new: CrowdCorpus, same: Ints) -> CrowdCorpus:
    filled = whole.golds[name].copy()
    code = np.array([*(whole.labels.index(label) for label in new.labels), -1])
    for s in np.flatnonzero(same >= 0).tolist():
        a, b = int(new.offsets[s]), int(new.offsets[s + 1])
        at = int(whole.offsets[same[s]])
        part = filled[at : at + b - a]
        part[part < 0] = code[gold[a:b]][part < 0]
    return replace(whole, golds={**whole.golds, name: filled})


def go_on(model: TruthModel, before: Truth, joined: Joined, progress: Progress | None = None) -> tuple[Truth, str]:
    """Infer the truth of old and new together; say in a sentence how that was done."""
    corpus = joined.corpus
    if "update" not in model.supports:
        how = f"{model.name} keeps no statistics to go on from: everything was inferred anew, old votes and new ones"
        return model.fit(corpus, progress=progress), how
    if not joined.touched and not joined.n_new:
        return model.fit(corpus, progress=progress), "there is nothing new: all of it was inferred once more"
    if joined.touched:
        how = "there are new votes on old texts: everything was inferred anew, old votes and new ones"
        return model.fit(corpus, progress=progress), how
    fresh = corpus.select(sequences=np.arange(joined.n_old, corpus.n_sequences))
    added = model.fit(fresh, history=before, progress=progress)
    how = f"{model.name} went on from its statistics: only the new texts were inferred, and old labels stayed"
    return _together(corpus, before, added), how


def _together(corpus: CrowdCorpus, before: Truth, added: Truth) -> Truth:
    """Put the truth of new texts behind that of the old ones; annotators are matched by name."""
    code = np.array([corpus.labels.index(name) for name in before.label_names], np.int64)
    proba = np.zeros((corpus.n_tokens, corpus.n_labels), np.float32)
    proba[: len(before.proba), code] = before.proba
    proba[len(before.proba) :] = added.proba
    person = {name: a for a, name in enumerate(corpus.annotators)}
    n, right = np.zeros(len(person)), np.zeros(len(person))
    for truth in (before, added):
        for row in truth.annotators.to_pylist():
            n[person[row["name"]]] += row["n"]
            right[person[row["name"]]] += row["reliability"] * (row["n"] + 1) - 0.5
    return replace(
        added,
        offsets=corpus.offsets.copy(),
        sequence_ids=corpus.sequence_ids,
        labels=np.concatenate((code[before.labels], added.labels)).astype(np.int16),
        proba=proba,
        annotators=annotator_table(corpus, n.round().astype(np.int64), right, None),
        voted=np.concatenate((before.voted, added.voted)),
        warnings=tuple(dict.fromkeys((*before.warnings, *added.warnings))),
    )


def changes(old: CrowdCorpus, before: Truth, joined: Joined, after: Truth) -> dict[str, Any]:
    """Say what is new, which labels of old texts flipped, and whose reliability moved."""
    corpus = joined.corpus
    names = np.array(after.label_names, object)
    was, now = np.array(before.label_names, object)[before.labels], names[after.labels[: old.n_tokens]]
    flipped = np.flatnonzero((was != now) & before.voted)  # elsewhere stand guesses
    examples = [
        {
            "sequence": old.sequence_ids[int(old.token_sequence[i])], "token": old.tokens[int(i)],
            "before": str(was[i]), "after": str(now[i]),
        }
        for i in flipped[:EXAMPLES].tolist()
    ]  # fmt: skip
    then = {row["name"]: row for row in before.annotators.to_pylist() if row["n"]}
    moved = []
    for row in after.annotators.to_pylist():
        past = then.get(row["name"])
        if past is None or past["reliability_low"] <= row["reliability"] <= past["reliability_high"]:
            continue
        if abs(row["reliability"] - past["reliability"]) >= MOVED:
            moved.append({"name": row["name"], "before": past["reliability"], "after": row["reliability"]})
    moved.sort(key=lambda m: -abs(m["after"] - m["before"]))
    return {
        "sequences": joined.n_new,
        "tokens": corpus.n_tokens - old.n_tokens,
        "renamed": list(joined.renamed),
        "annotators": sorted(set(corpus.annotators) - set(old.annotators)),
        "labels": sorted(set(corpus.labels) - set(old.labels)),
        "votes": {"new": joined.new_votes, "changed": joined.changed_votes, "already_there": joined.same_votes},
        "old_sequences_with_new_votes": joined.touched,
        "flipped": {"tokens": len(flipped), "examples": examples},
        "moved": moved,
    }
