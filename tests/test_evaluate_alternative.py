"""The alternative annotator test: against its definition word by word, on models as good as people, and worse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lasca import evaluate, simulate
from lasca.corpus import CrowdCorpus, SoftVotes
from lasca.errors import CorpusError
from naive import alternative as naive


def with_model(task: str, precision: float, seed: int = 0) -> CrowdCorpus:
    """The demo's texts with five people, and one more annotator of another precision, who is a model."""
    gold = simulate.demo_crowd(task)
    corpus = simulate.crowd(
        gold,
        gold="gold",
        groups={"person": 5, "model": 1},
        ranges={"person": (0.75, 0.85), "model": (precision, precision)},
        errors="spans" if task == "ner" else "independent",
        seed=seed,
    )
    kinds = tuple("model" if name.startswith("model") else "person" for name in corpus.annotators)
    return replace(corpus, kinds=kinds, votes=(True,) * 6)


def by_name(corpus: CrowdCorpus) -> naive.Labels:
    said: naive.Labels = {}
    for row in corpus.to_table().to_pylist():
        said.setdefault(row["annotator"], {}).setdefault(row["sequence"], []).append(row["label"])
    return said


@pytest.mark.parametrize("task", ["ner", "pos"])
@pytest.mark.parametrize("precision", [0.5, 0.75, 0.95])
def test_it_is_what_its_definition_says(task: str, precision: float) -> None:
    corpus = with_model(task, precision)
    said = by_name(corpus)
    model = said.pop("model-1")
    found = evaluate.alternative_annotator(corpus, "model-1", epsilon=0.1, draws=50)
    rate, advantage, p_values = naive.alternative(said, model, 0.1, 0.05)
    assert found.winning_rate == pytest.approx(rate)
    assert found.advantage == pytest.approx(advantage)
    assert [person.p_value for person in found.people] == pytest.approx(p_values, abs=1e-9)


def test_good_models_pass_and_bad_ones_do_not() -> None:
    good = evaluate.alternative_annotator(with_model("ner", 0.95), "model-1")
    assert good.passes
    assert good.winning_rate == good.winning_rate_high == 1
    assert good.advantage_low <= good.advantage <= good.advantage_high
    bad = evaluate.alternative_annotator(with_model("ner", 0.3), "model-1")
    assert not bad.passes
    assert bad.winning_rate == 0
    assert bad.advantage < good.advantage


def test_epsilon_is_what_the_model_may_be_worse() -> None:
    corpus = with_model("ner", 0.78)
    rates = [evaluate.alternative_annotator(corpus, "model-1", epsilon=e, draws=5).winning_rate for e in (0, 0.1, 0.9)]
    assert rates == sorted(rates)
    assert rates[0] < rates[2] == 1


def test_intervals_cover_the_advantage_of_other_crowds() -> None:
    own = [evaluate.alternative_annotator(with_model("ner", 0.8, seed), "model-1", draws=200) for seed in range(12)]
    mean = np.mean([test.advantage for test in own])
    assert sum(test.advantage_low <= mean <= test.advantage_high for test in own) >= 8  # people differ between crowds


def test_sequences_of_one_document_are_drawn_by_themselves() -> None:
    corpus = replace(with_model("ner", 0.75), metadata={})
    one = replace(corpus, metadata={"document": ["all of it"] * corpus.n_sequences})
    found = evaluate.alternative_annotator(one, "model-1")
    assert found == evaluate.alternative_annotator(corpus, "model-1")
    assert found.advantage_low < found.advantage < found.advantage_high


def test_soft_annotators_stand_for_their_likeliest_labels() -> None:
    corpus = with_model("pos", 0.8)
    model = corpus.annotators.index("model-1")
    own = corpus.annotation_annotator == model
    proba = np.full((int(own.sum()), corpus.n_labels), 0.3 / (corpus.n_labels - 1))
    proba[np.arange(len(proba)), corpus.annotation_label[own]] = 0.7
    soft = SoftVotes.of(corpus.annotation_token[own], np.full(len(proba), model), proba)
    people = corpus.select(annotators=[n for n in corpus.annotators if n != "model-1"])
    token, who, label = people.annotation_token, people.annotation_annotator, people.annotation_label
    order = {name: i for i, name in enumerate(corpus.annotators)}
    who = np.array([order[people.annotators[a]] for a in who])
    made = corpus.with_annotations(corpus.annotators, token, who, label)
    made = replace(made, kinds=corpus.kinds, votes=corpus.votes, soft=soft)
    hard, likeliest = (evaluate.alternative_annotator(c, "model-1", draws=5) for c in (corpus, made))
    assert hard.people == likeliest.people


def test_too_few_people_is_an_error_that_says_so() -> None:
    corpus = with_model("ner", 0.8)
    with pytest.raises(CorpusError, match="too few people"):
        evaluate.alternative_annotator(corpus, "model-1", people=["person-1", "person-2"])
    with pytest.raises(CorpusError, match="too few people"):
        evaluate.alternative_annotator(corpus, "model-1", min_sequences=1000)
    with pytest.raises(CorpusError, match="no annotator of that name"):
        evaluate.alternative_annotator(corpus, "nobody")


def test_same_seed_same_result() -> None:
    corpus = with_model("ner", 0.8)
    first, second = (evaluate.alternative_annotator(corpus, "model-1", draws=20) for _ in range(2))
    assert first == second
