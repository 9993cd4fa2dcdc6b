"""A corpus that `CrowdCorpus.save` or `lasca shard` wrote: a folder of corpus.json and tables in Arrow or Parquet.

```
corpus.json  sequences.arrow  tokens.arrow  annotations.arrow
```

The tables are memory-mapped, so the folder is read where it lies; a zip of it must be unpacked first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lasca.corpus import CrowdCorpus
from lasca.corpus.shards import ShardedCorpus, is_sharded
from lasca.errors import FormatError
from lasca.formats.base import SourceFile

__all__ = ["read", "sniff"]


def read(files: Sequence[SourceFile]) -> CrowdCorpus:
    """Load the corpus in the folder these files lie in."""
    header = next((file for file in files if file.name.split("/")[-1] == "corpus.json"), None)
    if header is None:
        raise FormatError("there is no corpus.json: this is not a folder that CrowdCorpus.save wrote")
    if not isinstance(header.data, Path):
        raise header.error("a saved corpus is read from a folder", hint="Unpack the zip first")
    folder = header.data.parent
    return ShardedCorpus.open(folder).whole() if is_sharded(folder) else CrowdCorpus.load(folder)


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much this looks like a saved corpus: 0 to 1."""
    names = {file.name for file in files}
    has_tables = names >= {"tokens.arrow", "annotations.arrow"} or names >= {"tokens.parquet", "annotations.parquet"}
    return 1.0 if "corpus.json" in names and (has_tables or "shards/00000/annotations.arrow" in names) else 0.0
