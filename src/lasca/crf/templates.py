"""The template language: which features a token has.

    # one template per line (or several, separated by spaces); the rest of a line after # is a comment
    word[-2..2]              the words at offsets -2, -1, 0, 1, 2: five templates
    lower[0] prefix3[0]      lower-cased word; its first three characters
    shape[-1]|shape[0]       joined by | : one feature for the pair of values
    any:lower[-4..-1]        whether a word is somewhere in the window, wherever it is
    cluster:brown[0]         the word's cluster in the user's file "brown"; cluster:brown:4[0] its first 4 characters
    gazetteer:cities[0]      whether the token is inside a phrase of the user's list "cities"
    bias                     always on

Fields: word, lower, digits (digits read as 0), shape (Xxxxx-dd), short (the shape without repeats: Xx-d), case
(upper, title, lower, mixed, none), kind (number, punctuation, word, …), length (up to 9), prefixN,
suffixN (N characters, only of words that long), lowprefixN, lowsuffixN (the same of the
lower-cased word), and cluster, gazetteer as above.
Beyond the ends of a sequence every field has the value <s> or </s>.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lasca import schemes
from lasca.errors import ParameterError

__all__ = ["TEMPLATE_SETS", "Part", "Template", "Templates", "templates_for", "with_lists"]

_PART = re.compile(r"(?P<field>[a-z]+\d*(?::[^\[\]|\s]+)?)\[(?P<low>[+-]?\d+)(?:\.\.(?P<high>[+-]?\d+))?\]")
_FIELDS = re.compile(
    r"word|lower|digits|shape|short|case|kind|length|(low)?(prefix|suffix)[1-9]|cluster:[^:]+(:[1-9]\d?)?|gazetteer:.+"
)
_FARTHEST = 20
_DEPTHS = (4, 6, 8, 11)  # where paths of clusters are cut

TEMPLATE_SETS = {
    "basic": """
        # 19 features a token, as a usual CRFsuite set: for comparisons
        bias word[-2..2] lower[0] prefix1[0] prefix2[0] prefix3[0] prefix4[0]
        suffix1[0] suffix2[0] suffix3[0] suffix4[0] shape[-1..1] digits[0]
    """,
    "word": "word[0]  # the word alone",
    "ner": """
        bias
        word[-2..2] lower[-2..2]
        prefix1[-1..1] prefix2[-1..1] prefix3[-1..1] prefix4[0]
        suffix1[-1..1] suffix2[-1..1] suffix3[-1..1] suffix4[0]
        shape[-2..2] short[-2..2] case[-2..2] digits[0] kind[-1..1] length[0]
        lower[-1]|lower[0] lower[0]|lower[1]
        short[-1]|short[0] short[0]|short[1] short[-1]|short[0]|short[1]
        lower[-1]|short[0] short[0]|lower[1]
        any:lower[-5..-1] any:lower[1..5]
    """,
    "pos": """
        bias
        word[-2..2] lower[-1..1]
        lowprefix1[0] lowprefix2[0] lowprefix3[0] lowprefix4[0]
        lowsuffix1[0] lowsuffix2[-1..1] lowsuffix3[-1..1] lowsuffix4[0]
        shape[0] short[-1..1] case[0] digits[0] kind[-1..1] length[0]
        lower[-1]|lower[0] lower[0]|lower[1]
    """,
    "token": """
        # nothing of its neighbours: for HmmTagger, whose chain knows them
        bias word[0] lower[0]
        lowprefix1[0] lowprefix2[0] lowprefix3[0] lowprefix4[0]
        lowsuffix1[0] lowsuffix2[0] lowsuffix3[0] lowsuffix4[0]
        shape[0] short[0] case[0] digits[0] kind[0] length[0]
    """,
}


def templates_for(labels: Iterable[str]) -> str:
    """Return the name of the ready set for these labels: "ner" for those of a tag scheme, else "pos"."""
    return "pos" if schemes.detect(labels) in (None, "IO") else "ner"


@dataclass(frozen=True)
class Part:
    """One field at one offset."""

    field: str
    offset: int


@dataclass(frozen=True)
class Template:
    """Parts joined into one feature; with a `window`, one part whose offset does not count."""

    parts: tuple[Part, ...]
    window: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The template as it is written."""
        if not self.parts:
            return "bias"
        if self.window is not None:
            return f"any:{self.parts[0].field}[{self.window[0]}..{self.window[1]}]"
        return "|".join(f"{p.field}[{p.offset}]" for p in self.parts)


