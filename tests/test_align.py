"""Characters and tokens: units, tokenisers, spans, two tokenisations of one text."""

from __future__ import annotations

import difflib
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lasca import align
from lasca.align import Quote, Span, align_tokens, spans_to_labels, transfer_labels
from lasca.errors import FormatError, ParameterError

RUNNING = "😊 Ada Lovelace visited New York ."
FAMILY = "👨‍👩‍👧 é 🇩🇪🇫🇷 한글 각 👍🏽 नि x\r\ny"


# --- two tokenisations ---------------------------------------------------------------------------------------------


def test_the_same_characters_are_aligned_exactly() -> None:
    source = ["Richmond", "-based", "", "New York", "Iraq", "i"]
    target = ["Richmond-based", "New", "York", "Iraqi"]
    assert align.same_characters(source, target)
    assert align_tokens(source, target) == [[0, 1], [3], [3], [4, 5]]


def test_a_dropped_character_leaves_its_token_without_a_partner() -> None:
    assert align_tokens(["a", "b", "c"], ["a", "/", "b", "c"]) == [[0], None, [1], [2]]
    assert align_tokens(["Grnd", "Hotel"], ["Grand", "Hotel"]) == [[0], [1]]
    assert align_tokens([], ["a"]) == [None]
    assert align_tokens(["a"], []) == []


def test_texts_too_far_apart_are_not_forced_onto_each_other() -> None:
    assert align_tokens(["abc"], ["xyz"]) == [None]
    covers = align_tokens(["head", "q" * 50, "tail"], ["head", "z" * 70, "tail"], max_edits=5)
    assert covers == [[0], None, [2]]


def test_hostile_texts_end_soon() -> None:
    covers = align_tokens(["ab" * 60_000], ["ba" * 60_001 + "x"])
    assert len(covers) == 1
    assert align_tokens(["a" * 100_000], ["b" * 100_000]) == [None]


words = st.lists(st.text(alphabet="abc /", max_size=4), max_size=8)


@given(words, words)
def test_alignment_keeps_order_and_characters(source: list[str], target: list[str]) -> None:
    covers = align_tokens(source, target)
    assert len(covers) == len(target)
    flat = [k for cover in covers for k in cover or []]
    assert flat == sorted(flat)
    for cover, token in zip(covers, target):
        assert cover is None or any(set(source[k]) & set(token) - {" "} for k in cover)
    if align.same_characters(source, target):
        assert all((cover is None) == (not token.strip()) for cover, token in zip(covers, target))


@given(words, words)
def test_fuzzy_alignment_matches_as_many_characters_as_the_longest_common_subsequence(
    source: list[str], target: list[str]
) -> None:
    from lasca.align.words import matches

    a, b = "".join("".join(source).split()), "".join("".join(target).split())
    pairs = matches(a, b, 1000)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))
    assert len(pairs) == _lcs(a, b)
    assert len(pairs) >= sum(m.size for m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())


def _lcs(a: str, b: str) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        new = [0]
        for j, y in enumerate(b):
            new.append(row[j] + 1 if x == y else max(row[j + 1], new[j]))
        row = new
    return row[-1]


def test_labels_go_over_only_where_all_characters_are_marked() -> None:
    source, target = ["Iraq", "i", "New York"], ["Iraqi", "New", "York", "!"]
    covers = align_tokens(source, target)
    seen: list[str] = []
    labels = ["B-LOC", "O", "B-LOC"]
    assert transfer_labels(labels, covers, count=seen.append) == ["O", "B-LOC", "I-LOC", None]
    assert transfer_labels(labels, covers, partial="expand", count=seen.append) == ["B-LOC", "B-LOC", "I-LOC", None]
    assert seen == ["shrunk", "expanded"]
    with pytest.raises(ParameterError, match="partial"):
        transfer_labels(labels, covers, partial="guess")


def test_split_entities_stay_one_and_missing_labels_stay_missing() -> None:
    covers = align_tokens(["Grand", "Hotel", "x"], ["GrandHotel", "x"])
    assert transfer_labels(["B-LOC", "I-LOC", None], covers) == ["B-LOC", None]
    covers = align_tokens(["a", "b"], ["a", "b"])
    assert transfer_labels(["B-X", "B-X"], covers) == ["B-X", "B-X"]


