from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import lasca
import naive
from lasca.ambiguity import find_ambiguity, steps, two_truths
from lasca.ambiguity.steps import (
    PI,
    PairParameters,
    PairPasses,
    best_pairs,
    integrated,
    kept_counts,
    own_step,
    pooled_step,
    strengths,
)
from lasca.corpus import CrowdCorpus
from lasca.truth.base import Votes
from test_ambiguity import T, crowd, ece


def parameters(rng: np.random.Generator, n_annotators: int) -> PairParameters:
    kappa = rng.dirichlet(np.ones(T * T)).reshape(T, T) * (1 - np.eye(T))
    psi = rng.dirichlet(np.ones(T), size=(n_annotators, 3, T)).transpose(0, 1, 3, 2)
    return PairParameters(
        psi=psi,
        kinds=rng.dirichlet(np.ones(2)),
        levels=rng.dirichlet(np.ones(3)),
        gamma=rng.dirichlet(np.ones(T)),
        kappa=kappa / kappa.sum(),
        rho=rng.dirichlet(np.ones(4)),
        theta=np.full((n_annotators, 3), 0.5),
        rows=np.full((T, T), 1 / T),
        log_prior=0.0,
        own=psi[:, :1],
    )


def pairs_of(labels: set[int], near: np.ndarray) -> list[tuple[int, int]]:
    pairs = [(a, b) for a in labels for b in labels if a != b]
    for a in labels:
        for b in near[a].tolist():
            if b not in labels:
                pairs.append((a, b))
    return pairs


@pytest.mark.parametrize("per_token", [2, 5, 12])
def test_e_step_equals_direct_sums(per_token: int) -> None:
    corpus = crowd(50, seed=1, per_token=per_token)
    votes, p = Votes.of(corpus), parameters(np.random.default_rng(2), 12)
    near = np.array([[(a + 1) % T, (a + 3) % T] for a in range(T)], np.int16)
    passes = PairPasses(votes, np.arange(50), near, 1, 7)
    found, proba = passes.run(p)
    pairs = best_pairs(votes, near, p, np.arange(50))
    counts, one, two, by_level = np.zeros((12, 3, T, T)), np.zeros((3, T)), np.zeros((T, T, 4)), np.zeros(3)
    evidence = 0.0
    psi = p.psi.transpose(0, 1, 3, 2)
    for i in range(50):
        given = [(int(votes.annotator[v]), int(votes.label[v])) for v in range(votes.start[i], votes.start[i + 1])]
        listed = pairs_of({s for _, s in given}, near)
        made = naive.two_truths_token(given, listed, psi, p.kinds, p.levels, p.gamma, p.kappa, p.rho, PI)
        total = sum(sum(part.values()) for part in made.values())
        evidence += np.log(total)
        np.testing.assert_allclose(proba[i], sum(made["two"].values()) / total, rtol=1e-9)
        for (d, t), w in made["one"].items():
            one[d, t] += w / total
            for who, s in given:
                counts[who, d, s, t] += w / total
        weight: dict[tuple[int, int], float] = {}
        for (d, a, b, k), w in made["two"].items():
            two[a, b, k] += w / total
            by_level[d] += w / total
            key = (min(a, b), max(a, b))
            weight[key] = weight.get(key, 0.0) + w
            for who, s in given:
                x, y = PI[k] * psi[who, d, a, s], (1 - PI[k]) * psi[who, d, b, s]
                counts[who, d, s, a] += w / total * x / (x + y)
                counts[who, d, s, b] += w / total * y / (x + y)
        best = max(weight, key=lambda key: weight[key])
        assert set(pairs["pair_label"][i, 0].tolist()) == set(best)
        np.testing.assert_allclose(pairs["pair_proba"][i, 0], weight[best] / sum(weight.values()), rtol=1e-9)
        a, b = pairs["pair_label"][i, 0].tolist()
        share = sum(
            w * (PI[k] if (x, y) == (a, b) else 1 - PI[k])
            for (_, x, y, k), w in made["two"].items()
            if {x, y} == {a, b}
        )
        np.testing.assert_allclose(pairs["pair_share"][i, 0], share / weight[best], rtol=1e-9)
        assert pairs["pair_share"][i, 0] >= 0.5
    np.testing.assert_allclose(found.evidence, evidence, rtol=1e-12)
    np.testing.assert_allclose(found.one, one, rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.two, by_level, rtol=0, atol=1e-7)
    # explanations less probable than 1e-5 are left out of the counts of votes and pairs
    np.testing.assert_allclose(found.pairs, two, rtol=0, atol=0.01)
    np.testing.assert_allclose(found.counts, counts, rtol=0, atol=0.01)


