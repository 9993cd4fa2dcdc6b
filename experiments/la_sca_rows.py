"""Does `lasca run --preset la-sca` give the LA-SCA rows of docs/reproduction.md, to the last digit kept?

    python experiments/la_sca_rows.py              # seed 0 of the three crowds, and the 3,000 sentences of table 3
    python experiments/la_sca_rows.py 0 1 2 3 4    # all seeds: the rows themselves are means over them

Every row is made by commands (`lasca simulate`, `lasca run`), in a folder that is thrown away, and compared with what
`make reproduction` measured (docs/reproduction/results.json, six digits). The LA-SCA rows there take the confusion that
two-truths finds (--method two-truths); the rows "cost-sensitive, rank-1" are the preset as it stands, and are made with
seed 0 alone. Word-only features are what the reproduction chose for the crowd without gold: a template and a penalty,
given with --tagger.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from lasca.pipeline.way import Run
from reproduction import entities, tweets
from reproduction.jobs import rounded

ROOT = Path(__file__).resolve().parents[1]
LA_SCA = "cost-sensitive"
ROWS = {LA_SCA: ("--method", "two-truths"), "cost-sensitive, rank-1": ()}
"""The reproduction's rows, and what is said beside the preset."""


def lasca(*words: str | Path) -> None:
    """Run a command of LASCA."""
    subprocess.run([sys.executable, "-m", "lasca", *map(str, words)], check=True, capture_output=True)


def rows_of(crowd: Path, seed: int, chosen: dict[str, Any], score: Any, folder: Path) -> dict[str, Any]:
    """Return the scores of the preset's taggers, by features and row."""
    words = ("--tagger", f"templates={chosen['templates']}", "--tagger", f"l2={chosen['l2']}")
    found: dict[str, Any] = {}
    for features, own in (("word", words), ("default", ())):
        for name, said in ROWS.items():
            if seed != 0 and name != LA_SCA:
                continue
            out = folder / f"{features}-{name[-6:]}"
            lasca("run", crowd, "-o", out, "--preset", "la-sca", "--seed", str(seed), *said, *own)
            found.setdefault(features, {})[name] = score(Run.load(out))
    return found


def tweet_scores(run: Run) -> dict[str, Any]:
    """Score a run as tables 1 and 2 do."""
    return {"truth": tweets.truth_scores(run.corpus, run.truth), "tagger": tweets.unseen_scores(run.tagger)}


def entity_scores(run: Run) -> dict[str, Any]:
    """Score a run as table 3 does."""
    return {"truth": entities.truth_scores(run.corpus, run.truth), "tagger": entities.prediction(run.tagger)}


def same(what: str, found: dict[str, Any], results: dict[str, Any], job: str, truth: str) -> bool:
    """Say whether the scores are those of the reproduction, and which are not."""
    wrong = []
    expected = results[truth]["result"]["truth"]
    for features, rows in found.items():
        for name, scores in rows.items():
            kept = results[job]["result"][features].get(name)
            if kept is None:
                continue
            if rounded(scores["tagger"]) != kept:
                wrong.append(f"tagger, {features}, {name}: {rounded(scores['tagger'])} for {kept}")
            for key, value in scores["truth"].items():
                if rounded(value) != expected[key]:
                    wrong.append(f"truth, {key}: {rounded(value)} for {expected[key]}")
    print(f"{what}: {'DIFFERS' if wrong else 'the same'}", *wrong, sep="\n  ", flush=True)
    return not wrong


def main(seeds: list[int]) -> int:
    """Compare all rows; return how many crowds differ."""
    results = json.loads((ROOT / "docs" / "reproduction" / "results.json").read_text(encoding="utf-8"))
    wrong = 0
    kind = [f"{name}={value}" for name, value in tweets.CROWD_KINDS["table-1"].items()]
    options = [word for pair in kind for word in ("--param", pair)]
    for seed in seeds:
        for groups in ("ca1", "ca2", "ca3"):
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                data = ("tdga", folder / "crowd", "--gold", "gold1", "--param", f"groups={groups}", "--seed", str(seed))
                lasca("simulate", *data, *options)
                name = f"table-1-{groups}-{seed}"
                chosen = results[f"choose-{name}"]["result"]
                found = rows_of(folder / "crowd", seed, chosen, tweet_scores, folder)
                wrong += not same(f"{groups}, seed {seed}", found, results, f"objectives-{name}", f"tweets-{name}-hc")
    if 0 not in seeds:
        return wrong
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        entities.sentences("3000").save(folder / "crowd")  # a choice of sentences, which no command makes
        chosen = results["entity-choose-3000"]["result"]
        found = rows_of(folder / "crowd", 0, chosen, entity_scores, folder)
        wrong += not same("MTurk, 3,000 sentences", found, results, "entity-objectives-3000", "entities-3000-hc")
    return wrong


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]] or [0]))
