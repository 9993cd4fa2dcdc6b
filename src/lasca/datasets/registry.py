"""The table of data sets: files with public address and SHA-256, licence, what they are, and their loader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lasca.corpus import CrowdCorpus
from lasca.datasets import loaders
from lasca.errors import DatasetError, ParameterError

__all__ = ["REGISTRY", "DataFile", "Dataset", "dataset"]

GITHUB = "https://raw.githubusercontent.com"
TWEETS = "No licence is named for the data, and the tweets belong to their writers: for research, not to be passed on."


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


_ALL = (
    Dataset(
        "tdga",
        "T-DGA: 500 tweets with parts of speech by two experts (gold1, gold2), who differ on 931 of 7,876 tokens",
        (
            DataFile(
                "tdga/annotation-all.txt",
                f"{GITHUB}/copenlu/aggregating-crowd-annotations-ood/eecaa50a32e11f205f40a0961b5f286e3e33f110"
                "/data/POS/annotation-all.txt",
                "8abd41cc00fcc1d1b8c40ec22829cb78348a0c9c4394857cc7f9c5ba6125eae2",
            ),
        ),
        TWEETS,
        "Plank, Hovy, Søgaard: Learning part-of-speech taggers with inter-annotator agreement loss. EACL 2014",
        loaders.tdga,
    ),
    Dataset(
        "inhouse",
        "INHOUSE (Lowlands.test): 200 tweets, 3,064 tokens with universal parts of speech",
        (
            DataFile(
                "tweets/in-house-eval.tsv",
                f"{GITHUB}/coastalcph/supersense-data-twitter/b96e3a6e10b6e001435d831bcdeeeb4b69cc8b7b"
                "/in-house-eval.tsv",
                "848b2e5c7656da1a686d40d63586b1587d4e2a639e93d4e6aa811e9276c03b1e",
            ),
        ),
        TWEETS,
        "Johannsen, Hovy, Martínez Alonso, Plank, Søgaard: More or less supervised supersense tagging of Twitter. "
        "*SEM 2014",
        loaders.inhouse,
    ),
    Dataset(
        "ritter-test",
        "RITTER-TEST: 118 tweets, 2,291 tokens; Penn tags, read as universal parts of speech",
        (
            DataFile(
                "tweets/ritter-eval.tsv",
                f"{GITHUB}/coastalcph/supersense-data-twitter/b96e3a6e10b6e001435d831bcdeeeb4b69cc8b7b/ritter-eval.tsv",
                "dcbe566363c8d125540dc781e2d332c3a28bc8846c25893e4ff786dbdd02c33a",
            ),
        ),
        TWEETS,
        "Ritter, Clark, Mausam, Etzioni: Named entity recognition in tweets. EMNLP 2011; Johannsen et al., *SEM 2014",
        loaders.ritter_test,
    ),
    Dataset(
        "conll2003-mturk",
        "CoNLL-2003 entities by 47 workers of Mechanical Turk: 6,253 sentences, 82,958 tokens, with the gold labels",
        (
            DataFile(
                "conll2003-mturk/crf-ma-NER-task1.zip",
                f"{GITHUB}/UKPLab/arxiv2018-bayesian-ensembles/22064dd8cef5a70ecee8a089baa4b1efd67a89f0"
                "/data/crf-ma-NER-task1.zip",
                "fda929652aa01dc16f46f8ef93ecc765f8c69b955fd699aac641c47496a166b0",
            ),
        ),
        "Reuters text, for research only (see the Reuters Corpora of NIST); the labels came without a licence.",
        "Rodrigues, Pereira, Ribeiro: Sequence labeling with multiple annotators. Machine Learning 95, 2014",
        loaders.conll2003_mturk,
    ),
    Dataset(
        "conll2003",
        "CoNLL-2003 English entities (eng.train, eng.testb): your own licensed copy",
        (
            DataFile("conll2003/eng.train", split="train"),
            DataFile("conll2003/eng.testb", split="testb"),
        ),
        "Reuters text under an agreement with NIST: it cannot be downloaded here, bring your own copy.",
        "Tjong Kim Sang, De Meulder: Introduction to the CoNLL-2003 shared task. CoNLL 2003",
        loaders.conll2003,
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
