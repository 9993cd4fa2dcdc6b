"""A saved tagger inside a spaCy pipeline."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError
from lasca.tagger import CrfTagger
from test_tagger import corpus

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def spacy() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("spacy", reason="needs the extra spacy (make test-torch has it)")
        import lasca.tagger.spacy_component  # noqa: F401  what spaCy does by the entry point
    return module


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spacy") / "tagger"
    CrfTagger(max_iter=30).fit(corpus(), "gold").save(folder)
    return folder


def test_entities_by_sentence_and_white_space(spacy: Any, saved: Path, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("lasca_tagger", config={"path": str(saved)})
    doc = nlp("Otto Schmidt likes Oslo.  Anna   leaves Rome.")
    assert [(e.text, e.label_) for e in doc.ents] == [
        ("Otto Schmidt", "PER"), ("Oslo", "LOC"), ("Anna", "PER"), ("Rome", "LOC"),
    ]  # fmt: skip
    assert [(e.start_char, e.end_char) for e in doc.ents][:2] == [(0, 12), (19, 23)]
    many = list(nlp.pipe(["Anna visits Rome .", "", "Peter likes Paris ."]))
    assert [[e.label_ for e in d.ents] for d in many] == [["PER", "LOC"], [], ["PER", "LOC"]]
    nlp.to_disk(tmp_path / "nlp")


def test_a_pipeline_can_be_carried_elsewhere(spacy: Any, saved: Path, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("lasca_tagger", config={"path": shutil.copytree(saved, tmp_path / "tagger").as_posix()})
    nlp.to_disk(tmp_path / "nlp")
    packed = nlp.to_bytes()
    shutil.rmtree(tmp_path / "tagger")
    bare = spacy.blank("en")
    bare.add_pipe("lasca_tagger")
    for again in (spacy.load(tmp_path / "nlp"), bare.from_bytes(packed)):
        assert [e.text for e in again("Otto visits Rome .").ents] == ["Otto", "Rome"]


def test_spacy_scores_and_describes_it(spacy: Any, saved: Path) -> None:
    from spacy.training import Example

    nlp = spacy.blank("en")
    nlp.add_pipe("lasca_tagger", config={"path": str(saved)})
    assert set(nlp.pipe_labels["lasca_tagger"]) == {"PER", "LOC"}
    wrong = {"entities": [(0, 4, "PER"), (11, 15, "PER")]}
    found = nlp.evaluate([Example.from_dict(nlp.make_doc("Anna likes Rome ."), wrong)])
    assert (found["ents_p"], found["ents_r"]) == (0.5, 0.5)


def test_entities_that_are_there_stay_unless_told(spacy: Any, saved: Path) -> None:
    for overwrite, label in ((False, "MINE"), (True, "LOC")):
        nlp = spacy.blank("en")
        nlp.add_pipe("entity_ruler").add_patterns([{"label": "MINE", "pattern": "Oslo"}])
        nlp.add_pipe("lasca_tagger", config={"path": str(saved), "overwrite": overwrite})
        assert [e.label_ for e in nlp("Anna likes Oslo .").ents] == ["PER", label]


def test_labels_without_a_scheme_become_tags(spacy: Any, tmp_path: Path) -> None:
    data = CrowdCorpus.from_sequences([["we", "run"]] * 5, {}, golds={"gold": [["PRON", "VERB"]] * 5})
    CrfTagger().fit(data, "gold").save(tmp_path / "t")
    nlp = spacy.blank("en")
    nlp.add_pipe("lasca_tagger", config={"path": str(tmp_path / "t")})
    assert [t.tag_ for t in nlp("we run")] == ["PRON", "VERB"]


def test_a_component_without_a_tagger_says_so(spacy: Any) -> None:
    from lasca.tagger.spacy_component import LascaTagger

    for path in ("", "/nowhere/tagger"):
        with pytest.raises(ModelError, match=f"{path}.*no tagger"):
            LascaTagger(path)(spacy.blank("en")("Anna"))
