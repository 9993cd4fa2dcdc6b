"""Who speaks and what is a label, in tables and records as people publish them: golds, experts, NA, 0, ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError


def votes(corpus: CrowdCorpus) -> dict[str, list[tuple[str, str]]]:
    """Return what annotators said, by their names: sequence and label."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in corpus.to_table("annotations").to_pylist():
        found.setdefault(row["annotator"], []).append((row["sequence"], row["label"]))
    return found


def lines(*rows: dict[str, Any]) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


TOKENS = [{"text": "Ada", "start": 0, "end": 3, "id": 0}, {"text": "ran", "start": 4, "end": 7, "id": 1}]
SPAN = {"start": 0, "end": 3, "label": "PER"}
PRODIGY = {"text": "Ada ran", "tokens": TOKENS, "answer": "accept", "_input_hash": 1}
AS_GOLD = {
    "ratings.csv": "item,rater,label\nq1,{gold},High\nq1,asha,High\nq2,{gold},Low\nq2,asha,High\n",
    "ratings.jsonl": lines(
        {"item": "q1", "rater": "{gold}", "label": "High"},
        {"item": "q1", "rater": "asha", "label": "Low"},
        {"item": "q2", "rater": "asha", "label": "Low"},
    ),
    "long.csv": "sequence,position,token,worker_id,label\n1,0,Ada,{gold},B-PER\n1,0,Ada,asha,O\n",
    "spans.csv": "doc_id,text,start,end,label,annotator\n1,Ada ran,0,3,PER,{gold}\n1,Ada ran,4,7,X,asha\n",
    "rows.jsonl": lines(
        {"id": "s1", "tokens": ["Ada", "ran"], "ner_tags": ["B-PER", "O"], "annotator": "{gold}"},
        {"id": "s1", "tokens": ["Ada", "ran"], "ner_tags": ["O", "O"], "annotator": "asha"},
    ),
    "records.jsonl": lines(
        {"id": 1, "text": "Ada ran", "annotator": "{gold}", "spans": [SPAN]},
        {"id": 1, "text": "Ada ran", "annotator": "asha", "spans": []},
    ),
    "inside.jsonl": lines(
        {
            "id": 1,
            "text": "Ada ran",
            "annotations": [{"annotator": "{gold}", "labels": [[0, 3, "PER"]]}, {"annotator": "asha", "labels": []}],
        }
    ),
    "beside.jsonl": lines({"id": 1, "text": "so nice", "annotators": ["asha", "{gold}"], "labels": ["good", "bad"]}),
    "doccano.jsonl": lines(
        {"id": 1, "text": "Ada ran", "label": [[0, 3, "PER"]], "username": "{gold}"},
        {"id": 1, "text": "Ada ran", "label": [[4, 7, "X"]], "username": "asha"},
    ),
    "prodigy.jsonl": lines(
        {**PRODIGY, "spans": [{**SPAN, "token_start": 0, "token_end": 0}], "_annotator_id": "{gold}"},
        {**PRODIGY, "spans": [], "_annotator_id": "asha"},
    ),
}


@pytest.mark.parametrize("name", ["gold", "Gold_Standard", "adjudicator"])
@pytest.mark.parametrize("file", AS_GOLD)
def test_a_gold_in_a_column_of_annotators_does_not_vote(tmp_path: Path, file: str, name: str) -> None:
    """A public sample has the raters gold, asha and rahul in one column: gold voted with them."""
    (tmp_path / file).write_text(AS_GOLD[file].replace("{gold}", name))
    corpus = lasca.read(tmp_path / file)
    assert (corpus.annotators, list(corpus.golds)) == (("asha",), [name])


def test_a_person_whose_name_begins_as_a_gold_votes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(AS_GOLD["ratings.csv"].replace("{gold}", "goldberg"))
    assert lasca.read(tmp_path / "a.csv").annotators == ("asha", "goldberg")


