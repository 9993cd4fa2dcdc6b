"""Replay a review with gold as the reviewer, through the server's own endpoints: errors left against decisions made.

    python experiments/replay.py --data conll2003-mturk --model ds --decisions 200 --seeds 1 -o replay.json

Orders: the queue, posterior entropy and vote entropy (each of the worst token of an item), all over the items that the
server offers. Every `--refit` decisions the server infers anew with what was decided (models that can take known
labels). Errors are spans that are wrong plus spans that are missing, over the annotated sequences of the part; "unseen"
are those in sequences of which nothing was shown. Seeds draw nine tenths of the sequences each.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from starlette.testclient import TestClient

from lasca.corpus import CrowdCorpus
from lasca.review.project import Project
from lasca.review.queue import order_by
from lasca.review.server import Address, make_app
from lasca.review.session import Session
from lasca.review.spans import Labels
from lasca.runs.source import read
from lasca.runs.truth_folder import save_truth
from lasca.truth import model_class

ORDERS = ("queue", "posterior-entropy", "vote-entropy")


def spans_of(labels: Labels, codes: Any, corpus: CrowdCorpus) -> set[tuple[int, int, int]]:
    found = labels.spans(np.asarray(codes, np.int64), corpus.offsets)
    return set(zip(found.start.tolist(), found.stop.tolist(), found.kind.tolist()))


def replay(folder: Path, gold_name: str, order: str, n: int, refit: int, every: int) -> dict[str, Any]:
    """Decide n items in one order; return the errors left after every so many decisions."""
    project = Project(folder)
    session = Session(project, refit_after=0, audit_every=0)
    client = TestClient(make_app(session, Address(8000, "t")), base_url="http://127.0.0.1:8000")
    corpus, labels = project.corpus, project.labels
    gold = spans_of(labels, corpus.golds[gold_name], corpus)
    by_sequence: dict[int, list[tuple[int, int, str]]] = {}
    for a, b, k in gold:
        s = int(corpus.token_sequence[a])
        base = int(corpus.offsets[s])
        by_sequence.setdefault(s, []).append((a - base, b - base, labels.types[k]))
    shown: set[int] = set()
    made, curve = 0, []

    def measure() -> None:
        fit = project.fit(again=False)
        inferred = session._fit.truth.labels.copy()
        decided = fit.known.source > 0
        inferred[decided] = fit.truth.labels[decided]
        wrong = spans_of(labels, inferred, corpus) ^ gold
        unseen = sum(int(corpus.token_sequence[a]) not in shown for a, _, _ in wrong)
        curve.append({"decisions": made, "errors": len(wrong), "unseen": unseen})

    measure()
    while made < n:
        queue = list(session._queue.items)
        if order != "queue":
            queue = order_by(queue, session._fit.corpus, session._fit.truth, order)
        if not queue:
            break
        for item in queue[: min(refit, n - made)]:
            area = item.area
            spans = [s for s in by_sequence.get(area.sequence, []) if s[0] < area.stop and s[1] > area.start]
            body = {"who": "gold", "item": item.id, "readings": [[list(s) for s in sorted(spans)]]}
            answer = client.post("/t/api/decide", json=body)
            assert answer.status_code == 200, answer.text
            shown.add(area.sequence)
            made += 1
            if made % every == 0:
                measure()
        session._refit()
    session.wait()
    measure()
    return {"order": order, "curve": curve}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="conll2003-mturk")
    parser.add_argument("--part", default="val", help="the folder to take, where the data have folders")
    parser.add_argument("--gold", default="gold")
    parser.add_argument("--model", default="bsc")
    parser.add_argument("--sequences", type=int, default=0, help="so many sequences only; 0 takes nine tenths")
    parser.add_argument("--decisions", type=int, default=400)
    parser.add_argument("--refit", type=int, default=100)
    parser.add_argument("--every", type=int, default=25)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--orders", default=",".join(ORDERS))
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    corpus = read(asked.data)
    keep = corpus.annotated_sequences & (np.diff(corpus.offsets) > 0)
    if "folder" in corpus.metadata:
        keep &= np.array([folder == asked.part for folder in corpus.metadata["folder"]])
    complete = np.add.reduceat(corpus.golds[asked.gold] < 0, corpus.offsets[:-1].clip(max=corpus.n_tokens - 1)) == 0
    pool = np.flatnonzero(keep & complete)
    results = []
    for seed in range(asked.seeds):
        rng = np.random.default_rng(seed)
        size = asked.sequences or int(0.9 * len(pool))
        part = corpus.select(sequences=np.sort(rng.permutation(pool)[:size]))
        truth = model_class(asked.model)().fit(part)
        for order in asked.orders.split(","):
            with tempfile.TemporaryDirectory() as scratch:
                save_truth(part, truth, Path(scratch) / "run")
                found = replay(Path(scratch) / "run", asked.gold, order, asked.decisions, asked.refit, asked.every)
            results.append(found | {"seed": seed})
            first, last = found["curve"][0]["errors"], found["curve"][-1]
            half = next((p["decisions"] for p in found["curve"] if p["errors"] <= first / 2), None)
            print(
                f"seed {seed} {order}: {first} errors, {last['errors']} after {last['decisions']}, half at {half}",
                flush=True,
            )
    settings = {k: str(v) for k, v in vars(asked).items() if k != "output"}
    asked.output.write_text(json.dumps({"settings": settings, "results": results}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
