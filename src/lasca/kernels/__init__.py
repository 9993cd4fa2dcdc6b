"""Numerical kernels: arrays in, arrays out; they know nothing of corpora, names or files."""

from lasca.kernels.compiled import ensure_place

ensure_place()
