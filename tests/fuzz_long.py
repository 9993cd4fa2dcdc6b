"""Mutated files against every reader, and mutated requests against the review server: LascaErrors and 4xx, nothing else.

    python tests/fuzz_long.py                                  # make fuzz-long: 200,000 per reader, 20,000 requests: hours
    python tests/fuzz_long.py --inputs 5000 --requests 2000    # less of the same
    python tests/fuzz_long.py --only doccano --seed 7

Inputs begin as what LASCA's own writers write and as the samples in the readers' docstrings; mutations are those of
tests/mutations.py, drawn by a plain generator, which is quicker than hypothesis. No input may take 5 CPU seconds, and no process
1 GB: every reader has one of its own. Prints what was really run.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from lasca import formats, simulate
from lasca.corpus import CrowdCorpus
from lasca.corpus.sharding import write_shards
from lasca.errors import LascaError
from lasca.files import write_sums
from lasca.formats import READERS, WRITERS, SourceFile
from mutations import SNIPPETS, VALUES, _places, samples

SECONDS, BYTES = 5.0, 1 << 30
LARGEST = 60_000
"""Seeds are cut to this many bytes: more would only be slower."""
Files = dict[str, bytes]
DEEP = b'{"a":' * 400 + b"1" + b"}" * 400


def seeds(name: str) -> list[Files]:
    """Return valid inputs of a reader: what the writer of its name writes, and the samples of its docstring."""
    corpus = simulate.demo_crowd("ner").select(sequences=np.arange(3))
    found: list[Files] = []
    with tempfile.TemporaryDirectory() as scratch:
        for writer in (name, *(("xmi", "cas-json") if name == "webanno" else ())):
            if writer in WRITERS:
                target = Path(scratch) / f"{writer}.json"
                try:
                    formats.write(corpus, target, writer)
                except (LascaError, ImportError):  # formats that hold labels of one annotator, libraries not installed
                    continue
                paths = [target] if target.is_file() else [p for p in sorted(target.rglob("*")) if p.is_file()]
                found.append({str(p.relative_to(scratch)): p.read_bytes()[:LARGEST] for p in paths})
    if name == "lasca":
        known = np.resize([0, -1, -1], corpus.n_tokens)
        soft = np.resize(np.eye(corpus.n_labels)[0], (corpus.n_tokens, corpus.n_labels))
        with tempfile.TemporaryDirectory() as scratch:
            corpus.with_soft("llm", soft).with_known(known).save(Path(scratch) / "all", format="parquet")
            write_shards([corpus.select(sequences=[0]), corpus.select(sequences=[1])], Path(scratch) / "cut", votes=20)
            for folder in (Path(scratch) / "all", Path(scratch) / "cut"):
                paths = sorted(p for p in folder.rglob("*") if p.is_file())
                found.append({str(p.relative_to(scratch)): p.read_bytes() for p in paths})
        return [{path: data for path, data in files.items() if "SHA256SUMS" not in path} for files in found]
    module = import_module(READERS[name].module)
    if name == "conll-folder":  # its docstring shows files side by side
        return [
            {
                "doc/ann.conll": b"Ada B-PER\nran O\n",
                "doc/ben.conll": b"Ada O\nran O\n",
                "doc/gold.conll": b"Ada O\nran O\n",
            }
        ]
    fenced = (module.__doc__ or "").split("```\n")[1::2]
    return found + [{"sample.txt": text.encode()} for text in fenced or samples(module)]


def reader_of(name: str) -> Callable[[list[SourceFile]], object]:
    """Return the function that reads files; answers of language models are read beside the texts they are about.

    Saved corpora are read from a folder, whose sums are right: whoever changes a file by hand can write them anew.
    """
    read = import_module(READERS[name].module).read
    if name == "lasca":
        return lambda files: _read_folder(read, files)
    if name == "llm-batch":
        words = ["Ada", "Lovelace", "ran"]
        corpus = CrowdCorpus.from_sequences([words], {"ann": [["B-PER", "I-PER", "O"]]}, sequence_ids=["s1"])
        return lambda files: read(files, data=corpus)
    return read


def _read_folder(read: Callable[[list[SourceFile]], object], files: list[SourceFile]) -> object:
    with tempfile.TemporaryDirectory() as scratch:
        for file in files:
            place = Path(scratch, file.name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.read())
        for folder in {Path(scratch, file.name).parent for file in files}:
            write_sums(folder)
        return read([SourceFile(file.name, file.shown, Path(scratch, file.name)) for file in files])


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Change bytes, lines, or values where it is JSON; of what is compressed mostly what was packed, or none is read."""
    if data[:1] == b"\x78" and rng.random() < 0.9:  # zlib, as in a DocBin
        return zlib.compress(mutate_plain(rng, zlib.decompress(data)))
    return mutate_plain(rng, data)


