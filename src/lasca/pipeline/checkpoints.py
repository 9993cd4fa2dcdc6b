"""Checkpoints: a work folder beside OUT that keeps every finished step, so that a killed run can be taken up.

A step is done when its name stands in steps.json, which is replaced as a whole after the step's folder was. What a run
computes is read back from its checkpoint even when nothing was interrupted: a resumed run and an undisturbed one go
through the same bytes. A kept step that is damaged is done again. OUT is made inside the work folder and renamed at
the very end; then the work folder goes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from lasca.errors import LascaWarning, StoreError
from lasca.files import check_sums, swap, whole_file, write_sums

__all__ = ["Checkpoints", "Steps", "is_finished"]

T = TypeVar("T")


def _save(record: Any, path: Path) -> None:
    record.save(path)


class Steps:
    """Runs the steps in memory; keeps their times and warnings."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, Any]] = {}

    def step(
        self, name: str, make: Callable[[], T], load: Callable[[Path], T], save: Callable[[T, Path], None] = _save
    ) -> T:
        """Run a step."""
        with self.watched(name):
            return make()

    @contextmanager
    def watched(self, name: str) -> Iterator[None]:
        """Note the time a step takes and the warnings it gives."""
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield
        said = list(dict.fromkeys(str(w.message) for w in caught))
        self.steps[name] = {"seconds": round(time.perf_counter() - began, 3), "warnings": said}

    @property
    def warnings(self) -> list[str]:
        """What Python warned of in all steps."""
        return [text for step in self.steps.values() for text in step["warnings"]]

    @property
    def timings(self) -> dict[str, float]:
        """The seconds each step took (in the run in which it was done)."""
        return {name: step["seconds"] for name, step in self.steps.items()}


class Checkpoints(Steps):
    """Runs the steps with checkpoints in a work folder beside `target`."""

    def __init__(self, target: Path, key: Mapping[str, Any], *, resume: bool) -> None:
        super().__init__()
        self.target = target
        self.folder = self.place(target)
        self._lock: Any = None
        fresh = not resume or not self.folder.exists()
        try:
            if self.folder.exists() and not resume:
                self._take_lock()
                self._clear()
            self.folder.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            self._begin(json.loads(json.dumps(key)))
        except OSError as error:
            (self.close if fresh else self._release)()  # what there is to take up stays
            raise StoreError(f"cannot write: {error.strerror or error}", where=str(target)) from error
        except StoreError:
            self._release()
            raise

    @staticmethod
    def place(target: Path) -> Path:
        """Return where the checkpoints of a run into `target` are."""
        return target.parent / f".{target.name}.lasca-run"

    @classmethod
    def remove(cls, target: Path) -> None:
        """Remove the checkpoints of a run that has come to its end."""
        shutil.rmtree(cls.place(target), ignore_errors=True)

    def _take_lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # pragma: no cover  not on this system: two runs into one folder are the user's affair
            return
        if self._lock is None:
            self._lock = (self.folder / "lock").open("a")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._lock.close()
                self._lock = None
                raise StoreError("another run is writing there right now", where=str(self.target)) from error

    def _begin(self, key: dict[str, Any]) -> None:
        if (self.folder / "key.json").exists():
            before = self._read("key.json")
            changed = [name for name in {**before, **key} if before.get(name) != key.get(name)]
            if changed:
                raise StoreError(
                    f"cannot resume: the run that was stopped differs in {', '.join(sorted(changed))}",
                    where=str(self.target),
                    hint="Run without --resume to start anew",
                )
            for scratch in self.folder.glob(".*"):
                shutil.rmtree(scratch) if scratch.is_dir() else scratch.unlink()
            self.steps = self._read("steps.json") if (self.folder / "steps.json").exists() else {}
            return
        self._clear()
        self._write("key.json", key)

    def _clear(self) -> None:
        for entry in self.folder.iterdir():
            if entry.name != "lock":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def _read(self, name: str) -> dict[str, Any]:
        try:
            kept = json.loads((self.folder / name).read_bytes())
            if kept["sha256"] == _hash(kept["value"]):
                return dict(kept["value"])
        except (ValueError, TypeError, KeyError):
            pass
        raise StoreError(
            f"cannot resume: the record of the run that was stopped is damaged ({name})",
            where=str(self.folder),
            hint="Run without --resume to start anew",
        )

    def _write(self, name: str, value: Any) -> None:
        with whole_file(self.folder / name) as path:
            path.write_text(json.dumps({"value": value, "sha256": _hash(value)}, indent=1), encoding="utf-8")
            with path.open("rb+") as file:
                os.fsync(file.fileno())

    def step(
        self, name: str, make: Callable[[], T], load: Callable[[Path], T], save: Callable[[T, Path], None] = _save
    ) -> T:
        """Take a step up from its checkpoint, or do it and leave one."""
        place = self.folder / name
        if name in self.steps:
            try:
                return load(place)
            except StoreError as error:
                words = f"the step {name!r} of the run that was stopped cannot be used and is done again: {error.what}"
                warnings.warn(words, LascaWarning, stacklevel=2)
        with self.watched(name):
            made = make()
        shutil.rmtree(place, ignore_errors=True)
        with _said_clearly(self.target):
            save(made, place)
            self._write("steps.json", self.steps)
        return load(place)

    def finish(self, write: Callable[[Path], None], *, overwrite: bool) -> None:
        """Write OUT inside the work folder, then put it in its place with one rename."""
        made = self.folder / "out"
        with _said_clearly(self.target):
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            try:
                write(made)
                write_sums(made)
                swap(made, self.target, overwrite=overwrite)
            except BaseException:
                shutil.rmtree(made, ignore_errors=True)
                raise
        shutil.rmtree(self.folder, ignore_errors=True)
        self.close()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def close(self) -> None:
        """Let go of the lock; a work folder without any step in it is removed."""
        self._release()
        if not self.steps:
            shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def _said_clearly(target: Path) -> Iterator[None]:
    hint = "Finished steps are kept: make room or choose another place, then run again with --resume"
    try:
        yield
    except StoreError as error:
        if error.what.startswith("cannot write"):
            raise StoreError(error.what, where=str(target), hint=hint) from error
        raise
    except OSError as error:
        raise StoreError(f"cannot write: {error.strerror or error}", where=str(target), hint=hint) from error


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def is_finished(target: Path, key: Mapping[str, Any]) -> bool:
    """Say whether the run was stopped after OUT was in its place: then nothing is left to do."""
    try:
        check_sums(target, "run.json")
        record = json.loads((target / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, StoreError):
        return False
    same = json.loads(json.dumps({name: key[name] for name in ("versions", "parameters", "seeds", "title")}))
    source = {name: record.get("input", {}).get(name) for name in key["input"]}
    return all(record.get(name) == value for name, value in same.items()) and source == dict(key["input"])
