"""The one EM loop."""

from __future__ import annotations

import numpy as np
import pytest

from lasca.errors import ModelError
from lasca.learn.em import run_em


def halving(state: float) -> tuple[float, float]:
    return state / 2, -abs(state)


def run(**changes):  # type: ignore[no-untyped-def]
    settings = {"rng": np.random.default_rng(0), "restarts": 4, "max_iter": 30, "tol": 1e-3} | changes
    return run_em(lambda rng: float(rng.uniform(1, 2)), halving, **settings)


def test_every_restart_has_a_start_of_its_own() -> None:
    found = run(max_iter=1)
    assert len(set(found.objectives)) == 4


def test_the_best_run_is_kept() -> None:
    found = run(max_iter=2)
    assert found.restart == int(np.argmax(found.objectives))
    assert found.trace[-1] == max(found.objectives)
    assert found.state == pytest.approx(-found.trace[-1] / 2)


def test_the_same_seed_gives_the_same_run() -> None:
    assert run().objectives == run().objectives
    assert run().objectives != run(rng=np.random.default_rng(1)).objectives


def test_it_stops_when_the_rise_is_small() -> None:
    found = run(restarts=1)
    assert found.converged
    assert np.diff(found.trace)[-1] < 1e-3 <= np.diff(found.trace)[-2]
    looser = run(restarts=1, scale=10)
    assert len(looser.trace) < len(found.trace)


def test_without_tolerance_it_runs_to_the_end() -> None:
    found = run(restarts=1, tol=0)
    assert len(found.trace) == 30
    assert not found.converged


def test_first_is_where_the_first_run_starts() -> None:
    found = run(first=0.5, max_iter=1)
    assert found.objectives[0] == -0.5
    assert found.restart == 0


def test_a_rise_that_stops_at_a_plateau_counts_as_converged() -> None:
    found = run_em(lambda rng: 0, lambda state: (state, -1.0), rng=np.random.default_rng(0), tol=1e-9)
    assert found.converged
    assert len(found.trace) == 2


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_an_objective_that_is_no_number_is_an_error(bad: float) -> None:
    with pytest.raises(ModelError, match="iteration 1"):
        run_em(lambda rng: 0, lambda state: (state, bad), rng=np.random.default_rng(0))


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    run(progress=lambda share, words: seen.append(share), tol=0)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_diagnostics_are_plain() -> None:
    found = run().diagnostics()
    assert set(found) == {"iterations", "converged", "objective", "restart", "objectives"}
    assert isinstance(found["objective"], float)
