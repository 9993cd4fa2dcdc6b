"""Where taggers are used: texts with character offsets, scikit-learn, folders and streams, the model card."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError, ParameterError
from lasca.tagger import CrfTagger, SequenceTagger, choose_tagger, load_tagger, model_card, tag_texts
from lasca.truth import DawidSkene
from test_cli import run
from test_tagger import corpus, sentences
from test_tagger_crowd import crowd


@pytest.fixture(scope="module")
def tagger() -> CrfTagger:
    return CrfTagger(max_iter=30).fit(corpus(), "gold")


@pytest.fixture(scope="module")
def saved(tagger: CrfTagger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("use") / "tagger"
    tagger.save(folder)
    return folder


def test_texts_are_tagged_where_they_stand(tagger: CrfTagger) -> None:
    text = "  Otto Schmidt likes Oslo .\r\n\nAnna leaves Rome."
    (found,) = tag_texts(tagger, [text])
    assert [(text[a:b], label) for a, b, label, _ in found.spans] == [
        ("Otto Schmidt", "PER"), ("Oslo", "LOC"), ("Anna", "PER"), ("Rome", "LOC"),
    ]  # fmt: skip
    assert all(0 < p <= 1 for *_, p in found.spans)
    record = json.loads(json.dumps(found.to_dict()))
    first = record["spans"][0]
    assert first == {"start": 2, "end": 14, "label": "PER", "probability": first["probability"]}
    assert [len(t.spans) for t in tag_texts(tagger, ["", "Anna likes Rome .", " \n "], batch=1)] == [0, 2, 0]
    with pytest.raises(ParameterError, match="tokenizer"):
        list(tag_texts(tagger, ["a"], tokenizer="bytes"))


def test_what_was_one_word_in_training_stays_one() -> None:
    tokens = [["U.S.", "stocks"], ["O'Brien", "met", "Corp."], ["2.5", "U.S.-based"]] * 4
    gold = [["B-LOC", "O"], ["B-PER", "O", "B-ORG"], ["O", "O"]] * 4
    tagger = CrfTagger(max_iter=20).fit(CrowdCorpus.from_sequences(tokens, {}, golds={"gold": gold}), "gold")
    text = "O'Brien met Corp.\nU.S. stocks\n2.5 U.S.-based"
    (found,) = tag_texts(tagger, [text])
    assert [(text[a:b], label) for a, b, label, _ in found.spans] == [
        ("O'Brien", "PER"), ("Corp.", "ORG"), ("U.S.", "LOC"),
    ]  # fmt: skip
    (cut,) = tag_texts(tagger, ["U.S. stocks"], tokenizer="punctuation")
    assert ("U.S.", "LOC") not in [("U.S. stocks"[a:b], label) for a, b, label, _ in cut.spans]


def test_without_a_scheme_every_token_is_a_span() -> None:
    data = CrowdCorpus.from_sequences([["we", "run"]] * 5, {}, golds={"gold": [["PRON", "VERB"]] * 5})
    (found,) = tag_texts(CrfTagger().fit(data, "gold"), ["we run"])
    assert [span[:3] for span in found.spans] == [(0, 2, "PRON"), (3, 6, "VERB")]


def test_scikit_learn_cross_validates_clones_and_searches() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    base = pytest.importorskip("sklearn.base")
    tokens, labels = sentences(40)
    model = SequenceTagger(CrfTagger(templates="basic", max_iter=10))
    assert selection.cross_val_score(model, tokens, labels, cv=3).min() > 0.9
    copy = base.clone(model)
    assert copy.tagger is not model.tagger
    assert copy.get_params()["tagger__max_iter"] == 10
    search = selection.GridSearchCV(model, {"tagger__l2": [0.1, 1000.0]}, cv=2).fit(tokens, labels)
    assert search.best_params_ == {"tagger__l2": 0.1}
    assert len(search.predict(tokens)) == 40


def test_the_recipe_itself_is_never_fitted() -> None:
    recipe = CrfTagger(max_iter=3)
    model = SequenceTagger(recipe)
    with pytest.raises(ModelError, match="not fitted"):
        model.predict([["a"]])
    model.fit([["we", "run"]] * 3, [["PRON", "VERB"]] * 3)
    assert model.predict([["we"]]) == [["PRON"]]
    assert model.score([["we", "run"]], [["PRON", "NOUN"]]) == 0.5
    assert set(model.classes_) == {"PRON", "VERB"}
    assert model.predict_proba([["we", "run"]])[0].shape == (2, 2)
    with pytest.raises(ModelError, match="not fitted"):
        recipe.predict([["a"]])
    model.set_params(tagger__l2=3.0)
    assert (recipe.l2, model.get_params()["tagger__l2"]) == (0.5, 3.0)
    assert repr(model) == "SequenceTagger(tagger=CrfTagger(l2=3.0, max_iter=3))"
    with pytest.raises(ModelError, match="as many label lists"):
        model.fit([["a"]], [])


def test_a_model_card_tells_data_and_scores() -> None:
    data = crowd()
    truth = DawidSkene().fit(data)
    tagger = CrfTagger(max_iter=20)
    votes = choose_tagger(data, truth, {"crf": tagger}, folds=2)
    tagger.fit(data, truth)
    card = model_card(tagger, data, truth, source="crowd.tsv", votes=votes, gold=("test", corpus(), "gold"))
    assert card.splitlines()[0] in ("# A tagger for PER, LOC", "# A tagger for LOC, PER")
    for text in ("80 sequences", "crowd.tsv", "`ds`", "no gold", f"{votes.scores['crf']:.4f}", "span F1"):
        assert text in card, text
    plain = model_card(CrfTagger(max_iter=3).fit(corpus(), "gold"), corpus(), "gold")
    assert "not measured" in plain
    assert "the gold labels 'gold'" in plain


@pytest.fixture
def lasca_(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *args: run(*map(str, args), monkeypatch=monkeypatch)


def test_a_folder_is_tagged_file_by_file(lasca_: Any, saved: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    (texts / "more").mkdir(parents=True)
    (texts / "a.txt").write_text("Anna likes Rome.\nOtto Schmidt leaves Oslo.\n", "utf-8")
    (texts / "more" / "b.txt").write_text("Peter visits Paris.", "utf-8")
    assert lasca_("tag", saved, texts, "--spans", "-o", tmp_path / "out") == 0
    (record,) = [json.loads(line) for line in (tmp_path / "out" / "a.txt.jsonl").read_text("utf-8").splitlines()]
    text = (texts / "a.txt").read_text("utf-8")
    assert [text[s["start"] : s["end"]] for s in record["spans"]] == ["Anna", "Rome", "Otto Schmidt", "Oslo"]
    assert (tmp_path / "out" / "more" / "b.txt.jsonl").is_file()
    assert (tmp_path / "out" / "SHA256SUMS").is_file()
    assert lasca_("tag", saved, texts, "--text", "-o", tmp_path / "columns") == 0
    assert (tmp_path / "columns" / "a.txt.tsv").read_text("utf-8").startswith("Anna\tB-PER\n")
    assert lasca_("tag", saved, texts, "--text") == 2
    assert lasca_("tag", saved, texts, "--spans", "-o", tmp_path / "out") == 1


def test_a_stream_is_answered_line_by_line(saved: Path) -> None:
    command = [sys.executable, "-m", "lasca", "tag", str(saved), "-", "--spans", "--batch", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for name in ("Rome", "Oslo"):
            process.stdin.write(f"Anna likes {name}.\n".encode())
            process.stdin.flush()
            record = json.loads(process.stdout.readline())  # waits for the answer before the next line is sent
            assert record["spans"][1]["start"] == 11
            assert record["text"] == f"Anna likes {name}."
        process.stdin.close()
        assert process.wait() == 0


def test_lines_of_documents_stay_in_step(lasca_: Any, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Anna likes Rome.\n\nOtto leaves Oslo.\n", "utf-8")
    assert lasca_("tag", saved, tmp_path / "a.txt", "--spans", "-o", tmp_path / "out") == 0
    records = [json.loads(line) for line in (tmp_path / "out").read_text("utf-8").splitlines()]
    assert [(r["text"], len(r["spans"])) for r in records] == [
        ("Anna likes Rome.", 2), ("", 0), ("Otto leaves Oslo.", 2),
    ]  # fmt: skip


def test_only_line_ends_end_a_line(lasca_: Any, saved: Path, tmp_path: Path) -> None:
    """Form feeds, NEL and U+2028 did in files, not on standard input: answers fell out of step with their lines."""
    texts = tmp_path / "texts.txt"
    lines = ["Anna\u2028Rome", "Otto\x0cOslo", "a\x85b"]
    texts.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8", newline="")
    assert lasca_("tag", saved, texts, "--spans", "-o", tmp_path / "out") == 0
    answers = (tmp_path / "out").read_text(encoding="utf-8").split("\n")[:-1]
    assert [json.loads(line)["text"] for line in answers] == lines


def test_text_that_is_read_as_columns_is_noticed(lasca_: Any, saved: Path, tmp_path: Path, capsys: Any) -> None:
    for text, noticed in (("Anna likes Rome.\nOtto leaves.\n", True), ("Anna NNP\nlikes VBZ\n\nRome NNP\n", False)):
        (tmp_path / "a.txt").write_text(text, "utf-8")
        assert lasca_("tag", saved, tmp_path / "a.txt") == 0
        assert ("give --text or --spans" in capsys.readouterr().err) == noticed


def test_what_is_not_utf8_is_named(lasca_: Any, saved: Path, monkeypatch: Any, capsys: Any) -> None:
    class Stdin:
        buffer = io.BytesIO(b"Anna\n\xff\xfe\n")

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert lasca_("tag", saved, "-", "--text") == 2
    assert "not UTF-8" in capsys.readouterr().err


def test_train_writes_a_card(lasca_: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    from lasca.pipeline.folder import save_truth

    crowd_ = crowd()
    save_truth(crowd_, DawidSkene().fit(crowd_), data)
    out = tmp_path / "tagger"
    assert lasca_("train", data, "-o", out, "--check", "-p", "max_iter=15", "-p", "paths=3") == 0
    card = (out / "model-card.md").read_text("utf-8")
    assert "mean log score of a vote" in card
    assert "paths=3" in card
    loaded = load_tagger(out)
    assert loaded.get_params()["paths"] == 3
    assert lasca_("train", data, "-o", tmp_path / "x", "--kind", "other") == 2
    assert lasca_("train", data, "-o", tmp_path / "x", "--gold", "gold", "--check") == 2
    assert np.isfinite(loaded.predict_proba([["Anna"]])[0]).all()
