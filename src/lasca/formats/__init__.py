"""What users bring and what they want back: one file per format, found by name or by looking at the files.

`read` takes a file, a folder, a zip, several of them, "-" (standard input) or a data frame. `READERS` and `WRITERS`
map the names of the formats to what reads and writes them; their modules are imported when they are needed. Other
packages add formats by the entry points `lasca.formats`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lasca.corpus import CrowdCorpus, need_corpus
from lasca.errors import ParameterError
from lasca.estimator import check_choice
from lasca.formats.base import SourceFile, files_of
from lasca.formats.choose import Reader, Writer, read_any, reader_of, writer_of
from lasca.formats.layers import Layers, refuse_layers
from lasca.formats.outcome import Outcome
from lasca.plugins import Registry

__all__ = [
    "READERS", "WRITERS", "Layers", "Outcome", "Reader", "SourceFile", "Writer", "files_of", "read", "read_layers",
    "write",
]  # fmt: skip

GROUP = "lasca.formats"  # the entry points of plug-ins: see `lasca.plugins`
READERS: Registry[Reader] = Registry(
    GROUP,
    {
        name: Reader(name, f"lasca.formats.{module}")
        for name, module in {
            "label-studio": "label_studio",
            "doccano": "doccano",
            "prodigy": "prodigy",
            "huggingface": "huggingface",
            "brat": "brat",
            "webanno": "webanno",
            "spacy": "spacy_docs",
            "sagemaker": "sagemaker",
            "lighttag": "lighttag",
            "mturk-results": "mturk_results",
            "records": "records",
            "conll": "conll_columns",
            "conll-folder": "conll_folder",
            "mace": "mace_csv",
            "table": "long_table",
            "wide": "wide_table",
            "span-table": "span_table",
            "llm-batch": "llm_batch",
            "lasca": "saved",
            "jsonl": "rows",
        }.items()
    },
    reader_of,
    "format",
)

WRITERS: Registry[Writer] = Registry(
    GROUP,
    {
        name: Writer(name, f"lasca.formats.{module}", function, bool(sheets))
        for name, (module, function, *sheets) in {
            "conll": ("write_tables", "write_conll"),
            "jsonl": ("rows", "write_jsonl"),
            "parquet": ("rows", "write_parquet"),
            "huggingface": ("write_huggingface", "write"),
            "label-studio": ("write_spans", "write_tasks"),
            "doccano": ("write_spans", "write_doccano", "of sheets"),
            "prodigy": ("write_spans", "write_prodigy", "of sheets"),
            "brat": ("write_spans", "write_brat", "of sheets"),
            "webanno": ("write_cas", "write_webanno", "of sheets"),
            "xmi": ("write_cas", "write_xmi", "of sheets"),
            "cas-json": ("write_cas", "write_cas_json", "of sheets"),
            "spacy": ("write_spans", "write_docbin"),
            "offsets": ("write_spans", "write_offsets", "of sheets"),
            "mace": ("write_tables", "write_mace"),
            "table": ("write_tables", "write_long"),
            "llm-batch": ("llm_batch_write", "write"),
            "lasca": ("write_tables", "write_saved"),
        }.items()
    },
    writer_of,
    "format",
)


def read(
    source: Any,
    format: str = "auto",
    *,
    repair: bool = False,
    scheme: str | None = None,
    voters: str | Sequence[str] | None = None,
    skip_bad: bool = False,
    encoding: str | None = None,
    **options: Any,
) -> CrowdCorpus:
    """Read an export into a corpus. `corpus.load_report` says what was found, left out, changed and guessed.

    `source` is a path (or several), "-", or a pandas, polars or Arrow table; `format` one of `READERS`, or "auto".
    `repair` makes illegal tags legal, `scheme` converts all tags to a scheme (IOB2, BIOES, …); both are counted.
    `voters` says who votes: "all" (models in the export too), or names; left out, everybody but models.
    `skip_bad` leaves out files of a folder that cannot be read, and names them in the load report.
    `encoding` is that of text files which are not UTF-8 ("cp1252" for what Excel saves on Windows).
    Further options are those of the format; a wrong one gives an error that lists them.
    """
    found: Any = read_any(
        READERS, source, format, repair=repair, scheme=scheme, options=options, skip_bad=skip_bad, encoding=encoding
    )
    if voters is None:
        if not isinstance(found, Layers):
            refuse_layers(found)
        return found  # type: ignore[no-any-return]
    if isinstance(found, Layers):
        layers: Any = Layers({name: _voting(corpus, voters) for name, corpus in found.items()})
        return layers  # type: ignore[no-any-return]
    return _voting(found, voters)


def _voting(corpus: CrowdCorpus, voters: str | Sequence[str]) -> CrowdCorpus:
    """Let these annotators vote; a string is "all", or names with commas between."""
    names = voters.split(",") if isinstance(voters, str) else voters
    return corpus.with_voters(corpus.annotators if voters == "all" else [name.strip() for name in names])


def read_layers(source: Any, format: str = "auto", *, by: str = "label", **options: Any) -> Layers:
    """Read overlapping spans into layers: a corpus for each label (`by="label"`) or depth of nesting ("depth").

    The same as `read` with `overlap="layers"` or `overlap="depth"`; the options are those of `read`.
    """
    check_choice("by", by, ("label", "depth"))
    found: Any = read(source, format, overlap="layers" if by == "label" else "depth", **options)
    if not isinstance(found, Layers):
        raise ParameterError("by", by, "left out: these are labels of whole documents, which do not overlap")
    return found


def write(corpus: CrowdCorpus | Layers, path: str | Path, format: str, **parts: Any) -> None:
    """Write a corpus (or layers), or with `labels=` the inferred truth, in one of `WRITERS`; whole or not at all.

    `labels` (codes, one per token), `proba` (n_tokens, n_labels), `ambiguous` (indices of tokens, or a mask) and
    `candidates` (the competing labels of each ambiguous token) are what `Truth` and `Ambiguity` hold. The labels are
    written as they are; `legal=True` makes illegal tags legal and warns how many were not. Further parts are options of
    the format.
    """
    if format not in WRITERS:
        raise ParameterError("format", format, f"one of {', '.join(WRITERS)}")
    if isinstance(corpus, Layers):
        corpus.write(path, format, **parts)
        return
    need_corpus(corpus, "lasca.write")
    WRITERS[format](corpus, path, **parts)
