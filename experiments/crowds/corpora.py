"""How the corpora of the bench are made: real files beside the project, and crowds simulated on them.

Every function returns a `CrowdCorpus` whose metadata column `UNIT` names the document of each sequence for the
bootstrap, whatever the models are told about documents. Everything random has the seed 0 (or the one in the row).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

import lasca
from lasca import datasets, evaluate, simulate
from lasca.corpus import CrowdCorpus, Strings
from lasca.formats.long_table import read_frame

ROOT = Path(__file__).resolve().parents[2]
UNIT = "bench-unit"
SEED = 0


def data_folder() -> Path:
    """Return the folder of the real data: LASCA_DATA, else ../shared/data beside the project."""
    return Path(os.environ.get("LASCA_DATA") or ROOT.parent / "shared" / "data")


def exports_folder() -> Path:
    """Return the folder of real exports: LASCA_EXPORTS, else ../shared/exports beside the project."""
    return Path(os.environ.get("LASCA_EXPORTS") or ROOT.parent / "shared" / "exports")


# --- helpers ---------------------------------------------------------------------------------------------------------


def with_units(corpus: CrowdCorpus, units: list[str] | None = None) -> CrowdCorpus:
    """Name the document of each sequence: the given ones, the column "document", or every sequence by itself."""
    if units is None:
        units = list(corpus.metadata.get("document", corpus.sequence_ids))
    return replace(corpus, metadata={**corpus.metadata, UNIT: Strings(units)})


def per_document(corpus: CrowdCorpus, n: int, seed: int = SEED) -> CrowdCorpus:
    """Keep `n` annotators of each document, drawn at random, each with all of their labels there."""
    rng = np.random.default_rng(seed)
    codes, names = corpus.metadata[UNIT].codes()
    document = codes[corpus.token_sequence][corpus.annotation_token].astype(np.int64)
    pair, place = np.unique(document * corpus.n_annotators + corpus.annotation_annotator, return_inverse=True)
    order = rng.permutation(len(pair))
    owner = pair[order] // corpus.n_annotators
    by_document = np.argsort(owner, kind="stable")
    begins = np.searchsorted(owner[by_document], np.arange(len(names)))
    rank = np.empty(len(pair), dtype=np.int64)
    rank[order[by_document]] = np.arange(len(pair)) - begins[owner[by_document]]
    return keep_votes(corpus, rank[place.reshape(-1)] < n)


def keep_votes(corpus: CrowdCorpus, stays: np.ndarray) -> CrowdCorpus:
    """Keep some of the votes, and the annotators who still have one."""
    present = np.flatnonzero(np.bincount(corpus.annotation_annotator[stays], minlength=corpus.n_annotators))
    made = corpus.with_annotations(
        corpus.annotators,
        corpus.annotation_token[stays],
        corpus.annotation_annotator[stays],
        corpus.annotation_label[stays],
    )
    return made.select(annotators=[corpus.annotators[i] for i in present])


def with_voters(corpus: CrowdCorpus, voters: Mapping[str, np.ndarray]) -> CrowdCorpus:
    """Add annotators who label every token: name -> label codes (-1 = no label)."""
    token, annotator, label = [corpus.annotation_token], [corpus.annotation_annotator], [corpus.annotation_label]
    for i, codes in enumerate(voters.values()):
        at = np.flatnonzero(codes >= 0)
        token.append(at)
        annotator.append(np.full(len(at), corpus.n_annotators + i))
        label.append(codes[at])
    parts = [np.concatenate(part) for part in (token, annotator, label)]
    return corpus.with_annotations([*corpus.annotators, *voters], *parts)


# --- CoNLL-2003 by Turk workers, and machines beside them ------------------------------------------------------------


@cache
def mturk_folder(folder: str = "val/") -> CrowdCorpus:
    """Return the annotated sentences of a folder ("" for all)."""
    corpus = datasets.load("conll2003-mturk", data_folder())
    own = np.array([name.startswith(folder) for name in corpus.sequence_ids]) & corpus.annotated_sequences
    return with_units(corpus.select(sequences=own))


def mturk_whole(scored: str = "") -> CrowdCorpus:
    """Return all annotated sentences, with gold in one folder ("test/") or everywhere: scored once, at the end."""
    corpus = mturk_folder("")
    own = np.array([name.startswith(scored) for name in corpus.sequence_ids])[corpus.token_sequence]
    return replace(corpus, golds={"gold": np.where(own, corpus.golds["gold"], -1).astype(np.int16)})


def mturk(per: int | None = None, documents: bool = True) -> CrowdCorpus:
    """Return MTurk val with all votes or `per` annotators per document; without documents ids say nothing either."""
    corpus = mturk_folder() if per is None else per_document(mturk_folder(), per)
    if documents:
        return corpus
    ids = Strings([str(i) for i in range(corpus.n_sequences)])
    return replace(corpus, sequence_ids=ids, metadata={UNIT: corpus.metadata[UNIT]})


@cache
def machine_labels(folder: str = "val/") -> dict[str, list[list[str]]]:
    """Return the columns of NoiseBench's table for the sentences of a folder: sequence_id, llm, weak, …"""
    path = data_folder() / "noisebench" / "mturk-machine-labels.tsv"
    header, *rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row[0].startswith(folder)]
    return {name: [row[i].split(" ") for row in rows] for i, name in enumerate(header)}


