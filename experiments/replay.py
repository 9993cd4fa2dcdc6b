"""Replay a review with gold as the reviewer, through the server's own endpoints: errors left against decisions made.

    python experiments/replay.py --data mturk --model robust --share 0.3 --refit 100 -o build/replay-mturk.json

Every seed draws a `--share` of the documents, and holds a fifth of those apart: they are in the corpus, and nobody is
ever asked about them. Orders: the queue as the server gives it, and posterior entropy and vote entropy (each of the
worst token of an item) over the items that the server offers. All of them get the server's own refits, after every
`--refit` decisions; the queue is also ranked anew by what decisions taught, as the server does. Each order goes on
until the errors of the documents that are shown are halved (`--most` decisions at most); a last refit follows, the
one that `lasca finish` would make. Errors are spans that are wrong plus spans that are missing. First fits are kept
in `--fits`. docs/review-replays.md is made of the results by experiments/review_page.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from starlette.testclient import TestClient

from crowds.corpora import pico
from lasca.corpus import CrowdCorpus
from lasca.pipeline.folder import save_truth
from lasca.pipeline.source import read
from lasca.review.assign import documents_of
from lasca.review.project import Project
from lasca.review.queue import Item
from lasca.review.server import Address, make_app
from lasca.review.session import RANK_AFTER, Session
from lasca.review.spans import Labels
from lasca.truth import Truth, model_class

ORDERS = ("queue", "posterior-entropy", "vote-entropy")
GOLD = "gold"
APART = 5
"""One document of so many is held apart."""
STEP = 10
"""Errors are counted after so many decisions, and after every refit."""


def order_by(items: Iterable[Item], corpus: CrowdCorpus, truth: Truth, how: str) -> list[Item]:
    """Return the items by the "posterior-entropy" or "vote-entropy" of their worst token, to compare with."""
    if how == "posterior-entropy":
        score = truth.entropy.astype(np.float64)
    else:
        T = corpus.n_labels
        cell = corpus.annotation_token.astype(np.int64) * T + corpus.annotation_label
        used, n = np.unique(cell, return_counts=True)
        votes = np.maximum(np.diff(corpus.token_start), 1)[used // T]
        parts = -(n / votes) * np.log(n / votes)
        score = np.bincount(used // T, weights=parts, minlength=corpus.n_tokens).astype(np.float64)

    def worst(item: Item) -> float:
        base = int(corpus.offsets[item.area.sequence])
        return float(score[base + item.area.start : base + item.area.stop].max())

    return sorted(items, key=lambda item: (-worst(item), item.area.sequence, item.area.start))


def with_gold(name: str) -> CrowdCorpus:
    """Return the annotated sequences of MTurk val, or of the given PICO gold, that have all of their gold."""
    corpus = read("conll2003-mturk") if name == "mturk" else pico()
    keep = corpus.annotated_sequences & (np.diff(corpus.offsets) > 0)
    if name == "mturk":
        keep &= np.array([folder == "val" for folder in corpus.metadata["folder"]])
    unknown = np.add.reduceat(corpus.golds[GOLD] < 0, corpus.offsets[:-1].clip(max=corpus.n_tokens - 1))
    return corpus.select(sequences=keep & (unknown == 0))


def drawn(corpus: CrowdCorpus, share: float, seed: int) -> tuple[CrowdCorpus, npt.NDArray[np.bool_]]:
    """Return a part of the documents, drawn at random, and which of its sequences are held apart."""
    document, names = documents_of(corpus)
    order = np.random.default_rng(seed).permutation(len(names))[: int(share * len(names))]
    kept = np.isin(document, order)
    return corpus.select(sequences=kept), np.isin(document, order[: len(order) // APART])[kept]


def fitted(name: str, share: float, model: str, seed: int, folder: Path) -> Path:
    """Return the folder of a first fit, made where it is not there."""
    made = folder / f"{name}-{share:g}-{model}-{seed}"
    if not made.is_dir():
        part, _ = drawn(with_gold(name), share, seed)
        save_truth(part, model_class(model)().fit(part), made)
    return made


def spans_of(labels: Labels, codes: Any, corpus: CrowdCorpus) -> set[tuple[int, int, int]]:
    """Return the spans of all sequences, in tokens of the corpus."""
    found = labels.spans(np.asarray(codes, np.int64), corpus.offsets)
    return set(zip(found.start.tolist(), found.stop.tolist(), found.kind.tolist()))


class Replay:
    """One review by somebody who knows the gold."""

    def __init__(self, folder: Path, apart: npt.NDArray[np.bool_], order: str, refit: int) -> None:
        project = Project(folder)
        rank = RANK_AFTER if order == "queue" else 0
        self.session = Session(project, refit_after=refit, audit_every=0, rank_after=rank)
        self.client = TestClient(make_app(self.session, Address(8000, "t")), base_url="http://127.0.0.1:8000")
        self.corpus, self.labels, self.order, self.apart = project.corpus, project.labels, order, apart
        self.gold = spans_of(self.labels, self.corpus.golds[GOLD], self.corpus)
        self.by_sequence: dict[int, list[tuple[int, int, str]]] = {}
        for a, b, k in self.gold:
            s = int(self.corpus.token_sequence[a])
            base = int(self.corpus.offsets[s])
            self.by_sequence.setdefault(s, []).append((a - base, b - base, self.labels.types[k]))
        self.decided: list[tuple[int, int]] = []
        self.curve: list[dict[str, int]] = []

    def measure(self) -> int:
        """Note how many errors are left where items are shown, and how many in the documents held apart."""
        errors, apart = self.errors(self.session._fit.truth.labels)
        self.curve.append({"decisions": len(self.decided), "errors": errors, "apart": apart})
        return errors

    def errors(self, labels: Any) -> tuple[int, int]:
        """Count the errors of labels, with what was decided, where items are shown and in the documents held apart."""
        inferred = np.array(labels)
        for start, stop in self.decided:
            inferred[start:stop] = self.corpus.golds[GOLD][start:stop]
        wrong = spans_of(self.labels, inferred, self.corpus) ^ self.gold
        apart = sum(bool(self.apart[self.corpus.token_sequence[a]]) for a, _, _ in wrong)
        return len(wrong) - apart, apart

    def open_items(self) -> list[Item]:
        """Return what may be asked, in the order that is replayed."""
        found = [item for item in self.session._queue.items if not self.apart[item.area.sequence]]
        if self.order != "queue":
            found = order_by(found, self.session._fit.corpus, self.session._fit.truth, self.order)
        return found

    def decide(self, item: Item) -> None:
        """Say what gold says of an item, and wait for what the server makes of it."""
        area = item.area
        spans = [s for s in self.by_sequence.get(area.sequence, []) if s[0] < area.stop and s[1] > area.start]
        body = {"who": "gold", "item": item.id, "readings": [[list(s) for s in sorted(spans)]]}
        answer = self.client.post("/t/api/decide", json=body)
        assert answer.status_code == 200, answer.text
        base = int(self.corpus.offsets[area.sequence])
        ends = [area.start, area.stop, *(end for span in spans for end in span[:2])]
        self.decided.append((base + min(ends), base + max(ends)))
        self.session.wait()
        assert not self.session._failed, self.session._failed

    def run(self, most: int) -> list[dict[str, int]]:
        """Decide until half of the errors are gone; return the errors left after every few decisions."""
        goal = self.measure() / 2
        version, queue, done = 0, iter(()), set[str]()
        while self.curve[-1]["errors"] > goal and len(self.decided) < most:
            if version != self.session._version:
                version = self.session._version
                queue = iter([item for item in self.open_items() if item.id not in done])
            item = next(queue, None)
            if item is None:
                break
            done.add(item.id)
            self.decide(item)
            if len(self.decided) % STEP == 0 or version != self.session._version:
                self.measure()
        self.session.renew(refit=True)  # what was learned of documents never shown, from all that was decided
        self.measure()
        return self.curve


def half(curve: list[dict[str, int]]) -> float | None:
    """Return the number of decisions after which half of the errors were gone, between two measurements."""
    goal = curve[0]["errors"] / 2
    for before, after in pairwise(curve):
        if after["errors"] <= goal:
            share = (before["errors"] - goal) / max(before["errors"] - after["errors"], 1)
            return before["decisions"] + share * (after["decisions"] - before["decisions"])
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=("mturk", "pico"), default="mturk")
    parser.add_argument("--model", default="robust")
    parser.add_argument("--share", type=float, default=0.9, help="the share of the documents that each seed draws")
    parser.add_argument("--most", type=int, default=4000)
    parser.add_argument("--refit", type=int, default=100, help="decisions between refits")
    parser.add_argument("--seeds", default="0-4", help="the first and the last")
    parser.add_argument("--orders", default=",".join(ORDERS))
    parser.add_argument("--fits", type=Path, default=Path("build/fits"))
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    settings = {k: v for k, v in vars(asked).items() if k not in ("output", "fits", "seeds", "orders")}
    results: list[dict[str, Any]] = []
    if asked.output.is_file():  # go on where it was stopped
        before = json.loads(asked.output.read_text(encoding="utf-8"))
        results = before["results"] if before["settings"] == settings else []
    known = {(r["seed"], r["order"]) for r in results}
    first, last = map(int, asked.seeds.split("-"))
    for seed in range(first, last + 1):
        if all((seed, order) in known for order in asked.orders.split(",")):
            continue
        _, apart = drawn(with_gold(asked.data), asked.share, seed)
        made = fitted(asked.data, asked.share, asked.model, seed, asked.fits)
        for order in (o for o in asked.orders.split(",") if (seed, o) not in known):
            began = time.process_time()
            with tempfile.TemporaryDirectory() as scratch:
                shutil.copytree(made, Path(scratch) / "run")
                replay = Replay(Path(scratch) / "run", apart, order, asked.refit)
                curve = replay.run(asked.most)
            results.append({"seed": seed, "order": order, "half": half(curve), "curve": curve})
            print(
                f"{asked.data} {asked.model} seed {seed} {order}: {curve[0]['errors']} errors, half at {half(curve)}, "
                f"apart {curve[0]['apart']} -> {curve[-1]['apart']}, "
                f"{time.process_time() - began:.0f} CPU s",
                flush=True,
            )
            text = json.dumps({"settings": settings, "results": results}, indent=1) + "\n"
            asked.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