def test_a_part_of_a_document_is_laid_upon_that_part() -> None:
    target = [["Ada", "ate", "all"], ["Oslo", "is", "old"], ["A", "tall", "lass"], ["Oslo", "is", "old"]]
    found = align.align_sequences([["Atall", "lass"]], target)
    assert found.covers == [None] * 6 + [[0], [0], [1]] + [None] * 3
    assert (found.share, found.same, found.part, found.placed, found.behind) == (1.0, False, True, [True], [2])
    both = align.align_sequences([*target[:1], ["New", "here"], *target[1:]], target)
    assert both.placed == [True, False, True, True, True]
    assert both.behind == [0, 0, 1, 2, 3]
    assert [cover for cover in both.covers if cover is None] == []


def test_letters_that_happen_to_match_are_no_alignment() -> None:
    target = [["Ada", "visited", "Rome"], ["The", "committee", "met", "in", "Oslo"]]
    found = align.align_sequences([["Totally", "other", "text"]], target)
    assert (found.covers, found.share, found.placed) == ([None] * 8, 0.0, [False])
    typo = align.align_sequences([["Ada", "visted", "Rome"], ["The", "comittee", "met", "xn", "Oslo"]], target)
    assert typo.share > 0.9
    assert typo.covers == [[0], [1], [2], [3], [4], [5], [6], [7]]
    half = align.align_sequences([["Ada", "vi", "xxxxx", "Rome"]], [["Ada", "visited", "Rome"]])
    assert half.covers == [[0], None, [3]]


texts = st.lists(words, max_size=4)


@given(texts, texts)
def test_aligned_sequences_keep_order_and_count_what_they_say(source: list[list[str]], target: list[list[str]]) -> None:
    found = align.align_sequences(source, target)
    assert len(found.covers) == sum(map(len, target))
    flat = [k for cover in found.covers for k in cover or []]
    assert flat == sorted(flat)
    assert len(found.placed) == len(found.behind) == len(source)
    assert found.behind == sorted(found.behind)
    assert all(-1 <= b < max(len(target), 1) for b in found.behind)
    assert 0 <= found.share <= 1
    same = align.align_sequences(source, source)
    assert same.same
    assert all(same.placed)


# --- units ---------------------------------------------------------------------------------------------------------


def test_an_emoji_is_one_code_point_two_utf16_units_and_one_grapheme() -> None:
    assert RUNNING[2:14] == "Ada Lovelace"
    convert = align.to_codepoints(RUNNING, "utf16")
    assert (convert(3), convert(15)) == (2, 14)
    assert convert(1) is None  # inside the emoji
    assert convert(len(RUNNING) + 1) == len(RUNNING)
    assert convert(len(RUNNING) + 2) is None
    assert convert(-1) is None


def test_graphemes() -> None:
    starts = align.graphemes(FAMILY)
    pieces = [FAMILY[a:b] for a, b in pairwise(starts)]
    assert [p for p in pieces if p != " "] == [
        "👨‍👩‍👧", "é", "🇩🇪", "🇫🇷", "한", "글", "각", "👍🏽", "नि", "x", "\r\n", "y",
    ]  # fmt: skip


@given(st.text())
def test_units_convert_there_and_back(text: str) -> None:
    for unit in align.UNITS:
        there, back = align.from_codepoint(text, unit), align.to_codepoints(text, unit)
        borders = align.graphemes(text) if unit == "grapheme" else range(len(text) + 1)
        assert all(back(there(at)) == at for at in borders)
    utf16 = len(text.encode("utf-16-le", "surrogatepass")) // 2
    assert align.from_codepoint(text, "utf16")(len(text)) == utf16


def _quote(start: int, end: int, quoted: str | None, where: str = "f:1") -> Quote:
    return Quote(RUNNING, start, end, quoted, where)


def test_the_unit_is_inferred_from_quoted_text() -> None:
    tokens = align.tokenizer_of(None)
    assert align.infer_unit([_quote(2, 14, "Ada Lovelace")], tokens, path="f")[0] == "codepoint"
    unit, how = align.infer_unit([_quote(3, 15, "Ada Lovelace")], tokens, path="f")
    assert unit == "utf16"
    assert how is not None
    family = Quote(FAMILY, 2, 3, "é", "f:2")
    assert align.infer_unit([family], tokens, path="f")[0] == "grapheme"


def test_mixed_evidence_is_an_error_with_two_examples() -> None:
    quotes = [_quote(2, 14, "Ada Lovelace", "f:1"), _quote(24, 32, "New York", "f:2")]
    with pytest.raises(FormatError, match=r"f:1: 2-14.*f:2: 24-32|f:2: 24-32.*f:1: 2-14"):
        align.infer_unit(quotes, align.tokenizer_of(None), path="f")


