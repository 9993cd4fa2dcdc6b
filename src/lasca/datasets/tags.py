"""RITTER-TEST's tags as universal parts of speech, and its tokens as INHOUSE and T-DGA write them.

The Penn tags follow the mapping of Petrov, Das, McDonald (A universal part-of-speech tagset, LREC 2012), except where
INHOUSE, the corpus RITTER-TEST is compared with, does otherwise:

| tag | here | Petrov et al. | why |
|---|---|---|---|
| TO | ADP | PRT | all 65 "to" of INHOUSE are ADP |
| PRP$ | DET | PRON | "my", "your" are DET in INHOUSE |
| EX | PRON | DET | "there" is PRON in INHOUSE and T-DGA |
| USR | NOUN | – | all @USER of INHOUSE are NOUN |
| HT | NOUN | – | all hashtags of INHOUSE are NOUN |
| URL | NOUN | – | all URL of INHOUSE are NOUN |
| RT | X | – | a mark of Twitter, no word (INHOUSE has one, tagged VERB; T-DGA four) |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["PENN_TO_UNIVERSAL", "normalised"]

_TAGS = {
    ".": "# $ '' `` ( ) , . : -LRB- -RRB-",
    "ADJ": "JJ JJR JJS",
    "ADP": "IN TO",
    "ADV": "RB RBR RBS WRB",
    "CONJ": "CC",
    "DET": "DT PDT PRP$ WDT",
    "NOUN": "NN NNP NNPS NNS USR HT URL",
    "NUM": "CD",
    "PRON": "EX PRP WP WP$",
    "PRT": "POS RP",
    "VERB": "MD VB VBD VBG VBN VBP VBZ",
    "X": "FW LS RT SYM UH",
}
PENN_TO_UNIVERSAL: Mapping[str, str] = MappingProxyType(
    {penn: tag for tag, row in _TAGS.items() for penn in row.split()}
)

_ADDRESS = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9][0-9.,:/]*")


def normalised(token: str, tag: str | None, numbers: bool = False) -> str:
    """Return a token as INHOUSE writes it: @USER for users, URL for addresses, on request NUMBER (but 2 and 4 stay)."""
    if tag == "USR":
        return "@USER"
    if _ADDRESS.fullmatch(token):
        return "URL"
    if numbers and _NUMBER.fullmatch(token) and token not in ("2", "4"):
        return "NUMBER"
    return token
