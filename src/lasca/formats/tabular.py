"""Tables of any origin as Arrow tables: delimited text, Parquet, data frames."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from lasca.errors import FormatError, ParameterError, typed
from lasca.formats.base import SourceFile

__all__ = ["AGAIN", "HOLDS_ROWS", "NAN", "QUOTED", "QUOTES", "as_strings", "ask_missing", "columns_of_tags", "csv_rows",
           "delimiter_of", "frame_table", "holds_lists", "holds_rows", "is_parquet", "is_quoted", "is_table",
           "looks_delimited", "no_labels", "open_parquet", "read_delimited", "read_parquet"]  # fmt: skip

NAN = ("nan", "NaN", "<NA>")  # what pandas makes of a missing cell where it is turned into text
UNCLEAR = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", "?")  # missing, as R and spreadsheets write it, or an answer
LISTED = re.compile(r"""\s*(?:\[\s*(?:['"\[{(\]]|-?\d+\s*[,\]])|\{\s*['"])""")
SEPARATOR = re.compile(r"\Asep=.\r?(?=\n)")
DELIMITERS = (",", "\t", ";", "|")
AGAIN, TWICE = "the header stands here again", "Take it out, if files were put behind one another"
HOLDS_ROWS = "a quote opens a cell that holds whole rows"
MOST_ROWS = 100  # in a byte of Parquet
QUOTES = 'A quote inside a cell is doubled and the cell quoted: the token " is written """"'

QUOTED = "A cell that holds what separates cells, such as the token ',', must stand in quotes: \",\""


def no_labels(missing: str | None) -> tuple[str, ...]:
    """Return the cells that hold no label: empty ones, what pandas writes, and those that the option names."""
    return ("", *NAN, *(cell.strip() for cell in str(missing or "").split(",")))


def ask_missing(labels: Iterable[str], missing: str | None, error: Callable[..., FormatError]) -> None:
    """Ask what NA and its like say where labels stand, and -1 among numbers, unless the option `missing` does."""
    given = set(labels) - {""}
    unclear = sorted(given & set(UNCLEAR))
    below = {label for label in given if label.startswith("-")}  # a scale from -2 to 2 is one
    unclear += ["-1"] * (below == {"-1"} and all(label.lstrip("-").isdecimal() for label in given))
    if unclear and missing is None:
        raise error(
            f"{unclear[0]} stands where annotators' labels stand: it may be an answer, or say that there is none",
            hint=f"If there is none, set missing={unclear[0]} (on the command line: {typed(f'missing={unclear[0]}')}); "
            "if it is an answer, missing= without anything",
        )


def is_parquet(file: SourceFile) -> bool:
    """Say whether the file is Parquet, by its first bytes."""
    return file.head(4) == b"PAR1"


def open_parquet(file: SourceFile) -> Any:
    """Open a Parquet file; more than a hundred rows in each of its bytes are a bomb: tokens differ."""
    source = pa.BufferReader(file.data) if isinstance(file.data, bytes) else str(file.data)
    opened = pq.ParquetFile(source)
    size = len(file.data) if isinstance(file.data, bytes) else file.data.stat().st_size
    if opened.metadata.num_rows > max(MOST_ROWS * size, 1_000_000):
        raise file.error(f"the Parquet file says that {size:,} bytes are {opened.metadata.num_rows:,} rows")
    return opened


def read_parquet(file: SourceFile, *, only_schema: bool = False) -> Any:
    """Read a Parquet file into an Arrow table (without rows for `only_schema`)."""
    try:
        opened = open_parquet(file)
        table = opened.schema_arrow.empty_table() if only_schema else opened.read()
        table.validate(full=True)  # also: is all text UTF-8
        if len(set(table.column_names)) < len(table.column_names):
            raise file.error("two columns have the same name", got=table.column_names)
        return table
    except (pa.ArrowException, OSError, ValueError) as error:
        raise file.error("the Parquet file cannot be read", got=_first_line(error)) from error


def delimiter_of(first_line: str) -> str:
    """Return the delimiter a header uses: the most frequent of comma, tab, semicolon, bar (comma if none occurs)."""
    return max(DELIMITERS, key=first_line.count)


def looks_delimited(file: SourceFile) -> bool:
    """Say whether the first line of a file is a row of several cells of text."""
    head = file.head(1 << 16)
    if b"\x00" in head and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return False
    try:
        line = _header_line(_with_newlines(file.beginning().text()))
    except FormatError:
        return False
    return delimiter_of(line) in line


def is_table(file: SourceFile) -> bool:
    """Say whether a file is delimited text by its name, or by what it is not: JSON, binary, a single column."""
    return file.name.lower().endswith((".csv", ".tsv")) or (not file.values and len(file.cells) > 2)


def holds_lists(cells: Iterable[str]) -> bool:
    """Say whether a cell holds a list or an object, as JSON or Python write them: no label looks like that."""
    return any(LISTED.match(cell) for cell in cells)


def columns_of_tags(texts: Sequence[str], columns: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns whose cells hold a tag for every word of the text in their row, with blanks between."""
    words = [len(text.split()) for text in texts]
    fit: dict[int, tuple[int, set[str]]] = {}
    for k, cells in enumerate(columns):
        given = [(cell.split(), n) for cell, n in zip(cells, words) if cell.strip()]
        if given and all(len(tags) == n for tags, n in given) and any(n > 2 for _, n in given):
            fit[k] = sum(n for _, n in given), {tag for tags, _ in given for tag in tags}
    sure = {k: kinds for k, (n, kinds) in fit.items() if n > 5 and 2 * len(kinds) <= n}
    known = set().union(*sure.values())
    return [k for k, (_, kinds) in fit.items() if k in sure or kinds <= known]


def csv_rows(file: SourceFile, *, blank: bool = False) -> list[tuple[int, list[str]]]:
    """Return the line and the cells of every row of delimited text, the header first; ragged rows are an error.

    Rows without anything in them are left out, or kept as rows without cells (`blank`).
    """
    text = _with_newlines(file.text())
    delimiter = delimiter_of(_header_line(text))
    limit = csv.field_size_limit(len(text) + 1)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        found = [(rows.line_num, row if any(cell.strip() for cell in row) else []) for row in rows]
    except csv.Error as error:
        raise file.error("this table cannot be read", rows.line_num, got=str(error)) from error
    finally:
        csv.field_size_limit(limit)
    header = next((row for _, row in found if row), None)
    if header is None:
        raise file.error("there is no row in the table")
    found, quoted = [(line, row) for line, row in found if row or blank], '"' in text
    for line, row in found:
        if row and len(row) != len(header):
            hint = QUOTED if len(row) > len(header) else None
            what = f"{len(row)} cells in a table of {len(header)} columns"
            raise file.error(what, line, got=delimiter.join(row), hint=hint)
        if row == header and (line, row) != found[0] and not blank:
            raise file.error(AGAIN, line, got=delimiter.join(row), hint=TWICE)
        for column, cell in enumerate(row) if quoted else ():
            if "\n" in cell and holds_rows(cell, delimiter, len(header), column):
                raise file.error(HOLDS_ROWS, line, got=cell, hint=QUOTES)
    return found


def _with_newlines(text: str) -> str:
    """Let lines that end in CR alone (old Mac programs) end in LF; blank the line that tells Excel what separates."""
    text = text if "\n" in text else text.replace("\r", "\n")
    return SEPARATOR.sub("", text, count=1)


def _header_line(text: str) -> str:
    return text.lstrip("\r\n").split("\n", 1)[0].rstrip("\r")


def read_delimited(file: SourceFile, *, only_header: bool = False) -> tuple[Any, str]:
    """Read CSV or TSV with a header: an Arrow table of strings, and the delimiter; ragged rows are an error."""
    text = _with_newlines((file.beginning() if only_header else file).text())
    line = _header_line(text)
    delimiter = delimiter_of(line)
    if line.startswith(delimiter) and "row" not in line:  # the index of a data frame, which has no name
        line, text = "row" + line, text.replace(line, "row" + line, 1)
    try:
        names = next(csv.reader(io.StringIO(line), delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise file.error(f"the header cannot be read: {error}", 1, got=line) from error
    if len(set(names)) < len(names) or not all(name.strip() for name in names):
        raise file.error("every column of the header needs a name of its own", 1, got=line)
    if only_header:
        return pa.table({name: pa.array([], pa.string()) for name in names}), delimiter
    if not text.endswith("\n"):
        text += "\n"
    read_options = pacsv.ReadOptions(use_threads=False, block_size=min(max(len(text) * 4 + 16, 1 << 16), 1 << 30))
    quoted = is_quoted(file, text, delimiter)
    parse_options = pacsv.ParseOptions(
        delimiter=delimiter, quote_char='"' if quoted else False, newlines_in_values=quoted
    )
    convert_options = pacsv.ConvertOptions(
        column_types={name: pa.large_string() for name in names}, strings_can_be_null=False, check_utf8=False
    )
    try:
        table = pacsv.read_csv(
            pa.BufferReader(text.encode("utf-8")),
            read_options=read_options,
            parse_options=parse_options,
            convert_options=convert_options,
        )
        rows = pc.indices_nonzero(pc.equal(table.column(0), names[0])).to_pylist() if len(names) > 1 else []
        if (
            again := next((k for k in rows if [column[k].as_py() for column in table.columns] == names), None)
        ) is not None:
            raise file.error(AGAIN, again + 2, got=line, hint=TWICE)
        if len(names) > 1 and all(name.startswith(" ") for name in names[1:]):  # a blank behind every delimiter
            trimmed = [pc.utf8_ltrim_whitespace(column) for column in table.columns]
            table = pa.table(trimmed, names=[name.strip() for name in names])
        return table, delimiter
    except (pa.ArrowException, ValueError, OverflowError) as error:
        row = re.search(r"Row #(\d+)", str(error))
        raise file.error(
            "this table cannot be read", None if row is None else int(row[1]), got=_first_line(error)
        ) from error


def is_quoted(file: SourceFile, text: str, delimiter: str) -> bool:
    """Say whether quotes enclose cells. In TSV a cell that is one quote alone says that they do not."""
    if delimiter == "\t" and ('\t"\t' in text or text.count('"') % 2):
        return False
    if text.count('"') % 2:
        line = next(i for i, row in enumerate(text.split("\n"), start=1) if row.count('"') % 2)
        raise file.error("a quote is opened and not closed", line, got=text.split("\n")[line - 1])
    return True


def holds_rows(cell: str, delimiter: str, n_columns: int, column: int) -> bool:
    """Say whether a cell (of that column) has swallowed rows: every line has as many delimiters as a row.

    A quote that is not doubled (the token ") opens a cell that ends at the next such quote, rows later.
    """
    first, *lines = [line.count(delimiter) for line in cell.split("\n")]
    whole = n_columns - 1
    return bool(lines) and whole > 0 and [first, *lines] == [whole - column, *[whole] * (len(lines) - 1), column]


def frame_table(frame: Any) -> Any:
    """Turn a pandas, polars or Arrow table into an Arrow table, by narwhals."""
    import narwhals as nw

    try:
        known = nw.from_native(frame)
        if isinstance(known, nw.LazyFrame):
            known = known.collect()
        table = known.to_arrow()
        return table.select([name for name in table.column_names if not name.startswith("__index_level_")])
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise FormatError(
            "a column of this data frame holds values of several kinds",
            got=_first_line(error),
            hint="Make it one kind first, for example frame['label'].astype('string')",
        ) from error
    except (TypeError, pa.ArrowException, ValueError, AttributeError) as error:
        raise ParameterError("source", type(frame).__name__, "a path, a data frame or a Dataset") from error


def as_strings(column: Any) -> Any:
    """Return a column as strings, nulls kept; whole numbers stored as floats lose their ".0"."""
    kind = column.type
    try:
        return _as_strings(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]))
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise FormatError(f"a column of type {kind} cannot be read as text") from error


def _as_strings(column: Any) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_floating(kind):
        whole = pc.all(pc.equal(column, pc.round(column))).as_py()
        fits = pc.all(pc.less(pc.abs(column), 2**53)).as_py()
        if whole is not False and fits is not False:
            column = pc.if_else(pc.is_nan(column), None, column).cast(pa.int64(), safe=False)
    return column.cast(pa.large_string())


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