def machines(
    sources: tuple[str, ...] = (), copies: int = 0, per: int | None = None, folder: str = "val/", scored: str = ""
) -> CrowdCorpus:
    """Return the sentences of a folder that NoiseBench has, with these machine sources as voters beside the workers.

    `copies` adds that many near-copies of the llm instead of it: each draws 10 % of the llm's labels anew, by how
    often the llm gives them. The gold is NoiseBench's expert, in the folder that is scored. Nothing tells the models
    that these are machines.
    """
    table = machine_labels(folder)
    corpus = mturk_folder(folder).select(sequences=[name for (name,) in table["sequence_id"]])
    code = {name: i for i, name in enumerate(corpus.labels)}
    flat = {n: np.array([code[x] for row in rows for x in row]) for n, rows in table.items() if n != "sequence_id"}
    own = np.array([name.startswith(scored) for name in corpus.sequence_ids])[corpus.token_sequence]
    corpus = replace(corpus, golds={"gold": np.where(own, flat["expert"], -1).astype(np.int16)})
    if per is not None:
        corpus = per_document(corpus, per)
    rng = np.random.default_rng(SEED)
    voters = {name: flat[name] for name in sources}
    for i in range(copies):
        anew = rng.random(corpus.n_tokens) < 0.1
        voters[f"llm-{i + 1}"] = np.where(anew, rng.choice(flat["llm"], corpus.n_tokens), flat["llm"])
    return with_voters(corpus, voters) if voters else corpus


def prompts(per_model: tuple[int, ...], sequences: int = 500) -> CrowdCorpus:
    """Return sentences of MTurk val labelled by simulated language models, each with so many prompts.

    What can be marked is the gold spans and three times as many others. Every candidate has a score: how much it looks
    like a span, for all models; what a model makes of it; what a prompt does. A prompt marks what scores above 0, now
    and then with another type. Prompts of one model thus repeat about a third of each other's errors.
    """
    rng = np.random.default_rng(SEED)
    corpus = mturk_folder().select(sequences=np.arange(sequences))
    code, outside = {name: i for i, name in enumerate(corpus.labels)}, corpus.labels.index("O")
    kinds = sorted(name[2:] for name in code if name.startswith("B-") and "I-" + name[2:] in code)
    gold = np.asarray(corpus.golds["gold"], dtype=np.int64)
    start, end, kind, names = evaluate.find_spans(gold, corpus.offsets, corpus.labels)
    candidates = [(a, b, names[k]) for a, b, k in zip(start.tolist(), end.tolist(), kind.tolist()) if names[k] in kinds]
    n_true = len(candidates)
    elsewhere = rng.choice(np.flatnonzero(gold == outside), 3 * n_true, replace=False)
    candidates += [(int(a), int(a) + 1, kinds[int(rng.integers(len(kinds)))]) for a in elsewhere]
    n = len(candidates)
    looks = np.where(np.arange(n) < n_true, 1.0, -1.8) + rng.normal(size=n)
    voters = {}
    for model, count in enumerate(per_model):
        makes = looks + rng.normal(size=n)
        other = np.where(rng.random(n) < 0.08, rng.integers(len(kinds), size=n), -1)
        for prompt in range(count):
            labels = np.full(corpus.n_tokens, outside)
            for i in np.flatnonzero(makes + rng.normal(size=n) + 0.5 * rng.normal() > 0).tolist():
                a, b, name = candidates[i]
                name = name if other[i] < 0 else kinds[other[i]]
                labels[a:b] = code["I-" + name]
                labels[a] = code["B-" + name]
            voters[f"model-{model + 1}/{prompt + 1}"] = labels
    return with_voters(corpus.select(annotators=[]), voters)