def test_pairs_are_the_five_best_however_few_tokens_fit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    votes, p = Votes.of(crowd(20, seed=1, per_token=5)), parameters(np.random.default_rng(2), 12)
    near = np.array([[(a + 1) % T, (a + 3) % T] for a in range(T)], np.int16)
    found = best_pairs(votes, near, p, np.arange(20))
    assert (found["pair_label"].shape, found["pair_proba"].shape) == ((20, 5, 2), (20, 5))
    assert (np.diff(found["pair_proba"], axis=1) <= 0).all()
    monkeypatch.setattr(steps, "PAIR_CELLS", 1)
    again = best_pairs(votes, near, p, np.arange(20))
    assert all(np.array_equal(again[name], values, equal_nan=True) for name, values in found.items())


def test_many_votes_do_not_underflow() -> None:
    rng = np.random.default_rng(0)
    n = 900
    corpus = CrowdCorpus.from_codes(
        tokens=["w"] * 3,
        offsets=[0, 3],
        labels=[f"L{t}" for t in range(T)],
        annotators=[f"a{a:03d}" for a in range(n)],
        annotation_token=np.repeat(np.arange(3), n),
        annotation_annotator=np.tile(np.arange(n), 3),
        annotation_label=np.concatenate(
            [np.zeros(n, int), np.arange(n) % 2, np.where(rng.random(n) < 0.5, 3, rng.integers(0, T, n))]
        ),
        sequence_ids=["s"],
    )
    p = parameters(rng, n)
    levels = np.stack([right * np.eye(T) + (1 - right) / T for right in (0.9, 0.8, 0.5)])
    p = PairParameters(**{**p.__dict__, "psi": np.tile(levels, (n, 1, 1, 1))})
    near = np.zeros((T, 0), np.int16)
    found, proba = PairPasses(Votes.of(corpus), np.arange(3), near, 1, 10).run(p)
    assert np.isfinite(found.evidence)
    np.testing.assert_allclose(proba, [0, 1, 0], rtol=0, atol=1e-6)


def start_of(votes: Votes, truth: lasca.Truth) -> two_truths.PairStart:
    given = np.bincount(votes.annotator, minlength=votes.n_annotators)
    return two_truths.start_of(given, two_truths.mass_of(truth.proba), votes.n_tokens, truth.confusion)


def test_objective_never_falls_in_either_stage() -> None:
    for seed in range(3):
        corpus = crowd(400, seed=seed, per_token=5)
        votes, truth = Votes.of(corpus), lasca.MajorityVote().fit(corpus)
        start = start_of(votes, truth)
        passes = PairPasses(votes, np.arange(400), start.near, 1, 100)
        fitted = two_truths._fit(passes, start, 40, 0.0, None)
        for run in fitted.runs:
            assert len(run.trace) == 40
            assert np.diff(run.trace).min() >= -1e-6 * len(votes.label)


def test_m_steps_maximise_the_expected_log_posterior() -> None:
    corpus = crowd(300, seed=5)
    votes, truth = Votes.of(corpus), lasca.MajorityVote().fit(corpus)
    start = start_of(votes, truth)
    passes = PairPasses(votes, np.arange(300), start.near, 1, 1000)
    found, _ = passes.run(start.parameters)
    first = start.parameters
    kept = first.theta / first.theta.max(axis=1, keepdims=True)
    prior = two_truths.replace(start.prior, own=5.0 * first.own, kept=kept)
    p = own_step(found, prior, first)
    counts = kept_counts(found, first, first.own, kept)
    assert counts.sum() < found.counts.sum()
    np.testing.assert_allclose(p.psi, kept[:, :, None, None] * p.own + (1 - kept)[:, :, None, None] * first.rows.T)

    def expected(own: np.ndarray) -> float:
        return float(((counts + prior.own) * np.log(own)).sum())

    rng = np.random.default_rng(0)
    for _ in range(20):
        other = p.own * rng.normal(1, 0.02, p.own.shape).clip(0.5)
        assert expected(other / other.sum(axis=2, keepdims=True)) < expected(p.own)
    pooled = pooled_step(found, start.prior, start.parameters.theta, start.parameters.rows)
    before, after = ((found.counts * np.log(q.psi)).sum() for q in (start.parameters, pooled))
    assert after > before
    for q in (p, pooled):
        np.testing.assert_allclose(q.psi.sum(axis=2), 1, rtol=1e-12)
        for part in (q.kinds, q.levels, q.gamma, q.kappa, q.rho):
            np.testing.assert_allclose(part.sum(), 1, rtol=1e-12)


