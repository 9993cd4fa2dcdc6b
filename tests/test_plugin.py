"""A distribution that adds a truth model, a format and a text model: installed, checked, and used from the commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError, ParameterError
from lasca.tagger import CrfTagger, HmmTagger, Tagger
from lasca.testing import ContractError, check_tagger, check_truth_model, small_crowd
from lasca.truth import History, Posterior, Truth, TruthModel, Votes, model_class

PLUGIN = Path(__file__).parent / "plugin"
SOURCE = Path(lasca.__file__).parents[1]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the distribution into a folder of its own."""
    folder = tmp_path_factory.mktemp("installed")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder), str(PLUGIN)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return folder


def python(place: Path, *arguments: str) -> str:
    """Run Python with the plug-in installed and return what it printed."""
    path = os.pathsep.join([str(place), str(SOURCE), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *arguments], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def crowd_file(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a small crowd in the plug-in's own format."""
    folder = tmp_path_factory.mktemp("data")
    small_crowd(unlabelled=0).save(folder / "corpus")
    python(place, "-m", "lasca", "convert", str(folder / "corpus"), str(folder / "crowd.pipes"), "--to", "pipes")
    return folder / "crowd.pipes"


def test_what_the_plug_in_brings_is_found_and_keeps_the_contract(place: Path) -> None:
    code = """
import json, lasca
from lasca.testing import check_tagger, check_truth_model
from lasca.truth import model_class, model_names
from lasca.formats import READERS, WRITERS
from lasca.tagger import TAGGERS, tagger_class
check_truth_model(model_class("trust")())
check_tagger(tagger_class("lookup")(unknown="O"))
new = [[name for name in found if name not in found.built_in] for found in (READERS, WRITERS, TAGGERS)]
print(json.dumps([model_names()[-1], *new, "trust" in lasca.TRUTH_MODELS]))
"""
    assert json.loads(python(place, "-c", code)) == ["trust", ["pipes"], ["pipes"], ["lookup"], True]


def test_the_commands_take_what_the_plug_in_brings(place: Path, crowd_file: Path, tmp_path: Path) -> None:
    assert "trust" in python(place, "-m", "lasca", "aggregate", "--help")
    python(place, "-m", "lasca", "aggregate", str(crowd_file), "-o", str(tmp_path / "truth"), "--model", "trust")
    assert Truth.load(tmp_path / "truth" / "truth").model == "trust"
    compared = python(place, "-m", "lasca", "compare", str(crowd_file), "-m", "trust", "-m", "mv", "--json")
    assert [line["model"] for line in json.loads(compared)] == ["trust", "mv"]
    out = tmp_path / "out"
    python(
        place, "-m", "lasca", "run", str(crowd_file), "-o", str(out), "-m", "trust", "-p", "power=1",
        "--tagger", "kind=lookup",
    )  # fmt: skip
    record = json.loads((out / "run.json").read_text("utf-8"))
    assert record["parameters"]["model"] == "trust"
    assert "--model trust" in record["command"]
    assert "--param power=1" in record["command"]
    assert json.loads((out / "tagger" / "tagger.json").read_text("utf-8"))["kind"] == "lookup"
    assert (out / "report.html").stat().st_size > 10_000
    (tmp_path / "text").write_text("Ada runs\n", encoding="utf-8")
    for how in ("--text", "--spans"):  # its predict knows nothing of documents
        assert "Ada" in python(place, "-m", "lasca", "tag", str(out / "tagger"), str(tmp_path / "text"), how)


def test_truth_models_listen_to_the_text_models_of_the_plug_in(place: Path, crowd_file: Path, tmp_path: Path) -> None:
    """`lookup` is a tagger; `suffix` has nothing but `prepare`."""
    said = {}
    for name in ("false", "lookup", "suffix"):
        python(
            place, "-m", "lasca", "aggregate", str(crowd_file), "-o", str(tmp_path / name), "-m", "hc-seq",
            "-p", f"text={name}", "-p", "rounds=1", "-p", "folds=2",
        )  # fmt: skip
        said[name] = Truth.load(tmp_path / name / "truth")
        assert said[name].params["text"] == (name if name != "false" else False)
    assert "text 1" in [entry["name"] for entry in said["suffix"].diagnostics["rounds"]]
    assert len({truth.proba.tobytes() for truth in said.values()}) == 3


class Loud(TruthModel):
    """A model of the user's own that no package registers: the votes, counted."""

    name = "loud"
    summary = "counted votes"

    def __init__(self, *, weight: float = 1.0) -> None:
        self.weight = weight

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Any) -> Posterior:
        shares = np.full((votes.n_tokens, votes.n_labels), 1e-3)
        token = np.repeat(np.arange(votes.n_tokens), np.diff(votes.start))
        np.add.at(shares, (token, votes.label), self.weight)
        return Posterior(shares / shares.sum(axis=1, keepdims=True))


def test_a_model_of_ones_own_goes_all_the_way(tmp_path: Path) -> None:
    model = Loud()
    check_truth_model(model)
    result = lasca.run(small_crowd(), model=model, params={"weight": 3.0}, output=tmp_path / "out")
    assert model.weight == 1.0  # the caller's model stays as it is
    assert result.truth.model == "loud"
    assert "--model loud" in result.record["command"]
    assert (tmp_path / "out" / "report.html").is_file()


class Broken(Loud):
    """One thing is wrong in each of these."""

    summary = "broken"


class Forgets(Broken):
    def __init__(self, *, weight: float = 1.0) -> None:
        self.weight = float(f"{weight}")


class Remembers(Broken):
    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Any) -> Posterior:
        self.seen = votes.n_tokens
        return super()._infer(corpus, votes, progress)


