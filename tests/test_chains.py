"""The chain driver, and diagnostics against cases whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from lasca.errors import ModelError
from lasca.truth.chains import ess, in_range, mcse, run_chains, split_rhat, summary


class Walk:
    """An autoregressive chain x' = ρ x + noise, with the tuning gains it was given."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.x, self.gains = rng, 0.0, list[float]()


class Draws:
    def __init__(self) -> None:
        self.values: list[float] = []

    def add(self, state: Walk) -> None:
        self.values.append(state.x)


def begin(generators: list[np.random.Generator]) -> list[Walk]:
    return [Walk(own) for own in generators]


def step(states: list[Walk], tuning: float, keeps: bool) -> list[float]:
    for state in states:
        state.gains.append(tuning)
        state.x = 0.5 * state.x + state.rng.normal()
    return [state.x for state in states]


def run(**changes: int):
    sizes = {"n_chains": 3, "n_warmup": 5, "n_samples": 8, "thin": 2} | changes
    return run_chains(begin, step, lambda _: Draws(), rng=np.random.default_rng(1), **sizes)


def test_keeps_one_draw_in_thin_after_the_warm_up() -> None:
    chain = run()[0]
    assert len(chain.trace) == 5 + 16
    assert chain.store.values == list(chain.trace[5:][1::2])
    np.testing.assert_array_equal(chain.kept, chain.store.values)


def test_tuning_falls_in_the_warm_up_and_is_off_afterwards() -> None:
    gains = run()[0].state.gains
    assert gains[0] == 1.0
    assert (np.diff(gains[:5]) < 0).all()
    assert gains[5:] == [0.0] * 16


def test_chains_differ_and_do_not_depend_on_each_other() -> None:
    three, two = run(), run(n_chains=2)
    for a, b in zip(three, two):
        assert a.trace.tobytes() == b.trace.tobytes()
    assert len({chain.trace.tobytes() for chain in three}) == 3


def test_progress_reaches_the_end() -> None:
    seen: list[float] = []
    run_chains(
        begin, step, lambda _: Draws(), rng=np.random.default_rng(0), n_chains=2, n_warmup=3, n_samples=4,
        progress=lambda share, words: seen.append(share),
    )  # fmt: skip
    assert seen == sorted(seen)
    assert len(seen) == 7
    assert seen[-1] == 1.0


def test_a_joint_that_is_not_a_number_is_named() -> None:
    with pytest.raises(ModelError, match="chain 1, sweep 1"):
        run_chains(
            begin, lambda *_: [float("nan")], lambda _: Draws(), rng=np.random.default_rng(0), n_chains=1,
            n_warmup=0, n_samples=4,
        )  # fmt: skip


def test_chains_in_a_worse_mode_are_out_of_range() -> None:
    rng = np.random.default_rng(0)
    kept = rng.normal(size=(3, 100)) + np.array([[0.0], [-1.0], [-50.0]])
    assert in_range(kept).tolist() == [True, True, False]
    assert in_range(np.full((2, 10), -3.0)).tolist() == [True, True]


def autoregressive(rho: float, shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = np.empty(shape)
    x[:, 0] = rng.normal(size=shape[0]) / np.sqrt(1 - rho**2)
    for i in range(1, shape[1]):
        x[:, i] = rho * x[:, i - 1] + rng.normal(size=shape[0])
    return x


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, -0.4])
def test_effective_sample_size_of_an_autoregressive_chain(rho: float) -> None:
    """The truth is n (1 − ρ) / (1 + ρ); the mean error of an estimate from 80,000 draws is a few percent."""
    x = autoregressive(rho, (4, 20_000))
    np.testing.assert_allclose(ess(x), x.size * (1 - rho) / (1 + rho), rtol=0.12)


def test_mcse_is_the_spread_of_means() -> None:
    means = [autoregressive(0.7, (2, 500), seed).mean() for seed in range(400)]
    guesses = [mcse(autoregressive(0.7, (2, 500), seed)) for seed in range(50)]
    np.testing.assert_allclose(np.mean(guesses), np.std(means), rtol=0.15)


def test_rhat_of_chains_that_met_and_of_others() -> None:
    x = autoregressive(0.3, (4, 2_000))
    assert abs(split_rhat(x) - 1) < 0.01
    assert split_rhat(x + np.arange(4)[:, None] * 2) > 1.5  # between chains
    assert split_rhat(x + np.linspace(0, 5, 2_000)) > 1.3  # drift within chains, the same in all
    by_hand = np.array([[1.0, 3.0, 2.0, 6.0]])  # halves (1, 3) and (2, 6): W = 5, B/n = 2, var = 5 / 2 + 2
    np.testing.assert_allclose(split_rhat(by_hand), np.sqrt(4.5 / 5), rtol=1e-12)


def test_constant_and_short_chains() -> None:
    assert split_rhat(np.ones((4, 10))) == 1.0
    assert ess(np.ones((4, 10))) == 40
    assert split_rhat(np.repeat([[1.0], [2.0]], 10, axis=1)) == np.inf
    assert np.isnan(split_rhat(np.ones((1, 3))))
    assert set(summary(autoregressive(0, (2, 50)))) == {"mean", "mcse", "ess", "rhat"}