@pytest.mark.parametrize(("beside", "votes_too"), [("gold_standard", True), ("ben", False)])
def test_an_expert_decides_where_nobody_else_did(tmp_path: Path, beside: str, votes_too: bool) -> None:
    """The second round of a public project: gold_standard.jsonl, expert.jsonl, annotator.jsonl."""
    for name, label in ((beside, "PER"), ("expert", "LOC"), ("annotator", "LOC")):
        (tmp_path / f"{name}.jsonl").write_text(lines({"id": 1, "text": "Ada ran", "label": [[0, 3, label]]}))
    corpus = lasca.read(tmp_path)
    assert ("expert" in corpus.annotators) == votes_too
    assert ("expert" in corpus.golds) != votes_too
    table = tmp_path / "x.csv"
    table.write_text(f"item,rater,label\n1,{beside},a\n1,expert,b\n1,ann,b\n2,ann,a\n2,expert,a\n")
    assert ("expert" in lasca.read(table).annotators) == votes_too


def test_a_column_expert_is_a_gold_and_stays_one_if_named(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("token\trater1\trater2\texpert\nAda\tB-PER\tO\tB-PER\nran\tO\tO\tO\n")
    corpus = lasca.read(path)
    assert (corpus.annotators, list(corpus.golds)) == (("rater1", "rater2"), ["expert"])
    path.write_text("token\trater1\trater2\texpert\tgold\nAda\tB-PER\tO\tB-PER\tO\nran\tO\tO\tO\tO\n")
    assert lasca.read(path).annotators == ("expert", "rater1", "rater2")
    assert list(lasca.read(path, golds=["gold", "expert"]).golds) == ["expert", "gold"]
    path.write_text(path.read_text().replace("expert", "gold:expert"))
    assert list(lasca.read(path).golds) == ["expert", "gold"]


# --- what is a label ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "text", "left"),
    [
        ("long.csv", "task,worker,label\nt1,a,{NA}\nt1,b,neg\nt2,a,neg\nt2,b,pos\n", 3),
        ("wide.csv", "id,text,ann1,ann2\n1,good day to you,neg,{NA}\n2,so it is now,pos,neg\n", 3),
        ("mace.csv", "neg,{NA}\npos,neg\nneg,neg\n", 5),
    ],
)
@pytest.mark.parametrize("sign", ["NA", "N/A", "null"])
def test_na_among_labels_is_asked_about(tmp_path: Path, file: str, text: str, left: int, sign: str) -> None:
    """R writes NA into empty cells; it was a label of its own in long tables and MACE's files."""
    path = tmp_path / file
    path.write_text(text.replace("{NA}", sign))
    with pytest.raises(FormatError, match=rf"{sign} stands where .*missing={sign}"):
        lasca.read(path)
    assert lasca.read(path, missing=sign).n_annotations == left
    assert sign in lasca.read(path, missing="").labels


@pytest.mark.parametrize("sign", ["0", "OTHER", "o", "Outside"])
def test_what_some_write_for_o_is_o(tmp_path: Path, sign: str) -> None:
    path = tmp_path / "x.tsv"
    rows = [("Ada", "B-PER", "B-PER"), ("Love", "I-PER", sign), ("ran", sign, sign), (), ("Rome", "B-LOC", "B-LOC")]
    rows = [(*row, row[1]) if row else row for row in rows]  # the gold says what ann1 does
    path.write_text("token\tann1\tann2\tgold\n" + "".join("\t".join(row) + "\n" for row in rows))
    corpus = lasca.read(path)
    assert corpus.labels == ("B-LOC", "B-PER", "I-PER", "O")
    assert corpus.load_report.counts["labels read as O"] == 4
    assert corpus.label_names(corpus.golds["gold"]) == [["B-PER", "I-PER", "O"], ["B-LOC"]]
    assert any(f"{sign} is read as O" in note for note in corpus.load_report.notes)
    assert [label for _, label in votes(corpus)["ann2"]] == ["B-PER", "O", "O", "B-LOC"]
    path.write_text(path.read_text().replace("B-", "").replace("I-", ""))
    assert sign in lasca.read(path).labels, "labels of tokens are taken as they are"


