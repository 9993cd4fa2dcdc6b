"""The old place of `Text`, for `robust` while it is being changed."""

from lasca.truth.tempering import Text

__all__ = ["Text"]
