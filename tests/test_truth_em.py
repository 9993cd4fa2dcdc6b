"""The one EM loop."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from lasca import learn
from lasca.errors import ModelError
from lasca.learn import EmRun, Halfway, run_em


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


def test_the_tolerance_is_per_unit_of_scale() -> None:
    """Rises 8, 4, 2, 1, …: with a tolerance of 0.1 for each of 30 the one of 2 is the first that is too small."""
    for scale, tol in ((30.0, 0.1), (1.0, 3.0)):
        done = learn.run_from(16.0, lambda left: (left / 2, -left), max_iter=50, tol=tol, scale=scale)
        assert done.converged
        assert done.trace.tolist() == [-16.0, -8.0, -4.0, -2.0]


def test_without_tolerance_it_runs_to_the_end() -> None:
    found = run(restarts=1, tol=0)
    assert len(found.trace) == 30
    assert not found.converged
    rounded = run_em(lambda rng: 1, lambda n: (n + 1, -1e-15 * n), rng=np.random.default_rng(0), max_iter=30, tol=0)
    assert len(rounded.trace) == 30


def test_first_is_where_the_first_run_starts() -> None:
    found = run(first=0.5, max_iter=1)
    assert found.objectives[0] == -0.5
    assert found.restart == 0


def test_a_rise_that_stops_at_a_plateau_counts_as_converged() -> None:
    found = run_em(lambda rng: 0, lambda state: (state, -1.0), rng=np.random.default_rng(0), max_iter=9, tol=1e-9)
    assert found.converged
    assert len(found.trace) == 2


def test_a_fall_is_no_end() -> None:
    """Up, down by more than the tolerance, up again: the run goes on; a fall by rounding ends it."""
    heights = [0.0, 5.0, 3.0, 6.0, 6.0 - 1e-13, 9.0]
    found = learn.run_from(0, lambda n: (n + 1, heights[n]), max_iter=6, tol=1e-14, scale=1.0)
    assert (found.trace.tolist(), found.converged) == (heights[:5], True)
    falling = learn.run_from(0, lambda n: (n + 1, -float(n)), max_iter=6, tol=0.5, scale=1.0)
    assert (len(falling.trace), falling.converged) == (6, False)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_an_objective_that_is_no_number_is_an_error(bad: float) -> None:
    with pytest.raises(ModelError, match="iteration 1"):
        run_em(lambda rng: 0, lambda state: (state, bad), rng=np.random.default_rng(0), max_iter=9, tol=0.1)


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    run(progress=lambda share, words: seen.append(share), tol=0)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_diagnostics_are_plain() -> None:
    found = run().diagnostics()
    assert set(found) == {"iterations", "converged", "objective", "restart", "objectives"}
    assert isinstance(found["objective"], float)


def test_a_loop_that_goes_on_knows_the_best_run_by_its_end(tmp_path: Path) -> None:
    """Or a later run that is worse would take its place, with what it keeps of the blocks."""
    work = SimpleNamespace(
        locals=SimpleNamespace(now=3, kept=2, last=4, pin=lambda: None, take_up=lambda *versions: None)
    )
    keeper = learn._Keeper(learn.Checkpoint(tmp_path / "kept"), work, [])
    keeper.save(Halfway(1, None, np.zeros(0), EmRun(0.5, np.array([-9.0, -2.0]), True, 0, ()), (-2.0,)))
    best: list[float] = []
    again = learn._Keeper(learn.Checkpoint(tmp_path / "kept"), work, best)
    assert again.load() is not None
    assert best == [-2.0]


def test_progress_tells_how_many_votes_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps so far by the seconds since the start: here a step takes two seconds."""
    told: list[str] = []
    clock = [0.0]

    def visited(state: float) -> float:
        clock[0] += 2
        return state

    work = SimpleNamespace(reset=lambda: None, summary=tuple, sum=visited, keep=lambda: None, back=lambda: None)
    plain = SimpleNamespace(start=lambda summary, rng: 1.0, update=lambda state, sums: (state / 2, -state))
    monkeypatch.setattr(learn.time, "monotonic", lambda: clock[0])
    loop = {"rng": np.random.default_rng(0), "restarts": 1, "max_iter": 3, "tol": 0.0}
    learn.run_learner(plain, work, loop, scale=4e6, progress=lambda share, words: told.append(words))
    assert [words.split(", ")[1] for words in told if "iteration" in words] == ["2.0 million votes/s"] * 3


