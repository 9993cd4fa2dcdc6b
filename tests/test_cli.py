"""The command line as a user meets it: in processes of its own for exit codes, in this one for the rest."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import lasca.cli.commands  # registers the verbs
from lasca.cli.app import app, main
from lasca.cli.commands.tagging import _Tagging
from lasca.cli.options import settings
from lasca.corpus import CrowdCorpus
from lasca.files import check_sums

CONLL = "token eve bob\nAda B-PER B-PER\nruns O ?\n\nNew B-LOC B-LOC\nYork I-LOC O\n\n"


def run(*args: str, monkeypatch: pytest.MonkeyPatch, stdin: str | None = None) -> int:
    """Run a command in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["lasca", *args])
    try:
        main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    return 0


@pytest.fixture
def lasca_(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    return lambda *args: run(*map(str, args), monkeypatch=monkeypatch)


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    path = tmp_path / "crowd.conll"
    path.write_text(CONLL, "utf-8")
    return path


def test_every_verb_is_there() -> None:
    names = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback is not None}
    names |= {g.name for g in app.registered_groups if g.name is not None}
    assert names >= {
        *("demo", "convert", "inspect", "aggregate", "ambiguity", "train", "tag", "evaluate", "compare"),
        *("simulate", "datasets"),
    }


def test_verbs_stand_in_groups_in_the_order_people_need_them() -> None:
    panels = list(dict.fromkeys(command.rich_help_panel for command in app.registered_commands))
    assert panels == ["Start", "Read", "Infer", "Decide", "Learn", "Study"]
    assert all(group.rich_help_panel in panels for group in app.registered_groups)