def test_quotes_that_fit_nowhere_are_an_error_unless_they_are_few() -> None:
    tokens = align.tokenizer_of(None)
    with pytest.raises(FormatError, match="do not stand at their offsets"):
        align.infer_unit([_quote(2, 14, "Grace Hopper")], tokens, path="f")
    with pytest.raises(FormatError, match="do not stand"):
        align.infer_unit([Quote("plain", 0, 3, "abc", "f:1")], tokens, path="f")
    fits = [_quote(3, 15, "Ada Lovelace"), _quote(24, 32, "New York"), _quote(3, 15, "Grace")]
    assert align.infer_unit(fits, tokens, path="f")[0] == "utf16"


def test_without_quotes_token_borders_decide() -> None:
    tokens = align.tokenizer_of(None)
    unit, how = align.infer_unit([_quote(3, 15, None), _quote(24, 32, None)], tokens, path="f")
    assert unit == "utf16"
    assert how is not None
    assert "utf16 4" in how
    assert align.infer_unit([_quote(2, 14, None)], tokens, path="f")[0] == "codepoint"
    assert align.infer_unit([], tokens, path="f") == ("codepoint", None)
    assert align.infer_unit([Quote("ascii", 0, 2, None, "")], tokens, path="f") == ("codepoint", None)


def test_unknown_units_are_refused() -> None:
    with pytest.raises(ParameterError, match="unit"):
        align.check_unit("bytes")


# --- tokenisers ----------------------------------------------------------------------------------------------------


def _words(text: str, tokenizer: align.Tokenizer | str | None = None) -> list[str]:
    return [text[a:b] for a, b in align.tokenizer_of(tokenizer)(text)]


def test_the_default_rule() -> None:
    assert _words(RUNNING) == ["😊", "Ada", "Lovelace", "visited", "New", "York", "."]
    assert _words("don't pay $3.50 (e.g. @you_2)") == [
        "don", "'", "t", "pay", "$", "3", ".", "50", "(", "e", ".", "g", ".", "@", "you_2", ")",
    ]  # fmt: skip
    assert _words("naïve cafe\u0301s हिन्दी") == ["naïve", "cafe\u0301s", "हिन्दी"]
    assert _words("北京 ok") == ["北", "京", "ok"]
    assert _words("👨‍👩‍👧👍🏽!") == ["👨‍👩‍👧", "👍🏽", "!"]
    assert _words("") == []


def test_named_and_own_tokenisers() -> None:
    assert _words("a-b c", "whitespace") == ["a-b", "c"]
    assert _words("e\u0301 b", "characters") == ["e\u0301", "b"]
    assert _words("a-b c", str.split) == ["a-b", "c"]
    assert _words("a-b c", lambda text: [(0, 1), (1, 3), (3, 4), (4, 5)]) == ["a", "-b", "c"]
    for bad in ("bytes", 3):
        with pytest.raises(ParameterError, match="tokenizer"):
            align.tokenizer_of(bad)  # type: ignore[arg-type]
    for wrong in (lambda text: ["x"], lambda text: [(3, 1)], lambda text: [1, 2], lambda text: [(0, 99)]):
        with pytest.raises(ParameterError, match="tokenizer"):
            align.tokenizer_of(wrong)("a-b c")  # type: ignore[arg-type]


@given(st.text())
@example(" \u0300")
@example("\u0300 a")
def test_every_rule_gives_rising_tokens_that_lose_only_white_space(text: str) -> None:
    for rule in (None, "whitespace", "characters"):
        chars = align.tokenizer_of(rule)(text)
        assert align.rising(chars, len(text))
        assert all(text[a:b].strip() for a, b in chars)
        assert "".join("".join(text[a:b].split()) for a, b in chars) == "".join(text.split())


def test_tokens_are_found_in_their_text_or_not() -> None:
    assert align.locate(["Ada", "visited"], "Ada  visited!") == [(0, 3), (5, 12)]
    assert align.locate(["Ada", "visited"], "Ada never visited") is None
    assert align.spelled(["a", "bc"]) == ("a bc", [(0, 1), (2, 4)])


# --- spans ---------------------------------------------------------------------------------------------------------

CHARS = align.tokenizer_of(None)(RUNNING)


