"""Closing the loop: what people should decide (the queue), what they decided, and what the rest is worth."""

from lasca.review.queue import Item, Queue, make_queue

__all__ = ["Item", "Queue", "make_queue"]
