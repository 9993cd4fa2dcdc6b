"""Large files piece by piece: long tables (CSV, TSV, Parquet), JSON lines, CoNLL; a piece is read as a file would be.

A piece ends where a sequence ends. What one reads of a piece is what its format's reader makes of it; so the rows of a
sequence must stand together, and a header holds for all pieces. An address with a scheme (s3://…) is opened by fsspec.
Anything else – other formats, folders, zips – is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from lasca.corpus import CrowdCorpus, Strings
from lasca.errors import CorpusError, FormatError, ParameterError
from lasca.formats import READERS, conll_lines, long_table, read
from lasca.formats.base import SourceFile
from lasca.formats.choose import choose
from lasca.formats.tabular import as_strings, is_quoted, read_delimited

__all__ = ["read_pieces"]

PIECE = 32 << 20
"""About so many bytes of a file are read at a time."""
HEAD = 1 << 20
STREAMED = ("table", "jsonl", "conll")
PIECES = "Read piece by piece: whether tags are legal, and of one scheme, was not looked at."
DOCSTART = conll_lines.DOCSTART.encode()


def read_pieces(
    data: Sequence[str | Path], format: str = "auto", *, size: int = PIECE, **options: Any
) -> Iterator[CrowdCorpus]:
    """Read files into corpora, one after the other; `size` is about how many bytes of a file are read at a time."""
    for path in data:
        head = _head(path)
        kind = format if head is None or format != "auto" else choose(READERS, [head], str(path))
        if head is None or kind not in STREAMED:
            yield read(path, format, **options)
            continue
        for name in ("scheme", "repair"):
            if options.get(name):
                raise ParameterError(name, options[name], "left out where a file is read in pieces: convert it first")
        with _opened(path) as file:
            counter = _Numbers(f"{Path(head.name).stem}/" if len(data) > 1 else "")
            for piece in _pieces(kind, file, head, size, options):
                try:
                    if isinstance(piece, SourceFile):
                        corpus = READERS[kind]([piece], **options)
                    else:
                        READERS[kind].check(options)
                        corpus = long_table.read_frame(piece, **options)
                except CorpusError as error:
                    raise FormatError(f"read as {kind}: {error}", path=str(path)) from error
                report = replace(corpus.load_report, source=str(path), format=kind)
                report = replace(report, notes=(*report.notes, PIECES))
                corpus = counter.renumbered(corpus, piece) if kind == "conll" else corpus
                counts = corpus.load_report.counts
                yield replace(corpus, load_report=replace(report, counts=counts))


def _head(path: str | Path) -> SourceFile | None:
    """Return the beginning of a file as a file of its own; None for what is no single file."""
    name = str(path)
    if "://" not in name and not Path(path).is_file():
        return None
    with _opened(path) as file:
        data = file.read(HEAD)
    if data[:4] == b"PK\x03\x04":
        return None
    if data[:4] == b"PAR1" and "://" not in name:
        return SourceFile(Path(path).name, name, Path(path))
    end = data.rfind(b"\n") + 1 if len(data) == HEAD else len(data)
    return SourceFile(name.rsplit("/", 1)[-1], name, data[: end or len(data)])


def _opened(path: str | Path) -> Any:
    if "://" not in str(path):
        try:
            return Path(path).open("rb")
        except OSError as error:
            raise FormatError(f"cannot read the file: {error.strerror or error}", path=str(path)) from error
    try:
        import fsspec
    except ImportError as error:
        raise FormatError("addresses are opened by fsspec", path=str(path), hint="pip install fsspec") from error
    return fsspec.open(str(path), "rb").open()


def _pieces(kind: str, file: BinaryIO, head: SourceFile, size: int, options: dict[str, Any]) -> Iterator[Any]:
    if kind == "table":
        return _table_pieces(file, head, size, options)
    if head.head(4) == b"PAR1":
        raise FormatError("a Parquet file of sequences is not read in pieces", path=head.shown, hint="Use JSON lines")
    return _conll_pieces(file, head, size) if kind == "conll" else _text_pieces(file, head, size, (b"\n",))


# --- text -----------------------------------------------------------------------------------------------------------


def _text_pieces(file: BinaryIO, head: SourceFile, size: int, borders: tuple[bytes, ...]) -> Iterator[SourceFile]:
    """Yield a file of text in pieces that end behind a border."""
    rest, number = b"", 0
    while True:
        more = file.read(size)
        rest += more
        ends = [rest.rfind(border) + len(border) for border in borders if border in rest]
        end = max(ends) if more and ends else 0 if more else len(rest)
        if rest[:end].strip():
            number += 1
            shown = head.shown if number == 1 else f"{head.shown} (piece {number})"
            yield SourceFile(head.name, shown, rest[:end])
            rest = rest[end:]
        if not more:
            return


def _conll_pieces(file: BinaryIO, head: SourceFile, size: int) -> Iterator[SourceFile]:
    """Yield pieces with the header before each; those that go on with a document begin with DOCSTART."""
    has_header = conll_lines.read_table(head).header is not None
    header = head.head().split(b"\n", 1)[0] + b"\n" if has_header else b""
    documents = False
    for number, piece in enumerate(_text_pieces(file, head, size, (b"\n\n", b"\n\r\n"))):
        data = piece.read()
        goes_on = documents and not data.lstrip().startswith(DOCSTART)
        documents = documents or DOCSTART in data
        if number:
            data = header + (DOCSTART + b" continued\n\n" if goes_on else b"") + data
        yield replace(piece, data=data)


class _Numbers:
    """Numbers sequences and documents of CoNLL through all pieces of a file, as they would be in the whole."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.n_sequences, self.n_documents = prefix, 0, 0

    def renumbered(self, corpus: CrowdCorpus, piece: SourceFile) -> CrowdCorpus:
        """Return the corpus of a piece with the numbers it has in the file."""
        ids, metadata, report = list(corpus.sequence_ids), dict(corpus.metadata), corpus.load_report
        if ids == [str(i) for i in range(len(ids))]:
            ids = [f"{self.prefix}{self.n_sequences + i}" for i in range(len(ids))]
        self.n_sequences += len(ids)
        goes_on = DOCSTART + b" continued" in piece.read()[:HEAD]
        if "document" in metadata and all(name.isdecimal() for name in metadata["document"]):
            before = self.n_documents - goes_on
            metadata["document"] = Strings([f"{self.prefix}{before + int(name)}" for name in metadata["document"]])
        n = report.counts.get("documents", 0) - goes_on
        self.n_documents += n
        counts = {k: v for k, v in {**report.counts, "documents": n}.items() if v}
        return replace(corpus, sequence_ids=Strings(ids), metadata=metadata, load_report=replace(report, counts=counts))


