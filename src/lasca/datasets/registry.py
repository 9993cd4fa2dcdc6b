"""The table of data sets: files with public address and SHA-256, licence, what they are, and their loader.

RITTER-TEST is read with universal parts of speech and with tokens as INHOUSE and T-DGA write them. The Penn tags follow
the mapping of Petrov, Das, McDonald (A universal part-of-speech tagset, LREC 2012), except where INHOUSE, the corpus
RITTER-TEST is compared with, does otherwise:

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from lasca.corpus import CrowdCorpus
from lasca.errors import DatasetError, FormatError, ParameterError
from lasca.estimator import check_choice
from lasca.formats import conll_columns, conll_folder
from lasca.formats.base import files_of
from lasca.schemes import convert_corpus

__all__ = [
    "PENN_TO_UNIVERSAL", "REGISTRY", "DataFile", "Dataset", "conll2003", "dataset", "inhouse", "normalised", "tdga",
]  # fmt: skip

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
ENTITY_LABELS = ("B-LOC", "B-MISC", "B-ORG", "B-PER", "I-LOC", "I-MISC", "I-ORG", "I-PER", "O")
GITHUB = "https://raw.githubusercontent.com"
TWEETS = "No licence is named for the data, and the tweets belong to their writers: for research, not to be passed on."


def normalised(token: str, tag: str | None, numbers: bool = False) -> str:
    """Return a token as INHOUSE writes it: @USER for users, URL for addresses, on request NUMBER (but 2 and 4 stay)."""
    if tag == "USR":
        return "@USER"
    if _ADDRESS.fullmatch(token):
        return "URL"
    if numbers and _NUMBER.fullmatch(token) and token not in ("2", "4"):
        return "NUMBER"
    return token


def tdga(path: Path) -> CrowdCorpus:
    """Read T-DGA: two golds, "gold1" and "gold2" (one cell of gold2 is empty)."""
    return conll_columns.read(files_of(path), golds=("gold1", "gold2"), separator="tab", header=False)


def inhouse(path: Path) -> CrowdCorpus:
    """Read INHOUSE: the parts of speech are "gold", the supersenses in column 3 are left out."""
    return conll_columns.read(files_of(path), columns=("token", "gold", "_"), separator="tab", header=False)


def ritter_test(path: Path, tags: str = "universal", normalise: bool = True, numbers: bool = False) -> CrowdCorpus:
    """Read RITTER-TEST as "gold": Penn tags turned into the universal ones INHOUSE has (`tags="penn"` keeps them).

    `normalise` writes users as @USER and addresses as URL, as INHOUSE and T-DGA do; `numbers` also writes NUMBER for
    numbers but 2 and 4, which these corpora do as well.
    """
    check_choice("tags", tags, ("universal", "penn"))
    corpus = conll_columns.read(files_of(path), columns=("token", "gold", "_"), separator="tab", header=False)
    names = corpus.label_names(corpus.golds["gold"])
    tokens = [corpus.sequence(s) for s in range(corpus.n_sequences)]
    counts = dict(corpus.load_report.counts)
    if normalise:
        new = [[normalised(t, n, numbers) for t, n in zip(*pair)] for pair in zip(tokens, names)]
        counts["tokens normalised"] = sum(a != b for x, y in zip(tokens, new) for a, b in zip(x, y))
        tokens = new
    if tags == "universal":
        names = [[_universal(path, name) for name in row] for row in names]
        counts["tags mapped from Penn"] = corpus.n_tokens
    report = replace(corpus.load_report, counts=counts)
    return CrowdCorpus.from_sequences(tokens, {}, golds={"gold": names}, load_report=report)


def _universal(path: Path, tag: str | None) -> str | None:
    if tag is not None and tag not in PENN_TO_UNIVERSAL:
        raise FormatError("this is no tag of RITTER-TEST", path=path, got=tag)
    return None if tag is None else PENN_TO_UNIVERSAL[tag]


def conll2003_mturk(path: Path, typed_labels: bool = False, partial: str = "shrink") -> CrowdCorpus:
    """Read the labels of the Turk workers; the gold is "gold", the labels are the nine IOB2 labels."""
    corpus = conll_folder.read(files_of(path), typed_labels=typed_labels, partial=partial)
    if corpus.labels != ENTITY_LABELS:
        raise FormatError(f"the labels should be {', '.join(ENTITY_LABELS)}", path=path, got=", ".join(corpus.labels))
    return corpus


def conll2003(path: Path, split: str = "train", scheme: str = "IOB2") -> CrowdCorpus:
    """Read eng.train or eng.testb: entities of column 4 as "gold", from IOB1 into `scheme` ("IOB1" as they are)."""
    corpus = conll_columns.read(files_of(path), columns=("token", "_", "_", "gold"), separator="space", header=False)
    report = replace(corpus.load_report, notes=(f"split {split}; the entities were IOB1 and are {scheme} now",))
    return convert_corpus(replace(corpus, load_report=report), scheme)


@dataclass(frozen=True)
class DataFile:
    """A file: its path below LASCA_DATA, its public address and SHA-256 (None: a user brings it), and its split."""

    path: str
    url: str | None = None
    sha256: str | None = None
    split: str | None = None


@dataclass(frozen=True)
class Dataset:
    """A public corpus: name, what it is, files, licence note, whom to cite, and the function that reads a file."""

    name: str
    title: str
    files: tuple[DataFile, ...]
    licence: str
    citation: str
    loader: Callable[..., CrowdCorpus]

    @property
    def downloadable(self) -> bool:
        """Whether all files have a public address."""
        return all(file.url is not None for file in self.files)

    def file(self, split: str | None = None) -> DataFile:
        """Return the file of a split, or the first (mostly the only) one."""
        if split is None:
            return self.files[0]
        splits = {file.split: file for file in self.files}
        if split not in splits:
            known = ", ".join(repr(name) for name in splits if name is not None)
            raise ParameterError("split", split, f"one of {known}" if known else f"left out: {self.name} has no splits")
        return splits[split]


_COPENLU = f"{GITHUB}/copenlu/aggregating-crowd-annotations-ood/eecaa50a32e11f205f40a0961b5f286e3e33f110"
_COASTAL = f"{GITHUB}/coastalcph/supersense-data-twitter/b96e3a6e10b6e001435d831bcdeeeb4b69cc8b7b"
_UKP = f"{GITHUB}/UKPLab/arxiv2018-bayesian-ensembles/22064dd8cef5a70ecee8a089baa4b1efd67a89f0"
_TDGA = "8abd41cc00fcc1d1b8c40ec22829cb78348a0c9c4394857cc7f9c5ba6125eae2"
_INHOUSE = "848b2e5c7656da1a686d40d63586b1587d4e2a639e93d4e6aa811e9276c03b1e"
_RITTER = "dcbe566363c8d125540dc781e2d332c3a28bc8846c25893e4ff786dbdd02c33a"
_MTURK = "fda929652aa01dc16f46f8ef93ecc765f8c69b955fd699aac641c47496a166b0"
_ALL = (
    Dataset(
        "tdga",
        "T-DGA: 500 tweets with parts of speech by two experts (gold1, gold2), who differ on 931 of 7,876 tokens",
        (DataFile("tdga/annotation-all.txt", f"{_COPENLU}/data/POS/annotation-all.txt", _TDGA),),
        TWEETS,
        "Plank, Hovy, Søgaard: Learning part-of-speech taggers with inter-annotator agreement loss. EACL 2014",
        tdga,
    ),
    Dataset(
        "inhouse",
        "INHOUSE (Lowlands.test): 200 tweets, 3,064 tokens with universal parts of speech",
        (DataFile("tweets/in-house-eval.tsv", f"{_COASTAL}/in-house-eval.tsv", _INHOUSE),),
        TWEETS,
        "Johannsen, Hovy, Martínez Alonso, Plank, Søgaard: More or less supervised supersense tagging of Twitter. "
        "*SEM 2014",
        inhouse,
    ),
    Dataset(
        "ritter-test",
        "RITTER-TEST: 118 tweets, 2,291 tokens; Penn tags, read as universal parts of speech",
        (DataFile("tweets/ritter-eval.tsv", f"{_COASTAL}/ritter-eval.tsv", _RITTER),),
        TWEETS,
        "Ritter, Clark, Mausam, Etzioni: Named entity recognition in tweets. EMNLP 2011; Johannsen et al., *SEM 2014",
        ritter_test,
    ),
    Dataset(
        "conll2003-mturk",
        "CoNLL-2003 entities by 47 workers of Mechanical Turk: 6,253 sentences, 82,958 tokens, with the gold labels",
        (DataFile("conll2003-mturk/crf-ma-NER-task1.zip", f"{_UKP}/data/crf-ma-NER-task1.zip", _MTURK),),
        "Reuters text, for research only (see the Reuters Corpora of NIST); the labels came without a licence.",
        "Rodrigues, Pereira, Ribeiro: Sequence labeling with multiple annotators. Machine Learning 95, 2014",
        conll2003_mturk,
    ),
    Dataset(
        "conll2003",
        "CoNLL-2003 English entities (eng.train, eng.testb): your own licensed copy",
        tuple(DataFile(f"conll2003/eng.{split}", split=split) for split in ("train", "testb")),
        "Reuters text under an agreement with NIST: it cannot be downloaded here, bring your own copy.",
        "Tjong Kim Sang, De Meulder: Introduction to the CoNLL-2003 shared task. CoNLL 2003",
        conll2003,
    ),
)

REGISTRY: Mapping[str, Dataset] = MappingProxyType({entry.name: entry for entry in _ALL})


def dataset(name: str) -> Dataset:
    """Return the entry of a data set, or say which there are."""
    if name not in REGISTRY:
        raise DatasetError(
            "there is no data set of that name", got=name, hint=f"There are: {', '.join(sorted(REGISTRY))}"
        )
    return REGISTRY[name]
