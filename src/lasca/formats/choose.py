"""Which reader a source needs: by name, or by asking every reader how much the files look like its own."""

from __future__ import annotations

import codecs
import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from lasca.corpus import CrowdCorpus, LoadReport, free_text
from lasca.errors import CorpusError, FormatError, LascaWarning, ParameterError, PluginError, excerpt
from lasca.estimator import check_choice
from lasca.formats.base import SourceFile, files_of
from lasca.formats.doubts import refuse_doubtful, twins
from lasca.formats.layers import Layers
from lasca.formats.outcome import Sheet, outcome, sheets_of
from lasca.formats.sources import data_of
from lasca.formats.texts import SpanOptions, Spans
from lasca.plugins import load_object
from lasca.schemes import SCHEMES, convert_corpus, count_illegal, detect, detect_corpus, mixed_schemes, repair_corpus
from lasca.schemes.corpora import LOWER, PLAIN
from lasca.schemes.tables import parts_of

__all__ = ["Reader", "Writer", "choose", "read_any", "reader_of", "writer_of"]

SURE = 0.3  # below this a reader does not claim the files
NAMED = "format=… (on the command line: -f …)"
SOFT = ("lasca", "table")  # formats that hold soft votes
ASKS = 0.4  # a reader that is so sure takes the files to ask about them
MANY = 100  # files that are tried in other dresses
SIGNS = ("-", "_", "NA", "N/A", "n/a", "None", "none", "null", "NULL")  # of something left out
OUTSIDES = ("0", "o", "OTHER", "Other", "other", "OUT", "OUTSIDE", "Outside", "outside")  # what some write for O
BY_NAMES = ("auto", "brat", "webanno", "conll-folder", "doccano", "prodigy", "huggingface")  # see `file_names`
SAME, ASKED = 5, 100_000  # items, each with a label of its own, that are no chance; votes up to which that is asked
WHOLE = 200  # tokens above which one sequence is rather several
HOLES = 3  # empty cells that are no chance
LEAD = 0.04  # two readers closer than this are both candidates
NEVER_AGAIN = 20  # labels above which most should stand more than once
ODD_TAGS = (
    re.compile(r"(?P<part>[BIESLUM])[_:\u2010-\u2015].+"),
    re.compile(r"(?P<part>[BMEW])-.+"),
    re.compile(r"(?P<part>[bieslum])[-_].+"),
    re.compile(r".+[-_:](?P<part>[BIESLUMbieslum])"),
)
"""Tags of spans as others write them: B_PER, b-per, PER-B."""
PARTS = ("labels", "proba", "ambiguous", "candidates", "legal")  # what every writer takes: see `lasca.formats.outcome`


