"""The CRF engine on arrays: used by the tagger, by Sembler and by the sequence model.

Five things, in the order they are used:

1. `Extractor(templates="ner").fit(tokens, offsets)` reads templates, builds the dictionary of features and
   returns a `Features` record of all sequences (two-level: tokens → bundles → feature ids). Extract once;
   training on a part of the sequences copies nothing.
2. `fit(features, targets, n_labels, l2=1.0, ...)` returns `Weights`. Targets are one of: int labels per token
   with −1 for unknown (summed over); float (n_tokens, n_labels), a distribution per token; bool
   (n_tokens, n_labels), the labels a token may have. `sequences=indices` trains on a part, `sequence_weights` has
   one weight per sequence of the record, `init=weights` is a warm start, `max_iter` bounds the iterations,
   `objective="cost-sensitive"` with `costs=cost_matrix(confusion, n_labels)`. `states="all"` (default) has a weight
   for every feature and label, so the space does not depend on the targets: what EM wants;
   `states="observed"` is smaller and faster where labels are fixed.
3. `marginals(features, weights, sequences=None)` returns float32 (n_tokens, n_labels); rows of sequences that were
   not asked for are 0. Given `out`, only the rows of these sequences are written (cross-fitting).
4. `viterbi(features, weights, sequences=None)` returns int16 labels (−1 where not asked for);
   `n_best(features, weights, n)` the n best label sequences of each with their log-probabilities.
5. `perceptron(features, labels, n_labels)` – averaged perceptron, a quick start.

    from lasca import crf
    features = crf.Extractor(templates="ner").fit(corpus.tokens, corpus.offsets)
    weights = crf.fit(features, proba, l2=1.0, max_iter=60, sequences=train, n_threads=2)
    proba[...] = crf.marginals(features, weights, sequences=test)
    weights = crf.fit(features, proba, init=weights, max_iter=10)      # the next round of EM

`n_threads` never changes a result, only the time: sums run over chunks that depend on the data alone.
The penalty is l2 · ‖θ‖² (CRFsuite's c2); a prior of variance v means l2 = 1 / (2 v).
"""

from __future__ import annotations

from lasca.crf.decode import marginals, n_best, viterbi
from lasca.crf.extract import Extractor
from lasca.crf.features import Features, ParameterSpace, Weights
from lasca.crf.objective import Objective, cost_matrix
from lasca.crf.optimise import Iteration, Minimum, minimise
from lasca.crf.templates import TEMPLATE_SETS, Templates
from lasca.crf.training import fit, perceptron

__all__ = [
    "TEMPLATE_SETS", "Extractor", "Features", "Iteration", "Minimum", "Objective", "ParameterSpace", "Templates",
    "Weights", "cost_matrix", "fit", "marginals", "minimise", "n_best", "perceptron", "viterbi",
]  # fmt: skip
