"""Mutation testing: change the package in 400 random places, one at a time, and see whether a test fails.

    python scripts/mutants.py map   [TESTS]   which test runs which line: the suite, or test files that changed
    python scripts/mutants.py run   [-n N]    the mutants that have no result yet, one after the other
    python scripts/mutants.py again [MUTANTS] mutants that survived, against the tests that are mapped now
    python scripts/mutants.py table           how many were killed, by room; who survived

Mutants are drawn by a fixed seed from all places where a change of `mutate.py` fits, so many of each room, and stand
in a fixed random order: the first of a room are a sample, too. For each only tests that run its line are run (of lines
that are run on import: all tests of its function or file; of a kernel, which coverage cannot see: all that run a line
which names it, or a kernel that calls it), the fastest files first, to the first failure, at most `ENOUGH` seconds of
them: a survivor has survived these. A mutant that cannot be imported, crashes or hangs is killed.
Kernels are compiled anew for each mutant of a kernel; only those that cannot reach the changed function are taken over.

The room (default: /tmp/lasca-mutants) has a copy of the tree, the map, the kernels, and `results.json`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from mutate import ROOMS, Mutant, mutants

NOT_RUN = ("browser", "reproduce", "docs", "crowds_bench", "plugin.py", "environment")  # test files that take too long
ENOUGH = 25.0
"""Seconds of tests that a mutant has to survive, as the map timed them."""
ROOT = Path(__file__).resolve().parents[1]


class Seen:
    """Which test runs which line (as `map` found it), and how long each takes."""

    def __init__(self, room: Path) -> None:
        from coverage import CoverageData

        self.tree, self.source = room / "tree", room / "tree" / "src" / "lasca"
        self.data = CoverageData(no_disk=True)
        for file in sorted((room / "seen").glob("coverage.*")):
            part = CoverageData(str(file))
            part.read()
            self.data.update(part)
        self.seconds: dict[str, float] = {}
        for file in sorted((room / "seen").glob("seconds.*.json")):
            self.seconds |= json.loads(file.read_text("utf-8"))
        self.mapped = Path(os.path.commonpath(list(self.data.measured_files())))  # the tree that was mapped
        self.lines: dict[Path, dict[int, set[str]]] = {}
        self.kernels = Kernels(self.source / "kernels")
        self.naming = self._naming()

    def tests(self, mutant: Mutant) -> set[str]:
        """Return the tests that can see a mutant."""
        path = self.source / mutant.file
        if mutant.file.startswith("kernels/"):
            reached = self.kernels.callers(Path(mutant.file).stem, mutant.function)
            return {test for name in reached for place in self.naming.get(name, ()) for test in self.of_line(*place)}
        found = {test for line in range(mutant.line, mutant.last + 1) for test in self.of_line(path, line)}
        return found or self.around(path, mutant.line)

    def of_line(self, path: Path, line: int) -> set[str]:
        """Return the tests that run a line."""
        if path not in self.lines:
            found = self.data.contexts_by_lineno(str(self.mapped / path.relative_to(self.tree)))
            self.lines[path] = {line: {test for test in tests if test in self.seconds} for line, tests in found.items()}
        return self.lines[path].get(line, set())

    def around(self, path: Path, line: int) -> set[str]:
        """Return the tests of the function a line belongs to, which is run on import itself; else those of its file."""
        self.of_line(path, 0)
        functions = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.FunctionDef)]
        ends = [(n.body[0].lineno, n.end_lineno or 0) for n in functions if n.lineno <= line < n.body[0].lineno]
        begin, end = ends[-1] if ends else (0, 10**9)
        within = {n for f in functions for n in range(f.body[0].lineno, (f.end_lineno or 0) + 1)}
        return {test for n, tests in self.lines[path].items() if begin <= n <= end and n in within for test in tests}

    def _naming(self) -> dict[str, list[tuple[Path, int]]]:
        """Return the lines outside of the kernels that name each kernel."""
        places = defaultdict(list)
        for file in [*self.source.rglob("*.py"), *(self.tree / "tests").rglob("*.py")]:
            if file.parent != self.source / "kernels":
                for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                    name = named(node)
                    if name in self.kernels.names:
                        places[name].append((file, node.lineno))  # type: ignore[attr-defined]
        return dict(places)


def named(node: ast.AST) -> str:
    """Return what a node names."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