@dataclass(frozen=True)
class Reader:
    """A reader by name; its module is imported when it is first used.

    The module (or object: "package.module:name") has `read(files, **options) -> CrowdCorpus`, `sniff(files) -> float`
    and a docstring that tells of the format. That is all a plug-in needs; with `write(corpus, outcome, path,
    **options)` it is a writer as well.
    """

    name: str
    module: str
    plugin: bool = False

    def __call__(self, files: Sequence[SourceFile], **options: Any) -> CrowdCorpus:
        """Read files, after checking the names of the options."""
        self.check(options)
        result: CrowdCorpus = self._load().read(files, **options)
        if self.plugin and not isinstance(result, (CrowdCorpus, Layers)):
            said = f"read of the plug-in for {self.name} must return a CrowdCorpus"
            raise PluginError(said, where=self.module, got=type(result).__name__)
        return result

    def sniff(self, files: Sequence[SourceFile]) -> float:
        """Say how much the files look like this format: 0 to 1."""
        try:
            return float(self._load().sniff(files))
        except Exception as error:
            if not self.plugin:
                raise
            why = f"{type(error).__name__}: {error}"
            warnings.warn(LascaWarning(f"the plug-in for {self.name} ({self.module}) failed: {why}"), stacklevel=2)
            return 0.0

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options this format takes."""
        return tuple(self.defaults)

    @property
    def defaults(self) -> dict[str, Any]:
        """The options this format takes, with their defaults."""
        return _options(self._load().read, skip=1)

    @property
    def sample(self) -> str:
        """What the module says of its format, with a sample."""
        return inspect.getdoc(self._load()) or ""

    def check(self, options: Mapping[str, Any]) -> None:
        """Say which options there are when another one is given."""
        _check(self.name, self.options, options)

    def _load(self) -> Any:
        return load_object(self.module)


@dataclass(frozen=True)
class Writer:
    """A writer by name; its module is imported when it is first used.

    Its function takes the corpus, what was inferred of it (an `Outcome`, the parts checked), the path, and options. One
    of `sheets` takes these, in the place of corpus and outcome, and can write layers.
    """

    name: str
    module: str
    function: str = "write"
    sheets: bool = False

    def __call__(self, corpus: CrowdCorpus, path: str | Path, **parts: Any) -> None:
        """Write the corpus (or the truth in `labels=`), after checking the names of the options."""
        _check(self.name, self.options, parts)
        if corpus.soft is not None and "labels" not in parts and self.name not in SOFT:
            said = f"{self.name} has no place for soft votes: {len(corpus.soft):,} are left out"
            warnings.warn(LascaWarning(said), stacklevel=3)
        inferred = {name: parts.pop(name) for name in PARTS if name in parts}
        made = outcome(corpus, **inferred)
        if self.sheets:
            self._load()(sheets_of(corpus, made), path, **parts)
        else:
            self._load()(corpus, made, path, **parts)

    def write_sheets(self, sheets: list[Sheet], path: str | Path, **options: Any) -> None:
        """Write sheets, after checking the names of the options."""
        _check(self.name, _options(self._load(), skip=2), options)
        self._load()(sheets, path, **options)

    @property
    def options(self) -> tuple[str, ...]:
        """The names of what may be given beside the corpus: the parts of an outcome, and the format's own options."""
        return (*PARTS, *_options(self._load(), skip=2 if self.sheets else 3))

    def _load(self) -> Callable[..., None]:
        write: Callable[..., None] = getattr(load_object(self.module), self.function)
        return write


def reader_of(name: str, reference: str) -> Reader | None:
    """Make a reader of a plug-in, if it reads."""
    found = load_object(reference)
    if not hasattr(found, "read"):
        return None
    if not hasattr(found, "sniff"):
        raise TypeError(f"{reference} has read, but no sniff: from 0 to 1, how much files look like its own")
    return Reader(name, reference, plugin=True)


def writer_of(name: str, reference: str) -> Writer | None:
    """Make a writer of a plug-in, if it writes."""
    return Writer(name, reference) if hasattr(load_object(reference), "write") else None


def _options(function: Callable[..., Any], skip: int) -> dict[str, Any]:
    """Return parameters with their defaults; `**spans` are the options of all readers of spans."""
    own = dict(list(inspect.signature(function).parameters.items())[skip:])
    spans = own.pop("spans", None) and {
        f.name: f.default for f in fields(SpanOptions) if f.name in Spans.__annotations__
    }
    return (spans or {}) | {name: parameter.default for name, parameter in own.items()}


def _check(name: str, allowed: Iterable[str], options: Mapping[str, Any]) -> None:
    for option in options:
        if option not in allowed:
            known = f"one of {', '.join(allowed)}" if allowed else "left out: this format has none"
            raise ParameterError(f"an option of the format {name}", option, known)


