"""Does `lasca run --preset la-sca` give the LA-SCA rows of docs/reproduction.md, to the last digit kept?

    python experiments/la_sca_rows.py              # seed 0 of the three crowds, and the sentences of table 3
    python experiments/la_sca_rows.py 0 1 2 3 4    # all seeds: the rows themselves are means over them

Every row is made by commands (`lasca simulate`, `lasca run`, `lasca train`), in a folder that is thrown away, and
compared with what `make reproduction` measured (docs/reproduction/results.json, six digits). The rows LA-SCA are the
preset as it stands; the rows "LA-SCA, two-truths" have --method two-truths beside it. Default features are those of the
run itself; word-only features are what the reproduction chose for the crowd without gold, a template and a penalty:
`lasca train` learns with them from the truth and the confusion of the same run.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import lasca.cli.commands  # noqa: F401  registers the verbs
from lasca.cli.app import app
from lasca.pipeline.way import Run
from lasca.tagger import load_tagger
from reproduction import entities, tweets
from reproduction.jobs import rounded
from reproduction.paper import CROWDS
from reproduction.tagging import FEATURES

ROOT = Path(__file__).resolve().parents[1]
ROWS = {"cost-sensitive, rank-1": (), "cost-sensitive": ("--method", "two-truths")}
"""What the reproduction calls the rows, and what is said beside the preset."""

Scores = Callable[..., dict[str, Any]]


def command(*words: str | Path) -> None:
    """Run a command of LASCA, in this process: what is loaded and compiled once serves all of them."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exit_code:
        raise SystemExit(f"lasca {' '.join(map(str, words))} failed: {done.output}")


def row_differs(
    what: str, crowd: Path, row: str, seed: int, kept: dict[str, Any], judges: tuple[Scores, Scores]
) -> bool:
    """Make a row of a crowd by commands; say, and return, whether a score is not as `kept` has it."""
    out, words = crowd.with_name("out"), crowd.with_name("words")
    command("run", crowd, "-o", out, "--preset", "la-sca", "--seed", str(seed), *ROWS[row])
    own = ("-p", f"templates={kept['chosen']['templates']}", "-p", f"l2={kept['chosen']['l2']}")
    command("train", out, "-o", words, "--objective", "cost-sensitive", *own)
    done, (judge_truth, judge_tagger) = Run.load(out), judges
    found = {"truth": judge_truth(done.corpus, done.truth)}
    found |= {"default": judge_tagger(done.tagger), "word": judge_tagger(load_tagger(words))}
    expected = {"truth": kept["truth"], **{features: kept["taggers"][features][row] for features in FEATURES}}
    wrong = [
        f"{of}, {key}: {rounded(value)} for {expected[of][key]}"
        for of, scores in found.items()
        for key, value in scores.items()
        if rounded(value) != expected[of][key]
    ]
    print(f"{what}, {row}: {'DIFFERS' if wrong else 'the same'}", *wrong, sep="\n  ", flush=True)
    return bool(wrong)


def tweet_row(results: dict[str, Any], row: str, groups: str, seed: int) -> bool:
    """Make a row of tables 1 and 2 of one crowd; return whether it differs."""
    name = f"table-1-{groups}-{seed}"
    kept = {
        "chosen": results[f"choose-{name}"]["result"],
        "truth": results[f"tweets-{name}-hc"]["result"]["truth"],
        "taggers": results[f"objectives-{name}"]["result"],
    }
    with tempfile.TemporaryDirectory() as folder:
        crowd, options = Path(folder) / "crowd", tweets.CROWD_KINDS["table-1"] | {"groups": groups}
        said = [word for key, value in options.items() for word in ("--param", f"{key}={value}")]
        command("simulate", "tdga", crowd, "--gold", "gold1", "--seed", str(seed), *said)
        judges = (tweets.truth_scores, tweets.unseen_scores)
        return row_differs(f"{groups}, seed {seed}", crowd, row, seed, kept, judges)


def entity_row(results: dict[str, Any], row: str, part: str) -> bool:
    """Make a row of table 3; return whether it differs."""
    kept = {
        "chosen": results[f"entity-choose-{part}"]["result"],
        "truth": results[f"entities-{part}-hc"]["result"]["truth"],
        "taggers": results[f"entity-objectives-{part}"]["result"],
    }
    with tempfile.TemporaryDirectory() as folder:
        crowd = Path(folder) / "crowd"
        entities.sentences(part).save(crowd)  # a choice of sentences, which no command makes
        judges = (entities.truth_scores, entities.prediction)
        return row_differs(f"MTurk, {part} sentences", crowd, row, 0, kept, judges)


def main(seeds: list[int]) -> int:
    """Compare all rows; return how many differ."""
    results = json.loads((ROOT / "docs" / "reproduction" / "results.json").read_text(encoding="utf-8"))
    wrong = 0
    for row in ROWS:
        wrong += sum(tweet_row(results, row, groups, seed) for seed in seeds for groups in CROWDS)
        if 0 in seeds:
            wrong += sum(entity_row(results, row, part) for part in ("3000", "all"))
    return wrong


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]] or [0]))