def _labels(*spans: Span, **options: str) -> list[str]:
    return spans_to_labels(spans, CHARS, RUNNING, **options)  # type: ignore[arg-type]


def test_spans_become_iob2() -> None:
    labels = _labels(Span(2, 14, "PER"), Span(23, 31, "LOC"))
    assert labels == ["O", "B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
    assert _labels(Span(2, 14, "PER"), tagging="plain") == ["O", "PER", "PER", "O", "O", "O", "O"]
    assert _labels(Span(2, 5, "PER"), Span(6, 14, "PER")) == ["O", "B-PER", "B-PER", "O", "O", "O", "O"]


def test_white_space_at_the_edges_is_trimmed_and_counted() -> None:
    seen: list[str] = []
    labels = spans_to_labels([Span(1, 15, "PER")], CHARS, RUNNING, count=lambda kind, n, example: seen.append(kind))
    assert labels[1:3] == ["B-PER", "I-PER"]
    assert seen == ["trimmed"]
    spans = [Span(1, 2, "PER"), Span(3, 3, "X")]
    assert spans_to_labels(spans, CHARS, RUNNING, count=lambda *told: seen.append(told[0])) == ["O"] * 7
    assert seen == ["trimmed", "empty spans", "empty spans"]


def test_a_span_that_cuts_a_token() -> None:
    seen: list[str] = []
    cut = Span(3, 14, "PER", "f:3")
    assert _labels(cut)[1:3] == ["B-PER", "I-PER"]
    assert _labels(cut, partial="shrink")[1:3] == ["O", "B-PER"]
    assert _labels(Span(3, 4, "PER"), partial="shrink") == ["O"] * 7
    assert _labels(Span(3, 8, "PER"), partial="shrink") == ["O"] * 7
    with pytest.raises(FormatError, match=r"f:3.*cuts through a token"):
        _labels(cut, partial="error")
    spans_to_labels([cut], CHARS, RUNNING, count=lambda kind, n, example: seen.append(f"{kind} {example}"))
    assert seen == ["expanded f:3: PER 3-14 'da Lovelace'"]


def test_overlapping_spans() -> None:
    spans = [Span(6, 22, "LONG", "f:2"), Span(2, 14, "PER", "f:1")]
    with pytest.raises(FormatError, match=r"two spans overlap.*f:1.*f:2.*-r overlap=longest"):
        _labels(*spans)
    assert _labels(*spans, overlap="first") == ["O", "B-PER", "I-PER", "O", "O", "O", "O"]
    assert _labels(*spans, overlap="longest") == ["O", "O", "B-LONG", "I-LONG", "O", "O", "O"]
    assert _labels(*spans[::-1], overlap="longest") == _labels(*spans, overlap="longest")
    assert _labels(Span(2, 5, "PER"), Span(2, 5, "PER")) == _labels(Span(2, 5, "PER"))
    with pytest.raises(FormatError, match="overlap"):
        _labels(Span(2, 5, "PER"), Span(2, 5, "LOC"))


def test_spans_outside_the_text_are_refused_and_choices_checked() -> None:
    for span in (Span(30, 40, "X"), Span(5, 3, "X"), Span(-1, 3, "X")):
        with pytest.raises(FormatError, match="outside its text"):
            _labels(span)
    for name in ("partial", "overlap", "tagging"):
        with pytest.raises(ParameterError, match=name):
            _labels(**{name: "maybe"})


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 33), st.integers(0, 33), st.sampled_from(["A", "B"])), max_size=6),
    st.sampled_from(["expand", "shrink"]),
    st.sampled_from(["longest", "first"]),
    st.randoms(use_true_random=False),
)
def test_labels_are_legal_and_do_not_depend_on_order(
    spans: list[tuple[int, int, str]], partial: str, overlap: str, random: object
) -> None:
    given_spans = [Span(min(a, b), max(a, b), label) for a, b, label in spans]
    labels = _labels(*given_spans, partial=partial, overlap=overlap)
    random.shuffle(given_spans)  # type: ignore[attr-defined]
    assert _labels(*given_spans, partial=partial, overlap=overlap) == labels
    for before, here in zip(["O", *labels], labels):
        assert not here.startswith("I-") or before[2:] == here[2:]
    marked = {i for s in given_spans for i in range(s.start, s.end)}
    for (start, end), label in zip(CHARS, labels):
        assert label == "O" or marked & set(range(start, end))
        assert label == "O" or partial == "expand" or set(range(start, end)) <= marked


