"""A real cluster of processes: the bytes of threads whatever the workers, and what happens when they die or differ."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lasca import simulate
from lasca.ambiguity.shards import two_truths_in_shards
from lasca.ambiguity.steps import PairLearner
from lasca.comparison import compare
from lasca.corpus.sharding import write_shards
from lasca.corpus.shards import ShardedCorpus
from lasca.crf.training import Gradient
from lasca.engine import cluster as engines
from lasca.engine.cluster import engine_of
from lasca.errors import ModelError, ParameterError, StoreError
from lasca.pipeline.sharded import WritePart, aggregate_shards, ambiguity_in_shards, tag_shards, train_in_shards
from lasca.tagger import CrfTagger
from lasca.truth import MODEL_NAMES, model_class
from lasca.truth.dawid_skene import ConfusionLearner
from shard_cases import OPTIONS, in_pieces, small_blocks
from test_learners import rich_crowd

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


LOCAL: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with dask.config.set({"distributed.admin.low-level-log-length": 200_000}):  # the log of tasks forgets nothing
        cluster = distributed.LocalCluster(n_workers=2, **LOCAL)
        with distributed.Client(cluster) as client:
            yield client
        with suppress(KeyError):  # Dask may have forgotten a worker that died before it hears that it is gone
            cluster.close()


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> ShardedCorpus:
    rich = rich_crowd()
    corpus = rich.select(annotators=rich.annotators[:-1])
    folder = tmp_path_factory.mktemp("shards") / "c"
    write_shards([corpus.with_known(None)], f"{folder}-unknown", votes=4000)
    return write_shards(in_pieces(corpus, 50), folder, votes=4000)


NAMES_THE_CORPUS = {"SHA256SUMS", "aggregate.json"}
"""Files that say which corpus it was: its folder and its hash."""


def sums(folder: Path) -> str:
    return (folder / "SHA256SUMS").read_text(encoding="utf-8")


# --- the same bytes ---------------------------------------------------------------------------------------------------


def everything(corpus: ShardedCorpus, place: Path, engine: Any, names: Sequence[str] = MODEL_NAMES) -> None:
    """Run every model, two-truths and the CRF, on small blocks."""
    with pytest.MonkeyPatch.context() as patch, engine_of(engine) as opened:
        small_blocks(patch)
        patch.setattr("lasca.tagger.prepare.BLOCK_TOKENS", 300)
        for module in ("robust", "sequence_clusters"):  # taggers learn from a sample, and read on workers
            patch.setattr(f"lasca.truth.{module}.MOST_TRAINED", 1000)
        for name in names:
            kind = model_class(name)
            model = kind(**OPTIONS[name], **({"tol": 0} if name == "ds" else {}))
            taken = corpus if "known" in kind.supports else ShardedCorpus.open(f"{corpus.folder}-unknown")
            truth = aggregate_shards(taken, place / name, model, engine=opened)
            assert truth.diagnostics.get("text", True)
        ambiguity_in_shards(place / "ds", place / "ambiguous", max_iter=2, sample=3000, engine=opened)
        train_in_shards(place / "ds", place / "tagger", CrfTagger(max_iter=3), engine=opened)
        tag_shards(place / "tagger", corpus.folder, place / "tagged", engine=opened)


@pytest.fixture(scope="module")
def in_threads(sharded: ShardedCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What threads make of it; tests/test_shards.py compares that with the corpus in memory."""
    place = tmp_path_factory.mktemp("threads")
    everything(sharded, place, None)
    return place