def test_reproduce_says_where_it_went(lasca_, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    assert lasca_("reproduce", "-o", "x", "--quick") == 1
    assert "make reproduction" in capsys.readouterr().err


def test_inspect_sets_layers_side_by_side_and_says_when_nobody_labelled(  # type: ignore[no-untyped-def]
    lasca_, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = [[0, 12, "ORG"], [8, 12, "LOC"]]
    (tmp_path / "two.jsonl").write_text(json.dumps({"id": 1, "text": "Bank of Rome", "label": spans}) + "\n", "utf-8")
    assert lasca_("run", tmp_path / "two.jsonl", "-o", tmp_path / "out") == 2
    assert "Choose: overlap=longest" in " ".join(capsys.readouterr().err.split())  # what run takes
    assert lasca_("inspect", tmp_path / "two.jsonl", "-r", "overlap=layers") == 0
    said, _ = capsys.readouterr()
    assert said.count("What is in it") == said.count("Annotators") == 1
    assert "Layers, each a corpus of its own" in said
    given = ("-f", "doccano", "-r", "empty=all-O", "-r", "overlap=layers")
    assert lasca_("run", tmp_path / "two.jsonl", *given, "-o", tmp_path / "out") == 2
    refused = " ".join(capsys.readouterr().err.split())
    assert "overlap must be longest or first to have one corpus" in refused
    advised = re.search(r"write them with lasca (convert .*), then for each: lasca run layers/NAME -o OUT", refused)
    assert advised is not None
    monkeypatch.chdir(tmp_path)
    assert lasca_(*shlex.split(advised[1])) == 0
    assert lasca_("inspect", tmp_path / "layers" / "ORG") == 0
    capsys.readouterr()
    (tmp_path / "none.jsonl").write_text('{"id": 1, "text": "Bank of Rome", "label": []}\n', "utf-8")
    assert lasca_("inspect", tmp_path / "none.jsonl", "-f", "doccano") == 0
    assert "warning: nobody labelled anything in it" in capsys.readouterr().err
    (tmp_path / "my gold.conllu").write_text("1\tRome\tRome\tPROPN\t_\t_\t0\troot\t_\t_\n\n", "utf-8")
    assert lasca_("inspect", tmp_path / "my gold.conllu") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"lasca train '{tmp_path / 'my gold.conllu'}' --gold gold -o tagger" in said  # to be pasted


def test_layers_are_written_whole_each_into_a_folder_of_its_own(  # type: ignore[no-untyped-def]
    lasca_, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = [[0, 12, "A/B"], [8, 12, "A_B"], [5, 12, "C"]]
    (tmp_path / "two.jsonl").write_text(json.dumps({"id": 1, "text": "Bank of Rome", "label": spans}) + "\n", "utf-8")
    read = (tmp_path / "two.jsonl", "-f", "doccano", "-r", "overlap=layers", "-r", "empty=all-O")
    for verb in (
        ("convert", *read, tmp_path / "c", "-t", "lasca"),
        ("aggregate", *read, "-o", tmp_path / "a", "-m", "mv"),
    ):
        assert lasca_(*verb) == 0
        out = tmp_path / verb[0][0]
        folders = sorted(path.name for path in out.iterdir() if path.is_dir())
        assert folders == ["A_B", "A_B 2", "C"]  # two layers of one name would be one folder
        corpora = [CrowdCorpus.load(out / name if verb[0] == "convert" else out / name / "corpus") for name in folders]
        assert sorted(corpus.labels[0] for corpus in corpora) == ["B-A/B", "B-A_B", "B-C"]
        check_sums(out, "C/SHA256SUMS")
        capsys.readouterr()
        assert lasca_(*verb) == 1
        assert "allow overwriting (--overwrite)" in capsys.readouterr().err
        assert lasca_(*verb, "--overwrite") == 0  # what LASCA wrote may be replaced


def test_inspect_says_what_is_in_a_file(lasca_, crowd: Path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    assert lasca_("inspect", crowd, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["summary"]["sequences"] == 2
    assert facts["summary"]["annotations"] == 7
    assert facts["summary"]["tag scheme"] == "IOB2"
    assert [a["name"] for a in facts["annotators"]] == ["bob", "eve"]
    assert facts["load_report"]["format"] == "conll"
    assert lasca_("inspect", crowd) == 0
    assert "Krippendorff" in capsys.readouterr().out


def test_inspect_counts_spans_and_names_the_busiest_first(  # type: ignore[no-untyped-def]
    lasca_, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["token ann bob gold", "Ada B-PER B-PER B-PER", "Byron I-PER B-PER I-PER", "saw ? O O", "Rome ? B-LOC B-LOC"]
    (tmp_path / "crowd.conll").write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert lasca_("inspect", tmp_path / "crowd.conll", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert [(a["name"], a["spans"]) for a in facts["annotators"]] == [("ann", 1), ("bob", 3)]
    assert facts["types"] == [
        {"type": "LOC", "spans": 1, "golds": {"gold": 1}},
        {"type": "PER", "spans": 3, "golds": {"gold": 1}},
    ]
    assert lasca_("inspect", tmp_path / "crowd.conll") == 0
    said = capsys.readouterr().out
    assert said.index("bob") < said.index("ann ")
    assert "Spans of each type" in said
    assert "B-PER" not in said


def test_convert_there_and_back(lasca_, crowd: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from lasca.formats import read

    assert lasca_("convert", crowd, tmp_path / "t.csv", "--to", "table") == 0
    assert lasca_("convert", tmp_path / "t.csv", tmp_path / "c", "--to", "lasca") == 0
    first, last = read(crowd), read(tmp_path / "c")
    assert list(first.tokens) == list(last.tokens)
    assert first.to_table().column("label").to_pylist() == last.to_table().column("label").to_pylist()
    assert lasca_("convert", crowd, tmp_path / "c", "--to", "lasca") == 1
    assert lasca_("convert", crowd, tmp_path / "c", "--to", "lasca", "--overwrite") == 0
    assert lasca_("convert", crowd, tmp_path / "d", "--to", "nonsense") == 2


def test_the_whole_way_step_by_step(lasca_, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / "out"
    assert lasca_("aggregate", "demo", "-m", "ds", "-o", out) == 0
    assert {p.name for p in out.iterdir()} >= {
        *("labels.conll", "labels.jsonl", "labels.parquet", "annotators.csv", "corpus", "truth", "aggregate.json")
    }
    assert lasca_("aggregate", "demo", "-m", "ds", "-o", out) == 1  # it is there already
    capsys.readouterr()
    assert lasca_("ambiguity", out, "-o", tmp_path / "adjudicate", "--json", "--top", "3") == 0
    assert len(json.loads(capsys.readouterr().out)) == 3
    assert {p.suffix for p in (tmp_path / "adjudicate").iterdir()} >= {".csv", ".jsonl", ".parquet", ".json"}
    assert lasca_("train", out, "-o", tmp_path / "tagger", "--objective", "cost-sensitive") == 0
    text = tmp_path / "text.txt"
    text.write_text("Ada Lovelace visited New York .\n", "utf-8")
    capsys.readouterr()
    assert lasca_("tag", tmp_path / "tagger", "Ada runs", "--text") == 2
    assert "Text itself goes to standard input" in capsys.readouterr().err
    assert lasca_("tag", tmp_path / "tagger", text, "--text", "--proba") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines[:6]] == ["Ada", "Lovelace", "visited", "New", "York", "."]
    assert all(0 <= float(line.split("\t")[2]) <= 1 for line in lines[:6])
    assert lasca_("evaluate", out / "labels.conll", out / "labels.conll", "--json") == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["spans"]["f1"] == 1.0


def test_without_a_gold_models_are_compared_with_the_first(  # type: ignore[no-untyped-def]
    lasca_, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = replace(lasca.simulate.demo_crowd("pos"), golds={})
    corpus.save(tmp_path / "crowd")
    mv, ds = (lasca.TRUTH_MODELS[name]().fit(corpus).labels for name in ("mv", "ds"))
    assert lasca_("compare", tmp_path / "crowd", "-m", "mv", "-m", "ds", "--json") == 0
    assert [line["same"] for line in json.loads(capsys.readouterr().out)] == [1.0, pytest.approx((mv == ds).mean())]
    assert lasca_("compare", tmp_path / "crowd", "-m", "mv", "-m", "ds") == 0
    said = capsys.readouterr().out
    assert "% as mv" in said
    assert f"{100 * (mv == ds).mean():.2f}" in said


def test_a_run_says_what_its_gold_says(  # type: ignore[no-untyped-def]
    lasca_, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for gold, flatters in (("B-X O B-X B-X", False), ("B-X O B-X O", True)):
        votes = zip(("B-X B-X O", "O O O", "B-X O O", "O B-X B-X"), gold.split())
        rows = [f"w{i} {row} {label}" for i, (row, label) in enumerate(votes)]
        (tmp_path / "crowd.conll").write_text("\n".join(rows) + "\n", encoding="utf-8")
        reader = ("-r", "columns=token,a,b,c,gold", "-m", "mv", "--overwrite")
        assert lasca_("run", tmp_path / "crowd.conll", "-o", tmp_path / "out", *reader) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert f"Against the gold labels: {50 if flatters else 75}.0 % of the tokens right" in said
        assert ("flatters" in said) is flatters


def test_compare_scores_every_model(lasca_, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    assert lasca_("compare", "demo", "-m", "mv", "-m", "ds", "--json") == 0
    lines = json.loads(capsys.readouterr().out)
    assert [line["model"] for line in lines] == ["mv", "ds"]
    assert all(0.5 < line["scores"]["all"]["f1"] <= 1 for line in lines)
    assert lasca_("compare", "demo", "-m", "mv", "-m", "ds") == 0
    assert "F1" in capsys.readouterr().out


def test_demo_runs(lasca_, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    assert lasca_("demo", "-o", tmp_path / "demo") == 0
    shown = capsys.readouterr().out
    assert "reliability" in shown
    assert (tmp_path / "demo" / "labels.conll").exists()
    assert (tmp_path / "demo" / "tagger").exists()


def lasca_process(*args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "lasca", *args], input=stdin, capture_output=True, check=False)


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 100_000])
def test_settings_that_json_cannot_hold_are_text(value: str) -> None:
    assert settings([f"n={value}", "m=2"], "--param") == {"n": value, "m": 2}


@pytest.mark.skipif(sys.platform == "darwin", reason="file systems there take UTF-8 alone")
def test_file_names_need_not_be_utf8(  # type: ignore[no-untyped-def]
    lasca_, crowd: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = crowd.rename(crowd.with_name("na\udcffme.conll"))
    assert lasca_("run", odd, "-o", tmp_path / "out", "-m", "mv") == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text("utf-8"))
    assert (record["title"], record["load_report"]["source"]) == (
        "na\\udcffme.conll",
        str(odd.parent / "na\\udcffme.conll"),
    )
    assert "na\\udcffme.conll" in (tmp_path / "out" / "report.html").read_text("utf-8")
    for verb in ("run", odd, "--overwrite", "-m", "mv"), ("report", tmp_path / "out"):  # nor what is typed
        to = tmp_path / ("out" if verb[0] == "run" else "again.html")
        assert lasca_(*verb, "-o", to, "--title", "t\udcff") == 0
    assert "<title>t\\udcff" in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "<title>t\ufffd" in (tmp_path / "again.html").read_text("utf-8")
    queue = tmp_path / "que\udcffue.csv"
    item = (tmp_path / "out" / "queue.csv").read_text("utf-8").splitlines()[1].split(",")[1]
    queue.write_text(f"item,decision\n{item},1\n", "utf-8")
    assert lasca_("decide", tmp_path / "out", queue) == 0
    capsys.readouterr()
    assert lasca_("aggregate", odd, "-o", tmp_path / "o\udcffut", "-m", "mv") == 1  # Arrow cannot write there
    assert "cannot write: the name is no UTF-8" in capsys.readouterr().err


def test_names_from_files_are_no_markup(lasca_, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    rows = [["A", "B"], ["A", "A"]]
    crowd = CrowdCorpus.from_sequences(
        [["a", "b"]] * 2, {"x": rows, "y": rows}, golds={"[/b]": rows}, metadata={"folder": ["[/b]", "[red]"]}
    )
    crowd.save(tmp_path / "crowd")
    assert lasca_("inspect", tmp_path / "crowd") == 0
    assert "[/b]" in capsys.readouterr().out
    assert lasca_("compare", tmp_path / "crowd", "-m", "mv") == 0
    said = capsys.readouterr().out
    assert "Part: [/b] (2 tokens" in said
    assert "Part: [red] (2 tokens" in said


def test_blanks_that_are_no_spaces_are_part_of_a_token() -> None:
    lines = iter(["New\xa0York  B-LOC", "\u3000 O", "a\tO", "", "  ", "b"])
    sentences = _Tagging(None, False, False, None, False, 1)._sentences(lines)
    assert list(sentences) == [["New\xa0York", "\u3000", "a"], ["b"]]  # as the CoNLL reader has them


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="not on this system")
def test_standard_output_may_be_named(crowd: Path) -> None:
    done = lasca_process("convert", str(crowd), "/dev/stdout", "-t", "conll")
    assert (done.returncode, done.stdout.splitlines()[1][:3]) == (0, b"Ada"), done.stderr


@pytest.mark.parametrize(
    ("command", "code"), [("inspect demo --json >&-", 0), ("inspect nowhere 2>&-", 2), ("datasets list >&- 2>&-", 0)]
)
def test_streams_may_be_closed(command: str, code: int) -> None:
    shell = ["sh", "-c", f"exec {shlex.quote(sys.executable)} -m lasca {command}"]
    done = subprocess.run(shell, capture_output=True, check=False)
    assert (done.returncode, b"unexpected" in done.stderr) == (code, False)


def test_errors_are_one_line_and_an_exit_code(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(b'[{"id": 1, "data": {"text": "a\x1b[31m"')
    for args in (
        ["inspect", str(tmp_path / "nothing")],
        ["inspect", str(bad)],
        ["aggregate", "demo", "-m", "x", "-o", "y"],
    ):
        done = lasca_process(*args)
        assert done.returncode == 2, done.stderr
        message = done.stderr.decode()
        lines = [line for line in message.splitlines() if not line.startswith("reading ")]  # progress on a busy machine
        assert len(lines) == 1
        assert lines[0].startswith("lasca: ")
        assert "\x1b" not in message
        assert "Traceback" not in message
    assert b"Traceback" in lasca_process("--debug", "inspect", str(bad)).stderr
    assert lasca_process("inspect", "--nonsense").returncode == 2


def test_stdin_is_a_source() -> None:
    done = lasca_process("inspect", "-", "--json", stdin=CONLL.encode())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["tokens"] == 4


def test_unknown_names_are_answered_with_the_known_ones(
    lasca_, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / "out"
    for args, words in (
        (["simulate", "demo", out, "-p", "foo=1"], ("simulation must be one of groups,", "got: foo")),
        (["simulate", "demo", out, "-p", "seed=1"], ("simulation must be one of", "got: seed")),
        (["simulate", "demo", out, "-p", "groups=5"], ("groups must be a mapping or one of ca1", "got: 5")),
        (["simulate", "demo", out, "-p", "spammers=5"], ("spammers must be a mapping", "got: 5")),
        (["simulate", "demo", out, "-p", 'ranges={"high":1,"medium":1,"low":1}'], ("two numbers", "got: 1")),
        (["simulate", "demo", out, "--gold", "x"], ("no gold of that name", "There is: gold, gold2")),
        (["inspect", "demo", "-r", "foo=1"], ("option of the demo must be one of task, seed", "got: foo")),
        (["run", "demo", "-o", out, "-r", "foo=1"], ("option of the demo must be one of task, seed", "got: foo")),
        (["compare", "demo", "-m", "mv", "--by", "x"], ("no metadata column of that name", "got: x")),
    ):
        assert lasca_(*args) == 2
        said = capsys.readouterr().err
        assert all(word in said for word in words), said
    assert not out.exists()


def test_evaluate_says_which_golds_there_are_and_what_to_do(  # type: ignore[no-untyped-def]
    lasca_, crowd: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth, none = tmp_path / "truth", tmp_path / "none"
    assert lasca_("aggregate", "demo", "-m", "mv", "-o", truth) == 0
    assert lasca_("aggregate", crowd, "-m", "mv", "-o", none) == 0
    capsys.readouterr()
    for args, words in (
        ([crowd, truth], ("there are no gold labels in it", "lasca inspect")),
        ([truth, crowd], ("there are no gold labels in it", "lasca aggregate DATA -o FOLDER")),
        ([truth, truth, "--gold-name", "x"], ("no gold of that name (got: x)", "There is: gold, gold2")),
        ([none, none, "--gold-name", "x"], ("there are no gold labels", "Leave out --gold-name")),
    ):
        assert lasca_("evaluate", *args) == 2
        said = capsys.readouterr().err
        assert all(word in said for word in words), said
    assert lasca_("train", crowd, "-o", tmp_path / "tagger") == 2
    assert "lasca aggregate DATA -o FOLDER" in capsys.readouterr().err
    assert lasca_("evaluate", truth, truth, "--json") == 0  # the truth against the gold of the same folder
    assert json.loads(capsys.readouterr().out)["spans"]["f1"] < 1
    assert lasca_("evaluate", none, none, "--json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["spans"]["f1"] == 1
    assert "takes their place" in shown.err


def test_convert_replaces_a_folder_of_another_format(lasca_, crowd: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for _ in range(2):
        assert lasca_("convert", crowd, tmp_path / "hf", "--to", "huggingface", "--overwrite") == 0
    assert lasca_("convert", crowd, tmp_path / "hf", "--to", "huggingface") == 1


def test_convert_names_every_format_it_writes() -> None:
    from lasca.cli.commands.corpora import WRITTEN
    from lasca.formats import WRITERS

    assert all(re.search(rf"\b{name}\b", WRITTEN) for name in WRITERS)


def test_the_ambiguous_token_is_seen_without_colour(lasca_, crowd: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert lasca_("aggregate", crowd, "-m", "mv", "-o", tmp_path / "truth") == 0
    done = lasca_process("ambiguity", str(tmp_path / "truth"), "--method", "vote-entropy", "--fraction", "0.5")
    assert b" New [York]" in done.stdout
    assert b"\x1b" not in done.stdout


def test_a_run_with_other_settings_cannot_be_resumed_and_says_so_well(tmp_path: Path) -> None:
    from lasca.errors import StoreError
    from lasca.pipeline.checkpoints import Checkpoints

    first = Checkpoints(tmp_path / "out", {"parameters": 1, "seeds": 1}, resume=False)
    first.step("corpus", lambda: 1, lambda path: 1, lambda value, path: path.mkdir())
    first.close()
    with pytest.raises(StoreError, match="differs in parameters, seeds"):
        Checkpoints(tmp_path / "out", {"parameters": 2, "seeds": 2}, resume=True)
