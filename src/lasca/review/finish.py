"""The end of the work: final labels with a source for each, and a card that says how they came about.

Sources: "audited" and "decided" (a person looked), "agreed" (several people said the same, and it was inferred as
well), "inferred" (the rest). What nobody labelled and nobody decided has no label and no source: a guess is nothing to
sign. Names of people are on the card only where asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from lasca import __version__, evaluate, formats
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning, StoreError, count
from lasca.files import whole_folder, write_json, write_lines
from lasca.formats.write_tables import people_table
from lasca.review.items import find_items
from lasca.review.project import Fit, Project, clamped, known_labels, needed_labels, with_labels
from lasca.review.promise import certainty_of, owners
from lasca.review.spans import Labels, pieces
from lasca.truth import Truth

__all__ = ["BARE", "SOURCES", "card_of", "finish", "to_own", "write_labels"]

SOURCES = ("inferred", "decided", "audited", "agreed")
NOBODY = -1
"""The source of what nobody labelled and nobody decided."""
LOOKED_AT = (SOURCES.index("decided"), SOURCES.index("audited"))
SHOWN = ("agreed", "inferred", "decided", "audited")
FILES = (("conll", "labels.conll"), ("jsonl", "labels.jsonl"), ("parquet", "labels.parquet"))
"""The formats that labels are always written in."""
BARE = ("lasca", "llm-batch")
"""The formats that hold no final labels."""
ENDINGS = {
    "label-studio": ".json", "doccano": ".jsonl", "prodigy": ".jsonl", "offsets": ".jsonl", "spacy": ".spacy",
    "table": ".csv", "mace": ".csv",
}  # fmt: skip


def write_labels(corpus: CrowdCorpus, truth: Truth, folder: Path) -> None:
    """Write labels in the formats of `FILES`; CoNLL is left out, and that is said, where it can hold none of them."""
    for name, file in FILES:
        try:
            formats.WRITERS[name](corpus, folder / file, labels=truth.codes, proba=truth.proba)
        except StoreError as error:
            if name != "conll" or error.what.startswith("cannot write"):  # the disk, and no label
                raise
            warnings.warn(LascaWarning(f"{file} was left out: {error.what}"), stacklevel=2)


def to_own(corpus: CrowdCorpus) -> tuple[str, ...]:
    """Return the option of `lasca finish` that writes labels in the format in which they came, if it is needed."""
    name = corpus.load_report.format
    others = {*BARE, *(format for format, _ in FILES)}
    return ("--to", name) if name in formats.READERS and name in formats.WRITERS and name not in others else ()


def finish(
    project: Project,
    output: str | Path,
    *,
    fit: Fit | None = None,
    names: bool = False,
    more: tuple[str, ...] = (),
    promise: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write the final labels and the card into a folder, whole or not at all; return the card as plain data.

    `more` names further formats (see `lasca convert`), `promise` is what `lasca accept` said.
    """
    fit = fit or project.fit()
    decisions = project.standing()
    corpus, truth = with_labels(fit.corpus, fit.truth, needed_labels(Labels.of(fit.corpus), decisions))
    known = known_labels(corpus, decisions, audits=True)
    final = clamped(truth, known)
    source = known.source.astype(np.int64)
    final = replace(final, voted=project.truth.voted | (source > 0))
    source[(source == 0) & _agreed(corpus, final.labels)] = 3
    source[~final.voted] = NOBODY
    card = card_of(project, fit, source, names=names, promise=promise)
    with whole_folder(output, overwrite=overwrite) as folder:
        write_labels(corpus, final, folder)
        for name in dict.fromkeys(more):
            file = f"{name}{ENDINGS.get(name, '')}"
            formats.write(corpus, folder / file, name, labels=final.codes, proba=final.proba)
        base = corpus.to_table("tokens").select(["sequence", "position", "token"])
        columns: dict[str, Any] = {name: base.column(name).to_pylist() for name in base.column_names}
        columns["label"] = [(*corpus.labels, "")[c] for c in final.codes.tolist()]
        columns["source"] = [(*SOURCES, "")[c] for c in source.tolist()]
        sure = final.proba[np.arange(corpus.n_tokens), final.labels]
        columns["probability"] = [round(float(p), 4) if said else "" for p, said in zip(sure, final.voted)]
        people_table(columns, folder / "labels.csv")
        write_lines(folder / "spans.jsonl", _spans(corpus, final, source, known.allowed))
        write_json(folder / "card.json", card)
        (folder / "card.md").write_text(_written(card), encoding="utf-8")
    return card


