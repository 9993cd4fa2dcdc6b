"""Sequence models: dense variational Bayes and EM over enumerated paths, and the evidence they bound."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import digamma

from naive.chains import chain_paths, chain_sums
from naive.tokens import dirichlet_expectation


def sequence_annotations(corpus) -> list[tuple[int, int, int, int]]:
    """(token, annotator, label before or T, label given) of every annotation, by dictionaries."""
    T = corpus.n_labels
    given = {
        (i, int(corpus.annotation_annotator[j])): int(corpus.annotation_label[j])
        for i in range(corpus.n_tokens)
        for j in range(corpus.token_start[i], corpus.token_start[i + 1])
    }
    firsts = set(corpus.offsets.tolist())
    return [(i, a, T if i in firsts else given.get((i - 1, a), T), s) for (i, a), s in given.items()]


def annotator_prior(kind: str, T: int, correct: float, wrong: float, allowed: np.ndarray) -> np.ndarray:
    """Pseudo-counts (label before, true, given) of confusion matrices; the last row of `allowed` is for none before.

    Only for schemes without rules or for IOB2 labels in the order B-x, B-y, …, I-x, I-y, …, O.
    """
    prior = np.full((T + 1, T, T), wrong / max(T - 1, 1))
    for t in range(T):
        prior[:, t, t] = correct
    if kind != "seq" or allowed.all():
        return prior
    base, n = prior.copy(), T // 2
    for before in range(T + 1):
        for given in np.flatnonzero(~allowed[before]):
            prior[before, :, given] = 0.01
        for given in np.flatnonzero(~allowed[before]):
            instead = given - n if before >= 2 * n else n + before % n  # begin the type, or go on with the own one
            prior[before, :, instead] += base[before, :, given]
    return prior


def annotator_step(
    kind: str,
    triples: list[tuple[int, int, int, int]],
    q: np.ndarray,
    prior: np.ndarray,
    L: int,
    luck: np.ndarray,
    shows: list[int],
) -> tuple[np.ndarray, float, np.ndarray]:
    """Dense E log p(given | state) as (annotator, before, state, given), its KL, and, for spam, the share of luck."""
    K, T = len(shows), prior.shape[2]
    correct, wrong = prior[T, 0, 0], prior[T, 0].sum() - prior[T, 0, 0] if kind != "seq" else 0.0
    n = np.zeros((L, T + 1, K, T))
    for i, a, before, s in triples:
        n[a, before if kind == "seq" else T, :, s] += q[i]
    kl, log = 0.0, np.zeros((L, T + 1, K, T))
    for a in range(L):
        right = np.array([n[a, T, k, shows[k]] for k in range(K)])
        if kind in ("seq", "cm"):
            for before in range(T + 1):
                for k in range(K):
                    posterior = prior[before, shows[k]] + n[a, before, k]
                    log[a, before, k] = digamma(posterior) - digamma(posterior.sum())
                    kl += dirichlet_kl(posterior, prior[before, shows[k]])
            if kind == "cm":
                log[a] = log[a, T]
        elif kind in ("acc", "cv"):
            both = np.stack([right, n[a, T].sum(axis=1) - right], axis=1)
            groups = both if kind == "cv" else both.sum(axis=0, keepdims=True)
            for g in groups:
                kl += dirichlet_kl(g + np.array([correct, wrong]), np.array([correct, wrong]))
            for k in range(K):
                alpha = groups[k if kind == "cv" else 0] + np.array([correct, wrong])
                expected = digamma(alpha) - digamma(alpha.sum())
                log[a, :, k] = expected[1] - math.log(T - 1)
                log[a, :, k, shows[k]] = expected[0]
        else:
            known = np.array([sum(right[k] for k in range(K) if shows[k] == s) * (1 - luck[a, s]) for s in range(T)])
            drawn = n[a, T].sum(axis=0) - known
            alpha = np.array([known.sum() + correct, drawn.sum() + wrong])
            kl += dirichlet_kl(alpha, np.array([correct, wrong]))
            kl += dirichlet_kl(drawn + wrong / T, np.full(T, wrong / T))
            expected = digamma(alpha) - digamma(alpha.sum())
            guess = expected[1] + digamma(drawn + wrong / T) - digamma((drawn + wrong / T).sum())
            log[a] = guess
            for k, s in enumerate(shows):
                log[a, :, k, s] = np.logaddexp(expected[0], guess[s])
                luck[a, s] = math.exp(guess[s] - log[a, T, k, s])
    return log, kl, luck


def dirichlet_kl(a: np.ndarray, b: np.ndarray) -> float:
    """KL(Dir(a) || Dir(b)) as E[log density] - E[log density]."""
    return dirichlet_expectation(a, a) - dirichlet_expectation(b, a)


def bayesian_sequence(
    corpus,
    kind: str,
    start: np.ndarray,
    rules,
    correct: float,
    wrong: float,
    moves: float,
    words: float,
    steps: int,
    shows: list[int] | None = None,
    label_rules=None,
    known=None,
    frozen=None,
) -> tuple[np.ndarray, list[float]]:
    """Variational Bayes by enumeration from log evidence `start`: the posterior and the ELBO of each step.

    Where there are more states than labels, `rules` are those of the states, `shows` is the label of each state, and
    `label_rules` are those of the labels. `known` (token, label) is False where a label is ruled out. `frozen` (number
    of sequences, their posterior, first states, moves): the first sequences stay as they were, the run begins there.
    """
    T, L, bounds = corpus.n_labels, corpus.n_annotators, corpus.offsets.tolist()
    first, allowed, last = (np.asarray(r, float) for r in rules)
    triples = sequence_annotations(corpus)
    label_rules = rules if label_rules is None else label_rules
    prior = annotator_prior(kind, T, correct, wrong, np.vstack([label_rules[1], label_rules[0]]))
    shows = list(range(T)) if shows is None else shows
    K = len(shows)
    vocabulary = {w: k for k, w in enumerate(dict.fromkeys(corpus.tokens))}
    luck = np.full((L, T), wrong / (wrong + T * correct))
    pi, A, evidence, elbo, kl = first, allowed, start[:, shows], [], 0.0
    for step in range(steps + 1):
        if known is not None:
            evidence = np.where(known[:, shows], evidence, -np.inf)
        q, n_first, n_moves, log_sum = np.zeros((corpus.n_tokens, K)), np.zeros(K), np.zeros((K, K)), 0.0
        if frozen is not None:
            q[: bounds[frozen[0]]], n_first, n_moves = frozen[1], frozen[2].copy(), frozen[3].copy()
        for lo, hi in itertools.pairwise(bounds):
            if frozen is not None and (step == 0 or lo < bounds[frozen[0]]):
                continue
            part, q[lo:hi], expected = chain_sums(chain_paths(evidence[lo:hi], pi, A, last), K)
            log_sum, n_moves = log_sum + part, n_moves + expected
            n_first += q[lo]
        if step:
            elbo.append(log_sum - kl)
        if step == steps:
            break
        log, kl, luck = annotator_step(kind, triples, q, prior, L, luck, shows)
        pi, A, evidence = np.zeros(K), np.zeros((K, K)), np.zeros((corpus.n_tokens, K))
        for out, may, n in [(pi, rules[0], n_first), *zip(A, rules[1], n_moves)]:
            posterior = n[may] + moves
            out[may] = np.exp(digamma(posterior) - digamma(posterior.sum()))
            kl += dirichlet_kl(posterior, np.full(len(posterior), moves))
        for k in range(K):
            posterior = np.full(len(vocabulary), words)
            for i, w in enumerate(corpus.tokens):
                posterior[vocabulary[w]] += q[i, k]
            kl += dirichlet_kl(posterior, np.full(len(vocabulary), words))
            expected = digamma(posterior) - digamma(posterior.sum())
            evidence[:, k] += [expected[vocabulary[w]] for w in corpus.tokens]
        for i, a, before, s in triples:
            evidence[i] += log[a, before, :, s]
    by_label = np.zeros((corpus.n_tokens, T))
    for k, t in enumerate(shows):
        by_label[:, t] += q[:, k]
    return by_label, elbo


def bayesian_sequence_evidence(
    corpus, kind: str, rules, correct: float, wrong: float, moves: float, words: float
) -> float:
    """ln p(labels, words) with all parameters integrated out, over every path of the whole corpus (cm, seq)."""
    T, bounds = corpus.n_labels, corpus.offsets.tolist()
    triples = sequence_annotations(corpus)
    prior = annotator_prior(kind, T, correct, wrong, np.vstack([rules[1], rules[0]]))
    n_words = len(set(corpus.tokens))
    terms = []
    for z in itertools.product(range(T), repeat=corpus.n_tokens):
        starts = [z[i] for i in bounds[:-1]]
        pairs = [(z[i], z[i + 1]) for i in range(corpus.n_tokens - 1) if i + 1 not in bounds]
        ends = [z[i - 1] for i in bounds[1:]]
        if not (all(rules[0][starts]) and all(rules[2][ends]) and all(rules[1][a, b] for a, b in pairs)):
            continue
        draws: dict[tuple, tuple[np.ndarray, list[int]]] = {}
        _add(draws, ("start",), np.where(rules[0], moves, 0.0), starts)
        for a, b in pairs:
            _add(draws, ("move", a), np.where(rules[1][a], moves, 0.0), [b])
        codes = {w: k for k, w in enumerate(dict.fromkeys(corpus.tokens))}
        for i, w in enumerate(corpus.tokens):
            _add(draws, ("word", z[i]), np.full(n_words, words), [codes[w]])
        for i, a, before, s in triples:
            before = before if kind == "seq" else T
            _add(draws, ("crowd", a, before, z[i]), prior[before, z[i]], [s])
        terms.append(sum(_polya(alpha, values) for alpha, values in draws.values()))
    best = max(terms)
    return best + math.log(math.fsum(math.exp(x - best) for x in terms))


def _add(draws: dict, key: tuple, alpha: np.ndarray, values: list[int]) -> None:
    draws.setdefault(key, (alpha, []))[1].extend(values)


def _polya(alpha: np.ndarray, values: list[int]) -> float:
    """Log probability of draws, one after the other, from a Dirichlet-multinomial urn."""
    urn, total = alpha.copy(), 0.0
    for value in values:
        total += math.log(urn[value] / urn.sum())
        urn[value] += 1
    return total


def hmm_crowd(
    corpus,
    crowd: str,
    variational: bool,
    start: np.ndarray,
    rules,
    smoothing: float,
    moves: float,
    words: float,
    steps: int,
    trust: float = 0.0,
    soft=(),
    frozen=None,
) -> tuple[np.ndarray, list[float]]:
    """HMM-Crowd by enumeration: the posterior and the objective of each step, with all variable terms of the priors.

    `trust` are more pseudo-counts of right labels; `soft` are votes (token, annotator, probabilities of labels), whose
    label is summed over (at the start by its probability alone). `frozen` is as in `bayesian_sequence`.
    """
    T, L, bounds = corpus.n_labels, corpus.n_annotators, corpus.offsets.tolist()
    triples = sequence_annotations(corpus)
    codes = {w: k for k, w in enumerate(dict.fromkeys(corpus.tokens))}
    pi, A, last = (np.asarray(r, float) for r in rules)
    evidence, trace, penalty = start, [], 0.0
    given = {(i, a): [np.array(p)] * T for i, a, p in soft}  # how probable each label was given, by true label

    def fitted(n: np.ndarray, pseudo: float) -> np.ndarray:
        nonlocal penalty
        if variational:
            penalty += dirichlet_kl(n + pseudo, np.full(len(n), pseudo))
            return digamma(n + pseudo) - digamma((n + pseudo).sum())
        return mode(n, pseudo)

    def mode(n: np.ndarray, pseudo: float | np.ndarray) -> np.ndarray:
        nonlocal penalty
        p = (n + pseudo) / (n + pseudo).sum()
        penalty -= (pseudo * np.log(p)).sum()
        return np.log(p)

    for step in range(steps + 1):
        q, n_first, n_moves, log_sum = np.zeros((corpus.n_tokens, T)), np.zeros(T), np.zeros((T, T)), 0.0
        if frozen is not None:
            q[: bounds[frozen[0]]], n_first, n_moves = frozen[1], frozen[2].copy(), frozen[3].copy()
        for lo, hi in itertools.pairwise(bounds):
            if frozen is not None and (step == 0 or lo < bounds[frozen[0]]):
                continue
            part, q[lo:hi], expected = chain_sums(chain_paths(evidence[lo:hi], pi, A, last), T)
            log_sum, n_moves = log_sum + part, n_moves + expected
            n_first += q[lo]
        if step:
            trace.append(log_sum - penalty)
        penalty, evidence = 0.0, np.zeros((corpus.n_tokens, T))
        pi, A = np.zeros(T), np.zeros((T, T))
        for out, may, n in [(pi, rules[0], n_first), *zip(A, rules[1], n_moves)]:
            out[may] = np.exp(fitted(n[may], moves))
        for t in range(T):
            n = np.zeros(len(codes))
            for i, w in enumerate(corpus.tokens):
                n[codes[w]] += q[i, t]
            log = fitted(n, words)
            evidence[:, t] += [log[codes[w]] for w in corpus.tokens]
        for a in range(L):
            for t in range(T):
                n = np.zeros(T)
                for i, other, _, s in triples:
                    n[s] += q[i, t] * (other == a)
                for i, other, _ in soft:
                    n += q[i, t] * (other == a) * given[i, other][t]
                if crowd == "matrix":
                    log = mode(n, smoothing + trust * np.eye(T)[t])
                else:
                    right, wrong = mode(np.array([n[t], n.sum() - n[t]]), smoothing + trust * np.eye(2)[0])
                    log = np.full(T, wrong - math.log(T - 1))
                    log[t] = right
                for i, other, _, s in triples:
                    evidence[i, t] += log[s] * (other == a)
                for i, other, p in soft:
                    if other == a:
                        both = np.array(p) * np.exp(log)
                        evidence[i, t] += math.log(both.sum())
                        given[i, a] = [*given[i, a][:t], both / both.sum(), *given[i, a][t + 1 :]]
    return q, trace
