"""What the names of columns say, in tables of any origin: the sequence, the token, the annotator, the label, the role.

Names are compared without case, and with blanks, hyphens and points as underscores: "Sentence ID" is `sentence_id`, and
so is "sentenceId".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

__all__ = ["AUTHORS", "CHAPTERS", "DOCUMENTS", "END", "FILES", "LAYERS", "NAMES", "PAIRS", "QUOTES", "SENTENCES",
           "SETTLED", "START", "TOKEN_NAMES", "are_people", "by_question", "decided", "has_places", "in_order",
           "is_level", "is_person", "may_count", "mere_experts", "named", "over_sentences", "placed",
           "plain_name", "role_of", "signed", "speaker"]  # fmt: skip

PEOPLE = ("annotator", "worker", "performer", "user", "rater", "coder", "judge", "labeler", "labeller", "turker",
          "turk", "assessor", "evaluator", "participant", "contributor", "crowdworker")  # fmt: skip
NAMES: Mapping[str, tuple[str, ...]] = {
    "sequence": ("sequence", "sequence_id", "sentence", "sentence_id", "sent_id", "sent", "sent_idx", "sentence_idx",
                 "sentence_index", "sentence_#", "document", "doc", "doc_id", "document_id"),
    "position": ("position", "index", "token_id", "token_index", "token_idx", "token_position", "tok_id", "word_id",
                 "word_idx", "word_index", "idx", "i"),
    "token": ("token", "word", "form", "tok", "text", "sentence", "document", "data"),
    "annotator": (*(who + end for who in PEOPLE for end in ("", "_id", "_name", "_email", "id", "name", "email")),
                  "annotated_by", "annotatedby", "labeled_by", "labelled_by", "annotation_agent", "amt_worker_ids"),
    "label": ("label", "tag", "ner_tag", "pos_tag", "output", "answer", "class", "annotation", "rating", "response"),
    "task": ("task", "task_id", "item", "item_id", "question", "question_id", "questionid", "instance_id", "unit_id",
             "orig_id"),
    "role": ("role",),
    "time": ("time", "timestamp", "date", "created_at", "updated_at"),
    "probability": ("probability", "proba", "prob"),
}  # fmt: skip
AUTHORS = (*NAMES["annotator"], "annotators", "created_by", "createdby", "tagged_by", "marked_by", "added_by",
           "completed_by", "author", "creator", "owner")  # fmt: skip
"""Who made a single span. (Of a whole text its author wrote it, and its owner has it.)"""
SENTENCES = tuple(name for name in NAMES["sequence"] if name.startswith("sent"))
DOCUMENTS = ("document", "document_id", "doc", "doc_id", "docid", "doc_idx", "article_id")
"""Where sentences and documents have a column each, sentences may be counted anew in every document."""
FILES = ("file", "filename", "file_name", "file_id", "doc_name")
CHAPTERS = ("book", "chapter", "chapter_id", "section", "section_id", "page", "paragraph", "paragraph_id", "para",
            "para_id")  # fmt: skip
"""And so they may in every part of a document."""
TOKEN_NAMES = ("token", "tokens", "word", "words", "form", "tok", "text")
START = ("start", "begin", "start_offset", "startoffset", "begin_offset", "start_char", "char_start",
         "start_position", "start_idx")  # fmt: skip
END = ("end", "end_offset", "endoffset", "end_char", "char_end", "end_position", "end_idx")
PAIRS = ("span", "offset", "offsets", "position", "pos", "indices", "range", "char_span", "char_range", "location")
"""Where both stand in a list."""
LAYERS = ("ner", "pos", "upos", "xpos", "chunk", "lemma", "stem", "entity", "tags", "labels", "iob", "bio", "deprel")
"""Columns that say something else of a token than annotators do."""
_LEVEL = re.compile(r"(?:^|_)(?:coarse|fine|nested|inner|outer|level|layer)(?:_|\d|$)")
QUOTES = ("entity", "span", "quote", "mention", "entity_text", "span_text", "surface", "highlight", "highlighted_text",
          "selected_text", "selection", "phrase", "excerpt")  # fmt: skip
PLACES = {"char", "character", "token", "word", "span", "offset", "idx", "index", "pos", "position", "entity"}
"""What columns of places are called beside start and end: first_token, char_offset."""
SAID = (*NAMES["label"], "score", "vote", "judgment", "judgement", "choice", "code")
_NUMBERED = re.compile(
    r"(?P<stem>.*?[^\W\d_])[\s_.:-]*(?P<end>\d+|(?<=[\s_.:-])[A-Za-z])(?P<rest>(?:[\s_.:-]+[^\W\d_]+)*)"
)
YES_NO = {"yes", "no", "true", "false", "y", "n"}
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
_PERSON = re.compile(
    r"(?:^|[^a-z])(?:ann?|annot|annotat\w*|raters?|coders?|workers?|judges?|label+ers?|users?|experts?|reviewers?|"
    r"taggers?|students?|persons?|evaluators?)(?:[^a-z]|$)",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"predict|model|machine|gpt|llama|claude|gemini|gemma|mi[sx]tral|qwen|deepseek|langextract|^spacy|^stanza|corenlp|"
    r"^(?:system|auto(?:matic(?:ally)?)?|baseline|pre[-_ ]?annotat\w*)$|"
    r"(?:^|[^a-z])(?:preds?|llms?|(?:ro|al|de|distil|camem|bio|sci)?berta?)(?:[^a-z]|$)",
    re.IGNORECASE,
)
SETTLED = re.compile(r"final|merged|reconciled|harmoni[sz]ed|aggregated|resolved|agreed", re.IGNORECASE)
"""Whoever is called so in a table decided, however few others there are: it may be read in pieces."""
INITIALS = 3  # letters that a person may be called by: MV is no majority vote
_FIRST_NAME = re.compile(
    r"(?:Ro|Al)?[Bb]erta?|"
    r"(?:Claude|Gemma) (?!Opus|Sonnet|Haiku|Instant|Code|AI\b|Label|Pred|Annot|Model|Tag)[A-Z][\w'.-]+"
)
"""Of people: Albert, Claude Dupont. (Whoever is called Claude and nothing else counts as a model.)"""
_GOLD = re.compile(
    r"golds?(?:[\d\W_]\w*|standard)?|ground_?truth|truth|curat(?:ion|ed|or)|adjudicat(?:ed|ion|or)|expert|"
    r"(?:\w+[_-])?(?:consensus|majority(?:_?vot\w+)?)",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"(?:^|[^a-z])gold(?:s|en|[\W_]*(?:standard|label|annot|tag|truth|span)\w*)?(?:$|[^a-z])|majority|consensus|^final|adjudicat|aggregat|^agreed|^merged|^reconcil|^harmoni[sz]|truth|curat|"
    r"(?:^|[ _-])(?:true|reference|actual|maj|mv|resolved)(?:$|[ _-])|^(?:label|class|category)$",
    re.IGNORECASE,
)


def plain_name(name: str) -> str:
    """Return a name as it is compared: lower case, with underscores for blanks, hyphens and points.

    >>> plain_name("Sentence #"), plain_name("annotatorId"), plain_name("HITId")
    ('sentence_#', 'annotator_id', 'hitid')
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z][A-Za-z])", "_", name.strip().lstrip("!# ") or name)
    return re.sub(r"[\s.-]+", "_", words.lower())


