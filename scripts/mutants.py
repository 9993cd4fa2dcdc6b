"""Mutation testing: change the package in 400 random places, one at a time, and see whether a test fails.

    python scripts/mutants.py map   [TESTS]   which test runs which line: the suite, or test files that changed
    python scripts/mutants.py run   [-n N]    the mutants that have no result yet, one after the other
    python scripts/mutants.py again [MUTANTS] mutants that survived, against the tests that are mapped now
    python scripts/mutants.py check [-n N]    the same with nothing changed, of N mutants: no test may fail
    python scripts/mutants.py table           how many were killed, by room; who survived

Mutants are drawn by a seed (`--seed`) from all places where a change of `mutate.py` fits, so many of each room. For
each only tests that run its line are run (of lines that are run on import: all tests of its function or file; of a
kernel, which coverage cannot see: all that run a line which names it, or a kernel that calls it), the most special and
fastest first, to the first failure, at most `--seconds` of them: a survivor has survived these. A mutant that cannot be
imported, crashes or hangs is killed. A test that kills is run once with nothing changed, too: if it fails there, it
does not count.

All tests are collected once. For a mutant the process forks, and the child gives the function that is changed its new
code before it runs tests; the file in the tree is changed, too, for processes that tests start. Of a kernel nothing
that can reach the change is taken from the cache of compiled code. Changes outside of functions, and of functions that
are run on import, are judged first, by processes that have imported nothing of LASCA yet.

The room (default: /tmp/lasca-mutants) has a copy of the tree, the map, the kernels, and `results-SEED.json`. Several
processes can `map`, and `run`, at once: each takes what no other has taken. `make coverage` sees all that the map has:
`map --counted build/coverage/seen` takes it from there.
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import gc
import importlib
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from mutate import ROOMS, SEED, Mutant, mutants, named

NOT_RUN = ("browser", "reproduce", "docs", "crowds_bench", "plugin.py", "environment")  # test files that take too long
HANGS = 180.0
"""Seconds without any work after which a process hangs: what it waits for will not come."""
ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "lasca"


class Seen:
    """Which test runs which line (as `map` found it), and how long each takes."""

    def __init__(self, room: Path) -> None:
        from coverage import CoverageData

        self.tree, self.source = room / "tree", room / "tree" / "src" / "lasca"
        self.data = CoverageData(no_disk=True)
        self.seconds: dict[str, float] = {}
        for file in sorted((room / "seen").glob("seconds.*.json"), key=lambda file: file.stat().st_mtime):
            part = CoverageData(str(file.parent / file.name.replace("seconds", "coverage").removesuffix(".json")))
            part.read()
            mapped = Path(os.path.commonpath(list(part.measured_files())))  # the tree it was seen in
            self.data.update(part, map_path=lambda path, mapped=mapped: str(self.tree / Path(path).relative_to(mapped)))
            self.seconds |= json.loads(file.read_text("utf-8"))
        self.seconds = {test: max(took, 0.01) for test, took in self.seconds.items() if took < 1000 and is_run(test)}
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
        return found | (self.around(path, mutant.line) if self.body(mutant) is None else set())

    def of_line(self, path: Path, line: int) -> set[str]:
        """Return the tests that run a line."""
        return self._lines(path).get(line, set()) & self.seconds.keys()

    def on_import(self, mutant: Mutant) -> bool:
        """Return whether the function of a mutant is run before any test is."""
        lines = self.body(mutant)
        return lines is None or any("" in self._lines(self.source / mutant.file).get(line, ()) for line in lines)

    def body(self, mutant: Mutant) -> range | None:
        """Return the lines of the outermost function whose body a mutant is in; None: it is run on import itself."""
        for node in ast.walk(ast.parse((self.source / mutant.file).read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= mutant.line <= (node.end_lineno or 0):
                return range(node.body[0].lineno, (node.end_lineno or 0) + 1)
        return None

    def around(self, path: Path, line: int) -> set[str]:
        """Return the tests of the function a line belongs to, which is run on import itself; else those of its file."""
        functions = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.FunctionDef)]
        ends = [(n.body[0].lineno, n.end_lineno or 0) for n in functions if n.lineno <= line < n.body[0].lineno]
        begin, end = ends[-1] if ends else (0, 10**9)
        within = {n for f in functions for n in range(f.body[0].lineno, (f.end_lineno or 0) + 1)}
        return {test for n in self._lines(path) if begin <= n <= end and n in within for test in self.of_line(path, n)}

    @cached_property
    def width(self) -> dict[str, int]:
        """Return how many lines of the package each test runs: the fewer, the more special it is."""
        found = defaultdict[str, int](int)
        for file in self.source.rglob("*.py"):
            for tests in self._lines(file).values():
                for test in tests:
                    found[test] += 1
        return found

    def _lines(self, path: Path) -> dict[int, set[str]]:
        if path not in self.lines:
            self.lines[path] = {line: set(tests) for line, tests in self.data.contexts_by_lineno(str(path)).items()}
        return self.lines[path]

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


def plan(tests: set[str], seen: Seen, kills: dict[str, int], module: str, enough: float) -> list[str]:
    """Return the tests in the order they are run: those most likely to kill first, in stages, each file by file."""

    def worth(test: str) -> float:
        file = test.split("::")[0]
        likely = 1 + kills.get(f"{module} {file}", 0) + 3 * (Path(module).name.split("_")[0] in file)
        return likely / (10 + seen.width[test]) ** 0.5 / (0.1 + seen.seconds[test])

    left, stages, chosen, files = enough, [2.0, 8.0, enough], list[list[str]]([[], [], []]), list[str]()
    for test in sorted(tests, key=lambda test: (-worth(test), test)):
        if seen.seconds[test] <= left:
            left -= seen.seconds[test]
            stage = next(i for i, end in enumerate(stages) if enough - left <= end + 1e-9)
            chosen[stage].append(test)
            files.append(test.split("::")[0])
    first = {file: i for i, file in reversed(list(enumerate(files)))}
    return [test for part in chosen for test in sorted(part, key=lambda test: first[test.split("::")[0]])]


class Bench:
    """A plug-in of pytest that collects tests and runs some of them in forks of the process."""

    def __init__(self, work: Callable[[Bench], None]) -> None:
        self.work, self.failed = work, ""

    def pytest_runtestloop(self, session: Any) -> bool:
        """Do the work instead of running all tests."""
        self.items = {item.nodeid: item for item in session.items}
        for file in sorted({file for patterns, _ in ROOMS.values() for one in patterns for file in SOURCE.glob(one)}):
            importlib.import_module(".".join(("lasca", *file.relative_to(SOURCE).with_suffix("").parts)))
        self.functions = defaultdict[tuple[str, str, int], list[FunctionType]](list)
        for found in gc.get_objects():
            if isinstance(found, FunctionType):
                code = found.__code__
                self.functions[code.co_filename, code.co_qualname, code.co_firstlineno].append(found)
        gc.collect()
        gc.freeze()
        self.work(self)
        return True

    def pytest_collectreport(self, report: Any) -> None:
        """Note a file that cannot be imported."""
        if report.failed:
            self.failed = self.failed or f"import of {report.nodeid}"

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the test that failed."""
        if report.failed:
            self.failed = self.failed or report.nodeid

    def run(self, tests: list[str] | None, seconds: dict[str, float], grace: float) -> str:
        """Run tests (None: all) to the first failure, and return which one failed; one that takes too long ends it."""
        items = [self.items[test] for test in (self.items if tests is None else tests) if test in self.items]
        for i, item in enumerate(items):
            (Path.cwd() / "now.txt").write_text(item.nodeid, "utf-8")
            signal.setitimer(signal.ITIMER_VIRTUAL, grace + 10 * seconds.get(item.nodeid, 1.0))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=items[i + 1] if i + 1 < len(items) else None)
            if self.failed:
                break
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return self.failed