def test_strengths_tell_alike_from_unlike() -> None:
    rng = np.random.default_rng(0)
    base = rng.dirichlet(np.ones(T) * 3, size=T).T  # (given, true)
    pooled = np.tile(base, (40, 1, 1))
    alike = np.stack([[rng.multinomial(500, base[:, t]) for t in range(T)] for _ in range(40)]).transpose(0, 2, 1)
    rows = [[rng.dirichlet(10 * base[:, t]) for t in range(T)] for _ in range(40)]
    unlike = np.array([[rng.multinomial(500, row) for row in mine] for mine in rows]).transpose(0, 2, 1)
    alike, unlike, pooled = (x[:, None].astype(float) for x in (alike, unlike, pooled))
    assert (strengths(alike, pooled) >= 1000).all()
    assert np.isin(strengths(unlike, pooled), [10**0.5, 10, 10**1.5]).all()


def test_integrated_evidence_is_exact_where_nothing_is_hidden() -> None:
    """With one explanation per token the approximation is the Dirichlet–multinomial itself."""
    corpus = crowd(30, seed=3)
    votes = Votes.of(corpus)
    p = parameters(np.random.default_rng(0), 12)
    p = PairParameters(**{**p.__dict__, "kinds": np.eye(2)[0], "levels": np.eye(3)[0], "gamma": np.eye(T)[2]})
    found, _ = PairPasses(votes, np.arange(30), np.zeros((T, 0), np.int16), 1, 100).run(p)
    prior = two_truths.PairPrior(np.ones((T, T)), np.ones((T, T)), np.full((12, 1, T, T), 0.5), np.ones((12, 3)))
    total = 0.0
    for a in range(12):
        alpha, n = np.full(T, 0.5), np.zeros(T)
        for s in votes.label[votes.annotator == a]:
            total += np.log((alpha[s] + n[s]) / (alpha.sum() + n.sum()))
            n[s] += 1
    np.testing.assert_allclose(integrated(found, p, prior), total, rtol=1e-7)


def test_probability_is_calibrated_and_the_share_is_found() -> None:
    corpus = crowd(8000, seed=7)
    found = find_ambiguity(corpus, lasca.DawidSkene().fit(corpus))
    differ = corpus.golds["gold1"] != corpus.golds["gold2"]
    assert ece(differ, found.score) < 0.03
    assert found.share is not None
    assert found.hard_share is not None
    assert abs(found.share - differ.mean()) < 0.02
    assert found.hard_share < 0.02
    assert found.pair_weight is not None
    top = np.sort(found.pair_weight[np.triu_indices(T, 1)])[::-1]
    assert min(found.pair_weight[1, 2], found.pair_weight[4, 5]) == top[1] > 5 * top[2]
    assert found.pair_share is not None
    assert np.median(found.pair_share[:, 0]) < 0.7


def with_slips(corpus: CrowdCorpus, hard: np.ndarray, rng: np.random.Generator) -> CrowdCorpus:
    """Let annotators give any label in half of the cases where a token is hard."""
    slip = hard[corpus.annotation_token] & (rng.random(corpus.n_annotations) < 0.5)
    label = np.where(slip, rng.integers(0, T, corpus.n_annotations), corpus.annotation_label)
    return corpus.with_annotations(corpus.annotators, corpus.annotation_token, corpus.annotation_annotator, label)


def test_hard_tokens_do_not_pass_for_ambiguous_ones() -> None:
    rng = np.random.default_rng(0)
    corpus = crowd(4000, seed=8)
    hard = rng.random(4000) < 0.3
    noisy = with_slips(corpus, hard, rng)
    found = find_ambiguity(noisy, lasca.DawidSkene().fit(noisy))
    differ = corpus.golds["gold1"] != corpus.golds["gold2"]
    assert found.hard_share is not None
    assert 0.2 < found.hard_share < 0.4
    assert ece(differ, found.score) < 0.03
    assert found.score[hard & ~differ].mean() < 0.2  # little is known there: not far from the share, 0.13