def named(header: Sequence[str], usual: Sequence[str]) -> int | None:
    """Return the first column that has one of the usual names, in the order of these."""
    plain = [plain_name(name) for name in header]
    return next((plain.index(name) for name in usual if name in plain), None)


def placed(span: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a span says by plain names, with its places as start and end if they stand in a list of two."""
    plain = {plain_name(key): value for key, value in span.items()}
    pairs = (plain[key] for key in PAIRS if isinstance(plain.get(key), list) and len(plain[key]) == 2)
    pair = next((pair for pair in pairs if all(type(at) is int for at in pair)), None)
    return plain if pair is None or {*START, *END} & set(plain) else {**plain, "start": pair[0], "end": pair[1]}


def in_order(span: Any) -> Any:
    """Return [start, end, label] of [label, start, end], and anything else as it is."""
    turned = isinstance(span, list) and [type(part) for part in span] == [str, int, int]
    return [*span[1:], span[0]] if turned else span


def over_sentences(header: Sequence[str], sequence: str) -> list[int]:
    """Return the columns of documents and their parts, in each of which sentences may be counted anew."""
    if plain_name(sequence) not in SENTENCES:
        return []
    document = named(header, (*DOCUMENTS, *FILES))
    parts = [k for k, name in enumerate(header) if plain_name(name) in CHAPTERS]
    return parts if document is None else [document, *parts]


def has_places(header: Sequence[str]) -> bool:
    """Say whether columns name where something begins and ends: the rows are about parts of texts."""
    parts = [set(plain_name(name).split("_")) for name in header]
    parts = [own for own in parts if not own & {"time", "date", "timestamp", "at"}]  # of the work
    first, last = {"from", "first", "offset"}, {"to", "last", "length"}
    starts = any(own & {"start", "begin"} or (own & first and own <= PLACES | first) for own in parts)
    return starts and any("end" in own or (own & last and own <= PLACES | last) for own in parts)


def is_level(name: str) -> bool:
    """Say whether a column is called as a level of labels is: fine_ner_tags, nested_ner."""
    return _LEVEL.search(plain_name(name)) is not None


def is_person(name: str) -> bool:
    """Say whether a column is called as people are: annotator_1, rater B, ann_ada."""
    return _PERSON.search(name) is not None


def are_people(names: Sequence[str]) -> bool:
    """Say whether columns are called as people, one of them at least, or are numbered: prompt_1, prompt_2."""
    stems = {re.sub(r"[ _.-]*(?:\d+|[a-z])$", "", name.strip().lower()) for name in names}
    return any(map(is_person, names)) or (len(stems) == 1 and len(names) > 1 and "" not in stems)


def may_count(names: Sequence[str], labels: Iterable[str]) -> bool:
    """Say whether columns may be questions (yes and no) or counts, rather than what people said."""
    plain = all(label.lower() in YES_NO or _NUMBER.fullmatch(label) for label in labels)
    return plain and not all(map(is_person, names))


def by_question(names: Sequence[str]) -> list[list[str]]:
    """Return the names of each question, if all people answered several: rater1_toxic, rater1_rude, or rater1_conf."""
    parts = {name: re.split(r"[\s_.:-]+", name.strip().lower()) for name in names}
    least = min(map(len, parts.values()), default=0)
    for cut, person in product((*range(1, least + 1), *range(-least, 0)), (0, 1)):
        groups: dict[str, list[str]] = {}
        people = set()
        for name, own in parts.items():
            ends = "_".join(own[:cut]), "_".join(own[cut:])
            people.add(ends[person])
            groups.setdefault(ends[1 - person], []).append(name)
        whole = len(people) > 1 and all(len(group) == len(people) for group in groups.values())
        if len(groups) > 1 and whole and any(map(is_person, people)):
            return list(groups.values())
    return []


def signed(names: Sequence[str]) -> dict[str, str]:
    """Return the columns of labels beside which stands who gave each of them: label_1, worker_1, label_2, worker_2."""
    stems: dict[str, dict[str, str]] = {}
    for name in names:
        if (found := _NUMBERED.fullmatch(name.strip())) is not None:
            stems.setdefault(plain_name(found["stem"] + found["rest"]), {})[found["end"]] = name
    pairs = [
        {own[end]: who[end] for end in own}
        for stem, own in stems.items()
        for other, who in stems.items()
        if {stem, stem.split("_")[-1]} & {*SAID}
        and other in NAMES["annotator"]
        and own.keys() == who.keys()
        and len(own) > 1
    ]
    return pairs[0] if len(pairs) == 1 else {}


def role_of(name: str) -> str:
    """Return who speaks in a column of labels, by its name: a "gold" (it was decided), a "model", or an "annotator"."""
    return "gold" if _DECIDED.search(name) else speaker(name)


def speaker(name: str) -> str:
    """Return the role of one who, or whose file or folder, is called so.

    A "gold" (gold, curator), a "model" (gpt-4), or an "annotator" (Robert, ann@claude.org).
    """
    if _GOLD.fullmatch(name):
        return "gold"
    person = "@" in name or _FIRST_NAME.fullmatch(name)
    return "model" if _MODEL.search(name) and not person else "annotator"


def decided(people: Sequence[str]) -> list[str]:
    """Return the one who is called as a decision (final, merged) beside two people or more; else nobody."""
    found = [name for name in people if role_of(name) == "gold" and len(name) > INITIALS and "@" not in name]
    return found if len(found) == 1 and len(people) > 2 else []


def mere_experts(golds: Collection[str]) -> list[str]:
    """Return the experts among golds who are annotators: something else was decided beside what they said."""
    experts = [name for name in golds if name.lower() == "expert"]
    return experts if len(experts) < len(golds) else []