def read_any(
    readers: Mapping[str, Reader],
    source: Any,
    format: str,
    *,
    repair: bool,
    scheme: str | None,
    options: Mapping[str, Any],
    skip_bad: bool = False,
    encoding: str | None = None,
) -> CrowdCorpus:
    """Read a source as a named or detected format, and see to its tags."""
    if format != "auto":
        try:
            readers[format]  # one of a plug-in that cannot be loaded says why
        except KeyError:
            raise ParameterError("format", format, f"'auto' or one of {', '.join(readers)}") from None
    aside: dict[str, list[str]] = {}
    dress = ""
    if not _is_paths(source):
        corpus, format, detected = *_from_object(readers, source, format, options), False
    else:
        files = [_recoded(file, encoding) for file in _files(source)]
        detected = format == "auto"
        files, aside = data_of(files)
        dress, files = _by_names(files) if format in BY_NAMES else ("", files)
        if detected:
            format, files, said = _chosen(readers, files, str(source))
            dress = f"{dress} {said}".strip()
        try:
            corpus, aside["bad files left out"] = _without_bad(readers[format], files, options, skip_bad)
            if "missing" not in options and "missing" in readers[format].options:
                _refuse_holes(corpus, str(source))
        except CorpusError as error:
            raise FormatError(f"read as {format}: {error}", path=str(source)) from error
    if isinstance(corpus, Layers):
        made = {
            n: _finished(_told_aside(c, aside), source, format, detected, dress, repair, scheme)
            for n, c in corpus.items()
        }
        return cast(CrowdCorpus, Layers(made))
    return _finished(_told_aside(corpus, aside), source, format, detected, dress, repair, scheme)


def _without_bad(
    reader: Reader, files: Sequence[SourceFile], options: Mapping[str, Any], skip: bool
) -> tuple[CrowdCorpus, list[str]]:
    """Read the files; if asked, leave out those that cannot be read, one after the other, and say which and why."""
    left, bad = list(files), list[str]()
    while True:
        try:
            return reader(left, **options), bad
        except FormatError as error:
            place = str(error.path or "")
            culprit = next(
                (f for f in left if place == f.shown or place.startswith((f"{f.shown}:", f"{f.shown} "))), None
            )
            if culprit is None or len(left) == 1:
                raise
            if not skip and (len(left) == 2 or "-r " in (error.hint or "")):
                raise  # there is nothing else to read, or an option that reads all of it
            if not skip:
                raise FormatError(
                    error.what,
                    path=error.path,
                    line=error.line,
                    got=error.got,
                    hint=f"{(error.hint or '').rstrip('.')}. To read the other {len(left) - 1} files without this one "
                    "set skip_bad=true (on the command line: -r skip_bad=true)".lstrip(". "),
                ) from error
            left.remove(culprit)
            bad.append(str(error))


def _told_aside(corpus: CrowdCorpus, aside: Mapping[str, Sequence[str]]) -> CrowdCorpus:
    """Count the files that were not read, by why."""
    aside = {why: said for why, said in aside.items() if said}
    report = corpus.load_report
    counts = {**report.counts, **{why: len(said) for why, said in aside.items()}}
    shown = {why: tuple(excerpt(one, 200) for one in said[:3]) for why, said in aside.items()}
    return replace(corpus, load_report=replace(report, counts=counts, examples={**report.examples, **shown}))


def _finished(
    corpus: CrowdCorpus, source: Any, format: str, detected: bool, dress: str, repair: bool, scheme: str | None
) -> CrowdCorpus:
    note = f"The format was detected: {format}." if detected else f"Read as {format}."
    note += f" {dress}" if dress else ""
    _refuse_free_text(corpus, str(source))
    if format != "lasca":  # that was read before, or made in Python
        refuse_doubtful(corpus, str(source))
    told = [*([] if format == "lasca" and corpus.load_report.notes else [note]), *corpus.load_report.notes]
    who = zip(corpus.annotators, corpus.kinds, corpus.votes)
    silent = ", ".join(name for name, kind, votes in who if kind == "model" and not votes)
    if silent:
        said = f"Models do not vote unless asked (voters=all; on the command line: -r voters=all): {silent}"
        told.append(excerpt(said, 300))
    types = {label if parts_of(label) is None else label[2:] for label in corpus.labels}
    for what, names in (("Annotators whose names", corpus.annotators), ("Labels that", sorted(types))):
        if alike := twins(names):
            told.append(f"{what} differ only in case, spaces or a stop are different ones: {alike}.")
    if any(label[:2] == "B-" for label in corpus.labels) and all(map(str.isdecimal, types - {"O", ""})):
        told.append("The labels are numbers: what they stand for is not in the file.")
    if corpus.n_sequences == 1 and corpus.n_tokens > WHOLE:
        told.append("All tokens are one sequence: nothing in the file divides them.")
    if n := _unanswered(corpus):
        told.append(f"The only label is {corpus.labels[0]}: {n:,} answers without it are taken as none, and not as no.")
    report = corpus.load_report
    named = LoadReport(
        report.source or str(source)[:200],
        report.format or format,
        report.counts,
        report.examples,
        tuple(dict.fromkeys(told)),
    )
    return _tags(replace(corpus, load_report=named), repair, scheme)