class Kernels:
    """Who calls whom among the kernels, by name."""

    def __init__(self, folder: Path) -> None:
        self.called: dict[str, set[str]] = {}
        self.of_file: dict[str, set[str]] = defaultdict(set)
        for file in folder.glob("*.py"):
            for node in ast.parse(file.read_text("utf-8")).body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    self.called.setdefault(node.name, set()).update(named(n) for n in ast.walk(node))
                    self.of_file[file.stem].add(node.name)
                elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                    for target in ast.walk(node):
                        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                            self.called.setdefault(target.id, set()).update(named(n) for n in ast.walk(node))
        self.names = set(self.called)

    def callers(self, stem: str, function: str) -> set[str]:
        """Return a function (of no function: all of the file) and all that reach it."""
        reached = {function.split(".")[0]} if function else set(self.of_file[stem])
        while True:
            more = {name for name, called in self.called.items() if called & reached} - reached
            if not more:
                return reached
            reached |= more


def take_over(room: Path, mutant: Mutant, seen: Seen) -> None:
    """Link the compiled kernels that cannot reach the mutated one into the place of the mutant's kernels."""
    code = "from lasca.kernels.places import fingerprint; print(fingerprint())"
    environment = os.environ | {"PYTHONPATH": str(room / "tree" / "src")}
    mark = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    place = room / "cache" / f"lasca-{mark.stdout.strip()}"
    place.mkdir(exist_ok=True)
    reached = seen.kernels.callers(Path(mutant.file).stem, mutant.function)
    for file in (room / "kernels").glob("*.nbc"):
        if file.name.split(".", 1)[1].rsplit("-", 1)[0] not in reached:
            os.link(file, place / file.name)


def plan(tests: set[str], seconds: dict[str, float], kills: dict[str, int], module: str) -> Iterator[list[str]]:
    """Yield tests in stages: those most likely to kill first, each stage a process of its own."""
    files = defaultdict(list)
    for test in sorted(tests, key=lambda test: seconds[test]):
        files[test.split("::")[0]].append(test)

    def rank(file: str) -> float:
        likely = (
            1
            + 3 * kills.get(f"{module} {file}", 0)
            + 9 * (Path(module).name.split("_")[0] in file)
            + len(files[file]) / 50
        )
        return (1 + sum(seconds[test] for test in files[file][:40])) / likely

    left, stages, chosen = ENOUGH, [2, 4, 1000], list[str]()
    for i, file in enumerate(sorted(files, key=rank)):
        share = max(min(left, 15.0), 0.0)
        for test in files[file]:
            if seconds[test] <= share:
                share -= seconds[test]
                left -= seconds[test]
                chosen.append(test)
        if i + 1 in (stages[0], stages[0] + stages[1]) and chosen:
            yield chosen
            chosen = []
    if chosen:
        yield chosen


class Chosen:
    """A plug-in of pytest: run these tests, in this order, and say which one failed."""

    def __init__(self, tests: list[str]) -> None:
        self.order, self.failed = {test: i for i, test in enumerate(tests)}, ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave the others out."""
        items[:] = sorted((item for item in items if item.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    def pytest_collectreport(self, report: Any) -> None:
        """Note a file that cannot be imported."""
        if report.failed:
            self.failed = self.failed or f"import of {report.nodeid}"

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the test that failed."""
        if report.failed:
            self.failed = self.failed or report.nodeid


