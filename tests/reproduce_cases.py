"""A page with every kind of block, for tests and for looking at, and one of hostile text."""

from __future__ import annotations

from typing import Any

import numpy as np

from lasca.reproduce.blocks import Bullets, Heading, Page, Picture, Table, Text, plain
from lasca.reproduce.svg import dots, heat_map, heat_maps, line_chart, tagged_sequences
from report_cases import NASTY

TAGS = ("ADJ", "ADP", "ADV", "CONJ", "DET", "NOUN", "NUM", "PRON", "PRT", "PUNC", "VERB", "X")
ENTITIES = ("B-LOC", "I-LOC", "B-MISC", "I-MISC", "B-ORG", "I-ORG", "B-PER", "I-PER", "O")
MODELS = ("MVtoken", "DS", "MACE", "Sembler", "HMM-Crowd", "HC-CLL", "LA-SCA", "BSC", "SequenceClusters")
HOSTILE = (*NASTY, "a|b", "**bold** *it* _it_ `code`", "[x](javascript:alert(1))", "# 1. - + =", "\x1b[31mred\x07",
           "$x$ ~~s~~ https://evil.example www.evil.example", "line\nbreak\r\n| --- |", "\ud800 half", "\\| \\<b\\>",
           "![i](x)", "1. one", "---", "]]>", "' \" &amp;")  # fmt: skip
TWEET = [
    ("@USER", "NOUN", (), False), ("i", "PRON", (), False), ("seriously", "ADV", (), False),
    ("need", "VERB", (), False), ("that", "DET", ("PRON", "ADP"), True), ("like", "ADP", ("VERB",), True),
    ("#yesterday", "NOUN", ("ADV",), True), ("!!!", "PUNC", (), False), ("w/", "ADP", (), False),
    ("cookies", "NOUN", (), False), (":-)", "X", (), False), ("日本語", "X", ("NOUN",), True),
    ("http://t.co/abc123", "URL", (), False), ("so", "ADV", (), False), ("gonna", "VERB", ("PRT",), True),
    ("miss", "VERB", (), False), ("ya", "PRON", (), False),
]  # fmt: skip


def confusion(n: int, quality: float, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).dirichlet(np.full(n, 0.4), size=n) * (1 - quality)
    return rows + quality * np.eye(n)


def confused_labels(n: int) -> np.ndarray:
    values = np.random.default_rng(3).gamma(0.35, 0.05, size=(n, n))
    values = (values + values.T) / 2
    np.fill_diagonal(values, np.nan)
    return values


def learning_curves(n: int = 9) -> dict[str, list[tuple[float, float, float]]]:
    rng = np.random.default_rng(1)
    x = (1, 2, 3, 5, 7, 10, 15)
    return {
        name: [(v, 94 - (24 - 1.6 * k) / v**0.7 + 0.2 * k, float(rng.uniform(0.2, 1.4))) for v in x]
        for k, name in enumerate(MODELS[:n])
    }


def differences() -> list[tuple[str, float, float, float]]:
    rng = np.random.default_rng(2)
    settings = [f"{data} {ca}, {what}" for data in ("RITTER", "INHOUSE") for ca in ("ca1", "ca2", "ca3")
                for what in ("word only", "default features")]  # fmt: skip
    middle = rng.normal(0.3, 0.6, size=len(settings))
    return [(name, m, m - 0.5, m + 0.5) for name, m in zip(settings, middle)] + [("NER", np.nan, np.nan, np.nan)]


def pictures() -> dict[str, str]:
    return {
        "confusion": heat_map(
            confused_labels(12), TAGS, title="Label confusion on T-DGA", row_title="truth", column_title="competes"
        ),
        "clusters-tweets": heat_maps(
            [(f"cluster {i + 1}: {n} annotators", confusion(12, q, i))
             for i, (n, q) in enumerate([(8, 0.8), (4, 0.5), (3, 0.2)])],
            TAGS,
            title="Shared confusion matrices of the clusters, T-DGA ca1",
        ),
        "clusters-entities": heat_maps(
            [(f"cluster {i + 1}", confusion(9, q, i)) for i, q in enumerate([0.74, 0.53, 0.4])],
            ENTITIES,
            title="Shared confusion matrices of the clusters, NER",
        ),
        "penn": heat_map(
            confusion(26, 0.7), [f"TAG{i}" for i in range(26)], title="Many labels", row_title="truth", highest=1.0
        ),
        "curve": line_chart(
            learning_curves(), title="Accuracy of the inferred truth over annotators per token",
            x_title="annotators per token", y_title="accuracy (%)", x_marks=(1, 2, 3, 5, 7, 10, 15),
        ),
        "bands": line_chart(
            learning_curves(3), title="Spammers", x_title="spammers among 15", y_title="accuracy (%)"
        ),
        "tweets": tagged_sequences([TWEET, TWEET[:6]], title="Two example tweets"),
        "differences": dots(
            differences(), title="LA-SCA minus HC-CLL", x_title="difference of macro-F1 (points), 95 % interval"
        ),
    }  # fmt: skip


def full_page() -> Page:
    wide = Table(
        ("model", *(f"{c} {g} {w}" for g in ("g1", "g2") for c in ("ca1", "ca2", "ca3")
                    for w in ("paper", "ours", "diff"))),
        tuple((name, *("93.30", "92.97 ± 0.14", "−0.33") * 6) for name in MODELS),
        caption="**Table 1.** Accuracy of the inferred truth on T-DGA (%).",
        notes=("Ours: mean ± sd over 5 seeds.", "Simulated by `errors=\"independent\"`, `common=0.067`."),
        strong=frozenset({(8, 2), (8, 5), (0, 0)}),
    )  # fmt: skip
    small = Table(("", "F1"), (("MVtoken", "63.17"), ("LA-SCA", "67.54")))
    drawn = [Picture(name, svg, f"Picture **{name}**: what it shows, in `code` and words.")
             for name, svg in pictures().items()]  # fmt: skip
    return Page(
        "The paper's experiments, run again",
        (
            Text("What was **found**: see [the paper](https://aclanthology.org/) and `lasca reproduce`. " * 4),
            Heading("What was found"),
            Bullets(("The first claim **holds**.", "The second does not: `LA-SCA` against `HC-CLL`. " * 3)),
            Heading("Table 1: accuracy of the inferred truth on T-DGA"),
            Text("15 simulated annotators."),
            wide,
            Heading("The same with another heading", 3),
            small,
            Heading("Figures"),
            *drawn,
        ),
    )


def hostile_page() -> Page:
    svg = tagged_sequences([[(t, t, (t,), True) for t in HOSTILE]], title=NASTY[0])
    blocks: list[Any] = []
    for text in HOSTILE:
        blocks += [
            Heading(text),
            Heading(text, 3),
            Text(plain(text)),
            Text(f"**{plain(text)}** and [{plain(text)}](https://example.org/) end"),
            Bullets((plain(text), plain(text))),
            Table((text, text), ((text, text), ("x", "1")), plain(text), (plain(text),), frozenset({(0, 0), (0, 1)})),
        ]
    return Page(NASTY[0], (*blocks, Picture("hostile", svg, plain(NASTY[2]))))