def _refuse_free_text(corpus: CrowdCorpus, shown: str) -> None:
    said, votes = free_text(corpus), corpus.n_annotations
    given = len(set(corpus.annotation_label.tolist())) if corpus.n_labels > NEVER_AGAIN and not corpus.golds else 0
    if given > max(NEVER_AGAIN, 0.9 * votes):
        said = f"nearly every label stands once only: there are {given:,} for {votes:,} votes"
    own = len(set(zip(corpus.annotation_token.tolist(), corpus.annotation_label.tolist()))) if votes < ASKED else 0
    if SAME <= own == corpus.n_labels == corpus.n_tokens == corpus.n_sequences and votes >= 2 * own:
        said = f"each of {own:,} items has a label of its own, on which all agree: rather what the item is than a label"
    if said is not None:
        hint = "Name the column or feature that holds labels"
        raise FormatError(said, path=excerpt(shown, 200), got=", ".join(corpus.labels[:4]), hint=hint)


def _refuse_holes(corpus: CrowdCorpus, shown: str) -> None:
    """Refuse tags of spans without any O where most cells are empty, and a label that stands alone where some are.

    These cells say that there is nothing to mark, or that the label does not hold.
    """
    if n := _unanswered(corpus):
        raise FormatError(
            f"the only label is {excerpt(corpus.labels[0])}, and {n:,} cells are empty, or rows left out: they may say "
            "that it does not hold, or that nobody looked",
            path=excerpt(shown, 200),
            hint="Write a label (such as no) where it does not hold; if there is none, say so with missing=? (on the "
            "command line: -r 'missing=?')",
        )
    if any(label in ("O", *OUTSIDES, *SIGNS) for label in corpus.labels):
        return
    said = [(corpus.annotation_annotator, corpus.annotation_token)]
    said += [(np.zeros_like(gold), np.arange(len(gold))[gold >= 0]) for gold in corpus.golds.values()]
    lengths, given, there = np.diff(corpus.offsets), 0, 0
    for who, tokens in said:
        sequences = corpus.token_sequence[tokens]
        own = np.unique(np.stack([who[: len(tokens)], sequences]), axis=1)[1]
        given, there = given + len(tokens), there + int(lengths[own].sum())
    absent = corpus.load_report.counts.get("positions nobody mentions", 0)
    if any(parts_of(label) is None for label in corpus.labels):  # a crowd may share the tokens of a sequence
        known = np.unique(np.concatenate([tokens for _, tokens in said]))
        bare = int(lengths[np.unique(corpus.token_sequence[known])].sum()) + absent - len(known)
        asked = 2 * bare >= max(len(known), 2 * HOLES)
    else:
        asked = there - given >= max(given, HOLES) or absent >= HOLES
    if asked:
        raise FormatError(
            f"no token is O, and {there - given + absent:,} cells are empty, or rows left out, in sequences of which "
            "others are labelled: they may say that there is nothing to mark, or that there is no label",
            path=excerpt(shown, 200),
            got=", ".join(corpus.labels[:4]),
            hint="Write a row for each token, and O where there is nothing to mark; if there is no label, say so with "
            "missing=? (on the command line: -r 'missing=?')",
        )


