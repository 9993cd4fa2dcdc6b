"""The report: results to plain data (`build`), plain data to one self-contained page (`render`)."""

from lasca.report.build import build
from lasca.report.render import render

__all__ = ["build", "render"]
