"""Corpora that were read and still look as if something else was meant: what every reader is asked about at the end.

Each check sees the corpus alone, whatever its format, and raises an error that says what it found and what to do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import combinations

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, excerpt
from lasca.formats.documents import JOIN
from lasca.schemes import detect
from lasca.schemes.tables import parts_of

__all__ = ["refuse_doubtful", "twins"]

ROWS = 20_000  # votes that are looked at
SOME = 3  # quotes that are lost by no chance
FEW = 5  # different labels that may all stand in their texts by chance
MOST = 0.8  # of the votes
OFTEN = 10  # texts of one label, from which on it is no quote
JOINTS = re.compile(r"\s*[,;|+]\s*|\s+")
HARD = re.compile(r"\s*[,;|]\s*")
COUNTED = re.compile(r"[^:=(]+[:=(] ?\d+(?:\.\d+)?\)?")
ROUND = re.compile(r"(?:round|phase|iteration|version)[ _-]?\d+|pre|post|before|after", re.IGNORECASE)
KEYED = re.compile(r"\w+\s*[:=].*")
FRACTION = re.compile(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?")
NUMBER = re.compile(rf"[+-]?\d+|{FRACTION.pattern}")
SUM = re.compile(r"(?:grand )?(?:total|sum|count|average|mean|agreement|kappa)s?:?", re.IGNORECASE)
WHOLE = re.compile(r"\d+\.0")
MARKUP = re.compile(r"<[^<>]*>")


def refuse_doubtful(corpus: CrowdCorpus, shown: str) -> None:
    """Raise an error if labels, tokens or annotators of the corpus rather are something else."""
    for check in (_joined_names, _rounds, _same_numbers, _lost_quotes, _joined_votes, _labels_as_tokens, _numbers,
                  _sums, _of_tokens, _marked_words, _words):  # fmt: skip
        if (found := check(corpus)) is not None:
            what, got, hint = found
            raise FormatError(what, path=excerpt(shown, 200), got=got, hint=hint)


def twins(names: Iterable[str]) -> str:
    """Return names that differ only in case, spaces or a stop behind them: 'Good' and 'good.'; …"""
    alike: dict[str, list[str]] = {}
    for name in names:
        plain = " ".join(re.split(r"[\s_]+", name.casefold().strip())).rstrip(".!")
        alike.setdefault(plain or name, []).append(repr(excerpt(name, 40)))
    return "; ".join([" and ".join(own) for own in alike.values() if len(own) > 1][:4])


Found = tuple[str, str, str] | None


def _joined_votes(corpus: CrowdCorpus) -> Found:
    """Find cells that hold what several annotators said of one token: NOUN,VERB,NOUN."""
    several = [(label, parts) for label in corpus.labels if len(parts := _parts(label)) > 1]
    again = [label for label, parts in several if len(set(parts)) < len(parts)]
    rows = [HARD.split(label) for label in corpus.labels if label != "O"]
    alike = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    columns = list(map(set, zip(*rows)))  # of one label with parts, "Sport, US", each place has words of its own
    mixed = any(one & other for one, other in combinations(columns, 2))
    always = alike and (mixed or all(KEYED.fullmatch(part) for row in rows for part in row))
    counted = all(COUNTED.fullmatch(part) for row in rows for part in row) and any(len(row) > 1 for row in rows)
    if not counted and (len(several) < 3 or not (always or 2 * len(again) >= len(several))):
        return None
    return (
        "every label holds several: they may be those of several annotators, or answers to several questions",
        ", ".join((again or [label for label, _ in several])[:2]),
        "Give each of them a column, called by who said it (token, ann, ben; for whole texts: text, annotator_1, …)",
    )


def _joined_names(corpus: CrowdCorpus) -> Found:
    """Find a name that holds those of several annotators: ann;ben."""
    people = set(corpus.annotators)
    joined = [name for name in corpus.annotators if len(parts := HARD.split(name)) > 1 and people & set(parts)]
    if not joined:
        return None
    what = f"{excerpt(joined[0], 60)!r} is several annotators in one cell, and would count as one more"
    return what, "; ".join(sorted(people)[:4]), "Write a row for each of them"


def _rounds(corpus: CrowdCorpus) -> Found:
    """Find nobody but rounds of the work, in which the same people may have labelled twice: round1, round2."""
    if len(corpus.annotators) < 2 or not all(map(ROUND.fullmatch, corpus.annotators)):
        return None
    names, hint = ", ".join(corpus.annotators[:4]), "Read one of them; if they are people, give them other names"
    return f"all annotators are called as rounds ({names}): the same people may have labelled twice", names, hint


def _same_numbers(corpus: CrowdCorpus) -> Found:
    """Find annotators, or texts, of whom one is called 1 and another 1.0, as pandas writes it beside empty cells."""
    for what, names in (("annotators", set(corpus.annotators)), ("ids of texts", set(corpus.sequence_ids))):
        both = sorted(name for name in names if WHOLE.fullmatch(name) and name[:-2] in names)
        if both:
            said = f"{what} {both[0][:-2]} and {both[0]} are the same number, written in two ways, and count as two"
            return said, ", ".join(both[:4]), "Write them alike (pandas writes 1.0 where cells of the column are empty)"
    return None


def _lost_quotes(corpus: CrowdCorpus) -> Found:
    """Find spans of which none stands in its text: they are no quotes."""
    lost = corpus.load_report.counts.get("quotes not in the text", 0)
    if lost < SOME or set(corpus.labels) != {"O"}:
        return None
    example = corpus.load_report.examples.get("quotes not in the text", ("",))[0]
    return f"none of the {lost:,} quoted spans stands in its text", example, "Name what was marked, or give its places"


def _parts(label: str) -> list[str]:
    """Return what a label is made of; of several labels of a text, these."""
    return label.split(JOIN) if JOIN in label else JOINTS.split(label)


def _labels_as_tokens(corpus: CrowdCorpus) -> Found:
    """Find tokens that are labels: the first column of annotators' labels was taken for the words."""
    words = set(corpus.tokens)
    if len(words) == corpus.n_tokens:
        return None  # they may be the numbers of items, and the labels be numbers
    if len(words - {"", "?", "_"}) < 2 or not words <= {*corpus.labels, "", "?", "_", "nan", "NaN"}:
        return None
    return (
        "all tokens are labels themselves: there may be no column of tokens",
        ", ".join(sorted(words)[:4]),
        "If every column is an annotator's, the format is mace (on the command line: -f mace)",
    )


