"""The same bytes, as a matrix: threads × shards × the order of files × processes that begin anew."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import lasca
from lasca import simulate
from lasca.corpus.sharding import write_shards
from lasca.defaults import DEFAULT_MODEL
from lasca.engine import Threads
from lasca.pipeline.sharded import aggregate_shards, ambiguity_in_shards, train_in_shards
from lasca.tagger import CrfTagger
from lasca.truth import model_class
from shard_cases import OPTIONS, in_pieces, small_blocks

MODELS = (DEFAULT_MODEL, "ds", "bsc", "hc-seq")


def digest(*arrays: Any) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:12]


def made(files: list[str], place: Path) -> dict[str, list[str]]:
    """Return the digests of what every method makes of files, in memory and in shards, with one thread and with three.

    Votes are cut into blocks of a thousand, so that there is something to divide.
    """
    corpus, found = lasca.read(files), defaultdict[str, set[str]](set)
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch)
        patch.setattr("lasca.tagger.prepare.BLOCK_TOKENS", 300)
        for n_threads in (1, 3):
            for votes in (None, 900, 10**9):
                taken: Any = corpus
                if votes is not None:
                    taken = write_shards(in_pieces(corpus, 20), place / f"{votes}-{n_threads}", votes=votes)
                    assert (taken.n_shards > 5) == (votes == 900)
                for name in MODELS:
                    options = OPTIONS[name] | ({"text_iterations": 10} if "text_iterations" in OPTIONS[name] else {})
                    truth = model_class(name)(**options, n_threads=n_threads).fit(taken)
                    found[name].add(digest(truth.labels, truth.proba, truth.confusion, truth.trace))
                    assert truth.diagnostics.get("text", True)
                work = place / f"{votes}-{n_threads}-work"
                after = _in_memory if votes is None else _in_shards
                for name, what in after(taken, work, n_threads).items():
                    found[name].add(what)
    return {name: sorted(digests) for name, digests in found.items()}


def _in_memory(corpus: Any, work: Path, n_threads: int) -> dict[str, str]:
    truth = model_class("ds")(max_iter=4).fit(corpus)
    ambiguity = lasca.find_ambiguity(corpus, truth, max_iter=5, n_threads=n_threads)
    CrfTagger(max_iter=4, threads=n_threads).fit(corpus, truth).save(work)
    return {
        "two-truths": digest(ambiguity.score),
        "tagger": digest(np.fromfile(work / "weights.safetensors", np.uint8)),
    }


def _in_shards(corpus: Any, work: Path, n_threads: int) -> dict[str, str]:
    engine = Threads(n_threads)
    aggregate_shards(corpus, work / "truth", model_class("ds")(max_iter=4), engine=engine)
    ambiguity_in_shards(work / "truth", work / "ambiguous", max_iter=5, engine=engine)
    scores = [pq.read_table(file).column("score") for file in sorted((work / "ambiguous/scores").iterdir())]
    train_in_shards(work / "truth", work / "tagger", CrfTagger(max_iter=4), engine=engine)
    return {"two-truths": digest(*scores), "tagger": _weights(work / "tagger")}


def _weights(tagger: Path) -> str:
    return digest(np.fromfile(tagger / "weights.safetensors", np.uint8))


def test_threads_shards_files_and_processes_change_no_byte(tmp_path: Path) -> None:
    crowd = simulate.demo_crowd().select(sequences=np.arange(200))
    table, files = crowd.to_table(), []
    for i in range(3):
        who = pa.array(crowd.annotators[i::3], pa.large_string())
        files.append(str(tmp_path / f"{i}.csv"))
        csv.write_csv(table.filter(pc.is_in(table.column("annotator"), who)), files[-1])
    found = []
    for number, given in enumerate((files, files, [files[2], files[0], files[1]])):  # Python's hashes, too, are others
        own = os.environ | {"PYTHONHASHSEED": str(number), "OPENBLAS_NUM_THREADS": str(1 + number)}
        command = [sys.executable, __file__, str(tmp_path / f"work{number}"), *given]
        done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert set(found[0]) == {*MODELS, "two-truths", "tagger"}
    for name, digests in found[0].items():
        assert len(digests) == 1, name
        assert [other[name] for other in found[1:]] == [digests, digests], name


if __name__ == "__main__":
    sys.stdout.write(json.dumps(made(sys.argv[2:], Path(sys.argv[1]))))
