"""Fixtures all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of the real data sets: LASCA_DATA, else ../shared/data beside the project."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("LASCA_DATA") or root.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no real data: set LASCA_DATA, or get it with `lasca datasets fetch NAME`")
    return folder


@pytest.fixture(scope="session")
def exports_dir() -> Path:
    """Return the folder of the real exports of annotation tools: LASCA_EXPORTS, else ../shared/exports."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("LASCA_EXPORTS") or root.parent / "shared" / "exports")
    if not folder.is_dir():
        pytest.skip("no real exports: set LASCA_EXPORTS")
    return folder


settings.register_profile("steady", deadline=None, derandomize=True)  # the same examples in every run: CI stays green
settings.register_profile("search", deadline=None)  # new examples in every run: make fuzz
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
