"""What the first run costs: every kernel that is compiled, when nothing has been, with its seconds.

    python benchmarks/bench_cold.py [demo] [ds] [default] [--kernels N]

Each command runs three times in a process of its own: once for Python's bytecode, which an installer has made before
anybody runs anything; with an empty folder for compiled kernels; and with what that run left there. CPU seconds are
those of the whole process, user and system, all threads. For each kernel and set of types: the seconds it took to
compile without those of the kernels it calls, that were compiled meanwhile. A busy machine takes more CPU seconds for
the same work: `yardstick` says how long a plain loop took beside each run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import lasca

TARGET = {"demo": 18.0, "ds": 4.0, "default": 10.0}
COMMANDS = {
    "demo": ["demo", "-o", "out"],
    "ds": ["aggregate", "hundred.conll", "-m", "ds", "-o", "out"],
    "default": ["aggregate", "hundred.conll", "-o", "out"],
}


def hundred(path: Path) -> None:
    """Write 100 tokens in ten sentences, five annotators who are right four times in five."""
    rng = random.Random(1)
    words = ["the", "of", "Anna", "Berlin", "runs", "Acme", "New", "York", "said", "on", "Monday", "cat", "dog"]
    names = ["O", "O", "O", "B-PER", "B-LOC", "B-ORG"]
    lines = ["token a1 a2 a3 a4 a5"]
    for _ in range(10):
        for _ in range(10):
            right = rng.choice(names)
            given = [right if rng.random() < 0.8 else rng.choice(names) for _ in range(5)]
            lines.append(" ".join([rng.choice(words), *given]))
        lines.append("")
    path.write_text("\n".join(lines) + "\n", "utf-8")


def child(arguments: list[str]) -> None:
    """Run one command of LASCA and print, as JSON on the last line, what was compiled and the CPU seconds."""
    import time

    from numba.core import event

    found: list[tuple[str, str, float]] = []
    inner: list[float] = []
    begun: list[float] = []

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, e: Any) -> None:
            begun.append(time.thread_time())
            inner.append(0.0)

        def on_end(self, e: Any) -> None:
            spent = time.thread_time() - begun.pop()
            own = spent - inner.pop()
            if inner:
                inner[-1] += spent
            function = e.data["dispatcher"].py_func
            types = ", ".join(str(kind) for kind in e.data["args"])
            found.append((f"{function.__module__.removeprefix('lasca.kernels.')}.{function.__name__}", types, own))

    event.register("numba:compile", Listener())
    sys.argv = ["lasca", *arguments]
    from lasca.cli import main

    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise
    used = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.process_time()
    for _ in range(10_000_000):
        pass
    yardstick = time.process_time() - begin
    print("\n" + json.dumps({"compiled": found, "cpu": used.ru_utime + used.ru_stime, "yardstick": yardstick}))


def measured(name: str, room: Path, cache: Path) -> dict[str, Any]:
    """Run a command in a process of its own."""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONPATH": str(Path(lasca.__file__).parents[1]),
        "PYTHONPYCACHEPREFIX": str(room / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    command = [sys.executable, __file__, "--child", *COMMANDS[name], "--overwrite"]
    done = subprocess.run(command, cwd=room, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure, and print one table for each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", choices=[[], *COMMANDS])
    parser.add_argument("--kernels", type=int, default=12, help="how many kernels to list")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        hundred(room / "hundred.conll")
        for name in asked.what or COMMANDS:
            measured(name, room, room / f"bytecode-{name}")
            cold, warm = (measured(name, room, room / f"cache-{name}") for _ in range(2))
            compiling = sum(own for *_, own in cold["compiled"])
            print(
                f"{name}: {cold['cpu']:.1f} CPU s cold (wanted: {TARGET[name]:.0f}), {warm['cpu']:.1f} warm; "
                f"{len(cold['compiled'])} compilations, {compiling:.1f} s "
                f"(yardstick {cold['yardstick']:.2f} and {warm['yardstick']:.2f} s)"
            )
            assert not warm["compiled"], warm["compiled"]
            by_kernel: dict[str, list[float]] = defaultdict(list)
            for kernel, _, own in cold["compiled"]:
                by_kernel[kernel].append(own)
            for kernel, owns in sorted(by_kernel.items(), key=lambda item: -sum(item[1]))[: asked.kernels]:
                print(f"  {sum(owns):6.2f} s  {len(owns)} ×  {kernel}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        main()
