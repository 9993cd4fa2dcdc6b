"""Scores: tokens, spans, calibration of probabilities, ambiguity against two golds, agreement of annotators."""

from lasca.evaluate.agreement_scores import Agreement, adjusted_rand_index, agreement, krippendorff_alpha
from lasca.evaluate.alternative import AlternativeTest, PersonTest, alternative_annotator
from lasca.evaluate.crowdtruth_scores import CrowdTruth, crowdtruth
from lasca.evaluate.span_scores import SCHEMES, SpanScores, find_spans, spans, spans_from_codes
from lasca.evaluate.token_scores import Prf, TokenScores, confusion_counts, tokens, tokens_from_codes
from lasca.evaluate.truth_scores import (
    AmbiguityScores,
    Calibration,
    Scores,
    ambiguity,
    auroc,
    average_precision,
    calibration,
    truth_scores,
)

__all__ = [
    "SCHEMES", "Agreement", "AlternativeTest", "AmbiguityScores", "Calibration", "CrowdTruth", "PersonTest", "Prf",
    "Scores", "SpanScores", "TokenScores", "adjusted_rand_index", "agreement", "alternative_annotator", "ambiguity",
    "auroc", "average_precision", "calibration", "confusion_counts", "crowdtruth", "find_spans", "krippendorff_alpha",
    "spans", "spans_from_codes", "tokens", "tokens_from_codes", "truth_scores",
]  # fmt: skip
