"""Plant known bugs one by one in a copy of the sources and see that a test fails with each.

    python scripts/plant_bugs.py [WORD ...]

Each bug was once planted by an examiner and caught by no test (tests/test_planted_bugs*.py). WORDs choose bugs whose
file has one of them in its name; without any all are planted. The sources themselves are not touched.

First the tests run without a bug and have to pass. Then there is a line for each bug, and how the test failed:

    caught        the test fails with the bug
    NOT CAUGHT    it does not: the test has to be mended
    NOT FOUND     the code is not there, or there more than once: find where it went and mend the entry in BUGS

The exit code is 0 if all are caught, else 1.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HERE, SEQUENCE = "test_planted_bugs.py", "test_planted_bugs_sequence.py"

BUGS = [  # file, what stands there, the bug, the tests that should see it
    (
        "formats/write_spans.py",
        '"end": self.offset(span.end)',
        '"end": self.offset(span.start) + span.end - span.start',
        HERE,
        "utf16",
    ),
    (
        "formats/label_studio_task.py",
        'as_time(given.get("updated_at")) or as_time(given.get("created_at"))',
        'as_time(given.get("created_at")) or as_time(given.get("updated_at"))',
        HERE,
        "changed_last",
    ),
    ("formats/doccano.py", "if name.lower() in NOBODY", "if name in NOBODY", HERE, "nobody"),
    ("formats/brat.py", "max(p[1] for p in places)", "places[-1][1]", HERE, "cover"),
    (
        "pipeline/checkpoints.py",
        'same.items()) and source == dict(key["input"])',
        "same.items())",
        HERE,
        "input_has_changed",
    ),
    ("report/render.py", "range(0x2066, 0x206A)", "range(0x2066, 0x2069)", HERE, "direction"),
    (
        "kernels/crf.py",
        "if in_logs:\n",
        "if False:\n",
        HERE,
        "partial_targets",
    ),
    (
        "kernels/gibbs.py",
        "annotator_score(counts[a], rows[a], beta[kb], eta[kb])",
        "annotator_score(counts[a], rows[a], beta[kb], eta[ka])",
        HERE,
        "change_clusters",
    ),
    (
        "kernels/ambiguity.py",
        "log_scale += _rescale(one, two, size, n_pairs)",
        "_rescale(one, two, size, n_pairs)",
        HERE,
        "many_votes",
    ),
    ("truth/glad.py", "ability_precision=self.ability_sd**-2", "ability_precision=self.ability_sd**-1", HERE, "glad"),
    ("truth/glad.py", "ease_precision=self.ease_sd**-2", "ease_precision=self.ease_sd**-1", HERE, "glad"),
    (
        "truth/annotator_models.py",
        "np.broadcast_to(base.sum(axis=1), ",
        "np.broadcast_to(T * base.min(axis=1), ",  # a row's total without what trust in a sole annotator adds
        HERE,
        "sole",
    ),
    (
        "truth/bayesian_sequence.py",
        "1.25 * max(votes.n_labels - 1, 1)",
        "1.25 * votes.n_labels",
        HERE,
        "default_priors",
    ),
    ("truth/cluster_sampler.py", "self.eta += state.eta[order]", "self.eta += state.eta", HERE, "other_names"),
    ("truth/starts.py", "n[n > 1].sum()", "n[n > 0].sum()", SEQUENCE, "meet"),
    (
        "truth/chain_sampler.py",
        "for chain, ok in zip(chains, good) if ok]",
        "for chain, ok in zip(chains, good)]",
        SEQUENCE,
        "stuck",
    ),
    ("kernels/tables.py", "np.where(absent > 1e-9, _log", "np.where(absent > np.inf, _log", SEQUENCE, "drawn_rows"),
    ("truth/crf_text.py", "rank == sizes[document] - 1", "rank == sizes[document]", SEQUENCE, "first_three"),
    (
        "truth/chain.py",
        "row[may] = np.exp(expected_log(alpha))",
        "row[may] = alpha / alpha.sum()",
        SEQUENCE,
        "markov",
    ),
    (
        "truth/tempering.py",
        "(left * self.means[mine].reshape(len(at), H, -1))",
        "(left * np.exp(state.tables[0][mine]).reshape(len(at), H, -1))",
        SEQUENCE,
        "held_out",
    ),
    (
        "truth/tempering.py",
        "return mixed(out, said.text, self.share)",
        "return mixed(tempered(out, self.tau), said.text, self.share)",
        SEQUENCE,
        "definition",
    ),
    ("ambiguity/two_truths.py", "return max(tried, key=", "return min(tried, key=", HERE, "two_fits"),
    ("ambiguity/baselines.py", "    mu = np.round(mu, 9)", "    mu = mu + 0.0", HERE, "rank1"),
    ("crf/optimise.py", "(trace[-1 - _PERIOD] - trace[-1])", "(trace[-_PERIOD] - trace[-1])", HERE, "improvement"),
]


def run(copy: Path, tests: str, word: str, cache: Path) -> tuple[int, str]:
    """Run the tests of one bug against a copy of the sources; return pytest's exit code and how the first test failed.

    Kernels are kept in a place named by all their sources: one with a bug is never taken for one without.
    """
    options = ["-qx", "-p", "no:cacheprovider", "-n", "0", "-k", word]
    command = [sys.executable, "-m", "pytest", *options, f"tests/{tests}"]
    environment = os.environ | {"PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["COLUMNS"] = "250"  # pytest says why a test failed where there is room for it
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    failed = re.search(r"^(?:FAILED|ERROR) \S*?(?:::|/(?!.*::))(.*)$", done.stdout, re.MULTILINE)
    return done.returncode, failed[1] if failed else ""


def main(words: list[str]) -> int:
    """Plant the bugs; return how many were not caught."""
    missed = 0
    with tempfile.TemporaryDirectory() as room:
        copy, cache = Path(room) / "src", Path(room) / "cache"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        for place in (ROOT / "src" / "lasca" / "kernels" / "__pycache__").glob("lasca-*"):  # compiled already
            shutil.copytree(place, cache / place.name)
        chosen = [bug for bug in BUGS if not words or any(word in bug[0] for word in words)]
        for tests in sorted({bug[3] for bug in chosen}):
            code, failed = run(copy, tests, " or ".join(bug[4] for bug in chosen if bug[3] == tests), cache)
            if code:
                sys.exit(f"{tests} fails without any bug (pytest says {code}): {failed}")
        for file, right, wrong, tests, word in chosen:
            path = copy / "lasca" / file
            text = path.read_text("utf-8") if path.exists() else ""
            failed = ""
            if text.count(right) != 1:
                verdict = f"NOT FOUND (there {text.count(right)} times)"
            else:
                path.write_text(text.replace(right, wrong), "utf-8")
                code, failed = run(copy, tests, word, cache)
                path.write_text(text, "utf-8")
                verdict = "caught" if code == 1 else f"NOT CAUGHT (pytest says {code})"
            missed += verdict != "caught"
            sys.stdout.write(f"{verdict:32} {file}: {wrong.strip().splitlines()[0][:80]}\n")
            sys.stdout.write(f"{'':32}   {failed[:140]}\n" if failed else "")
            sys.stdout.flush()
    return missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", metavar="WORD", nargs="*", help="plant only bugs with this in the name of their file")
    sys.exit(main(parser.parse_args().words) > 0)
