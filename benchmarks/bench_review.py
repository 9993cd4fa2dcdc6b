"""How quick the review is on a corpus of 100,000 tokens: first paint, the first card, and a decision, in real Chromium.

    python benchmarks/bench_review.py

The times are the browser's own: first contentful paint; from the start of the navigation until a card takes keys; and
from the press of Enter until the decision is on disk and the next card takes keys (forty times, two of which have the
queue ranked anew behind them). On a busy machine these are the waits for others; so beside them stands the CPU time
that the server spent on a decision (Linux: /proc), which does not depend on the load.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from browser import chromium, resize
from lasca import simulate
from lasca.corpus import CrowdCorpus, Strings
from lasca.pipeline.folder import save_truth
from lasca.truth import model_class

TOKENS = 100_000
DECISIONS = 40
READY = """
const done = arguments[arguments.length - 1], card = document.getElementById("card");
const ready = () => card.getAttribute("aria-busy") === "false" && document.querySelector("#candidates button");
const wait = () => ready() ? done(performance.now()) : setTimeout(wait, 1);
wait();
"""
DECIDE = """
const done = arguments[arguments.length - 1], card = document.getElementById("card"), began = performance.now();
document.getElementById("main").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}));
const wait = () => card.getAttribute("aria-busy") === "false" ? done(performance.now() - began) : setTimeout(wait, 1);
wait();
"""
PAINT = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"


def large_crowd() -> CrowdCorpus:
    """The demo's crowd, again and again under other ids."""
    one = simulate.demo_crowd("ner")
    parts = []
    for k in range(-(-TOKENS // one.n_tokens)):
        ids = Strings([f"{k}-{id}" for id in one.sequence_ids])
        parts.append(replace(one, sequence_ids=ids, metadata={}))
    return CrowdCorpus.concat(parts)


def cpu(pid: int) -> float:
    """Return the milliseconds of CPU that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return 1e3 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        corpus = large_crowd()
        save_truth(corpus, model_class("ds")().fit(corpus), Path(scratch) / "out")
        command = [sys.executable, "-m", "lasca", "review", str(Path(scratch) / "out"), "--refit", "0"]
        began = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                url = server.stdout.readline().split()[-1]
                started = time.monotonic() - began
                with chromium(Path(scratch) / "profile") as browser:
                    resize(browser, 1440)
                    browser.get(url)
                    card = browser.execute_async_script(READY)
                    paint = browser.execute_script(PAINT)
                    spent = cpu(server.pid)
                    times = [browser.execute_async_script(DECIDE) for _ in range(DECISIONS)]
                    spent = (cpu(server.pid) - spent) / DECISIONS
                    items = browser.find_element("id", "progress").text
            finally:
                server.kill()
    print(f"{corpus.n_tokens:,} tokens, {corpus.n_sequences:,} sequences; {items}")
    print(f"server ready after {started:.1f} s; first paint {paint:.0f} ms; first card {card:.0f} ms")
    slow, slowest = quantiles(times, n=20)[-1], max(times)
    print(f"a decision: median {median(times):.0f} ms, 95 % {slow:.0f} ms, most {slowest:.0f} ms")
    load = os.getloadavg()[0]
    print(f"the server spent {spent:.1f} ms of CPU on each, ranking included; load of the machine {load:.0f}")


if __name__ == "__main__":
    main()