def _numbers(corpus: CrowdCorpus) -> Found:
    """Find annotators and golds who say nothing but numbers where others give names: scores, not labels."""
    if not any(map(FRACTION.fullmatch, corpus.labels)):
        return None
    scale = all(map(NUMBER.fullmatch, corpus.labels)) and corpus.n_labels > FEW
    if scale and 2 * corpus.n_labels > corpus.n_annotations:
        what = f"the labels are {corpus.n_labels} different numbers: scores on a scale rather than labels"
        return what, ", ".join(corpus.labels[:4]), "Make a few classes of them first"
    said = {name: corpus.annotation_label[corpus.annotation_annotator == a] for a, name in enumerate(corpus.annotators)}
    given = {**said, **corpus.golds}
    voices = {name: {corpus.labels[c] for c in np.unique(code[code >= 0])} for name, code in given.items()}
    among = [label for own in voices.values() for label in own if FRACTION.fullmatch(label)]
    if among and not any(all(map(NUMBER.fullmatch, own)) for own in voices.values()):
        return (
            "a fraction stands among labels that are no numbers: its row may hold sums, or agreement",
            among[0],
            "Leave out what is not about a text",
        )
    counting = [name for name, own in voices.items() if own and all(map(NUMBER.fullmatch, own))]
    fractions = [name for name in counting if any(map(FRACTION.fullmatch, voices[name]))]
    if not fractions or len(counting) == len(voices):
        return None
    return (
        f"{', '.join(excerpt(name, 30) for name in fractions[:4])}: these hold fractions where others hold labels, so "
        "they are scores rather than labels",
        ", ".join(sorted(voices[fractions[0]])[:4]),
        "Leave these columns out, or name those of the annotators",
    )


def _sums(corpus: CrowdCorpus) -> Found:
    """Find a row of numbers, called total or the like, below texts that have names for labels."""
    numbers = list(filter(NUMBER.fullmatch, corpus.labels))
    if corpus.n_tokens != corpus.n_sequences or not 0 < len(numbers) < corpus.n_labels:
        return None
    rows = sorted(filter(SUM.fullmatch, set(corpus.tokens)))
    return (
        ("a row holds sums, and no labels of a text", rows[0], "Leave out what is not about a text") if rows else None
    )


def _of_tokens(corpus: CrowdCorpus) -> Found:
    """Find tags of parts of spans (I-PER) on texts that stand alone."""
    if not 2 < corpus.n_tokens == corpus.n_sequences or all(token == "_" for token in corpus.tokens):
        return None
    labels = {part for label in corpus.labels for part in label.split(JOIN)}
    tags = sorted(label for label in labels if "-" in label and (parts_of(label) or "O")[0] in "BIEL")
    if not tags or detect(labels) in (None, "IO"):
        return None
    return (
        "the labels are tags of tokens, and every one stands on a sequence of its own",
        f"{tags[-1]} on {excerpt(corpus.tokens[0], 60)!r}",
        "Write a row for each token, with a column that says to which sequence it belongs (sentence_id, token, …)",
    )


def _marked_words(corpus: CrowdCorpus) -> Found:
    """Find spans whose labels are the words that are marked: ["Ada", 0, 3]."""
    given = zip(corpus.annotation_token[:ROWS].tolist(), corpus.annotation_label[:ROWS].tolist())
    begun = [(corpus.tokens[k], corpus.labels[code][2:]) for k, code in given if corpus.labels[code].startswith("B-")]
    if sum(label.startswith(token) for token, label in begun) <= MOST * len(begun) or len(set(begun)) < 2:
        return None
    return "the labels are the words that are marked", begun[0][1], "Say of what kind they are: [start, end, label]"


def _words(corpus: CrowdCorpus) -> Found:
    """Find labels that are words of the texts they are about (and types), or these texts again with marks in them."""
    if corpus.n_tokens != corpus.n_sequences or corpus.n_labels <= FEW:
        return None
    own = [set(re.findall(r"\w+", MARKUP.sub(" ", label).casefold())) for label in corpus.labels]
    pairs = Counter(zip(corpus.annotation_token[:ROWS].tolist(), corpus.annotation_label[:ROWS].tolist()))
    texts = {token: set(re.findall(r"\w+", corpus.tokens[token].casefold())) for token, _ in pairs}
    there = [
        (label, n)
        for (token, label), n in pairs.items()
        if own[label] and len(texts[token]) > 2 and 2 * len(own[label] & texts[token]) >= len(own[label])
    ]
    given = len({label for label, _ in there})
    if sum(n for _, n in there) < MOST * sum(pairs.values()) or given <= max(FEW, len(texts) / OFTEN):
        return None
    return (
        "the labels are words of the texts they are about: spans, rather than labels of whole texts",
        excerpt(corpus.labels[there[0][0]], 60),
        "Write each span in a row of its own, with its label: text, annotator, quote, label (the format span-table)",
    )