def pytest_options(tree: Path) -> list[str]:
    """Return how pytest is called."""
    told = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=short", "--capture=sys"]
    told += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is there already
    return [*told, "-o", "addopts=", "-m", "not slow and not fuzz", f"--basetemp={tree.parent / 'scratch'}"]


def forked(tree: Path, do: Callable[[], str], limit: float) -> tuple[str, float]:
    """Do something in a fork of this process; return who failed, and the CPU seconds."""
    begin, before, said = time.monotonic(), 0.0, tree.parent / "said.txt"
    said.write_text("", encoding="utf-8")
    (tree / "now.txt").write_text("import", encoding="utf-8")
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
            resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
            log = os.open(tree.parent / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(log, stream)
            said.write_text(do(), encoding="utf-8")
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stdout.flush()
            os._exit(code)
    while True:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid:
            break
        now, at_work = time.monotonic(), seconds_of(child)
        if at_work > before:
            begin, before = now, at_work
        elif now - begin > HANGS:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it started and left
    if os.WIFSIGNALED(status):
        failed = f"{(tree / 'now.txt').read_text('utf-8')} (signal {os.WTERMSIG(status)})"
    elif os.WEXITSTATUS(status):
        raise RuntimeError(f"a child failed: {(tree.parent / 'log.txt').read_text('utf-8')[-2000:]}")
    else:
        failed = said.read_text("utf-8")
    return failed, used.ru_utime + used.ru_stime


def seconds_of(process: int) -> float:
    """Return the CPU seconds of a process and of those it started that are at their end; 0 if it is gone."""
    try:
        numbers = Path(f"/proc/{process}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return sum(int(number) for number in numbers[11:15]) / os.sysconf("SC_CLK_TCK")


def parts_of(code: CodeType) -> Iterator[tuple[CodeType, bool]]:
    """Yield the code of a module and of its classes, and of their functions; the latter with True."""
    yield code, False
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if part.co_flags & 2:  # CO_NEWLOCALS: a function
                yield part, True
            else:
                yield from parts_of(part)


def other_code(path: Path, old: str, new: str) -> tuple[CodeType, CodeType] | None:
    """Return the code of the one function that a change concerns, before and after; None if it concerns more."""
    before, after = (list(parts_of(compile(text, str(path), "exec"))) for text in (old, new))
    found = list[tuple[CodeType, CodeType]]()
    for (one, is_function), (other, _) in zip(before, after, strict=True):
        if is_function:
            found += [(one, other)] if one != other else []
        elif bare(one) != bare(other):
            return None
    if len(found) == 1 and found[0][0].co_freevars == found[0][1].co_freevars:
        return found[0]
    return None


def bare(code: CodeType) -> tuple[Any, ...]:
    """Return what code does by itself."""
    return code.co_code, code.co_names, [repr(part) for part in code.co_consts if not isinstance(part, CodeType)]


def plant(bench: Bench, mutant: Mutant, codes: tuple[CodeType, CodeType], seen: Seen) -> None:
    """Give the functions of this process that have the old code the new one; forget compiled code that can reach it."""
    old, new = codes
    found = bench.functions[old.co_filename, old.co_qualname, old.co_firstlineno]
    if not found:
        raise RuntimeError(f"no function {old.co_qualname} of {old.co_filename}")
    for function in found:
        function.__code__ = new
    if mutant.file.startswith("kernels/"):
        reached = seen.kernels.callers(Path(mutant.file).stem, mutant.function)
        for module in [module for name, module in sys.modules.items() if name.startswith("lasca.kernels.")]:
            for name, kernel in vars(module).items():
                if name in reached and hasattr(kernel, "py_func"):
                    if kernel.overloads:
                        raise RuntimeError(f"{name} was compiled while tests were collected")
                    if hasattr(kernel._cache, "disable"):
                        kernel._cache.disable()


class Judge:
    """Who plants mutants in a tree of its own and runs their tests."""

    def __init__(self, room: Path, seen: Seen, enough: float, files: list[str]) -> None:
        self.room, self.seen, self.enough, self.files = room, seen, enough, files
        self.own = room / "at" / str(os.getpid())
        self.tree = self.own / "tree"
        shutil.copytree(room / "tree", self.tree)
        if files:
            shutil.copytree(ROOT / "tests", self.tree / "tests", dirs_exist_ok=True)
        self.bench: Bench | None = None
        self.sound = dict[str, bool]()

    def is_plain(self, mutant: Mutant) -> bool:
        """Return whether a mutant can be planted in a process that has imported everything."""
        text = (self.seen.source / mutant.file).read_text("utf-8")
        codes = other_code(self.tree / "src" / "lasca" / mutant.file, text, mutant.applied(text)[0])
        return codes is not None and not self.seen.on_import(mutant)

    def plan(self, mutant: Mutant, kills: dict[str, int] | None = None) -> list[str] | None:
        """Return the tests of a mutant, in order; None: all that are collected."""
        if self.files:
            kept = [] if self.bench is None else [test for test in self.bench.items if self.sound.get(test, True)]
            return kept or None
        tests = {test for test in self.seen.tests(mutant) if self.sound.get(test, True)}
        if self.bench is not None:
            tests &= self.bench.items.keys()
        return plan(tests, self.seen, kills or {}, mutant.file.removesuffix(".py"), self.enough)

    def judge(self, mutant: Mutant, kills: dict[str, int], *, change: bool = True) -> dict[str, Any]:
        """Plant a mutant and run its tests; return what became of it."""
        path = self.tree / "src" / "lasca" / mutant.file
        text, times = path.read_text("utf-8"), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
        new, old = mutant.applied(text)
        row: dict[str, Any] = {"old": old, "tests": len(self.seen.tests(mutant)), "enough": self.enough, "cpu": 0.0}
        try:
            while True:
                chosen = self.plan(mutant, kills)
                if change:
                    path.write_text(new, "utf-8")
                row["by"], cpu = self._run(mutant, chosen, (text, new if change else text))
                row["cpu"], row["run"] = round(row["cpu"] + cpu, 1), len(chosen or ())
                path.write_text(text, "utf-8")
                os.utime(path, ns=times)
                by = row["by"].rsplit(" (signal", 1)[0]
                if not change or "::" not in by or self._is_sound(by):
                    return row
        finally:
            path.write_text(text, "utf-8")
            os.utime(path, ns=times)
            for place in (self.room / "cache").glob("lasca-*"):
                if mutant.file.startswith("kernels/") and place.name != self.base:
                    shutil.rmtree(place, ignore_errors=True)

    def _run(self, mutant: Mutant, chosen: list[str] | None, texts: tuple[str, str]) -> tuple[str, float]:
        is_kernel = mutant.file.startswith("kernels/")
        grace = 60.0 if is_kernel else 10.0
        limit = 60 + 10 * sum(self.seen.seconds.get(test, 1.0) for test in chosen or ()) + 600 * (chosen is None)
        bench = self.bench

        def patched() -> str:
            assert bench is not None
            path = self.tree / "src" / "lasca" / mutant.file
            codes = other_code(path, *texts)
            if codes:
                plant(bench, mutant, codes, self.seen)
            return bench.run(chosen, self.seen.seconds, grace)

        def imported() -> str:
            if is_kernel and texts[0] != texts[1]:
                self._take_over(mutant)
            said = list[str]()
            new = Bench(lambda bench: said.append(bench.failed or bench.run(chosen, self.seen.seconds, grace)))
            run_pytest(self.tree, self.files or sorted({test.split("::")[0] for test in chosen or ()}), new)
            return said[0] if said else new.failed or "import"

        return forked(self.tree, imported if bench is None else patched, limit)

    def _is_sound(self, test: str) -> bool:
        """Return whether a test passes where nothing is changed."""
        if test not in self.sound:
            bench = self.bench

            def alone() -> str:
                if bench is not None:
                    return bench.run([test], self.seen.seconds, 60.0)
                said = list[str]()
                run_pytest(self.tree, [test], Bench(lambda b: said.append(b.run([test], self.seen.seconds, 60.0))))
                return said[0]

            self.sound[test] = not forked(self.tree, alone, 200.0)[0]
            if not self.sound[test]:
                print(f"{test} fails with nothing changed: it does not count", flush=True)
        return self.sound[test]

    @cached_property
    def base(self) -> str:
        """Return the name of the place of the kernels as they are."""
        code = "from lasca.kernels.compiled import fingerprint; print(fingerprint())"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return f"lasca-{done.stdout.strip()}"

    def _take_over(self, mutant: Mutant) -> None:
        """Link the compiled kernels that cannot reach the mutated one into the place of the mutant's kernels."""
        code = "from lasca.kernels.compiled import fingerprint; print(fingerprint())"
        mark = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        place = self.room / "cache" / f"lasca-{mark.stdout.strip()}"
        place.mkdir(exist_ok=True)
        reached = self.seen.kernels.callers(Path(mutant.file).stem, mutant.function)
        for file in (self.room / "cache" / self.base).glob("*.nbc"):
            if file.name.split(".", 1)[1].rsplit("-", 1)[0] not in reached:
                os.link(file, place / file.name)


def run_pytest(tree: Path, files: list[str], bench: Bench) -> None:
    """Collect test files of a tree and let the bench do its work."""
    import pytest

    os.chdir(tree)
    sys.path.insert(0, str(tree / "src"))
    pytest.main([*pytest_options(tree), *files], plugins=[bench])


def load_all() -> None:
    """Load what the tests need and takes long, but nothing of LASCA; failing examples need not be made small."""
    numbers = "numpy numba pandas scipy.special scipy.sparse scipy.optimize scipy.stats pyarrow pyarrow.parquet"
    for name in f"{numbers} pytest hypothesis hypothesis.strategies typer typer.testing rich jinja2".split():
        importlib.import_module(name)
    from hypothesis import Phase, settings

    settings.register_profile("mutants", deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # a file is changed and changed back within a second
    sys.dont_write_bytecode = True


def environment(room: Path, tree: Path) -> dict[str, str]:
    """Return the environment of tests: the copy's sources, the room's kernels, the real data of this checkout."""
    shared = ROOT.parent / "shared"
    return {
        "PYTHONPATH": str(tree / "src"),
        "NUMBA_CACHE_DIR": str(room / "cache"),
        "LASCA_DATA": os.environ.get("LASCA_DATA", str(shared / "data")),
        "LASCA_EXPORTS": os.environ.get("LASCA_EXPORTS", str(shared / "exports")),
    }


def make_map(room: Path, changed: list[str], counted: Path | None, parts: int = 24) -> None:
    """Copy the tree and run the suite once, in parts, with the plug-in that notes which test runs which line.

    Of test files that `changed` only these are run, in the tree that is there, with the tests as they are now: the
    sources stay as the mutants were drawn from them. What `make coverage` has `counted` need not be run again.
    """
    (room / "seen").mkdir(parents=True, exist_ok=True)
    leave = shutil.ignore_patterns("__pycache__", ".*", "build", "dist")
    if changed:
        shutil.copytree(ROOT / "tests", room / "tree" / "tests", ignore=leave, dirs_exist_ok=True)
        groups = {f"changed-{int(time.time())}": changed}
    else:
        with claimed(room / "copied") as free:
            if free and not (room / "tree").exists():
                shutil.copytree(ROOT, room / "new", ignore=leave, dirs_exist_ok=True)
                (room / "new").rename(room / "tree")
        groups = {str(part): test_files(room / "tree")[part::parts] for part in range(parts)}
        if counted is not None:
            shutil.copytree(counted, room / "seen", dirs_exist_ok=True)
            groups = {}
    given = os.environ | environment(room, room / "tree") | {"SEEN": str(room / "seen")}
    given["PYTHONPATH"] += f":{ROOT / 'scripts'}:{os.environ.get('PYTHONPATH', '')}"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "tests_seen", "-p", "no:cacheprovider"]
    for name, group in groups.items():
        with claimed(room / "seen" / f"{name}.claim") as free:
            if free and not (room / "seen" / f"seconds.{name}.json").exists():
                subprocess.run([*command, *group], cwd=room / "tree", env=given | {"SEEN_NAME": name}, check=False)


def test_files(tree: Path) -> list[str]:
    """Return the test files of a tree that are run."""
    files = sorted(str(file.relative_to(tree)) for file in (tree / "tests").glob("test_*.py"))
    return [file for file in files if is_run(file)]


def is_run(test: str) -> bool:
    """Return whether a test, or a file of tests, is quick enough."""
    return not any(word in test.split("::")[0] for word in NOT_RUN)


@contextmanager
def claimed(file: Path) -> Iterator[bool]:
    """Say whether no other process holds a file, and hold it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free = True
        except BlockingIOError:
            is_free = False
        yield is_free


class Results:
    """What became of each mutant: a file that several processes write."""

    def __init__(self, room: Path, seed: int) -> None:
        self.file, self.lock = room / f"results-{seed}.json", room / f"results-{seed}.lock"

    def read(self) -> dict[str, dict[str, Any]]:
        """Return all of them."""
        return dict(json.loads(self.file.read_text("utf-8"))) if self.file.exists() else {}

    def add(self, name: str, row: dict[str, Any]) -> None:
        """Add one."""
        with self.lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            new = self.file.with_suffix(".new")
            new.write_text(json.dumps(self.read() | {name: row}, indent=1), "utf-8")
            new.replace(self.file)


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["map", "run", "again", "check", "table"])
    parser.add_argument("names", nargs="*", help="map: test files; again: parts of the names of mutants")
    parser.add_argument("--room", type=Path, default=Path("/tmp/lasca-mutants"))
    parser.add_argument("--counted", type=Path, help="map: the folder in which `make coverage` wrote what it saw")
    parser.add_argument("--seed", type=int, default=SEED, help="which mutants are drawn")
    parser.add_argument("-n", type=int, default=10**9, help="how many")
    parser.add_argument("--only", nargs="+", choices=[*ROOMS], default=[*ROOMS], help="run: of these rooms")
    parser.add_argument("--quick", action="store_true", help="leave those for later that are run on import")
    parser.add_argument("--seconds", type=float, default=25.0, help="of tests, as the map timed them, for each mutant")
    parser.add_argument("--tests", nargs="+", default=[], help="again: these test files as they are now, and no others")
    asked = parser.parse_intermixed_args()
    room = asked.room.resolve()
    if asked.what == "map":
        make_map(room, asked.names, asked.counted)
    elif asked.what == "table":
        table(Results(room, asked.seed).read())
    else:
        run(room, asked)


def run(room: Path, asked: argparse.Namespace) -> None:
    """Judge the mutants that are asked for."""
    os.environ.update(environment(room, room / "at" / str(os.getpid()) / "tree"))
    load_all()
    seen, results = Seen(room), Results(room, asked.seed)
    judge = Judge(room, seen, asked.seconds, asked.tests)

    def is_wanted(where: str, mutant: Mutant) -> bool:
        old = results.read().get(mutant.name)
        if asked.what == "run":
            return old is None and where in asked.only
        if asked.what == "again":
            return old is not None and not old["by"] and any(name in mutant.name for name in asked.names or [""])
        return True

    def work(those: list[tuple[str, Mutant]]) -> None:
        for where, mutant in those:
            with claimed(room / "claims" / mutant.name.replace("/", "|")[:200]) as free:
                if asked.n > 0 and free and is_wanted(where, mutant):
                    asked.n -= 1
                    one(where, mutant)

    def one(where: str, mutant: Mutant) -> None:
        kills = defaultdict[str, int](int)
        for name, row in results.read().items():
            kills[f"{name.split(':')[0].removesuffix('.py')} {row['by'].split('::')[0]}"] += 1
        row = judge.judge(mutant, kills, change=asked.what != "check") | {"room": where, "again": asked.what == "again"}
        if asked.what != "check":
            results.add(mutant.name, row)
        print(
            f"{row['cpu']:6.1f} s  {row['run']:4d}/{row['tests']:4d}  {mutant.name}  <- {row['by'] or 'ALIVE'}",
            flush=True,
        )

    those = [(where, m) for where, m in mutants(seen.source, asked.seed) if is_wanted(where, m)]
    plain = {mutant for _, mutant in those if judge.is_plain(mutant)}
    try:
        work([(where, m) for where, m in those if m not in plain and asked.what != "check" and not asked.quick])

        def rest(bench: Bench) -> None:
            judge.bench = bench
            work([(where, m) for where, m in those if m in plain])

        if asked.n > 0 and plain:
            wanted = [m for _, m in those if m in plain][: asked.n]
            files = {test.split("::")[0] for m in wanted for test in judge.plan(m) or ()}
            run_pytest(judge.tree, judge.files or sorted(files), Bench(rest))
    finally:
        os.chdir(room)
        shutil.rmtree(judge.own, ignore_errors=True)


def table(results: dict[str, dict[str, Any]]) -> None:
    """Print how many were killed, by room, and who survived."""
    print(f"{'room':10s} mutants killed, of these again alive")
    for where in [*ROOMS, "all"]:
        rows = [row for row in results.values() if where in (row["room"], "all")]
        killed = sum(bool(row["by"]) for row in rows)
        share = f"{killed / len(rows):.1%}" if rows else ""
        again = sum(bool(row["by"]) and row.get("again", False) for row in rows)
        print(f"{where:10s} {len(rows):7d} {killed:6d} {again:13d} {len(rows) - killed:5d} {share}")
    for name, row in results.items():
        if not row["by"]:
            print(f"{name}\n    {row['old']!r}\n    {row['run']} of {row['tests']} tests were run")


if __name__ == "__main__":
    main()
