"""Slow, obvious versions of every kernel: enumeration, finite differences, direct ratios of densities.

One file per subject; tests say `import naive` and `naive.mace(...)`. A new oracle is written here first, then listed.
"""

from naive.ambiguity import crowdtruth_step, rank1_error, rank1_matrix, rank1_svd, two_truths_token
from naive.chains import chain_paths, chain_sums
from naive.clusters import hc_draw_labels, hc_draw_prior, hc_log_joint, hc_state_probabilities
from naive.crf import (
    agreement_loss,
    crf_attributes,
    crf_objective,
    crf_paths,
    crf_score,
    sembler,
    weighed_perceptron,
)
from naive.families import find_families, pair_agreement
from naive.hmm import PlainHmm, Said, border_states, hmm_counts, hmm_step, plain_regression
from naive.joint import crf_ma, raykar
from naive.sequences import bayesian_sequence, bayesian_sequence_evidence, hmm_crowd
from naive.tokens import (
    dawid_skene,
    dirichlet_expectation,
    ds_counts,
    ds_posterior,
    ds_with_soft,
    glad_log_posterior,
    ibcc,
    incremental_ds,
    mace,
    mace_e_step,
)

__all__ = [
    "PlainHmm",
    "Said",
    "agreement_loss",
    "bayesian_sequence",
    "bayesian_sequence_evidence",
    "border_states",
    "chain_paths",
    "chain_sums",
    "crf_attributes",
    "crf_ma",
    "crf_objective",
    "crf_paths",
    "crf_score",
    "crowdtruth_step",
    "dawid_skene",
    "dirichlet_expectation",
    "ds_counts",
    "ds_posterior",
    "ds_with_soft",
    "find_families",
    "glad_log_posterior",
    "hc_draw_labels",
    "hc_draw_prior",
    "hc_log_joint",
    "hc_state_probabilities",
    "hmm_counts",
    "hmm_crowd",
    "hmm_step",
    "ibcc",
    "incremental_ds",
    "mace",
    "mace_e_step",
    "pair_agreement",
    "plain_regression",
    "rank1_error",
    "rank1_matrix",
    "rank1_svd",
    "raykar",
    "sembler",
    "two_truths_token",
    "weighed_perceptron",
]