def test_what_some_write_for_o_is_a_label_where_there_are_no_tags_or_soft_votes(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("item,rater,label\n1,ann,0\n1,ben,other\n2,ann,0\n2,ben,0\n")
    assert lasca.read(path).labels == ("0", "other")
    path.write_text(
        "doc_id,token_id,token,annotator,label,probability\n"
        "d,0,Ada,ann,B-PER,0.75\nd,0,Ada,ann,OTHER,0.25\nd,1,ran,ann,OTHER,1\nd,0,Ada,ben,B-PER,1\nd,1,ran,ben,OTHER,1\n"
    )
    corpus = lasca.read(path)
    assert corpus.labels == ("B-PER", "OTHER")
    assert corpus.soft is not None


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("x.tsv", "token\tann1\tann2\nAda\tB-PER\t\nran\t\t\nRome\tB-LOC\tB-LOC\nwins\t\t\n"),
        ("x.csv", "token,ann1,ann2\nBo,B-X,B-X\nran,,\nup,,\n"),
        ("long.csv", "doc_id,token_id,token,rater,tag\n1,0,Bo,a,B-X\n1,1,ran,a,\n1,2,up,a,\n1,3,!,a,\n"),
        ("gold.tsv", "Ada\tB-PER\nran\t?\nup\t?\n.\t?\n"),
        ("y.csv", "sentence_id,token,ann1,ann2\n1,Bo,PER,PER\n1,ran,,\n1,up,,\n1,to,,\n2,Rome,LOC,\n2,fell,,\n"),
        ("long.csv", "sent,idx,word,rater,tag\n1,0,Bo,a,PER\n1,4,Rome,a,LOC\n1,0,Bo,b,PER\n1,4,Rome,b,PER\n"),
    ],
)
def test_empty_cells_where_there_is_no_o_are_asked_about(tmp_path: Path, file: str, text: str) -> None:
    """An annotator who leaves cells empty where there is nothing to mark said O: only marks were votes."""
    path = tmp_path / file
    path.write_text(text)
    with pytest.raises(FormatError, match=r"no token is O, and \d cells are empty.*missing=\?"):
        lasca.read(path)
    assert "O" not in lasca.read(path, missing="?").labels