# --- tables ---------------------------------------------------------------------------------------------------------


def _table_pieces(file: BinaryIO, head: SourceFile, size: int, options: dict[str, Any]) -> Iterator[Any]:
    """Yield Arrow tables of whole sequences."""
    name = long_table.sequence_column(head, options)
    rest: Any = None
    for batch in _batches(file, head, size):
        table = pa.Table.from_batches([batch])
        rest = table if rest is None else pa.concat_tables([rest, table])
        keys = _keys(rest.column(name))
        last = int(np.flatnonzero(keys != keys[-1])[-1]) + 1 if (keys != keys[-1]).any() else 0
        if last:
            yield rest.slice(0, last)
            rest = rest.slice(last).combine_chunks()
    if rest is not None and len(rest):
        yield rest


def _keys(column: Any) -> Any:
    """Return a number for the sequence of each row; a task "s1:0" is of the sequence s1."""
    text = as_strings(column)
    if column.null_count == 0:
        text = pc.replace_substring_regex(text, r":[0-9]{1,15}$", "")
    encoded = pc.fill_null(text, "").combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices if not isinstance(encoded, pa.ChunkedArray) else encoded.combine_chunks().indices)


def _batches(file: BinaryIO, head: SourceFile, size: int) -> Iterator[Any]:
    try:
        if head.head(4) == b"PAR1":
            yield from pq.ParquetFile(file).iter_batches(batch_size=max(size // 64, 1))
            return
        table, delimiter = read_delimited(head, only_header=True)
        names = table.column_names
        quoted = is_quoted(head, head.text(), delimiter)
        yield from pacsv.open_csv(
            file,
            read_options=pacsv.ReadOptions(use_threads=False, block_size=size),
            parse_options=pacsv.ParseOptions(
                delimiter=delimiter, quote_char='"' if quoted else False, newlines_in_values=quoted
            ),
            convert_options=pacsv.ConvertOptions(
                column_types={name: pa.large_string() for name in names}, strings_can_be_null=False
            ),
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError("the table cannot be read", path=head.shown, got=str(error).splitlines()[0]) from error
