"""Is this ready to be released? Builds it, and uses what was built as a stranger would, away from the repository.

    python scripts/release_check.py [--tag vX.Y.Z] [--sdist-tests TEST …]

1. CHANGELOG.md, CITATION.cff and the tag agree with the version.
2. sdist and wheel are built into dist/; the wheel has the package and nothing else.
3. In a clean environment with the wheel alone: `--help` of every command, the demo, the plug-in of tests/plugin.
4. The same with the oldest version of every dependency that pyproject.toml allows.
5. With --sdist-tests: the unpacked sdist passes these tests (files or folders of tests/).

`uv` is used where it is installed, since it is quicker; else pip.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CROWD = "#pipes\nAda|ann=PER|bob=PER|eve=O\nruns|ann=O|bob=O|eve=O\n"
COMMANDS = """
import typer.main, lasca.cli.commands
from lasca.cli.app import app
def names(command, path):
    yield path
    for name, child in getattr(command, "commands", {}).items():
        yield from names(child, [*path, name])
print("\\n".join(" ".join(path) for path in names(typer.main.get_command(app), [])))
"""


def say(words: str) -> None:
    """Print a step with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {words}", flush=True)


def run(*command: str | Path, cwd: Path, **more: str) -> str:
    """Run a command away from the repository and return what it printed; stop with everything it said if it fails."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=kept | more, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def check_papers(tag: str | None) -> str:
    """Compare the version with CHANGELOG.md, CITATION.cff and the tag."""
    version = re.search(r'__version__ = "([^"]+)"', (ROOT / "src/lasca/__init__.py").read_text("utf-8"))[1]
    headings = re.findall(r"^## (\S+)(.*)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)[1]
    if cited != version:
        sys.exit(f"CITATION.cff has the version {cited}, the package {version}")
    first, when = headings[0]
    if first != version:
        sys.exit(f"CHANGELOG.md begins with {first}, the version is {version}: they must agree")
    if tag is not None and (tag != f"v{version}" or "unreleased" in when):
        sys.exit(
            f"the tag is {tag}, CHANGELOG.md begins with {first}{when}: write the date there, and v{version} as the tag"
        )
    return version


def build() -> tuple[Path, Path]:
    """Build sdist and wheel, and look into the wheel."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", ROOT / "dist", ROOT, cwd=ROOT)
    (wheel,), (sdist,) = (ROOT / "dist").glob("*.whl"), (ROOT / "dist").glob("*.tar.gz")
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    if {top for top in tops if not top.endswith(".dist-info")} != {"lasca"}:
        sys.exit(f"the wheel holds more than the package: {sorted(tops)}")
    return wheel, sdist


def environment(folder: Path, *wanted: str | Path, oldest: bool = False) -> Path:
    """Make an environment with these packages and return its folder of programs."""
    uv, python = shutil.which("uv"), folder / "bin" / "python"
    if uv:
        run(uv, "venv", "--quiet", "--seed", "--python", sys.executable, folder, cwd=folder.parent)
        install = [uv, "pip", "install", "--quiet", "--python", python]
        run(*install, *(["--resolution", "lowest-direct"] if oldest else []), *wanted, cwd=folder.parent)
    else:
        run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
        pins = folder / "oldest.txt"
        pins.write_text("\n".join(line.split("#")[0].replace(">=", "==") for line in PROJECT["dependencies"]))
        run(python, "-m", "pip", "install", "--quiet", *(["-c", pins] if oldest else []), *wanted, cwd=folder.parent)
    return folder / "bin"


def use(programs: Path, home: Path, version: str) -> None:
    """Use LASCA as a stranger does."""
    fresh = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    lasca, python = programs / "lasca", programs / "python"
    place = run(python, "-c", "import lasca; print(lasca.__file__)", cwd=home).strip()
    if str(ROOT / "src") in place:
        sys.exit(f"the environment uses the repository: {place}")
    if run(lasca, "--version", cwd=home).strip() != f"lasca {version}":
        sys.exit("lasca --version does not say the version")
    commands = run(python, "-c", COMMANDS, cwd=home).splitlines()
    for command in commands:
        run(lasca, *command.split(), "--help", cwd=home)
    say(f"    --help of {len(commands)} commands")
    begun = time.perf_counter()
    run(lasca, "demo", cwd=home, **fresh)
    if not (home / "lasca-demo" / "report.html").is_file():
        sys.exit("the demo wrote no report")
    say(f"    demo, {time.perf_counter() - begun:.0f} s on an empty cache")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    run(python, "-m", "pip", "install", *options, ROOT / "tests" / "plugin", cwd=home)
    (home / "two.pipes").write_text(CROWD, encoding="utf-8")
    run(lasca, "aggregate", "two.pipes", "-m", "trust", "-o", "truth", cwd=home, **fresh)
    say("    a plug-in's format and model")


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag")
    parser.add_argument("--sdist-tests", nargs="+", default=())
    given = parser.parse_args()
    version = check_papers(given.tag)
    say(f"version {version}: CHANGELOG.md and CITATION.cff agree")
    wheel, sdist = build()
    say(f"built {wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB), {sdist.name} ({sdist.stat().st_size / 1e6:.1f} MB)")
    with tempfile.TemporaryDirectory(prefix="lasca-release-") as scratch:
        for name, oldest in (("clean", False), ("oldest", True)):
            say(f"environment: {name}")
            home = Path(scratch) / f"{name}-home"
            home.mkdir()
            use(environment(Path(scratch) / name, wheel, oldest=oldest), home, version)
        if given.sdist_tests:
            with tarfile.open(sdist) as archive:
                archive.extractall(scratch, filter="data")
            (source,) = Path(scratch).glob("lasca-*/")
            programs = environment(Path(scratch) / "tests", f"{source}[test]")
            said = run(programs / "python", "-m", "pytest", *given.sdist_tests, cwd=source)
            say(f"tests of the sdist: {said.strip().splitlines()[-1]}")
    say("ready")


if __name__ == "__main__":
    main()
