"""What a truth warns of, by hand: each warning at its border, and silence on the other side of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Votes
from lasca.truth import cluster_draws, model_class
from lasca.truth.base import _identifiability
from lasca.truth.checks import check_average, check_truth
from lasca.truth.cluster_draws import SAME_CLUSTERS, summed_up, warnings_of
from lasca.truth.finish import Tally

LABELS = ("A", "B", "O")


def tally(own: Any, true: Any = None, inferred: Any = (50, 50, 50), per_token: Any = (0, 0, 1000)) -> Tally:
    given = np.array(own, np.int64)
    said = given.sum(axis=1)
    counts = np.zeros((0, 0, 0))
    return Tally(
        said,
        0.5 * said,
        given,
        given if true is None else np.array(true),
        np.array(inferred),
        np.array(per_token),
        counts,
    )


@pytest.mark.parametrize(
    ("given", "inferred", "said"),
    [
        (20, 0, True),
        (19, 0, False),  # too few to say anything
        (20, 1, False),  # it is inferred
    ],
)
def test_a_label_that_is_never_inferred(given: int, inferred: int, said: bool) -> None:
    found = check_truth(LABELS, tally([[100, given, 700]], inferred=(100, inferred, 700)))
    assert found == ((f"label 'B' was given {given} times and is never inferred",) if said else ())


def test_a_label_that_is_rare_among_the_marks_may_never_be_inferred() -> None:
    """One in a hundred of the marks; where there is no O, of all votes."""
    counts = tally([[2400, 25, 10_000]], inferred=(2400, 0, 10_000))
    assert len(check_truth(LABELS, counts)) == 1  # 25 of 2,425 marks
    assert check_truth(("A", "B", "C"), counts) == ()  # 25 of 12,425 votes
    assert check_truth(LABELS, tally([[2475, 25, 10_000]], inferred=(2400, 0, 10_000))) == ()  # of 2,500: just one


def test_a_label_that_is_inferred_more_often_than_anybody_gave_it() -> None:
    own = [[10, 40, 60], [12, 40, 60], [14, 40, 60], [0, 1, 90]]  # the last one gave too few labels to be asked
    true = [[32, 40, 60], [38, 40, 60], [44, 40, 60], [0, 1, 90]]
    found = check_truth(LABELS, tally(own, true, inferred=(30, 40, 60)))
    assert found == (
        "label 'A' is inferred 3.0 times as often as any annotator gave it: check a sample before you trust it",
    )
    for other in (
        tally(own, [[21, 40, 60], *true[1:]], inferred=(30, 40, 60)),  # somebody gave it half as often
        tally(own[1:], true[1:], inferred=(30, 40, 60)),  # two people only
        tally(own, true, inferred=(19, 40, 60)),  # it is rare
        tally(own, true, inferred=(30, 40, 60), per_token=(0, 0, 6001)),  # it is rare on this many tokens
    ):
        assert check_truth(LABELS, other) == ()


def test_tokens_with_one_vote() -> None:
    def found(*per_token: int) -> tuple[str, ...]:
        return check_truth(LABELS, tally([[50, 50, 50]], per_token=per_token))

    assert found(9, 51, 49) == (
        "51 % of the tokens have one vote only: who is right cannot be told from the votes there; give more texts to "
        "two annotators",
    )
    assert found(9, 50, 50) == ()
    assert found(9, 0, 0) == ()


def test_an_average_of_chains() -> None:
    def found(
        late: int = 0,
        held: Any = (),
        raised: Any = (),
        families: Any = None,
        never: Any = None,
        sums: Any = (10_000, 0, 100, 0),
    ) -> tuple[str, ...]:
        return check_average(late, held, raised, families or {}, never or {}, sums)

    assert found() == ()
    (late,) = found(late=7)
    assert late.startswith("the inference stopped before it converged (7 iterations)")
    nine = tuple("abcdefghi")
    assert [words.split(" repeat")[0] for words in found(families={nine[:8]: 1.0, nine: 2.04})] == [
        "the annotators a, b, c, d, e, f, g, h",
        "the annotators a, b, c, d, e, f, g, h and 1 more",
    ]
    assert found(families={nine: 2.04})[0].endswith("together they count as 2.0 of them")
    assert [w.split(". They")[0] for w in found(never={"a": ["PER"], "b": ["LOC"], "c": ["PER"]})] == [
        "never given by a, c, though by others: PER",
        "never given by b, though by others: LOC",
    ]
    assert "any annotator did: PER, LOC. It was held" in found(held=("PER", "LOC"))[0]
    assert "drop nearly all of it: PER, LOC. It was held" in found(raised=("PER", "LOC"))[0]
    assert found(sums=(10_000, 10, 100, 15)) == ()
    assert found(sums=(500, 1, 100, 0)) == ("the text overrules the most frequent vote on 1 token (0.2 %)",)
    assert found(sums=(10_000, 11, 100, 0)) == ("the text overrules the most frequent vote on 11 tokens (0.1 %)",)
    assert found(sums=(10_000, 0, 50, 8))[0].startswith(
        "the models that are averaged differ on 16 % of the marked tokens"
    )
    assert found(sums=(10_000, 0, 49, 49)) == ()


def test_chains_that_did_not_meet() -> None:
    def found(rhat: float, agreement: list[float], *good: bool) -> tuple[str, ...]:
        return warnings_of({"rhat": {"log_joint": rhat}, "cluster_agreement": agreement}, np.array(good))

    assert found(1.1, [1.0, 1.0], True, True) == ()
    assert found(1.11, [1.0], True) == (
        "the chains have not met (R-hat of the log joint 1.11): raise n_warmup and n_samples",
    )
    assert found(1.0, [1.0, 0.1], True, True, False) == (
        "1 of 3 chains ended in a worse mode and were left out",
        "1 of 2 chains found other clusters: who is in which is not well determined",
    )


def test_chains_that_are_said_to_have_found_other_clusters_are_those_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = SimpleNamespace(kept=np.arange(4.0), store=SimpleNamespace(c_proba=None))
    monkeypatch.setattr(cluster_draws, "pooled", lambda stores, best, same: same)
    for value in (SAME_CLUSTERS, SAME_CLUSTERS - 0.01):
        monkeypatch.setattr(cluster_draws.tools, "agreement", lambda a, b, value=value: value)
        same, good, agreement = summed_up([kept, kept])
        said = warnings_of({"rhat": {"log_joint": 1.0}, "cluster_agreement": agreement}, good)
        assert same == [not said] * 2 == [value >= SAME_CLUSTERS] * 2


def test_reliabilities_that_nobody_can_know() -> None:
    words = [["a", "b"]]
    alone = CrowdCorpus.from_sequences(words, {"p": [["X", "Y"]]})
    apart = CrowdCorpus.from_sequences(words, {"p": [["X", None]], "q": [[None, "Y"]]})
    together = CrowdCorpus.from_sequences(words, {"p": [["X", "Y"]], "q": [[None, "Y"]]})
    for corpus, said in ((alone, "one annotator only"), (apart, "not identifiable"), (together, "")):
        found = [words for words in model_class("ds")().fit(corpus).warnings if "reliabilit" in words]
        assert len(found) == bool(said)
        assert said in "".join(found)
    counts = tally([[1, 1, 0]], per_token=(0, 2, 0))
    assert _identifiability(Votes.of(alone), counts)
    assert _identifiability(Votes.of(alone.with_known(np.array([0, -1]))), counts) == ()


def test_families_are_said_to_be_ignored_where_they_are() -> None:
    words, votes = [["a"] * 4], {"p": [["X"] * 4], "q": [["X"] * 4], "r": [["Y"] * 4]}
    plain = CrowdCorpus.from_sequences(words, votes)
    related = CrowdCorpus.from_sequences(words, votes, families=("f", "f", None))
    said = "does not know families of annotators"
    for model, corpus, expected in (("ds", related, True), ("ds", plain, False), ("robust", related, False)):
        found = model_class(model)(**({"text": False} if model == "robust" else {})).fit(corpus).warnings
        assert any(said in words for words in found) == expected
