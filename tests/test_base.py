"""Errors, estimators, files written whole, chunks and threads."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lasca.engine import added, chunks, run_ordered
from lasca.errors import FormatError, LascaError, ModelError, ParameterError, StoreError, excerpt
from lasca.estimator import Estimator, check_choice, check_int, check_number, generator, number, other, whole
from lasca.files import whole_file, whole_folder
from lasca.truth import MODEL_NAMES, TruthModel, model_class
from lasca.truth.base import _check_proba


def test_a_message_says_what_where_got_and_what_to_do() -> None:
    error = FormatError("ragged line", path="x.conll", line=3, got="a\x1b[31m b", hint="Add a column")
    assert str(error) == r"x.conll:3: ragged line (got: a\x1b[31m b). Add a column"
    assert (error.line, error.hint) == (3, "Add a column")


def test_excerpts_are_short_and_harmless() -> None:
    assert excerpt("a\nb\x07\u202e") == r"a\nb\x07\u202e"
    assert len(excerpt("x" * 1000)) == 80


class Model(Estimator):
    def __init__(self, *, alpha: float = 1.0, seed: int = 0) -> None:
        self.alpha, self.seed = alpha, seed


def test_estimators_follow_scikit_learn() -> None:
    from sklearn.base import clone

    model = Model(alpha=2.0)
    assert repr(model) == "Model(alpha=2.0)"
    assert model.get_params() == {"alpha": 2.0, "seed": 0}
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(seed=3).seed == 3
    with pytest.raises(ParameterError, match="one of alpha, seed"):
        model.set_params(beta=1)


class Declared(Estimator):
    """What others share."""

    steps: int = whole("how many", default=3, low=1)
    rate: float = number("how fast", default=0.5, low=0)


class Heir(Declared):
    """One of them."""

    in_order = ("start",)
    usual = {"steps": 9}  # noqa: RUF012
    start: str = other("where from", "a name", default="")


def test_declared_parameters_are_inherited_with_other_defaults_and_may_need_no_name() -> None:
    assert (Declared().steps, Heir().steps, Heir().rate) == (3, 9, 0.5)
    assert Heir("here", rate=1.0).get_params() == {"start": "here", "steps": 9, "rate": 1.0}
    assert repr(Heir("here", steps=9)) == "Heir(start='here')"
    assert Heir.__doc__ is not None
    assert "steps: how many (a whole number of at least 1; default 9)" in Heir.__doc__
    with pytest.raises(ParameterError, match="steps must be a whole number of at least 1"):
        Heir(steps=0).checked()
    with pytest.raises(TypeError, match="Heir takes its parameters by name: steps, rate, start"):
        Heir("here", 9)
    with pytest.raises(TypeError, match="Declared takes its parameters by name"):
        Declared(9)


def test_checks_name_parameter_value_and_what_is_allowed() -> None:
    assert check_number("tol", np.float32(0.5), low=0) == 0.5
    with pytest.raises(ParameterError, match=r"tol must be a number above 0 \(got: 0\)"):
        check_number("tol", 0, low=0, open_low=True)
    for bad in (float("nan"), "1", True, None, -1, 10**400):
        with pytest.raises(ParameterError):
            check_number("tol", bad, low=0)
    assert check_int("n", np.int64(3), low=1) == 3
    for value in (0, 2.0, True, 11):
        with pytest.raises(ParameterError, match="at least 1 and at most 10"):
            check_int("n", value, low=1, high=10)
    with pytest.raises(ParameterError, match="'a', 'b'"):
        check_choice("kind", "c", ("a", "b"))
    rng = np.random.default_rng(1)
    assert generator(rng) is rng


def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    with pytest.raises(RuntimeError), whole_folder(target) as folder:
        (folder / "a").write_text("1")
        raise RuntimeError
    assert not target.exists()
    assert not list(target.parent.iterdir())
    with whole_folder(target) as folder:
        (folder / "a").write_text("1")
    with pytest.raises(StoreError, match="not empty"), whole_folder(target):
        pass
    with whole_folder(target, overwrite=True) as folder:
        (folder / "b").write_text("2")
    assert sorted(p.name for p in target.iterdir()) == ["SHA256SUMS", "b"]
    assert [p.name for p in target.parent.iterdir()] == ["out"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "f.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), whole_file(target) as path:
        path.write_text("new")
        raise RuntimeError
    assert target.read_text() == "old"
    with whole_file(target) as path:
        path.write_text("new")
    assert target.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["f.txt"]


def test_an_unwritable_place_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(LascaError, match="cannot write"), whole_folder(tmp_path / "file" / "out"):
        pass


def test_chunks_depend_on_the_data_alone() -> None:
    offsets = np.concatenate(([0], np.cumsum(np.tile([3, 0, 50, 7], 100))))
    parts = chunks(offsets, target=500)
    assert parts[0][0] == 0
    assert parts[-1][1] == 400
    assert all(a[1] == b[0] for a, b in pairwise(parts))
    assert max(offsets[b] - offsets[a] for a, b in parts) < 700
    assert chunks(np.zeros(1, np.int64)) == []
    assert chunks(np.array([0, 0])) == [(0, 1)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_order(threads: int) -> None:
    assert run_ordered(lambda x: x * x, range(100), threads) == [x * x for x in range(100)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_sums_are_taken_in_order(threads: int) -> None:
    rows = np.random.default_rng(0).standard_normal((100, 3)) * 10.0 ** np.arange(-50, 50)[:, None]
    sums, total = added(run_ordered(lambda i: (rows[i].copy(), float(rows[i, 0])), range(100), threads))
    expected = rows[0].copy()
    for row in rows[1:]:
        expected += row
    assert sums.tobytes() == expected.tobytes()
    assert total == expected[0]


def test_no_parameter_hides_what_all_models_share() -> None:
    """What all models had of that name was once written over hc-seq's parameter `memory`."""
    shared = {name for name in vars(TruthModel) if not name.startswith("_")}
    assert {"engine", "place"} <= shared
    for name in MODEL_NAMES:
        assert not shared & set(model_class(name)().get_params()), name


def test_probabilities_may_be_zero_but_not_less_and_have_a_row_for_each_token() -> None:
    _check_proba("mine", [[0.0, 1.0], [0.5, 0.5]], (2, 2))
    with pytest.raises(ModelError, match="mine gave a probability below 0"):
        _check_proba("mine", [[-0.1, 1.1], [0.5, 0.5]], (2, 2))
    with pytest.raises(ModelError, match=r"mine must give \(2, 2\) probabilities"):
        _check_proba("mine", [[0.0, 1.0]], (2, 2))
