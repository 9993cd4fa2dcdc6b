"""Taggers with a network: they need torch, which the extra `torch` installs."""