@dataclass(frozen=True)
class Templates:
    """A list of templates, without repeats, in the order they were written."""

    items: tuple[Template, ...]

    @classmethod
    def parse(cls, text: str) -> Templates:
        """Read the name of a ready set, or templates in the language above."""
        if not isinstance(text, str):
            raise ParameterError("templates", text, "a text in the template language or the name of a ready set")
        found: dict[Template, None] = {}
        for line in TEMPLATE_SETS.get(text.strip(), text).splitlines():
            for word in line.split("#")[0].split():
                found.update(dict.fromkeys(_read(word)))
        if not found:
            raise ParameterError("templates", text, "at least one template, or one of " + ", ".join(TEMPLATE_SETS))
        return cls(tuple(found))

    @property
    def text(self) -> str:
        """The templates in the language, one per line."""
        return "\n".join(t.name for t in self.items)

    @property
    def fields(self) -> list[str]:
        """The fields the templates use."""
        return list(dict.fromkeys(p.field for t in self.items for p in t.parts))


def with_lists(templates: str, clusters: Mapping[str, Mapping[str, str]], gazetteers: Iterable[str]) -> str:
    """Return templates that name every list that was given; nothing that was given is left unused in silence.

    A ready set is extended: by the clusters of the words around (and by the tops of their paths, where clusters are
    paths of 0 and 1), and by what gazetteers say of a token and its neighbours. Templates of one's own are not touched:
    if they leave out a list, that is an error.
    """
    named = {p.field.split(":")[1] for t in Templates.parse(templates).items for p in t.parts if ":" in p.field}
    unused = [name for name in (*clusters, *gazetteers) if name not in named]
    if not unused:
        return templates
    if templates.strip() not in TEMPLATE_SETS:
        raise ParameterError(
            "templates", templates, "a ready set, which is extended, or templates that name every list that is given: "
            + ", ".join(f"{'cluster' if name in clusters else 'gazetteer'}:{name}[0]" for name in unused)
        )  # fmt: skip
    lines = [TEMPLATE_SETS[templates.strip()]]
    for name, table in clusters.items():
        lines.append(f"cluster:{name}[-2..2]")
        if all(not value.strip("01") for value in set(table.values())):
            lines.extend(f"cluster:{name}:{depth}[-1..1]" for depth in _DEPTHS)
    lines.extend(f"gazetteer:{name}[-1..1]" for name in gazetteers)
    return "\n".join(lines)


def _read(word: str) -> list[Template]:
    if word == "bias":
        return [Template(())]
    if word.startswith("any:"):
        field, low, high = _read_part(word.removeprefix("any:"), word)
        return [Template((Part(field, 0),), (low, high))]
    parts = [_read_part(piece, word) for piece in word.split("|")]
    if len(parts) == 1:
        field, low, high = parts[0]
        return [Template((Part(field, offset),)) for offset in range(low, high + 1)]
    if any(low != high for _, low, high in parts):
        raise ParameterError("templates", word, "written with single offsets inside a joined template")
    return [Template(tuple(Part(field, low) for field, low, _ in parts))]


def _read_part(piece: str, word: str) -> tuple[str, int, int]:
    match = _PART.fullmatch(piece)
    if match is None:
        raise ParameterError("templates", word, "made of parts such as word[0], shape[-1..1], lower[-1]|lower[0]")
    if _FIELDS.fullmatch(match["field"]) is None:
        raise ParameterError(
            "templates", word, "made of the fields word, lower, digits, shape, short, case, kind, length, "
            "prefixN, suffixN, lowprefixN, lowsuffixN, cluster:NAME, gazetteer:NAME"
        )  # fmt: skip
    low = int(match["low"])
    high = int(match["high"]) if match["high"] is not None else low
    if low > high or max(abs(low), abs(high)) > _FARTHEST:
        raise ParameterError("templates", word, f"written with rising offsets from -{_FARTHEST} to {_FARTHEST}")
    return match["field"], low, high
