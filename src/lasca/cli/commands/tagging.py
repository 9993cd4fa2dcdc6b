"""Verbs around the tagger: train, tag, evaluate."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from lasca.cli.app import app
from lasca.cli.common import (
    JsonOption,
    OutOption,
    OverwriteOption,
    at_work,
    find_gold,
    get_corpus,
    out,
    print_json,
    progress_bar,
    say,
    settings,
    show_load_report,
    show_table,
)

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus

BATCH = 2_000
OBJECTIVES = "likelihood, cost-sensitive, softmax-margin, agreement or agreement-f1."


@app.command()
def train(
    data: Annotated[
        str, typer.Argument(help="A folder that `lasca aggregate` or `lasca run` wrote, or data with gold labels.")
    ],
    output: OutOption,
    gold: Annotated[str | None, typer.Option(help="Learn from this gold instead of the inferred truth.")] = None,
    objective: Annotated[str, typer.Option(help=OBJECTIVES)] = "likelihood",
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the tagger.")
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Learn a tagger from an inferred truth, or from gold labels."""
    from lasca.files import check_output
    from lasca.tagger import CrfTagger

    check_output(output, data, overwrite=overwrite)
    corpus, target = _training_data(data, gold)
    tagger = CrfTagger(objective=objective)
    tagger.set_params(**settings(param, "--param"))
    if objective != "likelihood" and tagger.get_params()["confusion"] is None:
        tagger.set_params(confusion=_confusion(corpus, target, objective))
    with progress_bar("training the tagger") as report:
        tagger.fit(corpus, target, progress=report)
    tagger.save(output, overwrite=overwrite)
    say(f"wrote the tagger to {output}")


def _training_data(data: str, gold: str | None) -> tuple[CrowdCorpus, Any]:
    from lasca.pipeline import load_truth

    if (Path(data) / "truth").is_dir():
        corpus, truth = load_truth(data)
        if gold is None:
            return corpus, truth
    else:
        corpus = get_corpus(data)
        show_load_report(corpus.load_report)
    hint = "Infer the truth first: lasca aggregate DATA -o FOLDER, then: lasca train FOLDER -o TAGGER"
    return corpus, find_gold(corpus, gold, data, hint)


def _confusion(corpus: CrowdCorpus, target: Any, objective: str) -> Any:
    """Get the costs: from the ambiguity or the disagreement of the crowd, or from two golds."""
    from lasca.ambiguity import find_ambiguity
    from lasca.confusion import DISAGREEMENTS, LabelConfusion, disagreement, label_confusion
    from lasca.errors import ParameterError

    kind = DISAGREEMENTS.get(objective)
    if not isinstance(target, str):
        if kind is not None:
            return disagreement(corpus, kind)
        return label_confusion(corpus, target, find_ambiguity(corpus, target))
    others = [name for name in corpus.golds if name != target]
    if not others:
        raise ParameterError("--objective", "needs costs", "likelihood where there is no crowd and no second gold")
    if kind is not None:
        return disagreement(corpus, kind, golds=(target, others[0]))
    return LabelConfusion.from_golds(corpus, target, others[0])


@app.command()
def tag(
    tagger: Annotated[Path, typer.Argument(help="A tagger that `lasca train` wrote; OUT/tagger of `lasca run`.")],
    source: Annotated[str, typer.Argument(metavar="INPUT", help="A file, or - for stdin.")] = "-",
    output: Annotated[str, typer.Option("--output", "-o", help="A file, or - for stdout.")] = "-",
    text: Annotated[bool, typer.Option("--text", help="INPUT is one sentence per line, split at white space.")] = False,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of the label as a third column.")] = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Tag sentences: one token per line (first column) with a blank line between sentences, or --text."""
    from lasca.files import check_file, whole_file
    from lasca.tagger import CrfTagger

    if output != "-":
        check_file(output, source, overwrite=overwrite)
    model = CrfTagger.load(tagger)
    sentences = _sentences(source, text)
    if output == "-":
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as in a file, whatever a terminal can show
        with nullcontext() if out.is_terminal else at_work("tagging"):
            _tag_all(model, sentences, sys.stdout, proba)
        return
    with at_work("tagging"), whole_file(output) as path, path.open("w", encoding="utf-8") as file:
        n = _tag_all(model, sentences, file, proba)
    say(f"tagged {n:,} sentences into {output}")


def _sentences(source: str, text: bool) -> Iterator[list[str]]:
    from lasca.formats.base import files_of

    for file in files_of(source):
        sentence: list[str] = []
        for line in file.text().splitlines():
            if text:
                if line.split():
                    yield line.split()
            elif line.strip():
                sentence.append(line.split("\t")[0] if "\t" in line else line.split()[0])
            elif sentence:
                yield sentence
                sentence = []
        if sentence:
            yield sentence


def _tag_all(model: Any, sentences: Iterable[list[str]], file: TextIO, proba: bool) -> int:
    n = 0
    batch: list[list[str]] = []
    for sentence in sentences:
        batch.append(sentence)
        if len(batch) == BATCH:
            n += _tag_batch(model, batch, file, proba)
            batch = []
    return n + _tag_batch(model, batch, file, proba)


def _tag_batch(model: Any, batch: list[list[str]], file: TextIO, proba: bool) -> int:
    if not batch:
        return 0
    labels = model.predict(batch)
    if not proba:
        for tokens, names in zip(batch, labels):
            file.write("".join(f"{token}\t{name}\n" for token, name in zip(tokens, names)) + "\n")
        return len(batch)
    column = {name: i for i, name in enumerate(model.labels)}
    for tokens, names, rows in zip(batch, labels, model.predict_proba(batch)):
        lines = (f"{t}\t{name}\t{row[column[name]]:.4f}\n" for t, name, row in zip(tokens, names, rows))
        file.write("".join(lines) + "\n")
    return len(batch)


@app.command()
def evaluate(
    gold: Annotated[str, typer.Argument(help="Data with the gold labels.")],
    predicted: Annotated[str, typer.Argument(help="Data with the labels to judge: the same tokens.")],
    gold_name: Annotated[str | None, typer.Option(help="Which gold of GOLD; the first one if not given.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Spans must be legal by their scheme.")] = False,
    json: JsonOption = False,
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
    if not (Path(data) / "truth").is_dir():
        corpus = get_corpus(data)
        hint = "GOLD needs the labels of experts; `lasca inspect` says which golds there are"
        return _labelled(corpus, corpus.golds[find_gold(corpus, name, data, hint)])
    from lasca.pipeline import load_truth

    corpus, truth = load_truth(data)
    if corpus.golds or name is not None:
        return _labelled(corpus, corpus.golds[find_gold(corpus, name, data, "Leave out --gold-name: it has a truth")])
    say("note: there are no gold labels in GOLD; the truth inferred there takes their place", "cyan")
    return _labelled(corpus, truth.codes)


def _labels_to_judge(data: str) -> Labelled:
    if (Path(data) / "truth").is_dir():
        from lasca.pipeline import load_truth

        corpus, truth = load_truth(data)
        return _labelled(corpus, truth.labels)
    corpus = get_corpus(data)
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
