"""The default: guards of its members, families that repeat each other, and what it says it does not know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lasca import simulate
from lasca.corpus import CrowdCorpus
from lasca.kernels import rows as kernels
from lasca.kernels.families import pair_counts
from lasca.truth import Votes, model_class
from lasca.truth.evidence import annotation_rows, memory
from lasca.truth.families import declared_families, find_families
from lasca.truth.guards import Crowd, Rates, Silence, kinds_of_marks
from lasca.truth.robust import MEMBERS, RobustSequence, _meeting, _say
from lasca.truth.robust_chain import RobustChain
from truth_cases import crowd, triples

LABELS = ("B-X", "I-X", "O")


def looked_at(corpus: CrowdCorpus, weight: Any = None, n_threads: int = 1) -> Crowd:
    votes = Votes.of(corpus)
    weights = np.ones(len(votes.label)) if weight is None else weight
    return Crowd.of(corpus, votes, weights, None, n_threads)


def with_copies(corpus: CrowdCorpus, original: str, n: int, redrawn: float, seed: int = 0) -> CrowdCorpus:
    """Add annotators who repeat one another but for a share of labels drawn anew."""
    rng = np.random.default_rng(seed)
    own = corpus.annotation_annotator == corpus.annotators.index(original)
    token, label = corpus.annotation_token[own], corpus.annotation_label[own]
    tokens, annotators, labels = [corpus.annotation_token], [corpus.annotation_annotator], [corpus.annotation_label]
    names = [*corpus.annotators]
    for i in range(n):
        names.append(f"{original}-copy-{i}")
        drawn = np.where(rng.random(len(label)) < redrawn, rng.permutation(label), label)
        tokens.append(token)
        annotators.append(np.full(len(token), len(names) - 1))
        labels.append(drawn)
    return corpus.with_annotations(names, *(np.concatenate(x) for x in (tokens, annotators, labels)))


# --- kernels ---------------------------------------------------------------------------------------------------------


def test_weighted_rows_are_the_rows_times_the_weights() -> None:
    votes = Votes.of(crowd(12))
    rng = np.random.default_rng(0)
    rows = annotation_rows(votes, memory(votes))
    weight, table = rng.random(len(votes.label)), rng.standard_normal((rows.n_rows, 3))
    out, expected = np.zeros((votes.n_tokens, 3)), np.zeros((votes.n_tokens, 3))
    kernels.add_weighted_rows(0, votes.n_tokens, votes.start, rows.row, weight, table, out)
    token = np.repeat(np.arange(votes.n_tokens), np.diff(votes.start))
    for j, i in enumerate(token):
        expected[i] += weight[j] * table[rows.row[j]]
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    proba, counts = rng.random((votes.n_tokens, 3)), np.empty((rows.n_rows, 3))
    by_vote = np.empty(len(rows.row), np.int64)
    kernels.group_votes(rows.row, rows.by_row_start, by_vote)
    kernels.sum_weighted_by_row(0, rows.n_rows, rows.by_row_start, rows.by_row, by_vote, weight, proba, counts)
    wanted = np.zeros((rows.n_rows, 3))
    for j, i in enumerate(token):
        wanted[rows.row[j]] += weight[j] * proba[i]
    np.testing.assert_allclose(counts, wanted, rtol=1e-12)
    fits = np.empty(len(votes.label))
    kernels.expected_votes(votes.start, rows.row, table, proba, fits)
    np.testing.assert_allclose(fits, [(table[rows.row[j]] * proba[i]).sum() for j, i in enumerate(token)], rtol=1e-12)


def test_pairs_are_counted_by_the_first_tokens_of_marks() -> None:
    tokens = [["a", "b", "c", "d"]]
    given = {"p": [["B-X", "I-X", "O", "B-X"]], "q": [["B-X", "I-X", "O", "O"]], "r": [["O", "B-X", "O", "B-X"]]}
    corpus = CrowdCorpus.from_sequences(tokens, given, labels=LABELS)
    votes = Votes.of(corpus)
    same, marks = np.zeros((2, 3, 3))
    pair_counts(votes.start, votes.annotator, votes.label, corpus.labels.index("O"), same, marks)
    np.testing.assert_array_equal(marks, [[0, 2, 2], [1, 0, 1], [2, 2, 0]])  # p marks twice, q once, r twice
    np.testing.assert_array_equal(same, [[0, 1, 1], [1, 0, 0], [1, 0, 0]])


# --- families --------------------------------------------------------------------------------------------------------


def families_of(corpus: CrowdCorpus) -> list[set[str]]:
    outside = corpus.labels.index("O") if "O" in corpus.labels else -1
    found = find_families(Votes.of(corpus), corpus.families, outside)
    return [{corpus.annotators[a] for a in members} for members in found.members()]


@pytest.mark.parametrize("seed", range(4))
def test_copies_are_found_even_where_they_are_the_majority(seed: int) -> None:
    plain = crowd(150, n_annotators=7, seed=seed, coverage=1.0, accuracy=[0.9, 0.85, 0.8, 0.8, 0.75, 0.7, 0.55])
    corpus = with_copies(plain, "annotator-6", 6, redrawn=0.1, seed=seed)
    assert families_of(corpus) == [{name for name in corpus.annotators if name.startswith("annotator-6")}]


def test_a_copying_person_is_found() -> None:
    base = crowd(120, n_annotators=2, seed=9)
    for seed in range(5):
        corpus = simulate.crowd(base, gold="gold", groups="ca1", seed=seed, copying=2, copy_rate=0.8)
        found = families_of(corpus)
        assert len(found) == 2
        assert all(sum(name.startswith("copy-") for name in family) == 1 for family in found)


@pytest.mark.parametrize("errors", [{"errors": "independent", "common": 0.1}, {"errors": "difficulty", "rho": 0.4}])
def test_common_errors_and_difficulty_make_no_family(errors: dict[str, Any]) -> None:
    base = crowd(120, n_annotators=2, seed=9)
    for seed in range(5):
        corpus = simulate.crowd(base, gold="gold", groups="ca1", seed=seed, **errors)
        assert families_of(corpus) == []


def test_good_annotators_are_no_family() -> None:
    for seed in range(4):
        corpus = crowd(150, n_annotators=8, seed=seed, coverage=1.0, accuracy=[0.97, 0.97, 0.95, *[0.6] * 5])
        assert families_of(corpus) == []


def test_a_family_of_exact_copies_weighs_as_one() -> None:
    corpus = with_copies(crowd(30, coverage=1.0), "annotator-0", 3, redrawn=0.0)
    votes = Votes.of(corpus)
    names = ["f" if name.startswith("annotator-0") else None for name in corpus.annotators]
    families = declared_families(names)
    weight = families.weights(votes)
    member = np.array([name is not None for name in names])[votes.annotator]
    np.testing.assert_allclose(weight[member], 0.25)
    np.testing.assert_allclose(weight[~member], 1.0)
    once = families.one_each(votes)
    assert len(once.label) == len(votes.label) - 3 * corpus.n_tokens
    assert (np.bincount(once.annotator, minlength=len(names)) > 0).sum() == 6


def test_copies_do_not_capture_the_truth() -> None:
    plain = crowd(200, n_annotators=5, seed=3, coverage=1.0, accuracy=[0.9, 0.85, 0.85, 0.8, 0.5])
    corpus = with_copies(plain, "annotator-4", 4, redrawn=0.05)
    gold = corpus.golds["gold"]

    def accuracy(name: str, data: CrowdCorpus, **options: Any) -> float:
        return float((model_class(name)(**options).fit(data).labels == gold).mean())

    alone = accuracy("robust", plain, text=False)
    assert accuracy("ds", corpus) < alone - 0.1
    assert accuracy("robust", corpus, text=False, families=False) < alone - 0.1
    assert accuracy("robust", corpus, text=False) > alone - 0.02


# --- guards ----------------------------------------------------------------------------------------------------------


def test_people_who_agree_are_believed() -> None:
    corpus = crowd(80, n_annotators=5, seed=2, accuracy=0.7)
    truth = RobustSequence(text=False).fit(corpus)
    given: dict[int, list[int]] = {}
    for token, _, label in triples(corpus):
        given.setdefault(token, []).append(label)
    agreed = {i: labels[0] for i, labels in given.items() if len(labels) >= 3 and len(set(labels)) == 1}
    assert len(agreed) > 50
    wrong = [i for i, label in agreed.items() if truth.labels[i] != label]
    assert len(wrong) <= 0.02 * len(agreed)  # only where the tag scheme forbids what they said


def test_silence_is_discounted_where_others_mark_much() -> None:
    corpus = crowd(60, n_annotators=5, seed=4, coverage=1.0, accuracy=0.9)
    lazy = corpus.with_annotations(
        [*corpus.annotators, "lazy"],
        np.concatenate([corpus.annotation_token, np.arange(corpus.n_tokens)]),
        np.concatenate([corpus.annotation_annotator, np.full(corpus.n_tokens, 5)]),
        np.concatenate([corpus.annotation_label, np.full(corpus.n_tokens, LABELS.index("O"))]),
    )
    seen = looked_at(lazy)
    silence = Silence(seen)
    rows = annotation_rows(seen.votes)
    table = np.log(np.where(rows.code[:, None] % 3 == np.arange(3), 0.9, 0.05))
    states = np.eye(3)[lazy.golds["gold"]]
    for _ in range(5):
        weight = silence.weights(rows, table, states)
    is_lazy = seen.votes.annotator == 5
    marked = np.isin(lazy.token_sequence[seen.token], lazy.token_sequence[lazy.golds["gold"] != LABELS.index("O")])
    assert weight[is_lazy & marked].mean() < 0.1
    assert weight[~is_lazy].mean() > 0.95
    assert silence.rate[5] > 0.5 > silence.rate[:5].max()


def test_the_rate_of_marks_is_held_where_annotators_support_it() -> None:
    corpus = crowd(60, n_annotators=6, seed=5, coverage=1.0, accuracy=0.95)
    rates = Rates(looked_at(corpus))
    outside = LABELS.index("O")
    fits = np.eye(3)[corpus.golds["gold"]]
    none = np.zeros(len(rates.kinds))
    assert rates.held(none, fits).tolist() == [0.0]
    most = np.full((corpus.n_tokens, 3), 0.45)
    most[:, outside] = 0.1
    assert rates.held(none, most) == pytest.approx(np.log(rates.least_ratio / rates.ratios(most)))
    assert rates.held(none + 0.5, fits)[0] < 0.5


def test_types_are_held_one_by_one_against_a_source_that_sees_one_everywhere() -> None:
    """Five who miss a seventh and a machine that is right on one type and takes a tenth of all tokens for the other."""
    rng = np.random.default_rng(0)
    n, labels = 6000, ("O", "B-X", "B-Y")
    gold = rng.choice(3, n, p=[0.9, 0.05, 0.05])
    said = np.where(rng.random((n, 5)) < 0.15, 0, gold[:, None])
    machine = np.where((rng.random(n) < 0.1) & (gold == 0), 2, gold)
    codes = np.column_stack([said, machine])
    corpus = CrowdCorpus.from_codes(
        tokens=["w"] * n,
        offsets=np.arange(0, n + 1, 20),
        labels=labels,
        annotators=["a", "b", "c", "d", "e", "machine"],
        annotation_token=np.repeat(np.arange(n), 6),
        annotation_annotator=np.tile(np.arange(6), n),
        annotation_label=codes.ravel(),
        sequence_ids=[str(i) for i in range(n // 20)],
    )
    rates = Rates(looked_at(corpus))
    assert list(rates.kinds) == [None, "X", "Y"]
    everything, one, other = weight = rates.held(np.zeros(3), np.eye(3)[machine])
    assert one == 0.0 < everything < 0.8 < other
    assert rates.bias(weight).tolist() == [0.0, -everything, -everything - other]
    confused = np.eye(3)[np.where(gold == 2, 1, gold)]  # all of Y is called X: who said Y there has seen something
    assert rates.held(np.zeros(3), confused).tolist() == [0.0, 0.0, 0.0]
    marked = (RobustSequence().fit(corpus).labels == 2).sum()
    assert marked < 1.2 * (gold == 2).sum()


def test_spans_without_a_type_are_a_type_of_their_own() -> None:
    kinds = kinds_of_marks(("O", "B", "B-X", "I", "I-X"))
    assert {kind: np.flatnonzero(own).tolist() for kind, own in kinds.items()} == {
        None: [1, 2, 3, 4],
        "": [1, 3],
        "X": [2, 4],
    }
    assert list(kinds_of_marks(("O", "B", "I"))) == [None]


def test_the_base_speaks_beside_learned_priors_where_annotators_have_many_marks() -> None:
    structure = next(s for s in MEMBERS if s.learned)
    shares = []
    for n in (60, 4000):
        corpus = crowd(n, n_annotators=3, seed=5, coverage=1.0, accuracy=0.95)
        shares.append(RobustChain(looked_at(corpus), structure).own)
    assert shares[0] == pytest.approx(0.1)
    assert shares[1] > 0.9


def test_learned_priors_are_the_mean_of_all_annotators() -> None:
    corpus = crowd(100, n_annotators=6, seed=6, coverage=1.0, accuracy=0.6)
    chain = RobustChain(looked_at(corpus), MEMBERS[3])
    out = np.zeros((corpus.n_tokens, chain.S))
    out[np.arange(corpus.n_tokens), corpus.golds["gold"]] = 1.0  # the easy level, true labels
    rows, totals = chain._pooled(chain._crowd_counts(out))
    own = rows[(chain.annotator == 0)][:, :3] / totals[0, :3]
    by_given = {int(g): row for g, row in zip(chain.given[chain.annotator == 0], own)}
    assert by_given[0][0] == pytest.approx(0.6 + 0.4 / 3, abs=0.06)
    first = chain.strength.copy()
    for _ in range(30):
        chain._pooled(chain._crowd_counts(out))
    assert (chain.strength[0, :3] > first[0, :3]).all()  # annotators are alike: the fixed point is far above the start
    assert chain.strength[0, :3].min() > 30


def test_what_is_known_holds_and_teaches() -> None:
    corpus = crowd(60, n_annotators=4, seed=7, accuracy=[0.9, 0.9, 0.3, 0.3])
    known = np.full(corpus.n_tokens, -1)
    known[:50] = corpus.golds["gold"][:50]
    truth = RobustSequence(text=False).fit(corpus, known=known)
    np.testing.assert_array_equal(truth.labels[:50], known[:50])
    np.testing.assert_allclose(truth.proba[np.arange(50), known[:50]], 1, atol=1e-4)


def test_soft_votes_are_heard() -> None:
    plain = crowd(80, n_annotators=3, seed=8, coverage=1.0, accuracy=0.6)
    gold = plain.golds["gold"]
    from lasca.corpus.evidence import SoftVotes

    proba = np.full((plain.n_tokens, 3), 0.05, np.float32)
    proba[np.arange(plain.n_tokens), gold] = 0.9
    soft = SoftVotes(np.arange(plain.n_tokens), np.full(plain.n_tokens, 3, np.int32), proba)
    base = plain.with_annotations(
        [*plain.annotators, "model"], plain.annotation_token, plain.annotation_annotator, plain.annotation_label
    )
    heard = RobustSequence(text=False, words=False).fit(replace(base, soft=soft))
    deaf = RobustSequence(text=False, words=False).fit(plain)
    assert (heard.labels == gold).mean() > (deaf.labels == gold).mean() + 0.05


def test_the_text_must_earn_its_say() -> None:
    corpus = crowd(40, seed=1)
    assert RobustSequence().fit(corpus).diagnostics["text"] is False  # too few spans to learn from
    larger = crowd(400, seed=1)
    found = RobustSequence(text_iterations=10, rounds=1).fit(larger).diagnostics
    assert found["text"] is (found["text_agreement"] >= 0.4)


class Knows:
    """A text model that knows the labels beforehand."""

    def __init__(self, codes: Any) -> None:
        self.codes = codes

    def prepare(self, corpus: CrowdCorpus, n_threads: int | None = None) -> Knows:
        self.offsets = corpus.offsets
        return self

    def fit(self, targets: Any, sequences: Any, before: Any = None) -> None:
        assert targets.shape == (len(self.codes), 3)

    def predict(self, learned: None, sequences: Any, out: Any) -> None:
        for s in sequences:
            tokens = np.arange(self.offsets[s], self.offsets[s + 1])
            out[tokens, self.codes[tokens]] = 1


def test_any_text_model_can_have_a_say() -> None:
    corpus = crowd(n_sequences=250, n_annotators=2, accuracy=0.7)
    gold = corpus.golds["gold"]
    found = [RobustSequence(text=text, words=False, rounds=1).fit(corpus) for text in (False, Knows(gold))]
    assert [truth.diagnostics["text"] for truth in found] == [False, True]
    deaf, told = ((truth.labels == gold).mean() for truth in found)
    assert told > deaf + 0.05


def test_threads_change_no_byte() -> None:
    corpus = crowd(300, seed=2)
    one, two = (RobustSequence(n_threads=n, rounds=1, text_iterations=5).fit(corpus) for n in (1, 2))
    np.testing.assert_array_equal(one.proba, two.proba)
    np.testing.assert_array_equal(one.labels, two.labels)


def test_it_says_who_repeats_whom_and_what_is_never_inferred() -> None:
    plain = crowd(150, n_annotators=7, seed=0, coverage=1.0)
    truth = RobustSequence(text=False).fit(with_copies(plain, "annotator-2", 1, redrawn=0.02))
    assert any("annotator-2, annotator-2-copy-0 repeat each other" in warning for warning in truth.warnings)


def test_every_model_says_what_it_never_infers_and_where_votes_are_lonely() -> None:
    tokens = [["a", "b", "c"]] * 60
    given = {
        "p": [["X", "X", "Y"]] * 60,
        "q": [["X", "X", "X"]] * 60,
        "r": [["X", "X", "X"]] * 60,
    }
    truth = model_class("mv")().fit(CrowdCorpus.from_sequences(tokens, given))
    assert any("'Y' was given 60 times and is never inferred" in warning for warning in truth.warnings)
    alone = {"p": [["X", "Y", "Y"]] * 30 + [None] * 30, "q": [None] * 29 + [["X", "Y", "Y"]] * 31}
    lonely = model_class("ds")().fit(CrowdCorpus.from_sequences(tokens, alone))
    assert any("one vote only" in warning for warning in lonely.warnings)


def test_of_two_votes_that_differ_none_is_judged_in_a_small_crowd() -> None:
    """Members begin at the votes' shares unless there are third votes, or many spans; lone votes are never judged."""
    marks = [["B-PER", "O", "O"], ["O", "B-PER", "O"]] * 30
    silent = [["O", "O", "O"]] * 60

    def begins(people: dict[str, list[Any]], times: int = 1) -> Any:
        people = {name: labels * times for name, labels in people.items()}
        corpus = CrowdCorpus.from_sequences([["a", "b", "c"]] * 60 * times, people)
        votes = Votes.of(corpus)
        start = np.tile(np.log([0.999, 0.001]), (corpus.n_tokens, 1))  # Dawid–Skene: nothing is true but O
        mark = corpus.labels.index("B-PER")
        seen = Crowd.of(corpus, votes, np.ones(len(votes.label)), None, 1)
        return np.exp(_meeting(seen, start[:, :: -1 if mark == 0 else 1]))[0, mark]

    assert begins({"ann": marks, "ben": silent}) == pytest.approx(0.5, abs=0.01)
    assert begins({"ann": marks, "ben": silent, "cyd": silent}) == pytest.approx(0.001, abs=1e-6)
    assert begins({"ann": marks, "ben": silent}, times=200) == pytest.approx(0.003, abs=0.004)
    assert begins({"ann": marks}, times=200) == pytest.approx(1.0, abs=0.01)


def test_members_say_what_they_have_earned() -> None:
    def said(times: int) -> dict[str, float]:
        people = {name: [["O", "B-PER", "I-PER", "O"]] * times for name in ("ann", "ben", "cyd")}
        corpus = CrowdCorpus.from_sequences([["a", "b", "c", "d"]] * times, people)
        votes = Votes.of(corpus)
        seen = Crowd.of(corpus, votes, np.ones(len(votes.label)), None, 1)
        assert seen.marks / seen.run_length == 3 * times
        return {structure.name: _say(seen, structure) for structure in MEMBERS}

    few, half, many = said(10), said(1300 // 3), said(10_000)
    assert few["memory, one level"] < 0.01 < 0.99 < few["no memory, one level"]
    assert half["memory, one level"] == pytest.approx(0.5, abs=0.01) == half["no memory, one level"]
    assert many["memory, one level"] > 0.99 > 0.01 > many["no memory, one level"]
    assert {few["memory, two levels, learned priors"], many["memory, two levels, learned priors"]} == {1.0}