def test_labels_become_spans_again() -> None:
    labels = _labels(Span(2, 14, "PER"), Span(23, 31, "LOC"))
    found = [(s.start, s.end, s.label, a, b) for s, a, b in align.label_spans(labels, CHARS)]
    assert found == [(2, 14, "PER", 1, 3), (23, 31, "LOC", 4, 6)]
    nasty = ["I-A", "B-A", "I-B", None, "NOUN", "NOUN", "S-A"]
    assert [(s.label, a, b) for s, a, b in align.label_spans(nasty, CHARS)] == [
        ("A", 0, 1), ("A", 1, 2), ("B", 2, 3), ("NOUN", 4, 5), ("NOUN", 5, 6), ("A", 6, 7),
    ]  # fmt: skip


# --- where spans begin and end -------------------------------------------------------------------------------------

LINE = "Åse met Bo in Rome , Italy ."
WORDS = ((0, 3), (8, 10), (14, 18), (21, 26), (4, 7))


def _spans(start: int, end: int, quoted: bool, n: int = 5) -> list[Quote]:
    return [Quote(LINE, a + start, b + end, LINE[a:b] if quoted else None, "f:1") for a, b in WORDS[:n]]


@pytest.mark.parametrize("quoted", [True, False])
@pytest.mark.parametrize("moved", [(0, 0), (0, -1), (1, 0), (1, 1)])
def test_where_offsets_begin_and_end_is_found_out(moved: tuple[int, int], quoted: bool) -> None:
    start, end, how = align.infer_ends(_spans(*moved, quoted), align.tokenizer_of(None))
    assert (start, end) == (-moved[0], -moved[1])
    assert (how is None) == (moved == (0, 0))
    few = align.infer_ends(_spans(*moved, quoted, 1 if quoted else 4), align.tokenizer_of(None))
    assert few == (0, 0, None), "four spans show nothing, nor does one that is quoted"
    mixed = [*_spans(*moved, quoted), *_spans(0, 0, quoted)]
    assert align.infer_ends(mixed, align.tokenizer_of(None)) == (0, 0, None)


@pytest.mark.parametrize("quoted", [True, False])
def test_offsets_in_bytes(quoted: bool) -> None:
    spans = [
        Quote(LINE, len(LINE[:a].encode()), len(LINE[:b].encode()), LINE[a:b] if quoted else None, "f:1")
        for a, b in WORDS
    ]
    unit, how = align.infer_unit(spans, align.tokenizer_of(None), path="f")
    assert unit == "utf8"
    assert how is not None
    convert = align.to_codepoints(LINE, "utf8")
    assert [convert(quote.start) for quote in spans] == [a for a, _ in WORDS]
    assert convert(1) is None
    assert align.from_codepoint(LINE, "utf8")(3) == 4
    assert align.infer_unit(_spans(0, 0, quoted), align.tokenizer_of(None), path="f") == ("codepoint", None)
    assert align.infer_unit(spans[1:3], align.tokenizer_of(None), path="f")[0] == ("utf8" if quoted else "codepoint")


def test_an_emoji_at_the_beginning_does_not_make_offsets_begin_at_one() -> None:
    texts = [f"😊 {name} left" for name in ("Ada", "Bo", "Cleo", "Dan")] + ["Eve left"]
    names = [text.replace("😊 ", "").split()[0] for text in texts]
    utf16 = [Quote(t, 3 * ("😊" in t), 3 * ("😊" in t) + len(n), n, "f:1") for t, n in zip(texts, names)]
    assert align.infer_ends(utf16, align.tokenizer_of(None)) == (0, 0, None)
    assert align.infer_unit(utf16, align.tokenizer_of(None), path="f")[0] == "utf16"
    assert align.infer_ends(utf16[:4], align.tokenizer_of(None)) == (0, 0, None), "nor if all have one"


def test_cr_lf_that_is_counted_as_one_character_is_found_out() -> None:
    text = "Hello\r\nAda saw\r\nRome"
    for quoted in (True, False):
        spans = [
            Quote(text, 6, 9, "Ada" if quoted else None, "f:1"),
            Quote(text, 14, 18, "Rome" * quoted or None, "f:1"),
        ]
        unit, how = align.infer_unit(spans, align.tokenizer_of(None), path="f")
        assert (unit, how is None) == ("grapheme", False)
        assert [text[slice(*map(align.to_codepoints(text, unit), (s.start, s.end)))] for s in spans] == ["Ada", "Rome"]