def _agreed(corpus: Any, labels: Any) -> Any:
    """Say of each token whether two people or more labelled it and all gave the final label."""
    counts = np.array(corpus.votes, bool)[corpus.annotation_annotator]
    token = corpus.annotation_token[counts]
    n = np.bincount(token, minlength=corpus.n_tokens)
    same = corpus.annotation_label[counts] == labels[token]
    return (n >= 2) & (np.bincount(token, weights=same, minlength=corpus.n_tokens) == n)


def _spans(corpus: Any, truth: Any, source: Any, allowed: Any) -> Any:
    labels = Labels.of(corpus)
    found = labels.spans(truth.codes.astype(np.int64), corpus.offsets)
    both = allowed.sum(axis=1) > 1
    for a, b, k in zip(found.start.tolist(), found.stop.tolist(), found.kind.tolist()):
        s = int(corpus.token_sequence[a])
        first = int(corpus.offsets[s])
        row = {
            "sequence": corpus.sequence_ids[s],
            "start": a - first,
            "stop": b - first,
            "type": labels.types[k],
            "words": "".join(pieces(corpus, a, b)).strip(),
            "source": SOURCES[int(min(source[a:b], key=lambda c: (0, 2, 3, 1)[c]))],
            "probability": round(float(truth.proba[np.arange(a, b), truth.labels[a:b]].min()), 4),
        }
        if ((source[a:b] > 0) & (source[a:b] < 3) & both[a:b]).any():
            row["also"] = [[corpus.labels[t] for t in np.flatnonzero(allowed[i])] for i in range(a, b)]
        yield row