def test_a_few_empty_cells_are_left_empty(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("token\tann1\tann2\n" + "Bo\tB-X\tB-X\n" * 4 + "ran\tB-X\t\n" * 3)
    assert lasca.read(path).n_annotations == 11


def test_a_stranger_among_tags_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("Ada\tB-PER\nLove\tI-PER\nran\tO\n\nBo\tPER\nran\tO\n")
    assert any("others (PER)" in note for note in lasca.read(path).load_report.notes)


def test_a_column_that_says_what_an_item_is_holds_no_labels(tmp_path: Path) -> None:
    """DICES: `response` is what a chatbot said; what raters said stands in Q_overall."""
    path = tmp_path / "dices.csv"
    rows = [f"{r},{i},reply number {i},{'Yes' if i % 2 else 'No'}" for r in range(3) for i in range(6)]
    path.write_text("\n".join(["rater_id,item_id,response,Q_overall", *rows]) + "\n")
    with pytest.raises(FormatError, match="each of 6 items has a label of its own"):
        lasca.read(path)
    assert lasca.read(path, label="Q_overall").labels == ("No", "Yes")
    path.write_text("worker,task,answer\n" + "".join(f"{w},{i},{'ab'[i % 2]}\n" for w in "xyz" for i in range(6)))
    assert lasca.read(path).labels == ("a", "b"), "all agree, and it is no name of the item"
    path.write_text("worker,task,answer\n" + "".join(f"x,{i},{'abcdef'[i]}\n" for i in range(6)))
    assert lasca.read(path).labels == tuple("abcdef"), "nobody agrees with one alone"


@pytest.mark.parametrize("header", ["## klue-ner-v1_dev_0\t<{0}:OG> is", "## s1\t{0} is"])
def test_comments_of_two_signs(tmp_path: Path, header: str) -> None:
    """KLUE: the comment before each sentence has a tab, and was a token with a text as its label."""
    path = tmp_path / "klue.tsv"
    path.write_text("\n\n".join(f"{header.format(w)}\n{w}\tB-OG\n \tO\nis\tO" for w in ("Abo", "Bob")) + "\n")
    corpus = lasca.read(path)
    assert corpus.labels == ("B-OG", "O")
    assert corpus.n_tokens == 6
    assert corpus.load_report.counts["comments"] == 2


# --- which rows are about the same ----------------------------------------------------------------------------------


def test_ids_tell_equal_texts_apart(tmp_path: Path) -> None:
    """annotator1.csv, annotator2.csv of a public corpus of Amharic: short texts stand several times, under ids."""
    for name, label in (("annotator1", "Assertion"), ("annotator2", "Warning")):
        rows = f"8,it is free,Assertion,train\n41,it is free,Assertion,train\n52,it is free,{label},test\n"
        (tmp_path / f"{name}.csv").write_text(f"id,text,label,split\n{rows}")
    corpus = lasca.read(tmp_path)
    assert votes(corpus)["annotator2"] == [("8", "Assertion"), ("41", "Assertion"), ("52", "Warning")]
    assert lasca.read(tmp_path / "annotator1.csv", annotator="file").n_sequences == 3
    rows = "1,ok,pos,ann\n2,ok,neg,ben\n3,bad,neg,ann\n4,bad,neg,ben\n"  # numbers of rows link nothing
    (tmp_path / "rows.csv").write_text(f"id,text,label,user_name\n{rows}")
    assert lasca.read(tmp_path / "rows.csv").n_sequences == 2
    rows = "1,ok,pos,ann\n1,bad,neg,ben\n2,ok,neg,ben\n3,bad,pos,ann\n"  # 1 is no name of a text
    (tmp_path / "rows.csv").write_text(f"id,text,label,rater\n{rows}")
    assert lasca.read(tmp_path / "rows.csv").n_sequences == 2


@pytest.mark.parametrize("who", ["user_name", "Annotator_ID", "Participant id", "labeler_id", "turker", "WorkerID"])
def test_names_of_the_column_of_annotators(tmp_path: Path, who: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"sentence_id,token_index,word,{who},tag\n1,0,Ada,a,B-PER\n1,0,Ada,b,O\n")
    assert lasca.read(path).annotators == ("a", "b")


@pytest.mark.parametrize("column", ["user", "username", "User ID"])
def test_who_wrote_texts_did_not_label_them(tmp_path: Path, column: str) -> None:
    """Tables of tweets name their authors: each was an annotator of a text or two."""
    path = tmp_path / "tweets.csv"
    path.write_text(f"id,{column},text,label\n1,bob,good day,pos\n2,amy,bad day,neg\n3,bob,so so,neg\n")
    with pytest.raises(FormatError, match=r"who wrote the texts.*annotator=.*-r annotator=file"):
        lasca.read(path)
    assert lasca.read(path, annotator=column).annotators == ("amy", "bob")
    assert lasca.read(path, annotator="file").annotators == ("tweets",)
    path.write_text(path.read_text() + "4,amy,good day,pos\n")
    assert lasca.read(path).annotators == ("amy", "bob"), "two of them have a text in common"
    path.write_text(f"id,{column},text,label\n1,bob,good day,pos\n2,bob,bad day,neg\n")
    assert lasca.read(path).annotators == ("bob",), "who wrote everything has labelled it as well"


@pytest.mark.parametrize(
    "row",
    [
        {"user": "u{}", "text": "Ada saw Rome {}", "entities": [{"start": 0, "end": 3, "label": "PER"}]},
        {"username": "u{}", "text": "Ada saw Rome {}", "label": [[0, 3, "PER"]]},
        {"user_id": "u{}", "tokens": ["Ada", "{}"], "ner_tags": ["B-PER", "O"], "id": "{}"},
    ],
    ids=["records", "doccano", "huggingface"],
)
def test_who_wrote_posts_did_not_mark_them(tmp_path: Path, row: dict[str, Any]) -> None:
    """Collections of tweets with their entities: each author was an annotator of a tweet or two."""
    path = tmp_path / "tweets.jsonl"
    posts = [json.loads(json.dumps(row).replace("{}", str(n))) for n in range(3)]
    path.write_text(lines(*posts))
    with pytest.raises(FormatError, match=r"who wrote the texts, and not who labelled them.*If they are annotators"):
        lasca.read(path)
    who = next(key for key in row if key.startswith("user"))
    path.write_text(lines(*({"annotator" if key == who else key: v for key, v in post.items()} for post in posts)))
    assert lasca.read(path).annotators == ("u0", "u1", "u2")
    path.write_text(lines(*posts, *({**post, who: "u9"} for post in posts)))
    assert len(lasca.read(path).annotators) == 4, "each text has two of them"


def test_authors_in_tables_of_spans_are_asked_about(tmp_path: Path) -> None:
    """SMM4H's tweets about drugs name who wrote them, in a column user_id."""
    path = tmp_path / "smm4h.tsv"
    head = "tweet_id\tuser_id\tbegin\tend\ttype\textraction\ttweet"
    path.write_text(f"{head}\n1\t8\t4\t8\tADR\tpain\tmore pain today\n2\t9\t3\t8\tADR\tsleep\tno sleep at all\n")
    with pytest.raises(FormatError, match=r"'user_id'.*-r annotator=user_id"):
        lasca.read(path)
    assert lasca.read(path, annotator="user_id").annotators == ("8", "9")


def test_tables_of_unusual_columns_lead_to_what_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "ann.csv"
    path.write_text("command,intent,confidence\nopen the door,Open,4\nclose the door,Close,4\nopen the shop,Open,5\n")
    with pytest.raises(FormatError, match=r"-f table.*format=wide"):
        lasca.read(path)
    with pytest.raises(FormatError, match=r"-r label=intent -r token=command.*annotator=file"):
        lasca.read(path, format="table")
    corpus = lasca.read(path, format="table", label="intent", token="command", annotator="file")
    assert (corpus.annotators, corpus.labels) == (("ann",), ("Close", "Open"))


def test_the_likeliest_columns_come_first_and_golds_stay_golds(tmp_path: Path) -> None:
    """HateCheck: ids and counts share numbers; label_gold and label_annot_maj stand beside label_1 to label_10."""
    names = "case_id,templ_id,test_case,label_gold,label_1,label_2,label_3,count_nh,label_annot_maj"
    said = [("hateful", "", "non-hateful"), ("", "hateful", "hateful"), ("non-hateful", "non-hateful", "")]
    rows = [f"{i % 3},{i % 2},I hate it {i},hateful,{','.join(said[i % 3])},{i % 2},hateful" for i in range(9)]
    path = tmp_path / "x.csv"
    path.write_text("\n".join([names, *rows]) + "\n")
    with pytest.raises(FormatError, match=r"-r annotators=label_1,label_2,label_3\)"):
        lasca.read(path)
    corpus = lasca.read(path, annotators="label_1,label_2,label_3")
    assert list(corpus.golds) == ["label_annot_maj", "label_gold"]
    lines = path.read_text().splitlines()
    why = ["gold_reason", *("slur" if i % 2 else "hateful" for i in range(9))]  # labels, and what is none
    path.write_text("".join(f"{line},{reason}\n" for line, reason in zip(lines, why, strict=True)))
    assert list(lasca.read(path, annotators="label_1,label_2,label_3").golds) == ["label_annot_maj", "label_gold"]


def test_ids_of_any_case_name_the_rows_of_wide_tables(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("Item,Coder A,Coder B\nq1,Yes,No\nq2,Yes,Yes\nq3,No,No\n")
    assert list(lasca.read(path).sequence_ids) == ["q1", "q2", "q3"]


def test_numbered_tokens_ask_for_their_column(tmp_path: Path) -> None:
    """Two sentences of six columns, the last of which hardly repeats: nobody knew the format."""
    rows = [["1\tLe\til\tDET\tRD\tx=1", "2\tcase\tcasa\tNOUN\tS\tx=2"], ["1\tLa\til\tDET\tRD\tx=3"]]
    path = tmp_path / "example-tag.txt"
    path.write_text("\n\n".join("\n".join(block) for block in rows))
    with pytest.raises(FormatError, match="4: DET, NOUN"):
        lasca.read(path)
    assert lasca.read(path, column=4).labels == ("DET", "NOUN")


@pytest.mark.parametrize(
    ("name", "text", "tool"),
    [
        (
            "a.csv",  # Amazon Comprehend, for training
            "File,Line,Begin Offset,End Offset,Type\nd.txt,0,0,13,CHIEF\nd.txt,1,0,7,BOSS\n",
            "spans stand without their texts",
        ),
        ("nlu.md", "## intent:greet\n- hey\n- hello [ada](name)\n\n## intent:bye\n- bye\n", "an export of Rasa"),
    ],
)
def test_tools_by_their_columns_and_beginnings(tmp_path: Path, name: str, text: str, tool: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=tool):
        lasca.read(tmp_path / name)


def test_texts_of_windows_and_offsets_of_unix(tmp_path: Path) -> None:
    """Git writes CR LF into texts that were annotated with LF; brat's offsets count one character for it."""
    text = "Ada ran .\nShe won in Rome .\n"
    for who in ("ada", "ben"):
        (tmp_path / who).mkdir()
        (tmp_path / who / "d1.txt").write_bytes(text.replace("\n", "\r\n").encode())
        at = text.index("Rome")
        (tmp_path / who / "d1.ann").write_text(f"T1\tLOC {at} {at + 4}\tRome\n")
    corpus = lasca.read(tmp_path)
    marked = [token for token, (_, label) in zip(corpus.tokens, votes(corpus)["ada"]) if label == "B-LOC"]
    assert marked == ["Rome"]


def test_offsets_that_cut_most_words_are_asked_about(tmp_path: Path) -> None:
    """Offsets that count tokens, or of a text that lost a line, were silently those of other words."""
    words = [
        "Ada",
        "Lovelace",
        "visited",
        "old",
        "Rome",
        "in",
        "spring",
        "with",
        "Charles",
        "Babbage",
        "and",
        "friends",
    ]
    rows = [{"id": k, "text": " ".join(words[k:]), "label": [[4 - k, 5 - k, "LOC"]]} for k in range(5)]
    path = tmp_path / "ann.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(FormatError, match=r"5 of 5 spans begin or end inside of a word.*partial=split.*unit=codepoint"):
        lasca.read(path)
    assert lasca.read(path, unit="codepoint").load_report.counts["expanded"] == 5
    assert lasca.read(path, partial="split").labels == ("B-LOC", "O")
    for row in rows[:3]:
        row["label"].append([0, len(row["text"].split()[0]), "PER"] if row["id"] else [13, 16, "PER"])
    whole = [{"id": f"b{k}", "text": "Ada visited Rome", "label": [[0, 3, "PER"], [12, 16, "LOC"]]} for k in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *whole]))
    assert lasca.read(path, overlap="longest").load_report.counts["expanded"] > 0, "half of them cut nothing"


