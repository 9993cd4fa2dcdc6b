"""May NoiseBench's machine sources replace a worker? The alternative annotator test, written into docs/llm.md.

python experiments/crowds/alternatives.py            # print the table
python experiments/crowds/alternatives.py --page docs/llm.md
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parent)]

from crowds import page  # noqa: E402
from crowds.rows import corpus_of  # noqa: E402
from lasca import evaluate  # noqa: E402

MACHINES = ("llm", "weak", "distant")


def table() -> str:
    """Return a row per source, tested against the workers of the val folder."""
    corpus = corpus_of("nb-all")
    kinds = tuple("model" if name in MACHINES else "person" for name in corpus.annotators)
    corpus = replace(corpus, kinds=kinds, votes=(True,) * corpus.n_annotators)
    lines = ["| source | winning rate | advantage | workers | passes |", "|---|---|---|---|---|"]
    for name in MACHINES:
        test = evaluate.alternative_annotator(corpus, name)
        rate = f"{test.winning_rate:.2f} [{test.winning_rate_low:.2f}, {test.winning_rate_high:.2f}]"
        advantage = f"{test.advantage:.2f} [{test.advantage_low:.2f}, {test.advantage_high:.2f}]"
        lines.append(f"| {name} | {rate} | {advantage} | {len(test.people)} | {'yes' if test.passes else 'no'} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table, or put it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    made = table()
    print(made)
    if options.page is not None:
        page.insert(options.page, "alternatives", made)


if __name__ == "__main__":
    main()
