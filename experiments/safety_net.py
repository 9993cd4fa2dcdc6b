"""What every model gives today, to compare before and after a move: python experiments/safety_net.py -o now.json

    PYTHONPATH=OLD/src python experiments/safety_net.py -o old.json
    PYTHONPATH=src python experiments/safety_net.py -o new.json --against old.json

For each corpus and model: hashes of labels and probabilities, the last objective, CPU seconds (the second of two fits,
so that compiling does not count) and bytes of memory per annotation; for the demo also two-truths, the tagger and the
report. `--corpora` and `--models` choose: hc-seq on the MTurk entities takes minutes. `--literal` lets lone votes teach
(`lone_votes`), as they did in 0.1.0. With `--against`, every line
says whether the bytes are the same and how CPU compares. A data set that is not there is left out, and said.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaError
from lasca.truth import MODEL_NAMES, model_class

QUICK = {"hc": {"n_chains": 2, "n_warmup": 30, "n_samples": 30}}
"""Settings for what would take long; the same before and after."""
CORPORA = ("demo-pos", "demo-ner", "tdga", "mturk")
DOCUMENTS = 60  # of T-DGA


def corpus_named(name: str) -> CrowdCorpus:
    if name.startswith("demo-"):
        return lasca.simulate.demo_crowd(name.removeprefix("demo-"))
    if name == "tdga":
        gold = lasca.datasets.load("tdga")
        part = gold.select(sequences=np.arange(min(gold.n_sequences, DOCUMENTS)))
        return lasca.simulate.crowd(part, seed=1)
    return lasca.datasets.load("conll2003-mturk")


def digest(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def measured(corpus: CrowdCorpus, name: str, twice: bool, literal: bool) -> dict[str, Any]:
    model = model_class(name)(**QUICK.get(name, {}))
    if literal and "lone_votes" in model.get_params():
        model.set_params(lone_votes=True)
    if twice:
        model.fit(corpus)
    begin = time.process_time()
    truth = model.fit(corpus)
    seconds = time.process_time() - begin
    found = {"labels": digest(truth.labels), "proba": digest(truth.proba), "confusion": digest(truth.confusion)}
    trace = np.asarray(truth.trace)
    gold = next(iter(corpus.golds.values()), None)
    right = None if gold is None else float((truth.labels == gold)[gold >= 0].mean())
    return found | {"objective": float(trace.ravel()[-1]) if trace.size else None, "right": right, "cpu": seconds}


def memory(corpus: CrowdCorpus, name: str) -> float:
    tracemalloc.start()
    model_class(name)(**QUICK.get(name, {})).fit(corpus)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / max(corpus.n_annotations, 1)


def rest_of_the_way(corpus: CrowdCorpus) -> dict[str, Any]:
    """Ambiguity, tagger and report after Dawid–Skene."""
    truth = model_class("ds")().fit(corpus)
    begin = time.process_time()
    found = lasca.find_ambiguity(corpus, truth)
    tagger = lasca.CrfTagger(max_iter=30).fit(corpus, truth)
    said = tagger.predict([corpus.sequence(i) for i in range(50)])
    tags = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
    return {
        "two-truths": {
            "labels": digest(found.tokens),
            "proba": digest(found.score),
            "cpu": time.process_time() - begin,
        },
        "tagger": {"labels": tags, "objective": tagger.trace[-1]},
    }


def compared(name: str, new: dict[str, Any], old: dict[str, Any] | None) -> str:
    if old is None:
        return f"{name:24s} new"
    keys = [key for key in ("labels", "proba", "confusion", "objective") if key in new and key in old]
    differ = [key for key in keys if new[key] != old[key]]
    words = "same bytes" if not differ else "differs: " + ", ".join(differ)
    if differ and new.get("right") is not None:
        words += f" (right {old['right']:.4f} -> {new['right']:.4f})"
    if "cpu" in new and "cpu" in old:
        words += f"; CPU {old['cpu']:.2f} -> {new['cpu']:.2f} s"
    return f"{name:24s} {words}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--corpora", nargs="*", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--models", nargs="*", default=list(MODEL_NAMES))
    parser.add_argument("--literal", action="store_true")
    asked = parser.parse_args()
    old = json.loads(asked.against.read_text("utf-8")) if asked.against else {}
    found: dict[str, Any] = {}
    for name in asked.corpora:
        try:
            corpus = corpus_named(name)
        except LascaError as error:
            print(f"{name}: left out ({error})")
            continue
        for model in asked.models:
            key = f"{name}/{model}"
            found[key] = measured(corpus, model, name != "mturk", asked.literal)
            if name == "demo-ner":
                found[key]["bytes"] = memory(corpus, model)
            print(compared(key, found[key], old.get(key)) if asked.against else f"{key} {found[key]}", flush=True)
        if name == "demo-ner":
            for part, values in rest_of_the_way(corpus).items():
                found[part] = values
                print(compared(part, values, old.get(part)) if asked.against else f"{part} {values}", flush=True)
    asked.output.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