def _unanswered(corpus: CrowdCorpus) -> int:
    """Return how many texts have no label of an annotator, where one label is all that anybody gave; a few are none."""
    if not corpus.n_labels == 1 < corpus.n_annotators or corpus.n_tokens != corpus.n_sequences:
        return 0
    n = corpus.n_annotators * corpus.n_sequences - corpus.n_annotations
    return n if n >= HOLES else 0


def _is_paths(source: Any) -> bool:
    if isinstance(source, list | tuple):
        return all(isinstance(path, str | Path) for path in source)
    return isinstance(source, str | Path)


def _files(source: str | Path | Sequence[str | Path]) -> list[SourceFile]:
    if isinstance(source, str | Path):
        return files_of(source)
    if not source:
        raise FormatError("there is no file to read: the list of paths is empty")
    found = [file for path in source for file in files_of(path)]
    names = [file.name for file in found]
    if len(set(names)) < len(names):  # same names in different folders: tell them apart by the folder
        found = [replace(file, name=file.shown.lstrip("/\\")) for file in found]
    return sorted(found, key=lambda file: file.name)


def _by_names(files: list[SourceFile]) -> tuple[str, list[SourceFile]]:
    """Return files that are called by document and annotator as if they stood in folders, and what was done."""
    from lasca.formats.file_names import in_folders

    renamed = in_folders(files)
    if renamed is None:
        return "", files
    return "Files are called by a document and an annotator, and were read as one folder per annotator.", renamed


def _chosen(readers: Mapping[str, Reader], files: list[SourceFile], shown: str) -> tuple[str, list[SourceFile], str]:
    """Return the reader that claims the files, as they are or in another dress, the files in it, and what that is."""
    try:
        format, failed = choose(readers, files, shown), None
        if readers[format].sniff(files) > ASKS:
            return format, files, ""
    except FormatError as error:
        format, failed = "", error
    from lasca.formats.unclaimed import dresses

    for said, other in dresses(files) if len(files) <= MANY else ():
        try:
            return choose(readers, other, shown), other, said
        except FormatError:
            continue
    if failed is not None:
        raise failed
    _refuse_others(files)
    return format, files, ""


def _recoded(file: SourceFile, encoding: str | None) -> SourceFile:
    """Return a file of text in UTF-8; of UTF-16, which says so itself, without being told."""
    if encoding is None and file.head(2) not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return file
    try:
        return replace(file, data=file.read().decode(encoding or "utf-16").encode())
    except LookupError as error:
        raise ParameterError("encoding", encoding, "one that Python knows, such as cp1252, latin1 or utf-16") from error
    except (UnicodeError, ValueError, TypeError) as error:
        raise file.error(f"the file is not text in {encoding or 'UTF-16, as it says'}", got=str(error)) from error


def _refuse_others(files: Sequence[SourceFile]) -> None:
    """Refuse by name the files of tools that LASCA does not read."""
    from lasca.formats.unclaimed import other_tool

    for file in files[:20]:
        if (tool := other_tool(file)) is not None:
            raise FormatError(tool)


def choose(readers: Mapping[str, Reader], files: Sequence[SourceFile], shown: str) -> str:
    """Return the name of the reader that claims the files; none, or several, is an error that lists them."""
    if not files:
        raise FormatError("there is no file here", path=shown)
    if all(file.is_empty() or file.head(64).strip() in (b"", b"[]", b"{}") for file in files):
        what = "there is nothing in the file" if len(files) == 1 else "all files are empty"
        raise FormatError(what, path=shown, hint="Export it again: it broke off, or nothing was chosen for it")
    scores = {name: reader.sniff(files) for name, reader in readers.items()}
    best = max(scores.values())
    if best < SURE:
        from lasca.formats.unclaimed import ROWS, SHAPES, found_in, why_unknown

        _refuse_others(files)
        cause, names = why_unknown(files), f"{NAMED}, one of {', '.join(readers)}"
        holds = found_in(files[0]) if cause is None else None
        raise FormatError(
            "the format cannot be told from the files" + (f", which hold {holds}" if holds else ""),
            path=shown,
            got=", ".join(file.name for file in files[:3]),
            hint=f"{ROWS * (holds or '').startswith('a table')}Bring it into {SHAPES}; or name its format: {names}"
            if cause is None
            else f"{cause.rstrip('.')}. Otherwise name it: {names}",
        )
    close = [name for name, score in sorted(scores.items(), key=lambda item: -item[1]) if score > best - LEAD]
    if len(close) > 1:
        raise FormatError(
            f"this may be {' or '.join(close)}", path=shown, hint=f"Name the format, one of these: {NAMED}"
        )
    return close[0]


