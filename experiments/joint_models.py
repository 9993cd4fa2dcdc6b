"""crf-ma and raykar on the MTurk entities: the truth they infer, and a tagger trained on it, as Markdown tables.

    python experiments/joint_models.py                                     # prints
    python experiments/joint_models.py --write docs/models/crf-ma.md       # puts them between the page's marks
    python experiments/joint_models.py --settings                          # the choice of crf-ma's powers, on val

Span F1 by seqeval's default reading. Inference: fitted on all annotated sentences, scored on all of them and on those
of the test folder. Prediction: `CrfTagger()` at its defaults, trained on the inferred truth, scored on three sets of
new text: the first 2,000 sentences of eng.testa (the "test" of Neural-Hidden-CRF and others), all of eng.testa, and
eng.testb.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import lasca
from lasca import datasets, evaluate
from lasca.corpus import CrowdCorpus
from lasca.tagger import CrfTagger
from lasca.truth import model_class

BEGIN, END = "<!-- joint: begin -->", "<!-- joint: end -->"
MODELS = ("crf-ma", "raykar")
SETTINGS: tuple[dict[str, Any], ...] = (
    {"power": 1.0, "temper": 1.0, "background": 0.0},
    {"power": 4.0, "temper": 0.2, "background": 0.0},
    {"power": 1.0, "temper": 1.0, "background": 0.3},
    {"power": 4.0, "temper": 0.5, "background": 0.3},
    {"reliability": "share", "temper": 0.5, "background": 0.3},
)


def parts(corpus: CrowdCorpus) -> dict[str, Any]:
    """Return the annotated sentences of both folders."""
    codes, names = corpus.metadata["folder"].codes()
    return {name: (codes == i) & corpus.annotated_sequences for i, name in enumerate(names)}


def unseen() -> dict[str, CrowdCorpus]:
    """Read the texts to predict on."""
    found = datasets.path("conll2003")
    assert found is not None
    testa = lasca.read(found[0].parent / "eng.testa.bio", format="conll", columns=("token", "gold"), header=False)
    first = testa.select(sequences=np.arange(2000))
    return {"testa, first 2,000": first, "testa": testa, "testb": datasets.load("conll2003", split="testb")}


def shown(score: evaluate.SpanScores) -> str:
    """Return precision / recall / F1."""
    return f"{100 * score.precision:.1f} / {100 * score.recall:.1f} / {100 * score.f1:.2f}"


def results() -> list[str]:
    """Fit, train and score; return a table."""
    whole = datasets.load("conll2003-mturk")
    corpus = whole.select(sequences=np.flatnonzero(whole.annotated_sequences))
    test, texts = parts(corpus)["test"], unseen()
    lines = [f"| model | all {corpus.n_sequences:,} annotated | test folder | {' | '.join(texts)} |", "|---" * 6 + "|"]
    for name in MODELS:
        truth = model_class(name)().fit(corpus)
        cells = [
            shown(
                evaluate.spans_from_codes(
                    corpus.golds["gold"], truth.labels, corpus.offsets, corpus.labels, sequences=sequences
                )
            )
            for sequences in (None, test)
        ]
        tagger = CrfTagger().fit(corpus, truth)
        for text in texts.values():
            gold = text.label_names(text.golds["gold"])
            found = tagger.predict([text.sequence(s) for s in range(text.n_sequences)])
            cells.append(shown(evaluate.spans(gold, found)))
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def settings() -> list[str]:
    """Score crf-ma's settings on the val folder alone; return a table."""
    whole = datasets.load("conll2003-mturk")
    corpus = whole.select(sequences=np.flatnonzero(parts(whole)["val"]))
    lines = ["| setting | val folder |", "|---|---|"]
    for chosen in SETTINGS:
        truth = model_class("crf-ma")(**chosen).fit(corpus)
        score = evaluate.spans_from_codes(corpus.golds["gold"], truth.labels, corpus.offsets, corpus.labels)
        lines.append(f"| {', '.join(f'`{k}={v!r}`' for k, v in chosen.items())} | {shown(score)} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure, print, and write into a page where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", action="store_true", help="only the choice of settings, on val")
    parser.add_argument("--write", type=Path, help="a page with marks to put the tables between")
    args = parser.parse_args()
    lines = settings() if args.settings else [*settings(), "", *results()]
    if args.write is not None:
        page = args.write.read_text("utf-8")
        before, rest = page.split(BEGIN)
        text = "\n".join(lines)
        args.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", "utf-8")


if __name__ == "__main__":
    main()
