"""A saved tagger inside a spaCy pipeline."""

from __future__ import annotations

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
    again = spacy.load(tmp_path / "nlp", config={"components": {"lasca_tagger": {"path": ""}}})
    assert [e.text for e in again("Otto visits Rome .").ents] == ["Otto", "Rome"]


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

    with pytest.raises(ModelError, match="no tagger"):
        LascaTagger()(spacy.blank("en")("Anna"))