def _from_object(
    readers: Mapping[str, Reader], source: Any, format: str, options: Mapping[str, Any]
) -> tuple[CrowdCorpus, str]:
    """Read a data frame as a long table; an object of Hugging Face's `datasets`, or a list of dicts, as its rows."""
    if type(source).__module__.split(".")[0] == "datasets" or isinstance(source, list | tuple):
        if format not in ("auto", "huggingface"):
            raise ParameterError("format", format, "'auto' or 'huggingface' for a Dataset or rows")
        module: Any = importlib.import_module(readers["huggingface"].module)
        readers["huggingface"].check(options)
        return module.from_dataset(source, **options), "huggingface"
    if format not in ("auto", "table"):
        raise ParameterError("format", format, "'auto' or 'table' for a data frame")
    module = importlib.import_module(readers["table"].module)
    readers["table"].check(options)
    return module.read_frame(source, **options), "table"


def _tags(corpus: CrowdCorpus, repair: bool, scheme: str | None) -> CrowdCorpus:
    """Say which scheme the tags have; repair and convert them on request; count what is illegal."""
    if scheme is not None:
        scheme = check_choice("scheme", str(scheme).upper(), SCHEMES)
    corpus = _with_outside(_with_whole(corpus))
    found = detect_corpus(corpus)
    if found is None:
        _refuse_signs(corpus)
        corpus = _told_odd(corpus)
        return _told(corpus if scheme is None else _converted(corpus, scheme))
    annotations, golds = count_illegal(corpus)
    report, counts = corpus.load_report, dict(corpus.load_report.counts)
    if repair:
        corpus = repair_corpus(corpus)
        report, counts = corpus.load_report, dict(corpus.load_report.counts)
    else:
        counts |= {k: n for k, n in (("illegal tags", annotations), ("illegal tags in golds", golds)) if n}
    noted = replace(report, counts=counts, notes=tuple(dict.fromkeys((*report.notes, f"The tags are {found}."))))
    corpus = replace(corpus, load_report=noted)
    return _told(corpus if scheme is None else convert_corpus(corpus, scheme))


def _with_outside(corpus: CrowdCorpus) -> CrowdCorpus:
    """Read what some write for O (0, OTHER) as O, where all other labels are tags of spans."""
    tags = [label for label in corpus.labels if label not in OUTSIDES]
    if len(tags) == len(corpus.labels) or detect({*tags, "O"}) is None or not any("-" in tag for tag in tags):
        return corpus
    odd = {label: "O" for label in corpus.labels if label not in tags}
    note = f"All other labels are tags of spans, so {', '.join(odd)} is read as O."
    return _renamed(corpus, odd, "labels read as O", note)


def _with_whole(corpus: CrowdCorpus) -> CrowdCorpus:
    """Read 1.0, as pandas writes a number in a column with empty cells, as 1, where others have 1."""
    odd = {label: label[:-2] for label in corpus.labels if label[-2:] == ".0" and label[:-2] in corpus.labels}
    if not odd or not all(label.removesuffix(".0").removeprefix("-").isdecimal() for label in corpus.labels):
        return corpus
    return _renamed(corpus, odd, "labels 1.0 read as 1", f"{', '.join(odd)} are read as the same numbers without .0.")


