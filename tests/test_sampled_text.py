"""The text of corpora that are larger than what text models learn from: in memory, in shards, the same bytes."""

from __future__ import annotations

import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasca.corpus import CrowdCorpus
from lasca.corpus.sharding import write_shards
from lasca.corpus.votes import Votes, cut_into_blocks
from lasca.pipeline.sharded import aggregate_shards
from lasca.truth import model_class
from lasca.truth.average import Said
from lasca.truth.beside import Keep
from lasca.truth.crf_text import CrfText
from lasca.truth.sampled_text import SampledText
from lasca.truth.text_models import CrossFit, text_model, trained
from process_engine import Processes
from shard_cases import in_pieces, parts_of, small_blocks
from truth_cases import crowd

ROBUST = {"max_iter": 3, "rounds": 2, "folds": 3, "text_iterations": 5}


def in_documents(corpus: CrowdCorpus, documents: list[str]) -> CrowdCorpus:
    fields = {name: getattr(corpus, name) for name in corpus.__dataclass_fields__}
    return CrowdCorpus(**{**fields, "metadata": {"document": documents}})


CASES = {
    "sequences": lambda corpus: corpus,
    "documents": lambda corpus: in_documents(corpus, [f"d{i // 7}" for i in range(corpus.n_sequences)]),
    "one long document": lambda corpus: in_documents(
        corpus, ["long" if i < 60 else f"d{i}" for i in range(corpus.n_sequences)]
    ),
    "all one document": lambda corpus: in_documents(corpus, ["d"] * corpus.n_sequences),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 400)
    monkeypatch.setattr("lasca.truth.robust.MOST_TRAINED", 900)
    monkeypatch.setattr("lasca.truth.robust.LEAST_SPANS", 20)


@pytest.mark.parametrize("case", CASES)
def test_the_text_of_a_large_corpus_is_heard_and_gives_the_bytes_of_memory(
    case: str, small: None, tmp_path: Path
) -> None:
    corpus = CASES[case](crowd(n_sequences=220, seed=3, unlabelled=10))
    truth = model_class("robust")(**ROBUST).fit(corpus)
    assert truth.diagnostics["text"]
    silent = model_class("robust")(**ROBUST, text=False).fit(corpus)
    assert silent.proba.tobytes() != truth.proba.tobytes()
    one = model_class("robust")(**ROBUST, n_threads=1).fit(corpus)
    assert one.proba.tobytes() == truth.proba.tobytes()
    for n, votes in enumerate((700, 10**6)):
        sharded = write_shards(in_pieces(corpus, 41), tmp_path / f"c{n}", votes=votes)
        written = aggregate_shards(sharded, tmp_path / f"out{n}", model_class("robust")(**ROBUST))
        assert written.diagnostics["text_agreement"] == truth.diagnostics["text_agreement"]
        proba = parts_of(tmp_path / f"out{n}").column("proba").combine_chunks().flatten().to_numpy()
        assert proba.tobytes() == truth.proba.tobytes()


def test_a_corpus_in_memory_keeps_its_text_when_the_work_is_elsewhere(small: None) -> None:
    corpus, once = crowd(n_sequences=220, seed=3), {**ROBUST, "rounds": 1}
    truth = model_class("robust")(**once).fit(corpus)
    other: Any = model_class("robust")(**once)
    other.engine = Processes(3)
    assert other.fit(corpus).proba.tobytes() == truth.proba.tobytes()


def test_large_is_nearly_as_good_as_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = crowd(n_sequences=400, n_annotators=3, accuracy=0.65, seed=2)
    gold, right = corpus.golds["gold"], {}
    monkeypatch.setattr("lasca.truth.robust.LEAST_SPANS", 20)
    for most in (900, 10**6):
        monkeypatch.setattr("lasca.truth.robust.MOST_TRAINED", most)
        right[most] = float((model_class("robust")(rounds=1).fit(corpus).labels == gold).mean())
    without = float((model_class("robust")(text=False, words=False).fit(corpus).labels == gold).mean())
    assert without + 0.02 < right[900]
    assert right[10**6] - 0.02 < right[900]


# --- the sample -----------------------------------------------------------------------------------------------------


def visiting(corpus: CrowdCorpus, proba: Any, target: int = 300) -> Any:
    """Return what visits the blocks of a corpus of which the members say `proba`."""
    blocks = cut_into_blocks(Votes.of(corpus), target)
    assert len(blocks) > 5
    told = [blocks_with(block, proba) for block in blocks]
    return lambda function, state: [function(state, block) for block in told]


def blocks_with(block: Any, proba: Any) -> Any:
    return replace(block, beside=Said(mean=proba[block.first : block.last]))


def gold_proba(corpus: CrowdCorpus) -> Any:
    return np.eye(corpus.n_labels, dtype=np.float32)[corpus.golds["gold"]]


