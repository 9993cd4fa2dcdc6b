"""two-truths block by block: the bytes of the corpus in memory, whatever the blocks, the sample and the cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lasca.ambiguity import Ambiguity, find_ambiguity
from lasca.ambiguity.shards import sample_of
from lasca.ambiguity.write import rows
from lasca.confusion import LabelConfusion, label_confusion
from lasca.corpus import CrowdCorpus
from lasca.corpus.sharding import write_shards
from lasca.corpus.votes import Votes, cut_into_blocks
from lasca.errors import ModelError, StoreError
from lasca.pipeline.sharded import aggregate_shards, ambiguity_in_shards
from lasca.pipeline.way import run_shards
from lasca.truth import model_class
from shard_cases import in_pieces, small_blocks
from test_learners import rich_crowd

STEPS = {"max_iter": 4}


@pytest.fixture(scope="module")
def corpus() -> CrowdCorpus:
    rich = rich_crowd()
    return rich.select(annotators=rich.annotators[:-1])


@pytest.fixture(scope="module")
def truth_folder(corpus: CrowdCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("parts")
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch)
        sharded = write_shards(in_pieces(corpus, 50), place / "c", votes=4000)
        aggregate_shards(sharded, place / "truth", model_class("ds")(**STEPS))
    return place / "truth"


def memory(corpus: CrowdCorpus, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, Ambiguity]:
    small_blocks(monkeypatch)
    truth = model_class("ds")(**STEPS).fit(corpus)
    return truth, find_ambiguity(corpus, truth, **options)


def table_of(folder: Path, name: str) -> Any:
    return pa.concat_tables([pq.read_table(file) for file in sorted((folder / name).glob("part-*.parquet"))])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fraction": 0.003},
        {"fraction": 1.0, "max_iter": 5},
        {"fraction": None, "threshold": 0.4, "max_iter": 5},
        {"sample": 3000, "max_iter": 5},
        {"fraction": 0.0, "max_iter": 3},
    ],
)
def test_blocks_give_the_bytes_of_memory(
    options: dict[str, Any], corpus: CrowdCorpus, truth_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, alone = memory(corpus, monkeypatch, **options)
    found = ambiguity_in_shards(truth_folder, tmp_path / "out", **options)
    score = table_of(tmp_path / "out", "scores").column("score").to_numpy()
    assert score.tobytes() == alone.score.tobytes()
    listed = table_of(tmp_path / "out", "ambiguous")
    expected = rows(corpus, truth, alone, width=200)
    assert found.n_ambiguous == len(listed) == len(expected)
    own = {(row["sequence"], row["position"]): row for row in listed.to_pylist()}
    for row in expected:
        got = own[row["sequence"], row["position"]]
        for name in ("token", "before", "after", "score", "truth", "probability", "candidates", "share"):
            assert got[name] == row[name], name
    assert found.top == expected[: len(found.top)]
    for name in ("share", "hard_share", "unranked", "warnings", "diagnostics"):
        assert getattr(found.ambiguity, name) == getattr(alone, name), name
    for name in ("pair_weight", "pair_count", "label_count", "trace"):
        assert getattr(found.ambiguity, name).tobytes() == getattr(alone, name).tobytes(), name
    saved = LabelConfusion.load(tmp_path / "out" / "confusion")
    assert saved.matrix.tobytes() == label_confusion(corpus, truth, alone).matrix.tobytes()
    assert saved.counts == label_confusion(corpus, truth, alone).counts
    assert Ambiguity.load(tmp_path / "out" / "ambiguity").share == alone.share


def test_a_truth_that_does_not_fit_its_corpus_is_refused(
    corpus: CrowdCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    sharded = write_shards([corpus], tmp_path / "c", votes=4000)
    aggregate_shards(sharded, tmp_path / "truth", model_class("ds")(**STEPS))
    part = tmp_path / "truth/labels/part-00002.parquet"
    data = part.read_bytes()
    part.write_bytes(data[: len(data) // 2] + b"x" + data[len(data) // 2 + 1 :])
    with pytest.raises(StoreError, match=r"labels/part-00002\.parquet has changed"):
        ambiguity_in_shards(tmp_path / "truth", tmp_path / "out")
    part.unlink()
    with pytest.raises(StoreError, match="parts of the truth are missing"):
        ambiguity_in_shards(tmp_path / "truth", tmp_path / "out")
    write_shards([corpus.select(sequences=np.arange(60))], tmp_path / "c", overwrite=True)
    with pytest.raises(StoreError, match="another one than when its truth was inferred"):
        ambiguity_in_shards(tmp_path / "truth", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "truth"]


@pytest.mark.parametrize("every", [1, 7, 11])
def test_a_sample_of_blocks_is_that_of_the_whole(every: int, corpus: CrowdCorpus) -> None:
    votes = Votes.of(corpus)
    blocks = cut_into_blocks(votes, 300)
    start = votes.start.tolist()
    many = [i for i in range(votes.n_tokens) if start[i + 1] - start[i] > 1]
    before = [sum(i < block.first for i in many) for block in blocks]
    assert len({b % every for b in before}) == every  # blocks begin wherever in the sample
    parts = [sample_of((every, before), block) for block in blocks]
    sizes, who, said = (np.concatenate(part).tolist() for part in zip(*parts, strict=True))
    assert sizes == [start[i + 1] - start[i] for i in many[::every]]
    given = [v for i in many[::every] for v in range(start[i], start[i + 1])]
    assert who == votes.annotator[given].tolist()
    assert said == votes.label[given].tolist()


def test_votes_that_stand_alone_cannot_be_ranked(tmp_path: Path) -> None:
    lone = CrowdCorpus.from_codes(
        tokens=["a", "b"], offsets=[0, 2], labels=["X", "Y"], annotators=["ann", "ben"], annotation_token=[0, 1],
        annotation_annotator=[0, 1], annotation_label=[0, 1], sequence_ids=["s"],
    )  # fmt: skip
    aggregate_shards(write_shards([lone], tmp_path / "c"), tmp_path / "truth", model_class("ds")())
    with pytest.raises(ModelError, match="no token has two votes"):
        ambiguity_in_shards(tmp_path / "truth", tmp_path / "out")
    with pytest.raises(ModelError, match=r"no token has two votes.*Run lasca aggregate, and lasca train"):
        run_shards(tmp_path / "c", tmp_path / "out", model="ds")  # before the truth is inferred in vain
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "truth"]


def test_blocks_may_have_different_numbers_of_votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people read most of it, five the rest: no block knows how many votes a token of another has."""
    rng, n, few = np.random.default_rng(0), 360, 300
    gold = [rng.choice(["X", "Y", "Z"], 5).tolist() for _ in range(n)]
    people: dict[str, Any] = {}
    for k, name in enumerate("abcde"):
        said = [[label if rng.random() < 0.8 else "X" for label in row] for row in gold]
        people[name] = [row if k < 2 or i >= few else None for i, row in enumerate(said)]
    mixed = CrowdCorpus.from_sequences([[f"w{i}"] * 5 for i in range(n)], people)
    for order in (np.arange(n), np.arange(n)[::-1]):
        whole, place = mixed.select(sequences=order), tmp_path / str(order[0])
        _, alone = memory(whole, monkeypatch, max_iter=5)
        sharded = write_shards(in_pieces(whole, 20), place / "c", votes=400)
        aggregate_shards(sharded, place / "truth", model_class("ds")(**STEPS))
        ambiguity_in_shards(place / "truth", place / "out", max_iter=5)
        assert table_of(place / "out", "scores").column("score").to_numpy().tobytes() == alone.score.tobytes()
