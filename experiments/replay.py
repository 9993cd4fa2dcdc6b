"""Replay a review with gold as the reviewer, through the server's own endpoints: errors left against decisions made.

    python experiments/replay.py --data mturk --model robust --refit 400 --seeds 5 -o build/replay-mturk.json

Orders: the queue as the server gives it, and posterior entropy and vote entropy (each of the worst token of an item)
over the items that the server offers. All of them get refits with what was decided after every `--refit` decisions;
the queue is also ranked anew by what decisions taught, as the server does. Each order goes on until the errors are
halved (`--most` decisions at most). Errors are spans that are wrong plus spans that are missing; "unseen" are those in
sequences of which nothing was shown. Seeds draw a `--share` of the sequences with gold each; first fits are kept in
`--fits`. docs/review-replays.md is made of the results by experiments/review_page.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from starlette.testclient import TestClient

from crowds.corpora import pico
from lasca.corpus import CrowdCorpus
from lasca.pipeline.folder import save_truth
from lasca.pipeline.source import read
from lasca.review.project import Project
from lasca.review.queue import order_by
from lasca.review.server import Address, make_app
from lasca.review.session import RANK_AFTER, Session
from lasca.review.spans import Labels
from lasca.truth import model_class

ORDERS = ("queue", "posterior-entropy", "vote-entropy")
GOLD = "gold"


def with_gold(name: str) -> CrowdCorpus:
    """Return the annotated sequences of MTurk val, or of the given PICO gold, that have all of their gold."""
    corpus = read("conll2003-mturk") if name == "mturk" else pico()
    keep = corpus.annotated_sequences & (np.diff(corpus.offsets) > 0)
    if name == "mturk":
        keep &= np.array([folder == "val" for folder in corpus.metadata["folder"]])
    unknown = np.add.reduceat(corpus.golds[GOLD] < 0, corpus.offsets[:-1].clip(max=corpus.n_tokens - 1))
    return corpus.select(sequences=keep & (unknown == 0))


def drawn(corpus: CrowdCorpus, share: float, seed: int) -> CrowdCorpus:
    """Return a part of the sequences, drawn at random."""
    order = np.random.default_rng(seed).permutation(corpus.n_sequences)
    return corpus.select(sequences=np.sort(order[: int(share * corpus.n_sequences)]))


def fitted(name: str, share: float, model: str, seed: int, folder: Path) -> Path:
    """Return the folder of a first fit, made where it is not there."""
    made = folder / f"{name}-{share:g}-{model}-{seed}"
    if not made.is_dir():
        part = drawn(with_gold(name), share, seed)
        save_truth(part, model_class(model)().fit(part), made)
    return made


def spans_of(labels: Labels, codes: Any, corpus: CrowdCorpus) -> set[tuple[int, int, int]]:
    """Return the spans of all sequences, in tokens of the corpus."""
    found = labels.spans(np.asarray(codes, np.int64), corpus.offsets)
    return set(zip(found.start.tolist(), found.stop.tolist(), found.kind.tolist()))


def replay(folder: Path, order: str, refit: int, most: int) -> list[dict[str, int]]:
    """Decide items in one order until half of the errors are gone; return the errors left after every few decisions."""
    project = Project(folder)
    session = Session(project, refit_after=0, audit_every=0, rank_after=RANK_AFTER if order == "queue" else 0)
    client = TestClient(make_app(session, Address(8000, "t")), base_url="http://127.0.0.1:8000")
    corpus, labels = project.corpus, project.labels
    gold = spans_of(labels, corpus.golds[GOLD], corpus)
    by_sequence: dict[int, list[tuple[int, int, str]]] = {}
    for a, b, k in gold:
        s = int(corpus.token_sequence[a])
        base = int(corpus.offsets[s])
        by_sequence.setdefault(s, []).append((a - base, b - base, labels.types[k]))
    shown: set[int] = set()
    done: set[str] = set()
    decided: list[tuple[int, int]] = []
    curve: list[dict[str, int]] = []
    first_wrong: set[tuple[int, int, int]] = set()

    def measure() -> int:
        inferred = np.array(session._fit.truth.labels)
        for start, stop in decided:
            inferred[start:stop] = corpus.golds[GOLD][start:stop]
        wrong = spans_of(labels, inferred, corpus) ^ gold
        first_wrong.update(wrong if not curve else ())
        unseen, unseen_before = (
            sum(int(corpus.token_sequence[a]) not in shown for a, _, _ in found) for found in (wrong, first_wrong)
        )
        curve.append({"decisions": len(done), "errors": len(wrong), "unseen": unseen, "unseen_before": unseen_before})
        return len(wrong)

    first = measure()
    left = first
    while left > first / 2 and len(done) < most:
        queue = [item for item in session._queue.items if item.id not in done]
        if order != "queue":
            queue = order_by(queue, session._fit.corpus, session._fit.truth, order)
        if not queue:
            break
        for item in queue[: min(RANK_AFTER, refit - len(done) % refit) if refit else RANK_AFTER]:
            area = item.area
            spans = [s for s in by_sequence.get(area.sequence, []) if s[0] < area.stop and s[1] > area.start]
            body = {"who": "gold", "item": item.id, "readings": [[list(s) for s in sorted(spans)]]}
            answer = client.post("/t/api/decide", json=body)
            assert answer.status_code == 200, answer.text
            base = int(corpus.offsets[area.sequence])
            ends = [area.start, area.stop, *(end for span in spans for end in span[:2])]
            decided.append((base + min(ends), base + max(ends)))
            shown.add(area.sequence)
            done.add(item.id)
        session.wait()
        left = measure()
        if refit and (len(done) % refit == 0 or (left <= first / 2 and order == "queue")):  # last: what was never shown
            session.renew(refit=True)
            left = measure()
    return curve


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
    parser.add_argument("--share", type=float, default=0.9, help="the share of the sequences that each seed draws")
    parser.add_argument("--most", type=int, default=4000)
    parser.add_argument("--refit", type=int, default=400, help="0: none, the queue learns by itself alone")
    parser.add_argument("--seeds", type=int, default=5)
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
    for seed in range(asked.seeds):
        if all((seed, order) in known for order in asked.orders.split(",")):
            continue
        made = fitted(asked.data, asked.share, asked.model, seed, asked.fits)
        for order in (o for o in asked.orders.split(",") if (seed, o) not in known):
            began = time.process_time()
            with tempfile.TemporaryDirectory() as scratch:
                shutil.copytree(made, Path(scratch) / "run")
                curve = replay(Path(scratch) / "run", order, asked.refit, asked.most)
            results.append({"seed": seed, "order": order, "half": half(curve), "curve": curve})
            print(
                f"{asked.data} {asked.model} seed {seed} {order}: {curve[0]['errors']} errors, half at {half(curve)}, "
                f"unseen {curve[-1]['unseen_before']} -> {curve[-1]['unseen']}, "
                f"{time.process_time() - began:.0f} CPU s",
                flush=True,
            )
            text = json.dumps({"settings": settings, "results": results}, indent=1) + "\n"
            asked.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