def stage(room: Path, tests: list[str], limit: float) -> tuple[str, float]:
    """Run tests in a fork of this process, which has loaded what all need; return who failed, and the CPU seconds."""
    begin, said = time.monotonic(), room / "said.txt"
    said.write_text("", encoding="utf-8")
    child = os.fork()
    if child == 0:
        code = 3
        try:
            code = _child(room, tests, limit)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    while True:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() - begin > 60 + 20 * limit:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it started and left
    failed = said.read_text("utf-8")
    if os.WIFSIGNALED(status):
        failed = f"signal {os.WTERMSIG(status)}"
    elif os.WEXITSTATUS(status) and not failed:
        raise RuntimeError(f"pytest's exit code {os.WEXITSTATUS(status)}: {room / 'log.txt'}")
    return failed, used.ru_utime + used.ru_stime


def _child(room: Path, tests: list[str], limit: float) -> int:
    import pytest

    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    os.chdir(room / "tree")
    log = os.open(room / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    sys.path.insert(0, str(room / "tree" / "src"))
    chosen = Chosen(tests)
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=short", "-o", "addopts="]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is there already
    code = pytest.main([*options, *files], plugins=[chosen])
    (room / "said.txt").write_text(chosen.failed, encoding="utf-8")
    sys.stdout.flush()
    return int(code)


def judge(room: Path, mutant: Mutant, seen: Seen, kills: dict[str, int]) -> dict[str, Any]:
    """Plant a mutant and run its tests; return what became of it."""
    path = room / "tree" / "src" / "lasca" / mutant.file
    text = path.read_text("utf-8")
    new, old = mutant.applied(text)
    tests = seen.tests(mutant)
    row: dict[str, Any] = {"old": old, "by": "", "tests": len(tests), "run": 0, "cpu": 0.0}
    is_kernel = mutant.file.startswith("kernels/")
    try:
        path.write_text(new, "utf-8")
        if is_kernel:
            take_over(room, mutant, seen)
        for some in plan(tests, seen.seconds, kills, mutant.file.removesuffix(".py")):
            limit = 60 + 10 * sum(seen.seconds[test] for test in some)
            row["by"], cpu = stage(room, some, limit)
            row["cpu"], row["run"] = round(row["cpu"] + cpu, 1), row["run"] + len(some)
            if row["by"]:
                break
    finally:
        path.write_text(text, "utf-8")
        for place in (room / "cache").glob("lasca-*"):
            if is_kernel and place.name != (room / "base").read_text("utf-8"):
                shutil.rmtree(place)
    return row


def load_all() -> None:
    """Load what the tests need and takes long, but nothing of LASCA."""
    import importlib

    numbers = "numpy numba pandas scipy.special scipy.sparse scipy.optimize scipy.stats pyarrow pyarrow.parquet"
    for name in f"{numbers} pytest hypothesis hypothesis.strategies typer typer.testing rich jinja2".split():
        importlib.import_module(name)


def environment(room: Path) -> dict[str, str]:
    """Return the environment of tests: the copy's sources, the room's kernels, the real data of this checkout."""
    shared = ROOT.parent / "shared"
    return {
        "PYTHONPATH": str(room / "tree" / "src"),
        "NUMBA_CACHE_DIR": str(room / "cache"),
        "LASCA_DATA": os.environ.get("LASCA_DATA", str(shared / "data")),
        "LASCA_EXPORTS": os.environ.get("LASCA_EXPORTS", str(shared / "exports")),
    }


def make_map(room: Path, changed: list[str], parts: int = 10) -> None:
    """Copy the tree and run the suite once, in parts, with the plug-in that notes which test runs which line.

    Of test files that `changed` only these are copied and run: the sources stay as the mutants were drawn from them.
    """
    (room / "seen").mkdir(parents=True, exist_ok=True)
    if changed:
        for file in changed:
            shutil.copy(ROOT / file, room / "tree" / file)
        groups = {f"changed-{int(time.time())}": changed}
    else:
        shutil.rmtree(room / "tree", ignore_errors=True)
        shutil.copytree(ROOT, room / "tree", ignore=shutil.ignore_patterns("__pycache__", ".*", "build", "dist"))
        files = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests").glob("test_*.py"))
        files = [file for file in files if not any(word in file for word in NOT_RUN)]
        groups = {str(part): files[part::parts] for part in range(parts)}
    given = os.environ | environment(room) | {"SEEN": str(room / "seen")}
    given["PYTHONPATH"] += f":{ROOT / 'scripts'}:{os.environ.get('PYTHONPATH', '')}"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "tests_seen", "-p", "no:cacheprovider"]
    for name, group in groups.items():
        subprocess.run([*command, *group], cwd=room / "tree", env=given | {"SEEN_NAME": name}, check=False)


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["map", "run", "again", "table"])
    parser.add_argument("names", nargs="*", help="map: test files; again: parts of the names of mutants")
    parser.add_argument("--room", type=Path, default=Path("/tmp/lasca-mutants"))
    parser.add_argument("-n", type=int, default=10**9, help="run: how many")
    parser.add_argument("--only", choices=[*ROOMS], help="run: mutants of one room")
    asked = parser.parse_args()
    if asked.what == "map":
        make_map(asked.room, asked.names)
        return
    room, kept = asked.room, asked.room / "results.json"
    results = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    if asked.what == "table":
        table(results)
        return
    os.environ.update(environment(room))
    load_all()
    prepare(room)
    seen = Seen(room)
    for where, mutant in mutants(room / "tree" / "src" / "lasca"):
        old = results.get(mutant.name)
        if asked.what == "again":
            wanted = old is not None and not old["by"] and any(name in mutant.name for name in asked.names or [""])
        else:
            wanted = old is None and asked.only in (None, where)
        if wanted and asked.n > 0:
            asked.n -= 1
            kills = defaultdict(int)
            for name, row in results.items():
                kills[f"{name.split(':')[0].removesuffix('.py')} {row['by'].split('::')[0]}"] += 1
            results[mutant.name] = judge(room, mutant, seen, kills) | {"room": where}
            kept.with_suffix(".new").write_text(json.dumps(results, indent=1), "utf-8")
            kept.with_suffix(".new").replace(kept)
            row = results[mutant.name]
            run = f"{row['cpu']:6.1f} s  {row['run']:4d}/{row['tests']:4d}"
            print(f"{run}  {mutant.name}  <- {row['by'] or 'ALIVE'}", flush=True)


