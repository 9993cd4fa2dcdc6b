"""Numerical kernels: arrays in, arrays out; they know nothing of corpora, names or files."""