class KilledError(Exception):
    """The loop was killed."""


class Memory:
    """A keeper that kills the loop after so many saves."""

    every = 2

    def __init__(self) -> None:
        self.kept: Halfway | None = None
        self.saved: list[tuple[int, int]] = []
        self.left = -1

    def load(self) -> Halfway | None:
        return self.kept

    def save(self, halfway: Halfway) -> None:
        self.kept = halfway
        self.saved.append((halfway.restart, len(halfway.trace)))
        self.left -= 1
        if self.left == 0:
            raise KilledError


def test_a_loop_that_was_killed_anywhere_ends_where_it_would_have() -> None:
    whole = Memory()
    found = run(restarts=3, max_iter=5, tol=0, keeper=whole)
    assert whole.saved == [(0, 2), (0, 4), (1, 0), (1, 2), (1, 4), (2, 0), (2, 2), (2, 4), (3, 0)]
    for left in range(1, 10):
        memory, ended = Memory(), list[float]()
        memory.left = left
        with pytest.raises(KilledError):
            run(restarts=3, max_iter=5, tol=0, keeper=memory)
        again = run(restarts=3, max_iter=5, tol=0, keeper=memory, finished=ended.append)
        assert again.objectives == found.objectives
        assert (again.state, again.restart, again.converged) == (found.state, found.restart, False)
        np.testing.assert_array_equal(again.trace, found.trace)
        assert ended == list(found.objectives[left // 3 :])  # each run ends with its third save
        assert memory.saved == whole.saved


def test_a_rise_of_just_the_tolerance_is_a_rise_and_of_equal_runs_the_first_counts() -> None:
    found = run_em(
        lambda rng: 0,
        lambda n: (n + 1, float(n)),
        rng=np.random.default_rng(0),
        max_iter=6,
        tol=0.5,
        scale=2,
        restarts=3,
    )
    assert found.trace.tolist() == [0, 1, 2, 3, 4, 5]
    assert (found.converged, found.restart, found.objectives) == (False, 0, (5.0, 5.0, 5.0))


def test_a_state_that_rests_ends_a_run_whatever_its_objective() -> None:
    found = run_em(
        lambda rng: 0,
        lambda n: (n + 1, -float(n)),
        rng=np.random.default_rng(0),
        max_iter=9,
        tol=1.0,
        rests=lambda n: n == 7,
    )
    assert (found.state, found.converged, len(found.trace)) == (7, True, 7)


@pytest.mark.parametrize(("changes", "trace"), [({}, [0, 1]), ({"settle": True}, [1, 2])])
def test_the_step_after_a_start_counts_unless_the_start_has_to_settle(changes: dict, trace: list[float]) -> None:
    work = SimpleNamespace(reset=lambda: None, summary=tuple, sum=lambda n: n, keep=lambda: None, back=lambda: None)
    plain = SimpleNamespace(start=lambda summary, rng: 0, update=lambda n, sums: (n + 1, float(n)))
    loop = {"rng": np.random.default_rng(0), "restarts": 1, "max_iter": 2, "tol": 0.0}
    assert learn.run_learner(plain, work, loop, scale=1.0, **changes).trace.tolist() == trace


@pytest.mark.parametrize("lucky", [False, True])
def test_the_locals_of_the_best_run_are_kept(lucky: bool) -> None:
    ends, told = {0: -3.0, 1: -1.0, 2: -1.0, 3: -2.0}, list[str]()
    begun = list[bool]()

    def start(summary: object, rng: object) -> int:
        begun.append(rng is not None)
        return len(begun) - 1

    work = SimpleNamespace(
        reset=lambda: told.append("reset"), summary=tuple, sum=lambda state: state, keep=lambda: told.append("keep"),
        back=lambda: told.append("back"),
    )  # fmt: skip
    plain = SimpleNamespace(start=start, update=lambda state, sums: (state, ends[state]))
    loop = {"rng": np.random.default_rng(0), "restarts": 4, "max_iter": 2, "tol": 0.0}
    found = learn.run_learner(plain, work, loop, scale=1.0, lucky=lucky)
    assert told == ["reset", "keep", "reset", "keep", "reset", "reset", "back"]
    assert begun == [lucky, True, True, True]  # only the first start needs no luck
    assert (found.state, found.restart) == (1, 1)