def prepare(room: Path) -> None:
    """Keep the kernels of the tree as it is, and its bytecode in the form that looks at sources, not at their times."""
    import compileall
    import py_compile

    if not (room / "kernels").exists():
        how = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(room / "tree", quiet=1, force=True, invalidation_mode=how)
    code = "from lasca.kernels.places import current_place; print(current_place().folder)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    place = Path(done.stdout.strip())
    (room / "base").write_text(place.name, "utf-8")
    shutil.rmtree(room / "kernels", ignore_errors=True)
    shutil.copytree(place, room / "kernels")


def table(results: dict[str, dict[str, Any]]) -> None:
    """Print how many were killed, by room, and who survived."""
    print(f"{'room':10s} mutants killed alive")
    for where in [*ROOMS, "all"]:
        rows = [row for row in results.values() if where in (row["room"], "all")]
        killed = sum(bool(row["by"]) for row in rows)
        share = f"{killed / len(rows):.1%}" if rows else ""
        print(f"{where:10s} {len(rows):7d} {killed:6d} {len(rows) - killed:5d} {share}")
    for name, row in results.items():
        if not row["by"]:
            print(f"{name}\n    {row['old']!r}\n    {row['run']} of {row['tests']} tests were run")


if __name__ == "__main__":
    main()