def test_labels_that_differ_only_in_case_or_spaces_are_told(tmp_path: Path) -> None:
    text = "text,annotator,label\nso nice,ann,Very good\nso nice,ben,very_good\nso bad,ann,bad\nso bad,ben,bad\n"
    (tmp_path / "x.csv").write_text(text)
    note = "Labels that differ only in case, spaces or a stop are different ones: 'Very good' and 'very_good'."
    assert note in lasca.read(tmp_path / "x.csv").load_report.notes


def test_a_crowd_that_shares_the_tokens_of_sequences_is_read(tmp_path: Path) -> None:
    """Parts of speech have no O, and nobody need label all tokens; nor need anybody label all texts."""
    rows = [
        f"s,{i},w{i},{who},{tag}" for i in range(12) for who, tag in (("a", "N"), ("b", "V")) if (i < 6) == (who == "a")
    ]
    (tmp_path / "long.csv").write_text("sent,idx,word,rater,tag\n" + "\n".join(rows) + "\n")
    assert lasca.read(tmp_path / "long.csv").n_annotations == 12
    texts = "".join(f"so it is {k},{'good' if k < 3 else ''},{'bad' if k < 3 else ''}\n" for k in range(20))
    (tmp_path / "wide.csv").write_text("text,ann1,ann2\n" + texts.replace("0,good,bad", "0,bad,good"))
    assert lasca.read(tmp_path / "wide.csv").n_annotations == 6
