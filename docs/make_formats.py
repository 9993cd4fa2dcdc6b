"""Write docs/formats.md from the readers' own docstrings and options (make docs); a test says when it is out of date."""

from __future__ import annotations

import inspect
import runpy
from importlib import import_module
from pathlib import Path

from lasca.formats import READERS, WRITERS

HEAD = """# Formats

    lasca inspect export.json                       # which format it was taken for, and what the reader did
    lasca run export.json -o out -f label-studio    # name the format yourself
    lasca run export.json -o out -r overlap=longest # give the reader an option; messages name the one that helps

LASCA finds out the format and says which it took. From Python: `lasca.read(path)`, `lasca.read(path, format="NAME",
overlap="longest")`, and `corpus.load_report` for what the reader did. Several files are read as exports of one project.
This page is made from the readers' own words by `make docs`.

Written: {writers} – all of them by `lasca convert DATA PATH --to NAME`.

## Rules for all readers

- Missing, O and skipped are three different things.
- Nothing is dropped silently: what is left out, changed or guessed is counted, with examples.
- Any bytes whatever give a corpus or one clear error with file and line.
- Golds, curators and models are roles, not ordinary annotators. Models in an export do not vote unless you say so (`voters=all`).
- A token takes the export's own tokenisation where there is one.
- Offsets are read in the unit (code points, UTF-16, graphemes) that fits the quoted text.
- Tag schemes are detected. `repair=True` makes illegal tags legal and counts them, `scheme="BIOES"` converts.
- The order of files and rows never changes the result.
- In tables for people, such as `labels.csv`, a cell that a spreadsheet would take for a formula gets a quote before it. Data
  files (`table`, `mace`) are written as they are, so that they read back the same.

Options that many readers take:

| option | what it does |
|---|---|
| `unit=document` | labels of whole documents: each document is a sequence of one token |
| `overlap=longest` | of spans that overlap, keep the longest (`first`: the first) |
| `overlap=layers`, `depth` | read overlapping spans as a corpus for each label (or depth): `lasca.read_layers`; `lasca inspect`, `convert` and `aggregate` take them |
| `partial=split` | cut tokens where spans begin and end |
| `link=text` | join texts under several ids |
| `voters=all`, or names | who votes: predictions and models, too |
| `skip_bad=true` | leave out files that cannot be read, and name them |

## What is read, counted and refused

| tool | read | counted, with an example | asked about or refused by name |
|---|---|---|---|
| Label Studio | JSON, JSON-MIN, JSON lines, CSV, TSV, `completions`, annotations of a storage; Text, HyperText by global offsets, Paragraphs; Choices, Taxonomy, Rating as labels of documents | drafts, skipped, results of other kinds by their type, other controls, ground truth, scores | exports without text spans or choices; choices in JSON-MIN and CSV; user numbers in several files; spans in several texts of a task; pages without global offsets; HTML nobody labelled |
| doccano | JSONL of all versions, `label`, `labels`, `entities`, `annotations`, text under `data`; `cats` and plain labels as labels of documents | relations, comments, texts nobody labelled, empty documents | written answers |
| Prodigy | `ner_manual`, `spans`, `review` with all versions as votes; `choice` and `textcat` as labels of documents | relations, rejected, ignored, blank tokens, other values, scores of suggestions | yes or no to single spans; lines without a place for spans |
| brat | folders of annotators, or one; fragments on request | relations, events, attributes, normalisations, notes, other files | folders without a common document, or without a common label |
| INCEpTION, WebAnno | TSV 3, XMI, JSON CAS, project zips; curators as gold | relations, chains, slots, spans over sentences, files without the layer | several layers or features; Java objects; documents without a layer of spans |
| spaCy | DocBin, training tuples, JSON of version 2; `cats` as labels of documents | tokens nothing is said of, span groups | – |
| SageMaker | text manifests, classifications, consolidation requests | labels of the machine, other results | manifests that refer to files |
| LightTag | spans by whom they were made, people who saw a text and marked nothing; classifications as labels of documents | relations, spans judged by a reviewer | – |
| Hugging Face, Argilla | rows of tokens and tags, Argilla 2 rows and `to_json`; label questions as labels of documents | drafts, scores of suggestions, discarded, columns that are no metadata | numbered tags without names |
| Mechanical Turk, CrowdFlower, Toloka | spans as JSON, pieces of texts; words as labels of documents | rejected, missing | answers that are neither |
| CoNLL | columns of annotators, or one that names the annotator of each sequence; one gold column of CoNLL-2003, -X, -U, TSV 1 and 2; CSV with a row per token, grouped by its column of sentences; sentences of `word\\|tag`, or with their tags behind them; EBM-NLP | lines that are no tokens, columns left out, stacked labels, texts that stand again | columns that hold different things, or levels of nested names; texts as tokens; CoNLL-2012 |
| records (JSON), Potato, GATE Teamware | spans, tags or labels by annotator: in an object, a list, lists side by side, or a column each; authors of spans | other values of records, annotations and spans, texts in which somebody marked nothing | spans over numbers of tokens |
| wide tables | a row per text, a column per annotator; golds and models by their names; other columns as metadata | rows without a text, several labels in a cell, signs for no gold | columns that are not called as people, or that hold numbers or yes and no; several groups of columns, or questions to each person; NA |
| tables of spans | a row per span with its text and annotator, by places or quoted words | columns left out | spans without their texts; labels beside which the words they are about stand |
| MACE, long tables | items or sequences, whole texts; probabilities that add up as soft votes; unknown columns as metadata | columns left out, repeated and superseded rows | probabilities that do not add up, NA |
| GATE, UBIAI, tagtog, Kili, Dataturks, Datasaur, Argilla 1, BioC, PubTator, PubAnnotation, Rasa, RDF, Zooniverse, forms, counts of labels, XML and other marks inside the text, Office, PDF, images | – | – | by name |

- **Other dress.** Where no reader claims a file as it is, it is tried as something else: a table whose cells hold lists (as pandas
  writes them, or in Parquet) as JSON, JSON objects of plain values (as `DataFrame.to_json` writes them) as a table, records
  inside one object (by their ids, in its only list of texts, or in a list for each annotator) as records, tags behind words or
  sentences as columns. Remarks above a table's header are left out. The first note of the load report says so. Zip and gzip
  files are unpacked.
- **Free text** in the place of labels is refused: labels in the hundreds, more than one for four tokens.
- **Probabilities.** Where one annotator's own probabilities for the labels of a token add up to 1 (long tables, samples of language
  models), they are soft votes.
- **Scores.** A score of a single label leaves open what else it might be. So scores of predictions and suggestions (Label Studio, Argilla)
  and columns of certainty are counted. On request (`scores="soft"`, `probability=NAME`) they are read as soft votes: that share
  for the label, the rest evenly for all others. Scores that are not the annotator's own (Prodigy's suggestions, SageMaker's
  consolidated confidence, the score of a whole prediction) are counted or left as metadata, and never votes.

## What of the real exports is refused

`tests/test_exports.py` reads {n_files} real exports (files, folders, or several together). {n_refused} of them ({share} %) are refused
or asked about as they are. {n_options} of these are read with the option that the message names; {n_left} ({left} %) are not read at
all. Each with what its message says:

| export | the message says | read with |
|---|---|---|
{refusals}
"""


