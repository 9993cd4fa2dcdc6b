"""The ambiguous tokens for people who adjudicate: in context, with candidates and who gave them.

`rows` gives plain data; `write_all` a folder with ambiguous.csv (guarded against formulas), ambiguous.jsonl,
ambiguous.parquet and label-studio.json. One row of the JSON lines file:

    {"rank": 1, "sequence": "t7", "position": 3, "token": "run", "before": "a good", "after": "today",
     "score": 0.97, "truth": "NOUN", "probability": 0.55, "candidates": [{"label": "NOUN", "score": 0.99}, …],
     "votes": {"NOUN": ["ann", "bob"], "VERB": ["eve"]}, "share": 0.6, "golds": {}}
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lasca.ambiguity.record import Ambiguity
from lasca.arrays import ranges
from lasca.corpus import CrowdCorpus
from lasca.files import whole_folder, write_json, write_lines
from lasca.formats.outcome import outcome
from lasca.formats.write_spans import tasks
from lasca.formats.write_tables import people_table
from lasca.truth import Truth
from lasca.truth.parts import TruthOfBlock

__all__ = ["arrow_table", "label_studio_tasks", "rows", "table", "write_all"]

Row = dict[str, Any]


def rows(
    corpus: CrowdCorpus, truth: Truth | TruthOfBlock, found: Ambiguity, *, limit: int | None = None, width: int = 48
) -> list[Row]:
    """Return the ambiguous tokens, most ambiguous first, as plain data; `width` characters of context on each side.

    Only people are listed under `votes`, the label with most votes first. `share` is the part of the annotators who
    read the first label of the best pair (two-truths only).
    """
    tokens = found.tokens[:limit]
    candidates = found.candidates
    return [_row(corpus, truth, found, rank, int(i), candidates[rank], width) for rank, i in enumerate(tokens)]


def _row(
    corpus: CrowdCorpus,
    truth: Truth | TruthOfBlock,
    found: Ambiguity,
    rank: int,
    i: int,
    candidates: dict[int, float],
    width: int,
) -> Row:
    s = int(corpus.token_sequence[i])
    first, last = int(corpus.offsets[s]), int(corpus.offsets[s + 1])
    label = int(truth.labels[i])
    share = None if found.pair_share is None else float(found.pair_share[rank, 0])
    return {
        "rank": rank + 1,
        "sequence": corpus.sequence_ids[s],
        "position": i - first,
        "token": corpus.tokens[i],
        "before": _last(corpus.tokens[max(first, i - width - 1) : i], width),  # sequences may be whole books
        "after": _first(corpus.tokens[i + 1 : min(last, i + width + 2)], width),
        "score": float(found.score[i]),
        "truth": corpus.labels[label],
        "probability": float(truth.proba[i, label]),
        "candidates": [{"label": corpus.labels[code], "score": score} for code, score in candidates.items()],
        "votes": _votes(corpus, i),
        "share": None if share is None or np.isnan(share) else share,
        "golds": {name: corpus.labels[gold[i]] for name, gold in corpus.golds.items() if gold[i] >= 0},
    }


def _first(words: Sequence[str], width: int) -> str:
    text = " ".join(words)
    return text if len(text) <= width else text[: width - 1] + "…"


def _last(words: Sequence[str], width: int) -> str:
    text = " ".join(words)
    return text if len(text) <= width else "…" + text[len(text) - width + 1 :]


def _votes(corpus: CrowdCorpus, i: int) -> dict[str, list[str]]:
    part = slice(int(corpus.token_start[i]), int(corpus.token_start[i + 1]))
    given: dict[str, list[str]] = {}
    for who, label in zip(corpus.annotation_annotator[part].tolist(), corpus.annotation_label[part].tolist()):
        if corpus.votes[who]:
            given.setdefault(corpus.labels[label], []).append(corpus.annotators[who])
    return dict(sorted(given.items(), key=lambda item: (-len(item[1]), item[0])))


def table(made: list[Row]) -> dict[str, list[Any]]:
    """Return rows as columns of plain cells: candidates and votes become text."""
    plain = ("rank", "sequence", "position", "before", "token", "after", "score", "truth", "probability", "share")
    columns: dict[str, list[Any]] = {name: [row[name] for row in made] for name in plain}
    columns["candidates"] = [" ".join(f"{c['label']}={c['score']:.3f}" for c in row["candidates"]) for row in made]
    columns["votes"] = [
        "; ".join(f"{label}: {', '.join(people)}" for label, people in row["votes"].items()) for row in made
    ]
    for name in sorted({name for row in made for name in row["golds"]}):
        columns[name if name not in columns else f"gold {name}"] = [row["golds"].get(name) for row in made]
    return columns


def label_studio_tasks(corpus: CrowdCorpus, truth: Truth, found: Ambiguity) -> list[dict[str, Any]]:
    """Return one Label Studio task per sequence with ambiguous tokens, the most ambiguous first.

    Each has what the people said as annotations, and two predictions to choose from: the inferred truth, and the
    second reading (the best other candidate at each ambiguous token). `data.ambiguity` is the highest score,
    `data.ambiguous` lists the tokens with their candidates.
    """
    at = corpus.token_sequence[found.tokens]
    _, first = np.unique(at, return_index=True)
    chosen = at[np.sort(first)].astype(np.int64)  # by their most ambiguous token
    tokens = ranges(corpus.offsets[chosen], corpus.offsets[chosen + 1])
    part = corpus.select(sequences=chosen)
    second = truth.labels.copy()
    by_sequence: dict[int, list[int]] = {}
    candidates = found.candidates
    for rank, i in enumerate(found.tokens.tolist()):
        others = [code for code in candidates[rank] if code != truth.labels[i]]
        second[i] = others[0] if others else truth.labels[i]
        by_sequence.setdefault(int(at[rank]), []).append(rank)
    made = tasks(part, outcome(part, truth.labels[tokens], truth.proba[tokens]), annotations=True)
    readings = tasks(part, outcome(part, second[tokens]), model_version="lasca: second reading")
    for s, task, reading in zip(chosen.tolist(), made, readings):
        ranks = by_sequence[s]
        task["data"] = task["data"] | {
            "ambiguity": float(found.score[found.tokens[ranks[0]]]),
            "ambiguous": [
                {
                    "position": int(found.tokens[rank] - corpus.offsets[s]),
                    "token": corpus.tokens[int(found.tokens[rank])],
                    "score": float(found.score[found.tokens[rank]]),
                    "candidates": [corpus.labels[code] for code in candidates[rank]],
                }
                for rank in ranks
            ],
        }
        task["predictions"] += reading["predictions"]
    return made


def write_all(
    corpus: CrowdCorpus, truth: Truth, found: Ambiguity, path: str | Path, *, overwrite: bool = False
) -> None:
    """Write CSV, JSON lines, Parquet and Label Studio tasks into a folder; whole or not at all."""
    made = rows(corpus, truth, found, width=200)
    with whole_folder(path, overwrite=overwrite) as folder:
        people_table(table(made), folder / "ambiguous.csv")
        write_lines(folder / "ambiguous.jsonl", made)
        pq.write_table(arrow_table(made), folder / "ambiguous.parquet")
        write_json(folder / "label-studio.json", label_studio_tasks(corpus, truth, found))


def arrow_table(made: list[Row]) -> Any:
    """Return rows as an Arrow table, nested as they are."""
    candidate = pa.struct([("label", pa.string()), ("score", pa.float64())])
    vote = pa.struct([("label", pa.string()), ("annotators", pa.list_(pa.string()))])
    kinds = {
        "rank": pa.int64(),
        "sequence": pa.string(),
        "position": pa.int64(),
        "token": pa.string(),
        "before": pa.string(),
        "after": pa.string(),
        "score": pa.float64(),
        "truth": pa.string(),
        "probability": pa.float64(),
        "share": pa.float64(),
        "candidates": pa.list_(candidate),
        "votes": pa.list_(vote),
        "golds": pa.map_(pa.string(), pa.string()),
    }
    plain = [
        row
        | {
            "votes": [{"label": label, "annotators": people} for label, people in row["votes"].items()],
            "golds": list(row["golds"].items()),
        }
        for row in made
    ]
    return pa.Table.from_pylist(plain, schema=pa.schema(list(kinds.items())))