@pytest.mark.parametrize("n", [2, 3, 1])
def test_workers_give_the_bytes_of_threads_and_every_block_is_a_task(
    n: int, client: Any, sharded: ShardedCorpus, in_threads: Path, tmp_path: Path
) -> None:
    scaled(client, n)
    before = client.run_on_scheduler(_visits)
    everything(sharded, tmp_path, client)
    begun = client.run_on_scheduler(_visits) - before
    names = sorted(path.name for path in in_threads.iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for name in names:
        assert sums(in_threads / name) == sums(tmp_path / name), name
    blocks = len(list((in_threads / "ds/labels").iterdir()))
    assert blocks >= 13
    works = Counter(key.split("-visit-")[0].rsplit("-", 1)[0] for key in begun)
    assert 4 * blocks in works.values()  # ds: blocks times steps
    assert len(works) > 10
    assert min(works.values()) >= blocks // 2, works  # nothing is one task per model, or per step


def test_one_shard_and_more_workers_than_shards_change_nothing(
    client: Any, sharded: ShardedCorpus, in_threads: Path, tmp_path: Path
) -> None:
    """Every model, two-truths and the CRF, with two workers on one shard."""
    scaled(client, 2)
    whole = sharded.whole()
    one = write_shards([whole], tmp_path / "one", votes=10**9)
    write_shards([whole.with_known(None)], tmp_path / "one-unknown", votes=10**9)
    assert (one.n_shards, sharded.n_shards) == (1, 4)
    place = tmp_path / "of-one"
    everything(one, place, client)
    here, there = (
        {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        for folder in (in_threads, place)
    )
    differ = {path for path in {*here, *there} if here.get(path) != there.get(path)}
    assert len(here) > 12 * 13
    assert {path.name for path in differ} <= NAMES_THE_CORPUS, differ


def scaled(client: Any, n: int) -> None:
    """Wait until there are so many workers."""
    client.cluster.scale(n)
    client.wait_for_workers(n, timeout=120)
    while len(client.scheduler_info(n_workers=-1)["workers"]) != n:
        time.sleep(0.1)


def _visits(dask_scheduler: Any) -> set[str]:
    """Return the keys of all visits that a worker began."""
    return {str(e[0]) for e in dask_scheduler.transition_log if e[2] == "processing" and "-visit-" in str(e[0])}


def test_a_corpus_in_memory_can_be_sent_to_a_cluster(client: Any, sharded: ShardedCorpus) -> None:
    corpus = sharded.whole()
    model = model_class("glad")(max_iter=3, restarts=2)
    alone = model.fit(corpus)
    with engine_of(client) as model.engine:
        assert model.fit(corpus).proba.tobytes() == alone.proba.tobytes()


def test_models_are_compared_and_folds_trained_on_a_cluster(client: Any, sharded: ShardedCorpus) -> None:
    corpus = sharded.whole()
    models = [model_class(name)(**OPTIONS[name]) for name in ("ds", "robust")]
    alone, before = compare(corpus, models), client.run_on_scheduler(_applied)
    spread = compare(corpus, models, engine=client)
    assert [line.scores for line in spread] == [line.scores for line in alone]
    folds = Counter(key.rsplit("-apply-", 1)[0] for key in client.run_on_scheduler(_applied) - before)
    assert 2 in folds.values()  # a task for each of the two folds
    assert all(model.engine is None for model in models)


def _applied(dask_scheduler: Any) -> set[str]:
    return {str(e[0]) for e in dask_scheduler.transition_log if e[2] == "processing" and "-apply-" in str(e[0])}


# --- workers that die -------------------------------------------------------------------------------------------------


def test_two_truths_on_a_cluster_gives_the_bytes_of_threads_whoever_dies(
    client: Any, sharded: ShardedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    aggregate_shards(sharded, tmp_path / "truth", model_class("ds")(max_iter=4))
    monkeypatch.setattr("lasca.pipeline.sharded.two_truths_in_shards", _mortal_two_truths)
    for sample in (3000, 10**6):
        for where, engine in (("threads", None), ("dask", client)):
            ambiguity_in_shards(
                tmp_path / "truth", tmp_path / f"{where}-{sample}", max_iter=3, sample=sample, engine=engine
            )
        assert sums(tmp_path / f"threads-{sample}") == sums(tmp_path / f"dask-{sample}")
    assert (tmp_path / "died").exists()
    assert len(list((tmp_path / "dask-3000/scores").iterdir())) >= 13
    assert not list(tmp_path.rglob(".*"))


def _mortal_two_truths(truth: Any, folder: Path, **options: Any) -> Any:
    """two-truths whose worker dies once, in an E step."""
    with pytest.MonkeyPatch.context() as patch:
        if options["engine"] is not None:
            patch.setattr("lasca.ambiguity.steps.PairLearner", lambda: _MortalPairs(folder.parent / "died"))
        return two_truths_in_shards(truth, folder, **options)


class _MortalPairs(PairLearner):
    def __init__(self, mark: Path) -> None:
        object.__setattr__(self, "mark", mark)

    def visit(self, state: Any, block: Any, local: Any) -> Any:
        _die_once(self.mark, block.number == 4)  # type: ignore[attr-defined]
        return super().visit(state, block, local)


@dataclass(frozen=True, eq=False)
class _MortalGradient(Gradient):
    """A worker that dies once, while it computes a gradient."""

    mark: Path = Path()

    def visit(self, vector: Any, block: Any, local: Any) -> Any:
        _die_once(self.mark, vector.any())
        return super().visit(vector, block, local)


def test_a_crf_on_a_cluster_gives_the_bytes_of_threads_whoever_dies(
    client: Any, sharded: ShardedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    monkeypatch.setattr("lasca.tagger.prepare.BLOCK_TOKENS", 300)
    monkeypatch.setattr("lasca.tagger.shards.TAG_TOKENS", 300)
    aggregate_shards(sharded, tmp_path / "truth", model_class("ds")(max_iter=4))
    for where, engine in (("threads", None), ("dask", client)):
        if engine is not None:
            monkeypatch.setattr("lasca.crf.training.Gradient", partial(_MortalGradient, mark=tmp_path / "died"))
        train_in_shards(tmp_path / "truth", tmp_path / where, CrfTagger(max_iter=3), engine=engine)
        tag_shards(tmp_path / where, sharded.folder, tmp_path / f"{where}-tagged", engine=engine)
    assert (tmp_path / "died").exists()
    assert sums(tmp_path / "threads") == sums(tmp_path / "dask")
    assert sums(tmp_path / "threads-tagged") == sums(tmp_path / "dask-tagged")
    assert len(list((tmp_path / "dask-tagged/labels").iterdir())) > 5
    assert not list(tmp_path.rglob(".*"))


class _Mortal(ConfusionLearner):
    """Dawid–Skene on a worker that dies once, in its third visit of a block."""

    def visit(self, state: Any, block: Any, local: Any) -> Any:
        _die_once(self.where / "visit", block.number == 3)  # type: ignore[attr-defined]
        return super().visit(state, block, local)


class _MortalPart(WritePart):
    """A worker that dies once while it writes, with half of a file behind it."""

    def __call__(self, number: int, *rest: Any) -> Any:
        if number == 5 and not (self.folder.parent / "died").exists():
            (self.folder / ".part-00005.parquet.half").write_bytes(b"half")
        _die_once(self.folder.parent / "died", number == 5)
        return super().__call__(number, *rest)


def _die_once(mark: Path, here: bool) -> None:
    if here and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def test_workers_that_are_killed_change_nothing(
    client: Any, sharded: ShardedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    aggregate_shards(sharded, tmp_path / "threads", model_class("ds")(max_iter=4))
    model: Any = model_class("ds")(max_iter=4)
    learner = model._learner(sharded.crowd_votes())
    mortal = _Mortal(**{name: getattr(learner, name) for name in learner.__dataclass_fields__})
    object.__setattr__(mortal, "where", tmp_path)
    monkeypatch.setattr(type(model), "_learner", lambda self, votes, history=None: mortal)
    monkeypatch.setattr("lasca.pipeline.sharded.WritePart", _MortalPart)
    before = set(client.scheduler_info(n_workers=-1)["workers"])
    aggregate_shards(sharded, tmp_path / "dask", model, engine=client)
    assert (tmp_path / "visit").exists()
    assert before - set(client.scheduler_info(n_workers=-1)["workers"])
    assert sums(tmp_path / "dask") == sums(tmp_path / "threads")
    assert not list(tmp_path.rglob(".*"))


# --- what goes wrong ----------------------------------------------------------------------------------------------


def test_a_damaged_shard_is_one_clear_error(client: Any, sharded: ShardedCorpus, tmp_path: Path) -> None:
    corpus = write_shards([sharded.whole()], tmp_path / "c", votes=4000)
    file = corpus.folder / "shards/00001/annotations.arrow"
    data = bytearray(file.read_bytes())
    data[-200] ^= 1
    file.write_bytes(data)
    with pytest.raises(StoreError, match=r"a shard is damaged: shards/00001/annotations\.arrow has changed"):
        aggregate_shards(corpus, tmp_path / "out", model_class("ds")(), engine=client)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_missing_shard_is_one_clear_error(client: Any, sharded: ShardedCorpus, tmp_path: Path) -> None:
    corpus = write_shards([sharded.whole()], tmp_path / "c", votes=4000)
    (corpus.folder / "shards/00002/starts.arrow").unlink()
    with pytest.raises(StoreError, match=r"a shard is missing: shards/00002/starts\.arrow"):
        aggregate_shards(corpus, tmp_path / "out", model_class("ds")(), engine=client)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c"]


def test_a_full_disk_is_one_clear_error(client: Any, sharded: ShardedCorpus, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("lasca.pipeline.sharded.WritePart", _Full)
    with pytest.raises(StoreError, match="cannot write: No space left on device"):
        aggregate_shards(sharded, tmp_path / "out", model_class("ds")(max_iter=2), engine=client)
    assert not (tmp_path / "out").exists()


class _Full(WritePart):
    """Writes to a device that is full."""

    def __call__(self, number: int, *rest: Any) -> Any:
        full = WritePart(self.finish, Path("/dev"), self.labels)
        object.__setattr__(full, "folder", _Folder())
        return full(number, *rest)


class _Folder:
    def __truediv__(self, name: str) -> str:
        return "/dev/full"


def test_a_worker_of_another_version_is_refused_by_name(client: Any, sharded: ShardedCorpus, tmp_path: Path) -> None:
    addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
    client.run(_pretend, "0.0.1", workers=addresses[:1])
    try:
        with pytest.raises(ModelError, match=rf"the worker {addresses[0]} has another version of LASCA.*0\.0\.1"):
            aggregate_shards(sharded, tmp_path / "out", model_class("ds")(), engine=client)
    finally:
        client.run(_pretend, engines.__version__, workers=addresses[:1])
    assert not list(tmp_path.iterdir())


def _pretend(version: str) -> None:
    import lasca

    lasca.__version__ = version
    engines.__version__ = version


def test_a_scheduler_that_is_not_there_is_named(sharded: ShardedCorpus, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(engines, "WAIT", 1.0)
    with pytest.raises(ModelError, match=r"tcp://127\.0\.0\.1:9: no Dask scheduler answers"):
        aggregate_shards(sharded, tmp_path / "out", model_class("ds")(), engine="tcp://127.0.0.1:9")
    with pytest.raises(ParameterError, match="engine must be threads, dask, or the address"):
        aggregate_shards(sharded, tmp_path / "out", model_class("ds")(), engine="spark")
    assert not list(tmp_path.iterdir())


def test_a_cluster_without_workers_is_not_waited_for(sharded: ShardedCorpus, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(engines, "LOOK", 0.2)
    monkeypatch.setattr(engines, "PATIENCE", 0.5)
    monkeypatch.setattr(engines, "_check_versions", lambda client: None)
    with (
        distributed.LocalCluster(n_workers=0, **LOCAL) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ModelError, match="the cluster has no workers any more"),
    ):
        aggregate_shards(sharded, tmp_path / "out", model_class("ds")(), engine=client)
    assert not (tmp_path / "out").exists()


def test_workers_that_stay_at_their_memory_limit_are_not_waited_for(
    sharded: ShardedCorpus, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(engines, "LOOK", 0.2)
    monkeypatch.setattr(engines, "PATIENCE", 0.5)
    with (
        dask.config.set({"distributed.worker.memory.pause": 0.01, "distributed.worker.memory.terminate": False}),
        distributed.LocalCluster(n_workers=1, **LOCAL, memory_limit="1GB") as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ModelError, match="all workers of the cluster are at their memory limit"),
    ):
        aggregate_shards(sharded, tmp_path / "out", model_class("ds")(), engine=client)
    assert not (tmp_path / "out").exists()


def test_a_driver_that_is_stopped_leaves_no_tasks(client: Any, sharded: ShardedCorpus, tmp_path: Path) -> None:
    def stop(share: float, words: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        aggregate_shards(sharded, tmp_path / "out", model_class("ds")(), engine=client, every=1, progress=stop)
    assert threading.active_count() < 50
    truth = aggregate_shards(sharded, tmp_path / "out", model_class("ds")(max_iter=3), engine=client)
    assert truth.diagnostics["iterations"] <= 3


# --- compiled code ----------------------------------------------------------------------------------------------------


def test_workers_make_their_kernels_once_and_share_them(
    sharded: ShardedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker compiles what it needs once, however many tasks it does; those that come later find it."""
    small_blocks(monkeypatch)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))  # of the workers: this process has its own
    for n in (1, 2):
        with distributed.LocalCluster(n_workers=n, **LOCAL) as cluster, distributed.Client(cluster) as client:
            aggregate_shards(sharded, tmp_path / str(n), model_class("ds")(max_iter=4, tol=0), engine=client)
            found = client.run(_compiled).values()
        files = len(list((tmp_path / "kernels").rglob("*.nbc")))
        made, read = (sum(counts) for counts in zip(*found))
        if n == 1:
            assert (made, read) == (files, 0)
            assert files >= 3
        else:
            assert made == 0
            assert read >= 3
    assert sums(tmp_path / "1") == sums(tmp_path / "2")


def _compiled() -> tuple[int, int]:
    """Return how many kernels this process compiled, and how many it found ready."""
    import sys

    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in sys.modules.items() if name.startswith("lasca.kernels")]
    kernels = {id(k): k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)}.values()
    kept = [k for k in kernels if type(k._cache).__module__ == "lasca.kernels.compiled"]
    return sum(sum(k._cache_misses.values()) for k in kept), sum(sum(k._cache_hits.values()) for k in kept)


# --- more than fits ---------------------------------------------------------------------------------------------------


def test_a_corpus_larger_than_the_memory_of_a_worker(tmp_path: Path) -> None:
    """A worker gets 200 MB more than it needs to be there; the corpus, in shards, is larger than all of that."""
    with (
        distributed.LocalCluster(n_workers=1, **LOCAL, memory_limit=0) as cluster,
        distributed.Client(cluster) as client,
    ):
        (baseline,) = client.run(_memory).values()
    limit = baseline + (200 << 20)
    pieces = simulate.big_shards(32, int(1.02 * limit / 9), n_annotators=1000, n_labels=3, seed=1)  # 9 bytes a vote
    corpus = write_shards(pieces, tmp_path / "c", votes=2_000_000)
    assert sum(file.stat().st_size for file in corpus.folder.rglob("*.arrow")) > limit
    aggregate_shards(corpus, tmp_path / "threads", model_class("ds")(max_iter=2, tol=0))
    with (
        distributed.LocalCluster(n_workers=1, **LOCAL, memory_limit=limit) as cluster,
        distributed.Client(cluster) as client,
    ):
        (before,) = client.run(os.getpid).values()
        aggregate_shards(corpus, tmp_path / "dask", model_class("ds")(max_iter=2, tol=0), engine=client)
        (after,) = client.run(os.getpid).values()
        (peak,) = client.run(_peak).values()
    assert before == after  # Dask kills a worker at 95 % of its limit
    assert baseline < peak
    assert sums(tmp_path / "threads") == sums(tmp_path / "dask")


def _memory() -> int:
    """Return the memory of a worker that has all of LASCA it needs."""
    import psutil

    import lasca.pipeline.sharded  # noqa: F401

    return int(psutil.Process().memory_info().rss)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