def test_hard_tokens_are_ambiguous_as_often_as_others() -> None:
    """Difficulty says nothing about the number of truths, and must not hide second readings either."""
    rng = np.random.default_rng(1)
    corpus = crowd(6000, seed=4)
    hard = rng.random(6000) < 0.5
    noisy = with_slips(corpus, hard, rng)
    found = find_ambiguity(noisy, lasca.DawidSkene().fit(noisy))
    differ = corpus.golds["gold1"] != corpus.golds["gold2"]
    assert found.hard_share is not None
    assert 0.2 < found.hard_share < 0.6
    assert ece(differ, found.score) < 0.03
    for part in (hard, ~hard):
        assert abs(found.score[part].mean() - differ[part].mean()) < 0.06


def test_without_ambiguity_the_share_is_small() -> None:
    corpus = crowd(4000, seed=3)
    rng = np.random.default_rng(0)
    knows = rng.random(corpus.n_annotations) < np.linspace(0.6, 0.95, 12)[corpus.annotation_annotator]
    truth = corpus.golds["gold1"][corpus.annotation_token]
    label = np.where(knows, truth, rng.integers(0, T, corpus.n_annotations))
    plain = corpus.with_annotations(corpus.annotators, corpus.annotation_token, corpus.annotation_annotator, label)
    found = find_ambiguity(plain, lasca.DawidSkene().fit(plain), fraction=None)
    assert found.share is not None
    assert found.share < 0.015
    assert len(found.tokens) < 20


def test_two_annotations_per_token_are_too_few_to_trust() -> None:
    for per_token, n in ((2, 1), (3, 0)):
        corpus = crowd(500, per_token=per_token)
        found = find_ambiguity(corpus, lasca.MajorityVote().fit(corpus))
        assert sum("two annotations" in words for words in found.warnings) == n


def test_em_on_a_sample_is_close_to_em_on_all() -> None:
    corpus = crowd(6000, seed=9)
    truth = lasca.DawidSkene().fit(corpus)
    whole, sampled = (find_ambiguity(corpus, truth, sample=n) for n in (54_000, 13_500))
    assert (whole.diagnostics["every"], sampled.diagnostics["every"]) == (1, 4)
    assert np.abs(whole.score - sampled.score).mean() < 0.02


def test_one_label_and_nobody_twice() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b"]], {"x": [["A", "A"]], "y": [["A", None]]})
    found = find_ambiguity(corpus, lasca.MajorityVote().fit(corpus), fraction=1.0)
    assert found.score[0] == 0
    assert found.unranked == {"not annotated": 0, "one annotation only": 1}
    assert found.candidates[0] == {0: 0.0}


def test_two_labels_can_be_two_truths() -> None:
    rng = np.random.default_rng(0)
    sure, open_ = np.repeat([[0], [1]], 90, axis=0), np.full((20, 1), 0.5)
    said = rng.random((200, 7)) < np.concatenate((sure * 0.96 + 0.02, open_))
    rows = {f"a{i}": [["AB"[int(x)] for x in column]] for i, column in enumerate(said.T)}
    corpus = CrowdCorpus.from_sequences([["w"] * 200], rows)
    found = find_ambiguity(corpus, lasca.DawidSkene().fit(corpus), fraction=0.05)
    assert (found.tokens >= 180).all()
    assert found.score[found.tokens].min() > 0.5


def test_progress_rises_over_all_stages() -> None:
    corpus, seen = crowd(100), list[float]()
    find_ambiguity(
        corpus, lasca.MajorityVote().fit(corpus), progress=lambda share, words: seen.append(share), max_iter=3
    )
    assert seen == pytest.approx([(i + 1) / 9 for i in range(9)])


def test_mass_is_counted_in_whole_parts_however_many_rows_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    proba = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]], np.float32)
    for rows in (1, 2, 3):
        monkeypatch.setattr(two_truths, "ROWS_AT_A_TIME", rows)
        assert two_truths.mass_of(proba).tolist() == [1.75 * two_truths.SCALE, 1.25 * two_truths.SCALE]