SAMPLED = partial(SampledText, model=CrfText(min_count=1, iterations=8), folds=3, salt=5)
KEEP = Keep(None, "text")


def test_no_more_is_learned_from_than_asked_for_and_whole_documents() -> None:
    corpus = CASES["documents"](crowd(n_sequences=210, seed=1, unlabelled=7))
    found = SAMPLED(corpus, visit=visiting(corpus, gold_proba(corpus)), most=600)
    n = sum(len(rows) for rows in found.rows)
    assert 450 < n <= 600
    blocks = cut_into_blocks(Votes.of(corpus), 300)
    tokens = np.concatenate([rows + block.first for rows, block in zip(found.rows, blocks)])
    code = corpus.metadata["document"].codes()[0][corpus.token_sequence]
    for document in np.unique(code[tokens]):
        assert set(np.flatnonzero(code == document)) <= set(tokens.tolist())
    assert code[0] not in code[tokens]  # nobody labelled it
    other = SAMPLED(corpus, visit=visiting(corpus, gold_proba(corpus), 900), most=600)
    assert sum(len(rows) for rows in other.rows) == n


def test_a_fold_never_sees_its_own_labels() -> None:
    corpus = crowd(n_sequences=210, seed=1)
    proba = gold_proba(corpus)
    visit = visiting(corpus, proba)
    found = SAMPLED(corpus, visit=visit, most=900)
    plain = np.concatenate([said.text for said in found(visit, KEEP)])
    np.testing.assert_allclose(plain.sum(axis=1), 1, atol=1e-4)
    fold = np.concatenate(visit(_folds, found.dealing))
    for k in range(3):
        own = fold == k
        other = proba.copy()
        other[own] = np.roll(other[own], 1, axis=1)
        again = visiting(corpus, other)
        changed = np.concatenate([said.text for said in SAMPLED(corpus, visit=again, most=900)(again, KEEP)])
        np.testing.assert_array_equal(changed[own], plain[own])
        assert not np.allclose(changed[~own], plain[~own])


def _folds(dealing: Any, block: Any) -> Any:
    text, documents = dealing.text(block)
    return dealing.dealt(text, documents)[0][documents][text.token_sequence]


def test_a_sample_of_all_says_what_the_whole_would() -> None:
    """With the same folds, everything drawn, a block read elsewhere is read as in the corpus that was prepared."""
    corpus = CASES["documents"](crowd(n_sequences=140, seed=4))
    proba = gold_proba(corpus)
    visit = visiting(corpus, proba)
    found = SAMPLED(corpus, visit=visit, most=10**6)
    said = np.concatenate([beside.text for beside in found(visit, KEEP)])
    whole = CrossFit(corpus, CrfText(min_count=1, iterations=8), np.random.default_rng(0), folds=3)
    whole.fold = found.fold
    np.testing.assert_allclose(said, whole(proba), atol=1e-6)


def test_taggers_read_large_corpora_too() -> None:
    corpus = crowd(n_sequences=210, seed=1)
    visit = visiting(corpus, gold_proba(corpus))
    found = SampledText(corpus, text_model("hmm"), visit, most=900, folds=2, salt=1)  # type: ignore[arg-type]
    text = np.concatenate([said.text for said in found(visit, KEEP)])
    assert (text.argmax(axis=1) == corpus.golds["gold"]).mean() > 0.8


class Deaf:
    """A text model that knows one corpus only."""

    def prepare(self, corpus: CrowdCorpus, n_threads: int | None = None) -> Deaf:
        return self


def test_a_text_model_that_cannot_read_elsewhere_is_named(small: None) -> None:
    truth = model_class("robust")(**ROBUST, text=Deaf()).fit(crowd(n_sequences=220, seed=3))
    assert not truth.diagnostics["text"]
    assert "the text was not heard: Deaf has no `elsewhere`, to read more than 900 tokens with" in truth.warnings


def test_what_a_fold_learned_before_is_let_go_of_when_it_has_gone_on() -> None:
    """All were held until the last fold was trained: a third more memory than version 0.1.0 took."""

    class Learned:
        pass

    made: list[weakref.ref[Learned]] = []
    alive: list[int] = []

    class Task:
        def fit(self, targets: Any, sequences: Any, before: Any = None) -> Learned:
            alive.append(sum(ref() is not None for ref in made))
            learned = Learned()
            made.append(weakref.ref(learned))
            return learned

    task: Any = Task()
    targets, others = np.zeros((1, 2), np.float32), [np.arange(1)] * 4
    learned = trained(task, targets, others, [None] * 4, None)
    learned = trained(task, targets, others, learned, None)
    assert len({id(x) for x in learned}) == 4
    assert alive == [0, 1, 2, 3, 4, 4, 4, 4]