def card_of(
    project: Project, fit: Fit, source: Any, *, names: bool = False, promise: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return how the labels came about, as plain data."""
    corpus = project.corpus
    standing = project.log.standing()
    people = sorted({d.who for s in standing for d in s.opinions})
    several, same = project.log.agreement()
    crowd = corpus.crowd()
    voted = project.truth.voted
    base = fit.corpus.offsets
    areas = [
        a for a in find_items(fit.corpus, fit.truth, everything=True)
        if not np.isin(source[base[a.sequence] + a.start : base[a.sequence] + a.stop], LOOKED_AT).all()
    ]  # fmt: skip
    unit = owners(corpus, project.units)
    sure = set(project.audits)
    unsure = [a for a in areas if int(unit[base[a.sequence] + a.start]) not in sure]
    audited = project.audited(fit)
    wrong = sum(w for _, w in audited)
    alpha = evaluate.agreement(crowd).krippendorff_alpha
    card: dict[str, Any] = {
        "lasca": __version__,
        "model": project.truth.model,
        "parameters": {k: v for k, v in project.truth.params.items() if isinstance(v, str | int | float | bool)},
        "source": corpus.load_report.format,
        "sequences": corpus.n_sequences,
        "tokens": corpus.n_tokens,
        "tokens_nobody_labelled": int((~voted).sum()),
        "labels": list(corpus.labels),
        "annotators": sum(role == "annotator" for role in crowd.roles),
        "models": sum(role == "model" for role in crowd.roles),
        "votes_per_token": round(crowd.n_annotations / max(int((np.diff(crowd.token_start) > 0).sum()), 1), 3),
        "agreement_krippendorff_alpha": None if np.isnan(alpha) else round(float(alpha), 4),
        "reviewers": len(people),
        "decisions": sum(not s.decision.audit for s in standing),
        "audits": sum(s.decision.audit for s in standing),
        "audits_that_do_not_count": project.waiting(fit),
        "second_opinions": {"areas": several, "same": same},
        "tokens_by_source": {name: int((source == SOURCES.index(name)).sum()) for name in SHOWN},
        "expected_errors": round(float(sum(a.errors for a in areas)), 2),
        "spans_and_areas": len(areas),
        "unsure": {"expected_errors": round(float(sum(a.errors for a in unsure)), 2), "spans_and_areas": len(unsure)},
        "audited_error_rate": None,
        "promise": None if promise is None else dict(promise),
        "warnings": list(dict.fromkeys([*_warnings(fit.truth, names), *_of_the_run(project)])),
    }
    if audited:
        n = len(audited)
        certainty = certainty_of(fit.corpus, fit.truth, project.units)
        expected = float(sum(1 - certainty[u] for u, _ in audited))
        low = float(beta.ppf(0.025, wrong, n - wrong + 1)) if wrong else 0.0
        high = float(beta.ppf(0.975, wrong + 1, n - wrong)) if wrong < n else 1.0
        card["audited_error_rate"] = {
            "audited": n, "wrong": wrong, "rate": round(wrong / n, 4), "low": round(low, 4), "high": round(high, 4),
            "expected": round(expected, 2),
        }  # fmt: skip
        if not low <= expected / n <= high:
            than = "more" if expected < wrong else "fewer"
            card["warnings"].insert(
                0,
                f"the audit found {than} errors than the model expected there: rely neither on its probabilities nor "
                "on the errors it expects elsewhere",
            )
    if names:
        card["names"] = {"annotators": list(corpus.annotators), "reviewers": people}
    return card


def _of_the_run(project: Project) -> list[str]:
    """Return what the run warned of beside the truth, which is another one now."""
    return [str(text) for text in project.record.get("warnings", ()) if text not in project.truth.warnings]


def _warnings(truth: Truth, names: bool) -> list[str]:
    """Return what a fit warned of; the families it names are only counted where names are not asked for."""
    said = list(truth.warnings)
    for family in () if names else truth.diagnostics.get("families", ()):
        shown, n = ", ".join(family[:8]), f"{len(family[:8])} annotators"
        said = [warning.replace(f"the annotators {shown}", n).replace(shown, n) for warning in said]
    return said


def _number(errors: float) -> str:
    """Write how many errors are expected as the report does."""
    return f"{errors:,.{0 if errors >= 10 else 1}f}"


def _written(card: Mapping[str, Any]) -> str:
    """Write the card for people; nothing in it comes from outside but names of labels, models and people."""

    def code(value: object) -> str:
        return "`" + str(value).replace("`", "'").replace("\n", " ") + "`"

    by = card["tokens_by_source"]
    alpha = card["agreement_krippendorff_alpha"]
    second, waiting = card["second_opinions"], card["audits_that_do_not_count"]
    doubts, unsure = _number(card["expected_errors"]), card["unsure"]
    lines = [
        "# Data card",
        "",
        f"Made by LASCA {card['lasca']} with the model {code(card['model'])}.",
        "",
        f"- {count(card['sequences'], 'sequence')}, {count(card['tokens'], 'token')}, "
        f"{card['tokens_nobody_labelled']:,} of which nobody labelled",
        f"- {count(card['annotators'], 'annotator')}"
        + (f" and {count(card['models'], 'model')}" if card["models"] else "")
        + f", {card['votes_per_token']:.1f} votes per token"
        + ("" if alpha is None else f", Krippendorff's alpha {alpha:.2f}"),
        (
            f"- {count(card['reviewers'], 'reviewer')} made {count(card['decisions'], 'decision')} and audited "
            f"{count(card['audits'], 'item')}"
            if card["reviewers"]
            else "- nobody decided or audited anything"
        )
        + (f", {waiting:,} of which do not count because one before them was skipped" if waiting else ""),
        *([f"- second opinions: {second['areas']:,}, {second['same']:,} of which agree"] if second["areas"] else []),
        "- tokens by source: " + ", ".join(f"{name} {n:,}" for name, n in by.items()),
        f"- errors the model expects in what nobody looked at: {doubts} in "
        f"{count(card['spans_and_areas'], 'place')} that are labelled or in doubt (an expectation of the model, not a "
        "measurement)"
        + (
            f"; {_number(unsure['expected_errors'])} of them in the {count(unsure['spans_and_areas'], 'place')} it is "
            "not sure of, where nothing is audited"
            if unsure["spans_and_areas"]
            else ""
        )
        if card["spans_and_areas"]
        else "- nothing is left that is labelled or in doubt and that nobody looked at",
    ]
    rate = card["audited_error_rate"]
    if rate is None:
        lines.append("- no audit counts: how many errors there are was not measured")
    else:
        low, high = (f"{100 * rate[end]:.1f}" for end in ("low", "high"))
        were = "was" if rate["wrong"] == 1 else "were"
        lines.append(
            f"- audited: of {count(rate['audited'], 'item')} drawn at random from what the model was sure of, "
            f"{rate['wrong']:,} {were} wrong ({100 * rate['rate']:.1f} %, 95 % interval {low} to {high} %); the model "
            f"expected {_number(rate['expected'])}"
        )
    if card["promise"]:
        lines.append(f"- promise: {card['promise'].get('words', '')}")
    lines += ["", "Labels: " + ", ".join(code(name) for name in card["labels"])]
    if card["warnings"]:
        lines += ["", "## Warnings", "", *(f"- {code(w)}" for w in card["warnings"])]
    if "names" in card:
        people = [f"- {kind}: " + ", ".join(code(n) for n in who) for kind, who in card["names"].items()]
        lines += ["", "## People", "", *people]
    return "\n".join(lines) + "\n"