def mutate_plain(rng: random.Random, data: bytes) -> bytes:
    """Change bytes, lines, or values where it is JSON."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(("json", "json", "bytes", "snippet", "lines", "cut", "deep"))
        at, to = rng.randint(0, len(data)), rng.randint(0, len(data))
        if kind == "json":
            data = _mutate_json(rng, data)
        elif kind == "bytes":
            data = data[:at] + rng.randbytes(rng.randint(0, 4)) + data[at + rng.randint(0, 4) :]
        elif kind == "snippet":
            data = data[:at] + rng.choice(SNIPPETS) + data[at + rng.randint(0, 60) :]
        elif kind == "lines":
            lines = data.split(b"\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            del lines[rng.randrange(len(lines))]
            data = b"\n".join(lines)
        elif kind == "deep":
            data = data[:at] + DEEP + data[at:] if rng.random() < 0.1 else data
        else:
            data = data[min(at, to) :] if rng.random() < 0.5 else data[: max(at, to)]
    return data


def _mutate_json(rng: random.Random, data: bytes) -> bytes:
    lines = [data]
    at = 0
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        lines = data.split(b"\n")
        at = rng.randrange(len(lines))
        try:
            value = json.loads(lines[at])
        except (ValueError, RecursionError):
            return data
    places: list[tuple[Any, Any]] = []
    _places(value, places)
    if not places:
        return data
    holder, key = rng.choice(places)
    if rng.random() < 0.2:
        del holder[key]
    else:
        holder[key] = rng.choice(VALUES)
    lines[at] = json.dumps(value).encode()
    return b"\n".join(lines)


def fuzz_reader(name: str, count: int, seed: int) -> dict[str, Any]:
    """Run one reader; stop with the input if anything else than a LascaError comes out."""
    rng = random.Random(f"{seed}/{name}")
    read, valid = reader_of(name), seeds(name)
    corpora, slowest = 0, 0.0
    warnings.simplefilter("ignore")
    for number in range(count):
        files = dict(rng.choice(valid))
        victim = rng.choice(sorted(files))
        files[victim] = mutate(rng, files[victim])
        if rng.random() < 0.05:
            files[rng.choice(("x.ann", "a/b.tsv", "README", victim + ".bak"))] = files.pop(victim)
        begun = time.process_time()
        try:
            read([SourceFile(path, f"fuzz/{path}", data) for path, data in sorted(files.items())])
            corpora += 1
        except LascaError:
            pass
        except BaseException as error:
            kept = Path(tempfile.gettempdir()) / f"lasca-fuzz-{name}-{seed}-{number}.json"
            kept.write_text(json.dumps({path: data.decode("latin-1") for path, data in files.items()}), "utf-8")
            raise AssertionError(f"{name}, input {number}: {type(error).__name__}: {error}; kept in {kept}") from error
        slowest = max(slowest, time.process_time() - begun)
        assert slowest < SECONDS, f"{name}, input {number} took {slowest:.1f} CPU seconds"
    return {"what": name, "run": count, "read": corpora, "slowest": slowest}


def fuzz_server(count: int, seed: int) -> dict[str, Any]:
    """Send mutated requests to the review server: nothing above 499, and what is not a decision changes nothing."""
    from starlette.testclient import TestClient

    from lasca.pipeline.folder import save_truth
    from lasca.review.project import Project
    from lasca.review.server import Address, make_app
    from lasca.review.session import Session
    from lasca.truth import MajorityVote

    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        corpus = simulate.demo_crowd("ner").select(sequences=np.arange(30))
        save_truth(corpus, MajorityVote().fit(corpus), Path(scratch) / "out")
        session = Session(Project(Path(scratch) / "out"), refit_after=0)
        client = TestClient(
            make_app(session, Address(8000, "secret"), "T"),
            base_url="http://127.0.0.1:8000",
            raise_server_exceptions=False,
        )
        item = client.get("/secret/api/queue").json()["items"][0]["item"]
        bodies = [
            json.dumps({"who": "ann", "item": item, "readings": [[[0, 1, "PER"]]]}).encode(),
            json.dumps({"who": "ann", "item": item, "skip": True}).encode(),
        ]
        ways = (
            "state",
            "queue",
            "item",
            "decide",
            "skip",
            "undo",
            "refit",
            "search",
            "..%2f..%2fetc",
            "' OR 1=1 --",
            "%00",
        )
        slowest, statuses = 0.0, dict.fromkeys(range(2, 5), 0)
        for number in range(count):
            token = "secret" if rng.random() < 0.9 else rng.choice(("", "SECRET", "../secret", "%00", "s" * 5000))
            address = f"/{token}/api/{rng.choice(ways)}"
            odd = rng.choice(
                (item, "", "0", "-1", "9" * 30, "'; DROP TABLE decisions; --", "../../x", "\u202e", "\ud83d")
            )
            headers = {"content-type": rng.choice(("application/json", "application/json", "text/plain"))}
            if rng.random() < 0.1:
                headers |= rng.choice(({"host": "evil.example"}, {"origin": "http://evil"}, {"content-length": "-1"}))
            method = rng.choice(("GET", "POST", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"))
            begun = time.process_time()
            try:
                query = {"item": odd, "limit": odd, "text": odd}
                content = mutate(rng, rng.choice(bodies)) if method == "POST" else None
                answer = client.request(method, address, params=query, content=content, headers=headers)
            except (ValueError, UnicodeError):  # what no client can send
                continue
            slowest = max(slowest, time.process_time() - begun)
            assert answer.status_code < 500, (number, method, address, content, answer.text)
            assert slowest < SECONDS
            statuses[answer.status_code // 100] += 1
    return {"what": "review server", "run": count, "read": statuses[2], "slowest": slowest}


def main() -> None:
    """Run every reader in a process of its own, then the server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200_000, help="for each reader")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--only", help="one reader, or server")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.only:
        done = (
            fuzz_server(given.requests, given.seed)
            if given.only == "server"
            else fuzz_reader(given.only, given.inputs, given.seed)
        )
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(f"{done['what']}: {done['run']:,} run, {done['read']:,} accepted, the slowest took {done['slowest']:.2f} CPU s, "
              f"{used / 2**20:.0f} MB")  # fmt: skip
        assert used < BYTES, f"{done['what']} needed {used:,} bytes"
        return
    own = [sys.executable, __file__, "--inputs", str(given.inputs), "--requests", str(given.requests)]
    failed = [
        what
        for what in (*READERS.built_in, "server")
        if subprocess.run([*own, "--seed", str(given.seed), "--only", what], check=False).returncode
    ]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