def schemes(per_type: int, sequences: int = 500) -> CrowdCorpus:
    """Return the sentences of `prompts` labelled by rules: so many for each type, each marks that type alone."""
    kinds = ("PER", "LOC", "ORG", "MISC")
    corpus = prompts((1,) * per_type * len(kinds), sequences)
    own = np.array([kinds.index(name[2:]) if name[2:] in kinds else -1 for name in corpus.labels])
    labels, other = corpus.annotation_label.copy(), own[corpus.annotation_label]
    labels[(other >= 0) & (other != corpus.annotation_annotator % len(kinds))] = corpus.labels.index("O")
    return corpus.with_annotations(corpus.annotators, corpus.annotation_token, corpus.annotation_annotator, labels)


def llm_spans(
    per_model: tuple[int, ...],
    seed: int = SEED,
    missed: float = 0.5,
    invented: float = 0.8,
    shared: float = 0.8,
    sequences: int = 600,
) -> CrowdCorpus:
    """Return sentences of PICO whose long spans are marked by noisy simulated language models.

    A model misses spans (more of those that are hard for all), falls for some distractors as others do, invents spans
    of its own – so many in 25 tokens – and moves a third of the borders. Its prompts keep a share of what it believes
    and believe something else for the rest. Most annotators agree on little: on gold spans half of the time.
    """
    rng = np.random.default_rng(seed)
    corpus = pico()
    gold = np.asarray(corpus.golds["gold"], np.int64)
    known = np.flatnonzero(np.minimum.reduceat(gold, corpus.offsets[:-1]) >= 0)
    corpus = corpus.select(sequences=np.sort(rng.permutation(known)[:sequences]))
    gold, offsets = np.asarray(corpus.golds["gold"], np.int64), corpus.offsets.tolist()
    start, end, *_ = evaluate.find_spans(gold, corpus.offsets, corpus.labels)
    begin, inside, outside = (
        next(i for i, label in enumerate(corpus.labels) if label[0] == first) for first in ("B", "I", "O")
    )
    voters = {
        f"model-{m + 1}/{p + 1}": np.full(corpus.n_tokens, outside) for m, n in enumerate(per_model) for p in range(n)
    }
    misses = missed * rng.uniform(0.6, 1.4, len(per_model))
    invents = invented * rng.uniform(0.5, 1.6, len(per_model))
    for a, b in pairwise(offsets):
        true = [(int(i), int(j)) for i, j in zip(start, end) if a <= i < b]
        hard = rng.random(len(true))

        def drawn(rate: float, stop: float, a: int = a, b: int = b) -> list[tuple[int, int]]:
            firsts = rng.integers(a, b, rng.poisson(rate * (b - a) / 25))
            return [(int(i), min(b, int(i) + 1 + int(rng.geometric(stop)))) for i in firsts]

        distractors = drawn(1.0, 0.2)

        def belief(m: int, true: Any = true, hard: Any = hard, distractors: Any = distractors) -> list[tuple[int, int]]:
            found = [span for span, h in zip(true, hard) if rng.random() > misses[m] * (0.5 + h)]
            found += [span for span in distractors if rng.random() < 0.4]
            return [moved(span) for span in (*found, *drawn(invents[m], 0.15))]

        def moved(span: tuple[int, int], a: int = a, b: int = b) -> tuple[int, int]:
            i, j = span
            if rng.random() < 0.35:
                i = max(a, min(j - 1, i + int(rng.integers(-2, 3))))
            if rng.random() < 0.35:
                j = max(i + 1, min(b, j + int(rng.integers(-2, 4))))
            return i, j

        for m, count in enumerate(per_model):
            core = belief(m)
            for p in range(count):
                own = [span for span in core if rng.random() < shared]
                own += [span for span in belief(m) if rng.random() > shared]
                labels = voters[f"model-{m + 1}/{p + 1}"]
                for i, j in sorted(own, key=lambda span: span[0] - span[1]):
                    if (labels[i:j] == outside).all():
                        labels[i:j] = inside
                        labels[i] = begin
    return with_voters(corpus.select(annotators=[]), voters)


# --- PICO, Broad Twitter Corpus --------------------------------------------------------------------------------------