def _renamed(corpus: CrowdCorpus, names: Mapping[str, str], what: str, note: str) -> CrowdCorpus:
    """Give labels other names, and count and note it; soft votes stay as they are."""
    if corpus.soft is not None:
        return corpus
    labels = sorted({names.get(label, label) for label in corpus.labels})
    odd = np.array([*(label in names for label in corpus.labels), False])  # the last one is for -1, no label
    code = np.array([*(labels.index(names.get(label, label)) for label in corpus.labels), -1], np.int16)
    given, report = (corpus.annotation_label, *corpus.golds.values()), corpus.load_report
    counts = {**report.counts, what: sum(int(odd[codes].sum()) for codes in given)}
    return replace(
        corpus,
        labels=tuple(labels),
        annotation_label=code[corpus.annotation_label],
        golds={name: code[gold] for name, gold in corpus.golds.items()},
        load_report=replace(report, counts=counts, notes=(*report.notes, note)),
    )


def _refuse_signs(corpus: CrowdCorpus) -> None:
    """Refuse labels that are tags but for one sign: it may say that nobody labelled the token, or that it is O."""
    signs = set(corpus.labels) & set(SIGNS)
    tags = detect(set(corpus.labels) - signs)
    if signs and tags not in (None, "IO"):
        sign = min(signs)
        raise FormatError(
            f"{sign} stands among {tags} tags: it may say that there is no label, or that there is nothing to mark",
            path=corpus.load_report.source,
            hint="Leave the cell empty (in CoNLL columns: ?) if there is no label, write O if there is nothing to mark"
            + (f"; missing={sign} reads it as no label" if corpus.load_report.format.startswith("conll") else ""),
        )


def _converted(corpus: CrowdCorpus, scheme: str) -> CrowdCorpus:
    try:
        return convert_corpus(corpus, scheme)
    except CorpusError as error:
        raise ParameterError("scheme", scheme, "None, because the labels are of no tag scheme") from error


def _told_odd(corpus: CrowdCorpus) -> CrowdCorpus:
    """Note tags of spans that are written in another way than B-PER: they count as labels of tokens."""
    labels = [label for label in corpus.labels if label not in ("O", "o")]
    for odd in ODD_TAGS:
        parts = {match["part"].upper() for label in labels if (match := odd.fullmatch(label))}
        if "B" in parts and parts & {"I", "M"} and all(map(odd.fullmatch, labels)):
            note = (
                f"The labels look like tags of spans that are written in another way ({_few(labels)}), and are read as "
                "labels of tokens. Write them as B-PER, I-PER and O to have spans kept whole and counted."
            )
            report = corpus.load_report
            return replace(corpus, load_report=replace(report, notes=(*report.notes, note)))
    tags = {label for label in labels if parts_of(label) is not None}
    if any(f"B{tag[1:]}" in tags for tag in tags if tag.startswith("I-")):
        strange = _few([label for label in labels if label not in tags])
        note = (
            f"Among tags of spans ({_few(sorted(tags))}) there are others ({strange}): all are labels of tokens. "
            "Correct these to have spans kept whole and counted."
        )
        report = corpus.load_report
        return replace(corpus, load_report=replace(report, notes=(*report.notes, note)))
    return corpus


def _told(corpus: CrowdCorpus) -> CrowdCorpus:
    """Warn, and note in the load report, if annotators use different tag schemes."""
    groups = mixed_schemes(corpus)
    if not groups:
        return corpus
    shown = "; ".join(f"{scheme}: {_few(names)}" for scheme, names in groups.items())
    by_hand = [name for scheme in (PLAIN, LOWER) for name in groups.get(scheme, ())]
    how = f"rewrite the labels of {_few(by_hand)} first, then " if by_hand else ""
    note = (
        f"Annotators use different tag schemes, so what they agree on counts as disagreement ({shown}). To bring all "
        f"into one, {how}read it with scheme=IOB2 (on the command line: -r scheme=IOB2)."
    )
    warnings.warn(LascaWarning(note), stacklevel=4)
    report = corpus.load_report
    notes = tuple(old for old in report.notes if not old.startswith("The tags are "))
    return replace(corpus, load_report=replace(report, notes=(*notes, note)))


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(excerpt(name, 30) for name in names[:4]) + more
