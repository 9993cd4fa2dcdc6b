"""Verbs around the tagger: train, tag, evaluate."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import accumulate, islice
from json import dumps as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from lasca.cli import options
from lasca.cli.app import app
from lasca.cli.common import at_work, out, print_json, progress_bar, say, show_load_report, show_table
from lasca.cli.options import find_gold, get_corpus, settings
from lasca.errors import FormatError, ParameterError, count

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus
    from lasca.truth import Truth

BATCH = 2_000
OBJECTIVES = "likelihood, cost-sensitive, softmax-margin, agreement or agreement-f1."


@app.command()
def train(
    data: Annotated[
        str, typer.Argument(help="A folder that `lasca aggregate` or `lasca run` wrote, or data with gold labels.")
    ],
    output: options.Out,
    gold: Annotated[str | None, typer.Option(help="Learn from this gold instead of the inferred truth.")] = None,
    kind: Annotated[
        str, typer.Option(help="crf, hmm; with the extra `torch` also bilstm-crf and transformer.")
    ] = "crf",
    objective: Annotated[str, typer.Option(help=OBJECTIVES)] = "likelihood",
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the tagger.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Score it by held-out votes for its model card: it is trained thrice more.")
    ] = False,
    test: Annotated[
        str | None, typer.Option("--test", metavar="DATA", help="Score it on the gold of DATA for its model card.")
    ] = None,
    engine: options.Engine = "threads",
    overwrite: options.Overwrite = False,
) -> None:
    """Learn a tagger from an inferred truth, or from gold labels; model-card.md in its folder says how.

    DATA may be what `lasca aggregate` wrote of a corpus in shards, or with --gold such a corpus itself: a CRF learns
    from them block by block (without a model card).
    """
    from lasca.corpus.shards import is_sharded
    from lasca.files import check_output, written
    from lasca.tagger import choose_tagger, model_card
    from lasca.tagger.base import tagger_class
    from lasca.truth.parts import is_in_parts

    check_output(output, data, overwrite=overwrite)
    tagger: Any = tagger_class(kind)()
    if objective != "likelihood" or "objective" in tagger.get_params():
        tagger.set_params(objective=objective)
    tagger.set_params(**settings(param, "--param"))
    if is_in_parts(data) or (is_sharded(data) and gold is not None):
        if check or test is not None:
            raise ParameterError(
                "--check and --test", "given", "left out for a corpus in shards: it gets no model card"
            )
        _train_in_shards(data, output, tagger, gold, engine, overwrite)
        return
    corpus, target = _training_data(data, gold)
    if check and isinstance(target, str):
        raise ParameterError("--check", target, "used with an inferred truth: gold labels have no votes")
    judged = None
    if test is not None:
        expert = get_corpus(test)
        judged = (test, expert, find_gold(expert, None, test, "--test needs the labels of experts"))
    if objective != "likelihood" and tagger.get_params()["confusion"] is None:
        tagger.set_params(confusion=_confusion(corpus, target, objective, Path(data) / "confusion"))
    with progress_bar("training the tagger") as report:
        tagger.fit(corpus, target, progress=report)
    votes = None
    if check:
        with progress_bar("scoring by held-out votes") as report:
            votes = choose_tagger(corpus, target, {kind: tagger}, progress=report)
    card = model_card(tagger, corpus, target, source=written(Path(data).name), votes=votes, gold=judged)
    tagger.save(output, overwrite=overwrite, card=card)
    say(f"wrote the tagger to {output}")


def _train_in_shards(data: str, output: Path, tagger: Any, gold: str | None, engine: str, overwrite: bool) -> None:
    from lasca.confusion import DISAGREEMENTS
    from lasca.pipeline.sharded import confusion_in_shards, train_in_shards

    asked = tagger.get_params()
    if asked.get("objective", "likelihood") != "likelihood" and asked["confusion"] is None:
        if gold is not None or asked["objective"] in DISAGREEMENTS:
            raise ParameterError(
                "--objective", asked["objective"], "likelihood for a gold in shards, or where it needs votes"
            )
        with progress_bar("finding which labels are confused") as report:
            tagger.set_params(confusion=confusion_in_shards(data, output, engine=engine, progress=report))
    with progress_bar("training the tagger") as report:
        train_in_shards(data, output, tagger, gold=gold, engine=engine, overwrite=overwrite, progress=report)
    say(f"wrote the tagger to {output}")


def _read(data: str) -> tuple[CrowdCorpus, Truth | None]:
    """Return a corpus, and its truth if DATA is a folder that has one."""
    from lasca.pipeline.folder import load_truth

    return load_truth(data) if (Path(data) / "truth").is_dir() else (get_corpus(data), None)


def _training_data(data: str, gold: str | None) -> tuple[CrowdCorpus, Any]:
    corpus, truth = _read(data)
    if truth is None:
        show_load_report(corpus.load_report)
    elif gold is None:
        return corpus, truth
    hint = "Infer the truth first: lasca aggregate DATA -o FOLDER, then: lasca train FOLDER -o TAGGER"
    return corpus, find_gold(corpus, gold, data, hint)


def _confusion(corpus: CrowdCorpus, target: Any, objective: str, found: Path) -> Any:
    """Get the costs: from the disagreement of the crowd, the confusion a run found, the ambiguity, or two golds."""
    from lasca.ambiguity import find_ambiguity
    from lasca.confusion import DISAGREEMENTS, LabelConfusion, disagreement, label_confusion

    kind = DISAGREEMENTS.get(objective)
    if not isinstance(target, str):
        if kind is not None:
            return disagreement(corpus, kind)
        if found.is_dir():
            return LabelConfusion.load(found)
        return label_confusion(corpus, target, find_ambiguity(corpus, target))
    others = [name for name in corpus.golds if name != target]
    if not others:
        raise ParameterError("--objective", "needs costs", "likelihood where there is no crowd and no second gold")
    if kind is not None:
        return disagreement(corpus, kind, golds=(target, others[0]))
    return LabelConfusion.from_golds(corpus, target, others[0])


@app.command()
def tag(
    tagger: Annotated[
        Path, typer.Argument(metavar="TAGGER", help="A tagger that `lasca train` wrote; OUT/tagger of `lasca run`.")
    ],
    source: Annotated[str, typer.Argument(metavar="INPUT", help="A file, a folder, or - for stdin.")] = "-",
    output: Annotated[
        str, typer.Option("--output", "-o", help="A file, or - for stdout; for a folder as INPUT, a folder.")
    ] = "-",
    text: Annotated[
        bool, typer.Option("--text", help="INPUT is a file of text (or stdin), one sentence per line.")
    ] = False,
    spans: Annotated[
        bool,
        typer.Option(
            "--spans",
            help="INPUT is text; write JSON lines with spans by character offsets: one document per line of a file or "
            "of stdin, one per file of a folder.",
        ),
    ] = False,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="How text is cut: punctuation, whitespace or characters. Not given: whitespace with --text; with "
            "--spans punctuation, but words that the tagger knows stay whole (U.S., O'Brien)."
        ),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of the label as a third column.")] = False,
    batch: Annotated[
        int, typer.Option(min=1, help="Sentences tagged at a time; 1 answers a stream line by line.")
    ] = BATCH,
    engine: options.Engine = "threads",
    overwrite: options.Overwrite = False,
) -> None:
    """Tag sentences: one token per line (first column) with a blank line between sentences, or --text, or --spans.

    A tagger that reads context (a transformer learned from documents) takes a file for one document, unless lines
    with -DOCSTART- divide it. INPUT may be a corpus in shards (lasca shard): OUT gets the labels in parts.
    """
    from lasca.align.tokenise import tokenizer_of
    from lasca.corpus.shards import is_sharded
    from lasca.files import check_file, check_output, whole_file, whole_folder
    from lasca.tagger import load_tagger

    if is_sharded(source):
        from lasca.pipeline.sharded import tag_shards

        if output == "-" or text or spans:
            raise ParameterError("--output", output, "a folder, without --text or --spans, for a corpus in shards")
        with at_work("tagging"):
            n = tag_shards(tagger, source, output, proba=proba, engine=engine, overwrite=overwrite)
        say(f"tagged {count(n, 'sentence')} in parts into {output}")
        return
    if (text or spans) and source != "-" and not Path(source).exists():
        hint = "Text itself goes to standard input: echo TEXT | lasca tag TAGGER --text"
        raise FormatError("there is no such file or folder", path=source, hint=hint)
    rule = tokenizer if spans else tokenizer or "whitespace"
    tokenizer_of(rule)
    folder = Path(source).is_dir()
    if folder and output == "-":
        raise ParameterError("--output", output, "a folder when INPUT is one")
    if folder:
        check_output(output, source, overwrite=overwrite)
    elif output != "-":
        check_file(output, source, overwrite=overwrite)
    work = _Tagging(load_tagger(tagger), text, spans, rule, proba, batch)
    if folder:
        with at_work("tagging"), whole_folder(output, overwrite=overwrite) as scratch:
            n = work.folder(source, scratch)
        say(f"tagged {count(n, 'file')} into {output}")
        return
    if output == "-":
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as in a file, whatever a terminal can show
        with nullcontext() if out.is_terminal else at_work("tagging"):
            work.lines(_lines(source, spans), sys.stdout)
        return
    with at_work("tagging"), whole_file(output) as path, path.open("w", encoding="utf-8") as file:
        n = work.lines(_lines(source, spans), file)
    say(f"tagged {n:,} {'documents' if spans else 'sentences'} into {output}")


def _lines(source: str, alone: bool) -> Iterator[str]:
    """Give the lines of a file, or of standard input as they come; unless they stand alone, a blank one ends a file."""
    from lasca.files import lines_of
    from lasca.formats.sources import files_of

    if source != "-":
        for file in files_of(source):
            yield from lines_of(file.text())
            if not alone:
                yield ""
        return
    if sys.stdin is None:
        raise FormatError("standard input is closed", path="<stdin>", hint="Name a file, or pipe something in")
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise FormatError("not UTF-8", path="<stdin>", line=number, got=line[:40]) from error


@dataclass(frozen=True)
class _Tagging:
    """How to tag: with which tagger, from what, to what."""

    model: Any
    text: bool
    spans: bool
    tokenizer: str | None
    proba: bool
    batch: int

    def folder(self, source: str, target: Path) -> int:
        """Tag the files below a folder, each into a file of its name and .jsonl or .tsv; return their number."""
        from lasca.files import lines_of
        from lasca.formats.sources import files_of

        n = 0
        for found in files_of(source):
            path = target / f"{found.name}.{'jsonl' if self.spans else 'tsv'}"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8") as file:
                if self.spans:
                    self._write_spans([found.text()], file)
                else:
                    self.lines(iter(lines_of(found.text())), file)
            n += 1
        return n

    def lines(self, lines: Iterator[str], file: TextIO) -> int:
        """Tag lines as they come; return the number of sentences or documents."""
        if self.spans:
            return self._write_spans(lines, file)
        n = 0
        feed = self._sentences(lines)
        while part := list(islice(feed, self.batch)):
            self._write_columns(part, file)
            file.flush()
            n += len(part)
        return n

    def _sentences(self, lines: Iterator[str]) -> Iterator[list[str]]:
        from lasca.align.tokenise import tokenizer_of

        cut = tokenizer_of(self.tokenizer)
        sentence: list[str] = []
        widths: set[int] = set()
        for line in lines:
            if self.text:
                tokens = [line[a:b] for a, b in cut(line)]
                if tokens:
                    yield tokens
            elif cells := line.split("\t") if "\t" in line else [cell for cell in line.split(" ") if cell]:
                widths.add(len(cells))
                sentence.append(cells[0])
            elif sentence:
                yield sentence
                sentence = []
        if sentence:
            yield sentence
        if len(widths) > 1:
            say(
                f"warning: lines have {min(widths)} to {max(widths)} columns, and of each only the first was read as a "
                "token; if they are text, give --text or --spans",
                "yellow",
            )

    def _write_spans(self, texts: Iterable[str], file: TextIO) -> int:
        from lasca.tagger import tag_texts

        n = 0
        for n, found in enumerate(tag_texts(self.model, texts, tokenizer=self.tokenizer, batch=self.batch), 1):
            file.write(json_text(found.to_dict(), ensure_ascii=False) + "\n")
            if n % self.batch == 0:
                file.flush()
        return n

    def _write_columns(self, part: list[list[str]], file: TextIO) -> None:
        more = self.model.told_of(list(accumulate(int(tokens[0] == "-DOCSTART-") for tokens in part)))
        labels = self.model.predict(part, **more)
        if not self.proba:
            for tokens, names in zip(part, labels):
                file.write("".join(f"{token}\t{name}\n" for token, name in zip(tokens, names)) + "\n")
            return
        column = {name: i for i, name in enumerate(self.model.labels)}
        for tokens, names, rows in zip(part, labels, self.model.predict_proba(part, **more)):
            lines = (f"{t}\t{name}\t{row[column[name]]:.4f}\n" for t, name, row in zip(tokens, names, rows))
            file.write("".join(lines) + "\n")


@app.command()
def evaluate(
    gold: Annotated[str, typer.Argument(metavar="GOLD", help="Data with the gold labels.")],
    predicted: Annotated[
        str, typer.Argument(metavar="PREDICTED", help="Data with the labels to judge: the same tokens.")
    ],
    gold_name: Annotated[str | None, typer.Option(help="Which gold of GOLD; the first one if not given.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Spans must be legal by their scheme.")] = False,
    json: options.Json = False,
) -> None:
    """Score labels against gold: token accuracy, macro-F1, span precision, recall and F1."""
    from lasca import evaluate as scoring
    from lasca import schemes

    (tokens, expert), (other_tokens, labels) = _gold_labels(gold, gold_name), _labels_to_judge(predicted)
    _same_tokens(tokens, other_tokens, gold, predicted)
    token_scores = scoring.tokens(expert, labels)
    names = {name for rows in (expert, labels) for row in rows for name in row if name is not None}
    span_scores = None
    if schemes.detect(sorted(names)) is not None:
        span_scores = scoring.spans(expert, labels, mode="strict" if strict else "lenient")
    if json:
        print_json({"tokens": token_scores.to_dict(), "spans": span_scores and span_scores.to_dict()})
        return
    out.print(
        f"{token_scores.n_tokens:,} tokens: accuracy {token_scores.accuracy:.4f}, "
        f"macro-F1 {token_scores.macro_f1:.4f}, weighted F1 {token_scores.weighted_f1:.4f}"
    )
    if span_scores is not None:
        scores: dict[str, Any] = {**span_scores.per_type, "all": span_scores}
        rows = [(name, 100 * p.precision, 100 * p.recall, 100 * p.f1, p.n_gold) for name, p in scores.items()]
        show_table(f"Spans ({span_scores.mode})", ("type", "P", "R", "F1", "in gold"), rows)


Labelled = tuple[list[list[str]], list[list[str | None]]]


def _gold_labels(data: str, name: str | None) -> Labelled:
    corpus, truth = _read(data)
    if truth is None or corpus.golds or name is not None:
        hint = "GOLD needs the labels of experts; `lasca inspect` says which golds there are"
        hint = hint if truth is None else "Leave out --gold-name: it has a truth"
        return _labelled(corpus, corpus.golds[find_gold(corpus, name, data, hint)])
    say("note: there are no gold labels in GOLD; the truth inferred there takes their place", "cyan")
    return _labelled(corpus, truth.codes)


def _labels_to_judge(data: str) -> Labelled:
    corpus, truth = _read(data)
    if truth is not None:
        return _labelled(corpus, truth.labels)
    hint = "Infer the labels first: lasca aggregate DATA -o FOLDER; then name FOLDER here"
    return _labelled(corpus, corpus.golds[find_gold(corpus, None, data, hint)])


def _labelled(corpus: CrowdCorpus, codes: Any) -> Labelled:
    return [corpus.sequence(i) for i in range(corpus.n_sequences)], corpus.label_names(codes)


def _same_tokens(one: list[list[str]], other: list[list[str]], gold: str, predicted: str) -> None:
    from lasca.errors import CorpusError

    if len(one) != len(other):
        raise CorpusError(f"{gold} has {len(one)} sequences and {predicted} has {len(other)}")
    for i, (a, b) in enumerate(zip(one, other)):
        if a != b:
            raise CorpusError("the tokens differ", where=f"sequence {i + 1}", got=f"{' '.join(a)} / {' '.join(b)}")