def page() -> str:
    """Return the text of docs/formats.md."""
    table = runpy.run_path(str(Path(__file__).parents[1] / "tests" / "test_exports.py"))
    cases = table["CASES"]
    refused = {case.path for case in cases if isinstance(case, table["Refused"]) and not case.options}
    read_after = {case.path for case in cases if isinstance(case, table["Read"]) and case.options} & refused
    writers = ", ".join(f"`{name}`" for name in WRITERS)
    paths = {case.path for case in cases}
    told: dict[str, list[str]] = {}
    for case in cases:
        if isinstance(case, table["Refused"]) and not case.options:
            told.setdefault(", ".join(case.says), []).append(case.path)
    with_options = {case.path: case.options for case in reversed(cases) if isinstance(case, table["Read"])}
    lines = []
    for says, where in told.items():
        options = " ".join(f"`{k}={v}`" for k, v in with_options.get(where[0], {}).items())
        lines.append(f"| {', '.join(where)} | {says.replace('|', chr(92) + '|')} | {options or '–'} |")
    left = refused - read_after
    facts = {
        "n_files": len(paths), "n_refused": len(refused), "share": round(100 * len(refused) / len(paths)),
        "n_options": len(read_after), "n_left": len(left), "left": round(100 * len(left) / len(paths)),
    }  # fmt: skip
    parts = [HEAD.format(writers=writers, refusals="\n".join(lines), **facts)]
    for name, reader in READERS.items():
        module = import_module(reader.module)
        parts.append(f"## {name}\n\n{inspect.getdoc(module)}\n")
        if reader.defaults:
            parts.append("Options: " + ", ".join(f"`{o}={default!r}`" for o, default in reader.defaults.items()) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("formats.md").write_text(page(), encoding="utf-8")
