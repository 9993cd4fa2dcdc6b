"""The bench of crowds: what the default is worth beside simple models on corpora of many kinds (see bench.py)."""