@pytest.mark.data
def test_targets_on_tdga(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LASCA_DATA", str(data_dir))
    corpus = lasca.datasets.load("tdga")
    golds = corpus.golds["gold1"], corpus.golds["gold2"]
    cases = (("independent", "ca1", 0.85), ("independent", "ca3", 0.5), ("difficulty", "ca3", 0.65))
    for errors, groups, least in cases:
        annotated = lasca.simulate.crowd(
            corpus, gold="gold1", second_gold="gold2", groups=groups, errors=errors, hard_cases=0.4, seed=11
        )
        truth = lasca.DawidSkene().fit(annotated)
        found = find_ambiguity(annotated, truth)
        scores = lasca.evaluate.ambiguity(found.score, *golds, tokens=found.tokens, candidates=list(found.candidates))
        assert scores.average_precision >= least
        both = golds[1] >= 0
        assert ece((golds[0] != golds[1])[both], found.score[both]) <= 0.03
        if (errors, groups) == ("independent", "ca1"):
            assert scores.acc1 >= 0.72
            assert scores.acc2 >= 0.66


@pytest.mark.data
def test_flagged_tokens_of_mturk_are_where_the_truth_errs(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LASCA_DATA", str(data_dir))
    corpus = lasca.datasets.load("conll2003-mturk")
    truth = lasca.DawidSkene().fit(corpus)
    found = find_ambiguity(corpus, truth)
    wrong, ranked = truth.labels != corpus.golds["gold"], np.isfinite(found.score)
    assert wrong[found.tokens].mean() >= 5 * wrong[ranked & ~found.mask].mean()


def test_expected_labels_count_every_ranked_token_and_the_second_of_two() -> None:
    corpus = lasca.simulate.big(1500, n_annotators=6, n_labels=4, seed=0)
    found = find_ambiguity(corpus, lasca.DawidSkene().fit(corpus))
    assert found.pair_count is not None
    assert found.label_count is not None
    expected = np.isfinite(found.score).sum() + np.triu(found.pair_count, 1).sum()
    assert found.label_count.sum() == pytest.approx(expected, rel=1e-2)


def test_tokens_on_which_all_agree_are_never_ambiguous_and_many_votes_do_not_saturate() -> None:
    from lasca.ambiguity.two_truths import INDEPENDENT, believable
    from lasca.corpus import CrowdCorpus
    from lasca.truth import Votes

    n = 40
    given = {f"a{i:02}": [["x", "x" if i else "y", "x" if i < 2 else None]] for i in range(n)}
    votes = Votes.of(CrowdCorpus.from_sequences([["p", "q", "r"]], given))
    tokens = np.arange(3)
    held = believable(votes, tokens, np.array([0.73, 0.999, 0.4]), share=0.1)
    assert held[0] == 0.0  # forty agree
    assert held[2] == 0.0  # two agree
    odds = np.log(0.1 / 0.9) + (np.log(0.999 / 0.001) - np.log(0.1 / 0.9)) * INDEPENDENT / n
    np.testing.assert_allclose(held[1], 1 / (1 + np.exp(-odds)), rtol=1e-9)


def test_a_level_is_hard_where_votes_are_right_much_less_often_than_on_the_easiest_common_one() -> None:
    def levels(*rates: float, n: tuple[int, ...] = (100, 100, 100)) -> list[bool]:
        counts = np.zeros((1, 3, 2, 2))
        for level, (rate, size) in enumerate(zip(rates, n)):
            counts[0, level] = size / 2 * np.array([[rate, 1 - rate], [1 - rate, rate]])
        return two_truths._hard_levels(SimpleNamespace(counts=counts)).tolist()

    assert levels(0.6, 0.38, 0.42) == [False, True, False]  # two thirds of 0.6 are 0.4
    assert levels(0.6, 0.38, 0.95, n=(100, 100, 10)) == [False, True, False]  # the last is easy and not common


def test_a_label_that_nobody_gave_starts_with_a_small_share() -> None:
    n, mass = np.array([50, 60]), np.array([30 * two_truths.SCALE, 70 * two_truths.SCALE, 0])
    confusion = np.tile(np.eye(3) * 0.7 + 0.1, (2, 1, 1))
    start = two_truths.start_of(n, mass, 100, confusion)
    assert start.parameters.gamma == pytest.approx(np.array([0.3 + 1e-3 / 3, 0.7 + 1e-3 / 3, 1e-3 / 3]) / 1.001)
    assert all(np.isfinite(part).all() and (part >= 0).all() for part in (start.parameters.psi, start.prior.kappa))
    assert start.prior.kappa.sum() == pytest.approx(3 * steps.PAIRS)  # so many pairs for each label
    assert start.prior.rows.sum(axis=1) == pytest.approx(np.full(3, steps.ROWS))