class Dice(Broken):
    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Any) -> Posterior:
        made = super()._infer(corpus, votes, progress)
        noise = np.random.default_rng().random(made.proba.shape) * 0.01
        return Posterior((made.proba + noise) / (made.proba + noise).sum(axis=1, keepdims=True))


class Counts(Broken):
    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Any) -> Posterior:
        shares = np.full((corpus.n_tokens, corpus.n_labels), 1e-3)
        np.add.at(shares, (corpus.annotation_token, corpus.annotation_label), 1.0)  # models vote too
        return Posterior(shares / shares.sum(axis=1, keepdims=True))


class Fixed(Broken):
    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Any) -> Posterior:
        return Posterior(np.ones((votes.n_tokens, 3)) / 3)


class Given(Broken):
    """Gives back what it was made with, whatever that is."""

    def __init__(self, *, made: Any = None) -> None:
        self.made = made

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Any) -> Posterior:
        made: Posterior = self.made
        return made


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (np.ones((2, 2)), r"loud must give back a lasca.truth.Posterior \(got: ndarray\)"),
        (None, r"Posterior"),
        (Posterior(np.ones((2, 3))), r"loud must give \(3, 2\) probabilities, a row for each token \(got: \(2, 3\)\)"),
        (Posterior(np.array([[1.0, 0.5], [0.5, -0.5], [1.0, 0.0]])), r"below 0 \(got: -0.5\)"),
    ],
)
def test_what_a_model_gives_back_is_checked(made: Any, message: str) -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b", "c"]], {"ann": [["X", "O", "O"]], "bob": [["X", "X", "O"]]})
    with pytest.raises(ModelError, match=message):
        Given(made=made).fit(corpus)


def test_probabilities_need_not_add_up_to_one() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b"]], {"ann": [["X", "O"]], "bob": [["X", "X"]]}, labels=["O", "X"])
    truth = Given(made=Posterior([[0.0, 2.0], [1.0, 1.0]])).fit(corpus)
    assert truth.proba.tolist() == [[0.0, 1.0], [0.5, 0.5]]


def test_a_history_that_is_asked_for_what_it_does_not_hold_says_what_it_holds() -> None:
    corpus = small_crowd()
    truth = Loud().fit(corpus)
    truth = replace(truth, statistics={"seen": np.ones((corpus.n_annotators, corpus.n_labels))})
    with pytest.raises(ModelError, match=r"no statistics 'sen' to go on from \(there is: seen\)"):
        History.of(truth, corpus, "sen")
    past = History.of(truth, corpus, "seen")
    assert past.counts("seen", "at").sum() == truth.statistics["seen"].sum()
    for axes in ("a", "ta", "aa", "at."):
        with pytest.raises(ModelError, match=r"axes must say which of \(5, 3\).*5 annotators and 3 labels"):
            past.counts("seen", axes)
    with pytest.raises(ParameterError, match="history must be a Truth"):
        model_class("ds")().fit(corpus, history=truth.statistics)  # type: ignore[arg-type]


class Claims(Broken):
    supports = frozenset({"update"})


class Forgetful(Claims):
    def _update(self, corpus: CrowdCorpus, votes: Votes, history: Any, progress: Any) -> Posterior:
        return self._infer(corpus, votes, progress)


class Deaf(Broken):
    supports = frozenset({"soft"})


class Nameless(Broken):
    summary = ""


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Forgets, "store its arguments unchanged"),
        (Remembers, "must not change the model"),
        (Dice, "must give the same"),
        (Counts, "predictions of models"),
        (Fixed, "of the labels are right"),
        (Claims, "has no _update"),
        (Forgetful, "what an earlier truth learned must count"),
        (Deaf, "soft votes must count"),
        (Nameless, "summary"),
    ],
)
def test_the_contract_names_what_is_wrong(model: type[TruthModel], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        check_truth_model(model())


class Suffixes(HmmTagger):
    """A tagger that keeps the contract; one thing is wrong in each of those below."""

    kind = "suffixes"


class OfActive(Suffixes):
    def predict(self, sentences: Any, **more: Any) -> Any:
        return [[self.labels[self.labels.index(name) - 1] for name in row] for row in super().predict(sentences)]


class Silent(Suffixes):
    def predict(self, sentences: Any, **more: Any) -> Any:
        return super().predict([sentence for sentence in sentences if len(sentence)])


class Unsure(Suffixes):
    def predict_proba(self, sentences: Any, **more: Any) -> Any:
        return [2 * rows for rows in super().predict_proba(sentences)]


class Narrow(Suffixes):
    def predict_proba(self, sentences: Any, **more: Any) -> Any:
        return [rows[:, 1:] for rows in super().predict_proba(sentences)]


class Lazy(Suffixes):
    def save(self, path: Any, *, overwrite: bool = False, card: str | None = None) -> None:
        super().save(path, overwrite=True, card=card)


class Blank(Suffixes):
    @classmethod
    def load(cls, path: Any) -> Any:
        found = super().load(path)
        return found.set_params(**type(found)().get_params())


@pytest.mark.parametrize(
    ("tagger", "message"),
    [
        (OfActive(), "codes of `active`, not of `labels`"),
        (Silent(), "a label for each token of each sentence"),
        (Unsure(), "rows of predict_proba must be at least 0 and add up to 1"),
        (Narrow(), "predict_proba must give an array"),
        (Lazy(), "unless overwrite=True"),
        (Blank(affix=2), "the parameters it was saved with"),
    ],
)
def test_the_contract_of_taggers_names_what_is_wrong(tagger: Tagger, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        check_tagger(tagger)


@pytest.mark.parametrize("tagger", [CrfTagger(l2=0.1), HmmTagger(), Suffixes()], ids=repr)
def test_taggers_keep_the_contract(tagger: Tagger) -> None:
    check_tagger(tagger)