def pico(per: int | None = None, whole: bool = False) -> CrowdCorpus:
    """Return PICO's participants: the 191 abstracts of the test folder or all 4,740; gold for 106 of the 191."""
    table = pq.read_table(data_folder() / "pico" / "pico-participants.parquet")
    if not whole:
        names = table.column("sequence").cast("string")
        table = table.filter(pc.starts_with(names, "acl17-test/"))
    columns = ["sequence", "position", "token", "annotator", "label", "gold"]
    corpus = read_frame(table.select(columns).unify_dictionaries())
    documents = [name.rsplit("/", 1)[0] for name in corpus.sequence_ids]
    corpus = with_units(replace(corpus, metadata={"document": Strings(documents)}))
    return corpus if per is None else per_document(corpus, per)


def btc(section: str, kind: str) -> CrowdCorpus:
    """Return one job of the Broad Twitter Corpus; a tweet is a document."""
    table = pq.read_table(data_folder() / "btc" / "btc-crowd.parquet")
    mine = pc.and_(pc.equal(table.column("section"), section), pc.equal(table.column("type"), kind))
    columns = ["sequence", "position", "token", "annotator", "label", "gold"]
    return with_units(read_frame(table.filter(mine).select(columns)))


# --- simulated crowds ------------------------------------------------------------------------------------------------

TABLE_1: dict[str, Any] = {"wrong": "prior", "common": 0.067}


def tdga(**settings: Any) -> CrowdCorpus:
    """Return T-DGA labelled by a simulated crowd; gold 1 is the truth."""
    gold = datasets.load("tdga", data_folder())
    corpus = simulate.crowd(gold, gold="gold1", seed=SEED, **settings)
    return with_units(replace(corpus, golds={"gold": corpus.golds["gold1"]}))


def tdga_mixed() -> CrowdCorpus:
    """Return the crowd of table 1 (ca1) with one to five votes left on each token, drawn at random."""
    corpus = tdga(**TABLE_1)
    rng = np.random.default_rng(SEED)
    wanted = rng.integers(1, 6, corpus.n_tokens)
    order = np.lexsort((rng.random(corpus.n_annotations), corpus.annotation_token))
    rank = np.empty(corpus.n_annotations, np.int64)
    rank[order] = np.arange(corpus.n_annotations) - corpus.token_start[:-1][corpus.annotation_token]
    return keep_votes(corpus, rank < wanted[corpus.annotation_token])


def chinese() -> CrowdCorpus:
    """Return the Chinese export with its one annotation as gold, labelled by a crowd that misses and cuts spans."""
    corpus = lasca.read(exports_folder() / "label-studio" / "ls_uie.json", overlap="longest")
    gold = np.full(corpus.n_tokens, -1, np.int16)
    gold[corpus.annotation_token] = corpus.annotation_label
    corpus = replace(corpus, golds={"gold": gold})
    people = {"high": 5, "medium": 4, "low": 3}
    made = simulate.crowd(corpus, errors="spans", groups=people, annotators_per_sequence=5, seed=SEED)
    return with_units(made)


def demo() -> CrowdCorpus:
    """Return the demo's entities with its crowd."""
    return with_units(simulate.demo_crowd("ner", seed=SEED))


# --- real crowds without gold ----------------------------------------------------------------------------------------


def leoka(team: int) -> CrowdCorpus:
    """Return a team's narratives with all votes: annotations marked `ground_truth` are their author's votes too."""
    tasks = json.loads((exports_folder() / "label-studio" / f"LEOKA_team_{team}.json").read_text(encoding="utf-8"))
    for task in tasks:
        for annotation in task["annotations"]:
            annotation["ground_truth"] = False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "leoka.json"
        path.write_text(json.dumps(tasks), encoding="utf-8")
        corpus = lasca.read(path, overlap="longest")
    return with_units(replace(corpus.crowd(), golds={}))


def bratiaa() -> CrowdCorpus:
    """Return the four people of bratiaa's example project."""
    return with_units(lasca.read(exports_folder() / "brat" / "bratiaa" / "example-files" / "example-project"))


def without_each(corpus: CrowdCorpus) -> dict[str, CrowdCorpus]:
    """Return for each annotator the corpus without them, their labels being the gold where others labelled as well."""
    parts = {}
    for i, name in enumerate(corpus.annotators):
        own = corpus.annotation_annotator == i
        gold = np.full(corpus.n_tokens, -1, np.int16)
        gold[corpus.annotation_token[own]] = corpus.annotation_label[own]
        rest = keep_votes(replace(corpus, golds={"gold": gold}), ~own)
        parts[name] = rest.select(sequences=rest.annotated_sequences)
    return parts
