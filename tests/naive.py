"""Slow, obvious versions of every kernel: enumeration, finite differences, direct ratios of densities."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import digamma, gammaln

# --- CRF: enumeration of all label paths (lasca.crf) -----------------------------------------------------------


def crf_paths(n_labels: int, length: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(n_labels), repeat=length))


def crf_score(state: np.ndarray, moves: np.ndarray, ids: list[list[int]], path: tuple[int, ...]) -> float:
    """θ·f of one path: `state` (n_features, n_labels), `ids` the features of each token."""
    node = sum(state[f, t] for token, t in zip(ids, path) for f in token)
    return float(node + sum(moves[a, b] for a, b in itertools.pairwise(path)))


def crf_counts(
    ids: list[list[int]], path: tuple[int, ...], n_features: int, n_labels: int
) -> tuple[np.ndarray, np.ndarray]:
    state, moves = np.zeros((n_features, n_labels)), np.zeros((n_labels, n_labels))
    for token, t in zip(ids, path):
        for f in token:
            state[f, t] += 1
    for a, b in itertools.pairwise(path):
        moves[a, b] += 1
    return state, moves


def crf_target(target: np.ndarray, path: tuple[int, ...]) -> float:
    """How much a path belongs to the target: hard labels (−1 = any), allowed labels (bool), or a distribution."""
    if target.ndim == 1:
        return float(all(t in (-1, p) for t, p in zip(target, path)))
    return float(np.prod([row[p] for row, p in zip(target, path)]))


def crf_cost(target: np.ndarray, path: tuple[int, ...], costs: np.ndarray) -> float:
    """Sum over positions of the cost of the path's label where the target is right; costs[j, t]."""
    total = 0.0
    for k, p in enumerate(path):
        if target.ndim == 1:
            total += 0.0 if target[k] < 0 else costs[p, target[k]]
        elif target.dtype == np.bool_:
            total += 0.0 if target[k, p] else min(costs[p, t] for t in np.flatnonzero(target[k]))
        else:
            total += sum(float(target[k, t]) * costs[p, t] for t in range(len(costs)))
    return total


def crf_objective(
    objective: str, state: np.ndarray, moves: np.ndarray, ids: list[list[int]], target: np.ndarray, costs: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Value of one sequence's objective and its gradient with regard to state and moves."""
    paths = crf_paths(state.shape[1], len(ids))
    scores = np.array([crf_score(state, moves, ids, p) for p in paths])
    counts = [crf_counts(ids, p, *state.shape) for p in paths]
    belongs = np.array([crf_target(target, p) for p in paths])
    cost = np.array([crf_cost(target, p, costs) for p in paths])
    if objective == "cost-sensitive":
        weights = np.exp(scores) * cost / len(ids)
    elif objective == "softmax-margin":
        weights = np.exp(scores + cost)
    else:
        weights = np.exp(scores)
    if target.ndim == 2 and target.dtype != np.bool_:
        value, inside = float(belongs @ scores), belongs
    else:
        value, inside = float(np.log(belongs @ np.exp(scores))), belongs * np.exp(scores) / (belongs @ np.exp(scores))
    value -= float(np.log(weights.sum()))
    share = inside - weights / weights.sum()
    return (
        value,
        sum(s * c[0] for s, c in zip(share, counts)),
        sum(s * c[1] for s, c in zip(share, counts)),
    )


# --- token models: Dawid-Skene, MACE, GLAD by plain loops over (token, annotator, label) triples ------------------


def _shares(votes: list[tuple[int, int, int]], n: int, T: int) -> list[list[float]]:
    mine = [[y for i, _, y in votes if i == token] for token in range(n)]
    return [[ys.count(t) / len(ys) if ys else 0.0 for t in range(T)] for ys in mine]


def ds_counts(
    votes: list[tuple[int, int, int]], proba: list[list[float]], L: int, T: int
) -> tuple[np.ndarray, np.ndarray]:
    """Expected counts n[a, t, s] and n[t]; tokens without votes do not count."""
    counts, totals = np.zeros((L, T, T)), np.zeros(T)
    for i, a, s in votes:
        for t in range(T):
            counts[a, t, s] += proba[i][t]
    for i in {i for i, _, _ in votes}:
        totals += np.array(proba[i])
    return counts, totals


def ds_posterior(
    votes: list[tuple[int, int, int]], psi: np.ndarray, gamma: np.ndarray, n: int
) -> tuple[list[list[float]], float]:
    """p(z_i = t | y) ∝ γ_t Π_l Ψ_l[t, y_il] and Σ_i ln Σ_t of it, by the formula."""
    proba, evidence = [], 0.0
    for token in range(n):
        weights = [gamma[t] * math.prod(psi[a, t, s] for i, a, s in votes if i == token) for t in range(len(gamma))]
        proba.append([w / sum(weights) for w in weights])
        evidence += math.log(sum(weights)) if any(i == token for i, _, _ in votes) else 0.0
    return proba, evidence


def dawid_skene(
    votes: list[tuple[int, int, int]], n: int, L: int, T: int, smoothing: float, agreement: float, steps: int
) -> tuple[np.ndarray, list[float]]:
    """EM from the shares of the votes: posterior after `steps` M steps, and the log posterior after each."""
    proba, trace = _shares(votes, n, T), []
    for _ in range(steps):
        counts, totals = ds_counts(votes, proba, L, T)
        prior = smoothing + agreement * np.eye(T)
        psi = (counts + prior) / (counts + prior).sum(axis=2, keepdims=True)
        gamma = (totals + smoothing) / (totals + smoothing).sum()
        proba, evidence = ds_posterior(votes, psi, gamma, n)
        trace.append(evidence + (prior * np.log(psi)).sum() + smoothing * np.log(gamma).sum())
    return np.array(proba), trace


def ibcc(
    votes: list[tuple[int, int, int]], n: int, L: int, T: int, prior: np.ndarray, class_prior: float, steps: int
) -> tuple[np.ndarray, list[float]]:
    """Variational Bayes from the shares of the votes; the ELBO as E_q[ln p(y, z, Ψ, γ)] − E_q[ln q], term by term."""
    proba, trace = _shares(votes, n, T), []
    for _ in range(steps):
        counts, totals = ds_counts(votes, proba, L, T)
        alpha, nu = counts + prior, totals + class_prior
        e_psi = digamma(alpha) - digamma(alpha.sum(axis=2, keepdims=True))
        e_gamma = digamma(nu) - digamma(nu.sum())
        proba, _ = ds_posterior(votes, np.exp(e_psi), np.exp(e_gamma), n)
        elbo = dirichlet_expectation(prior, alpha) - dirichlet_expectation(alpha, alpha)
        elbo += dirichlet_expectation(np.full(T, class_prior), nu) - dirichlet_expectation(nu, nu)
        for i, a, s in votes:
            elbo += sum(proba[i][t] * e_psi[a, t, s] for t in range(T))
        for i in {i for i, _, _ in votes}:
            elbo += sum(p * (e_gamma[t] - math.log(p)) for t, p in enumerate(proba[i]) if p > 0)
        trace.append(float(elbo))
    return np.array(proba), trace


def dirichlet_expectation(density: np.ndarray, under: np.ndarray) -> float:
    """E[ln Dir(p; density)] for p ~ Dir(under), summed over rows."""
    density = np.broadcast_to(density, under.shape)
    e_log = digamma(under) - digamma(under.sum(axis=-1, keepdims=True))
    rows = gammaln(density.sum(axis=-1)) - gammaln(density).sum(axis=-1) + ((density - 1) * e_log).sum(axis=-1)
    return float(np.sum(rows))


def mace_e_step(
    votes: list[tuple[int, int, int]], n: int, theta: np.ndarray, xi: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """MACE by enumeration of truth and of each vote's coin: p(z), counts of (guessed, known), of guesses, evidence."""
    L, T = xi.shape
    proba, coins, guesses, evidence = np.zeros((n, T)), np.zeros((L, 2)), np.zeros((L, T)), 0.0
    for token in range(n):
        mine = [(a, s) for i, a, s in votes if i == token]
        joint: dict[tuple[int, tuple[int, ...]], float] = {}
        for z in range(T):
            for known in itertools.product((0, 1), repeat=len(mine)):
                p = 1 / T
                for (a, s), k in zip(mine, known):
                    p *= theta[a, 1] * float(s == z) if k else theta[a, 0] * xi[a, s]
                joint[z, known] = p
        total = sum(joint.values())
        evidence += math.log(total)
        for (z, known), p in joint.items():
            proba[token, z] += p / total
            for (a, s), k in zip(mine, known):
                coins[a, k] += p / total
                guesses[a, s] += (1 - k) * p / total
    return proba, coins, guesses, evidence


def mace(
    votes: list[tuple[int, int, int]],
    n: int,
    theta: np.ndarray,
    xi: np.ndarray,
    steps: int,
    *,
    variational: bool,
    theta_prior: tuple[float, float] = (0.5, 0.5),
    xi_prior: float = 10.0,
) -> tuple[np.ndarray, list[float]]:
    """The way of the original program: E, then `steps` times M and E. Returns p(z) and the evidence of each E step."""
    proba, coins, guesses, evidence = mace_e_step(votes, n, theta, xi)
    trace = [evidence]
    for _ in range(steps):
        a, b = coins + np.array(theta_prior), guesses + xi_prior
        if variational:
            theta = np.exp(digamma(a) - digamma(a.sum(axis=1, keepdims=True)))
            xi = np.exp(digamma(b) - digamma(b.sum(axis=1, keepdims=True)))
        else:
            theta, xi = a / a.sum(axis=1, keepdims=True), b / b.sum(axis=1, keepdims=True)
        proba, coins, guesses, evidence = mace_e_step(votes, n, theta, xi)
        trace.append(evidence)
    return proba, trace


def glad_log_posterior(
    votes: list[tuple[int, int, int]],
    ability: np.ndarray,
    log_ease: np.ndarray,
    gamma: np.ndarray,
    smoothing: float,
    mean: tuple[float, float] = (1.0, 1.0),
    sd: tuple[float, float] = (1.0, 1.0),
) -> float:
    """ln p(y, α, ln β, γ) of GLAD up to a constant, by the formula."""
    T, total = len(gamma), 0.0
    for token in sorted({i for i, _, _ in votes}):
        evidence = 0.0
        for t in range(T):
            p = gamma[t]
            for i, a, s in votes:
                if i == token:
                    x = ability[a] * math.exp(log_ease[i])
                    p *= 1 / (1 + math.exp(-x)) if s == t else 1 / (1 + math.exp(x)) / (T - 1)
            evidence += p
        total += math.log(evidence) - (log_ease[token] - mean[1]) ** 2 / (2 * sd[1] ** 2)
    total -= sum((a - mean[0]) ** 2 for a in ability) / (2 * sd[0] ** 2)
    return total + smoothing * float(np.log(gamma).sum())


# --- chains of labels: enumeration of all paths (lasca.kernels.lattice) ------------------------------------------


def chain_paths(
    evidence: np.ndarray, start: np.ndarray, move: np.ndarray, end: np.ndarray
) -> dict[tuple[int, ...], float]:
    """The log weight of every path of positive weight."""
    weights = {}
    for path in itertools.product(range(len(start)), repeat=len(evidence)):
        factors = [start[path[0]], end[path[-1]], *(move[a, b] for a, b in itertools.pairwise(path))]
        log_evidence = [evidence[i, t] for i, t in enumerate(path)]
        if min(factors) > 0 and min(log_evidence) > -math.inf:
            weights[path] = sum(math.log(f) for f in factors) + sum(log_evidence)
    return weights


def chain_sums(weights: dict[tuple[int, ...], float], T: int) -> tuple[float, np.ndarray, np.ndarray]:
    """The log of the sum of all weights, each token's marginals, the expected moves."""
    best = max(weights.values())
    log_sum = best + math.log(math.fsum(math.exp(w - best) for w in weights.values()))
    marginals, moves = np.zeros((len(next(iter(weights))), T)), np.zeros((T, T))
    for path, weight in weights.items():
        p = math.exp(weight - log_sum)
        for i, t in enumerate(path):
            marginals[i, t] += p
        for a, b in itertools.pairwise(path):
            moves[a, b] += p
    return log_sum, marginals, moves


# --- sequence models: dense variational Bayes over enumerated paths, and the evidence it is a bound of -------------


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
    expected = digamma(a) - digamma(a.sum())
    own = gammaln(a.sum()) - gammaln(a).sum() + ((a - 1) * expected).sum()
    other = gammaln(b.sum()) - gammaln(b).sum() + ((b - 1) * expected).sum()
    return float(own - other)


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
) -> tuple[np.ndarray, list[float]]:
    """Variational Bayes by enumeration from log evidence `start`: the posterior and the ELBO of each step.

    Where there are more states than labels, `rules` are those of the states, `shows` is the label of each state, and
    `label_rules` are those of the labels.
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
        q, n_first, n_moves, log_sum = np.zeros((corpus.n_tokens, K)), np.zeros(K), np.zeros((K, K)), 0.0
        for lo, hi in itertools.pairwise(bounds):
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


# --- hierarchical clusters: the joint density and draws from it (lasca.kernels.gibbs) ---------------------------


def hc_counts(
    votes: list[tuple[int, int, int]], z: np.ndarray, n_annotators: int, n_labels: int, n_states: int
) -> np.ndarray:
    """n_lts from triples (token, annotator, label); z are states: labels, then (with levels) labels of hard tokens."""
    counts = np.zeros((n_annotators, n_states, n_labels), int)
    for i, annotator, label in votes:
        counts[annotator, z[i], label] += 1
    return counts


def hc_log_joint(
    votes: list[tuple[int, int, int]],
    z: np.ndarray,
    c: np.ndarray,
    beta: np.ndarray,
    eta: np.ndarray,
    alpha: np.ndarray,
    rate: float,
    epsilon_nu: float,
    epsilon_gamma: float,
    hard: np.ndarray,
) -> float:
    """The log joint of maths.md, section 1, term by term; the ε are those of the whole vector (ε/C, ε/S each).

    `hard` (T, T), or (0, T) for none: the Dirichlet parameters of everybody's rows at hard tokens, states T..2T-1.
    """
    from math import lgamma, log

    (C, T), S = eta.shape, eta.shape[1] + len(hard)
    counts = hc_counts(votes, z, len(c), T, S)
    total = sum(lgamma(int((c == k).sum()) + epsilon_nu / C) for k in range(C))
    total += sum(lgamma(int((z == t).sum()) + epsilon_gamma / S) for t in range(S))
    for annotator, k in enumerate(c):
        for t in range(S):
            urn = eta[k, t] * beta[k, t] if t < T else hard[t - T]
            total += lgamma(urn.sum()) - lgamma(counts[annotator, t].sum() + urn.sum())
            for s in range(T):
                total += lgamma(counts[annotator, t, s] + urn[s]) - lgamma(urn[s])
    for k in range(C):
        for t in range(T):
            total += -rate * eta[k, t] + sum((alpha[t, j] - 1) * log(beta[k, t, j]) for j in range(T))
    return total


def hc_draw_labels(
    pairs: list[tuple[int, int]],
    z: np.ndarray,
    c: np.ndarray,
    beta: np.ndarray,
    eta: np.ndarray,
    hard: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw the label of every (token, annotator) given all else, Ψ integrated out: Pólya's urn."""
    T = eta.shape[1]
    seen = [[*((eta[k, t] * beta[k, t]).tolist() for t in range(T)), *hard.tolist()] for k in c]
    labels = np.empty(len(pairs), np.int16)
    uniforms = rng.random(len(pairs))
    for n, (i, annotator) in enumerate(pairs):
        urn = seen[annotator][z[i]]
        rest, s = uniforms[n] * sum(urn), 0
        while s < T - 1 and rest >= urn[s]:
            rest -= urn[s]
            s += 1
        urn[s] += 1
        labels[n] = s
    return labels


def hc_draw_prior(
    n_tokens: int, n_annotators: int, alpha: np.ndarray, rate: float, epsilon_nu: float, epsilon_gamma: float, C: int,
    n_states: int, rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Draw z, c, β, η from their prior."""
    (T, _), S = alpha.shape, n_states
    z = rng.choice(S, n_tokens, p=rng.dirichlet(np.full(S, epsilon_gamma / S))).astype(np.int16)
    c = rng.choice(C, n_annotators, p=rng.dirichlet(np.full(C, epsilon_nu / C))).astype(np.int32)
    beta = np.stack([[rng.dirichlet(row) for row in alpha] for _ in range(C)])
    return z, c, beta, rng.exponential(1 / rate, (C, T))


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
) -> tuple[np.ndarray, list[float]]:
    """HMM-Crowd by enumeration: the posterior and the objective of each step, with all variable terms of the priors."""
    T, L, bounds = corpus.n_labels, corpus.n_annotators, corpus.offsets.tolist()
    triples = sequence_annotations(corpus)
    codes = {w: k for k, w in enumerate(dict.fromkeys(corpus.tokens))}
    pi, A, last = (np.asarray(r, float) for r in rules)
    evidence, trace, penalty = start, [], 0.0

    def fitted(n: np.ndarray, pseudo: float) -> np.ndarray:
        nonlocal penalty
        if variational:
            penalty += dirichlet_kl(n + pseudo, np.full(len(n), pseudo))
            return digamma(n + pseudo) - digamma((n + pseudo).sum())
        return mode(n, pseudo)

    def mode(n: np.ndarray, pseudo: float) -> np.ndarray:
        nonlocal penalty
        p = (n + pseudo) / (n + pseudo).sum()
        penalty -= pseudo * np.log(p).sum()
        return np.log(p)

    for step in range(steps + 1):
        q, n_first, n_moves, log_sum = np.zeros((corpus.n_tokens, T)), np.zeros(T), np.zeros((T, T)), 0.0
        for lo, hi in itertools.pairwise(bounds):
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
                if crowd == "matrix":
                    log = mode(n, smoothing)
                else:
                    right, wrong = mode(np.array([n[t], n.sum() - n[t]]), smoothing)
                    log = np.full(T, wrong - math.log(T - 1))
                    log[t] = right
                for i, other, _, s in triples:
                    evidence[i, t] += log[s] * (other == a)
    return q, trace


# --- Sembler: enumeration of all label paths ----------------------------------------------------------------------


def sembler(
    votes: list[tuple[int, int, int]],
    offsets: list[int],
    ids: list[list[int]],
    state: np.ndarray,
    moves: np.ndarray,
    rho: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Marginals, expected moves and Σ ln p(y | x): paths through labels somebody gave, against all paths."""
    T = state.shape[1]
    proba, expected, total = np.zeros((offsets[-1], T)), np.zeros((T, T)), 0.0
    for first, last in itertools.pairwise(offsets):
        if first == last:
            continue
        scores, joint = [], {}
        for path in crf_paths(T, last - first):
            score = crf_score(state, moves, ids[first:last], path)
            scores.append(score)
            for i, z in enumerate(path, first):
                given = [(a, s) for j, a, s in votes if j == i]
                if given and z not in [s for _, s in given]:
                    break
                score += sum(math.log(rho[a] if s == z else (1 - rho[a]) / (T - 1)) for a, s in given)
            else:
                joint[path] = score
        evidence = np.logaddexp.reduce(list(joint.values()))
        total += evidence - np.logaddexp.reduce(scores)
        for path, score in joint.items():
            p = math.exp(score - evidence)
            for i, z in enumerate(path, first):
                proba[i, z] += p
            for pair in itertools.pairwise(path):
                expected[pair] += p
    return proba, expected, float(total)


def crf_attributes(templates: list[str], sentence: list[str], i: int) -> list[str]:
    """Feature texts of one token by the plain meaning of `field[offset]`, `a[0]|b[1]`, `any:field[a..b]`, `bias`."""

    def value(field: str, at: int) -> str | None:
        if at < 0 or at >= len(sentence):
            return "<s>" if at < 0 else "</s>"
        word = sentence[at]
        if field == "word":
            return word
        if field == "lower":
            return word.lower()
        if field == "shape":
            return "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word)
        n = int(field[-1])
        if len(word) < n:
            return None
        return word[:n] if field.startswith("prefix") else word[-n:]

    out = []
    for name in templates:
        if name == "bias":
            out.append("bias")
        elif name.startswith("any:"):
            field, window = name[4:-1].split("[")
            low, high = (int(x) for x in window.split(".."))
            places = [i + o for o in range(low, high + 1) if 0 <= i + o < len(sentence)]
            out += [f"{name}={v}" for v in (value(field, p) for p in places) if v is not None]
        else:
            parts = [part[:-1].split("[") for part in name.split("|")]
            values = [value(field, i + int(offset)) for field, offset in parts]
            if all(v is not None for v in values):
                out.append(f"{name}={'|'.join(v for v in values if v is not None)}")
    return out


# --- ambiguity: direct sums, a singular value decomposition per sequence, CrowdTruth by vectors ----------------------


def two_truths_token(
    votes: list[tuple[int, int]],
    pairs: list[tuple[int, int]],
    psi: np.ndarray,
    kinds: np.ndarray,
    levels: np.ndarray,
    gamma: np.ndarray,
    kappa: np.ndarray,
    rho: np.ndarray,
    pi: np.ndarray,
) -> dict[str, dict[tuple, float]]:
    """Weight × likelihood of every explanation of one token; votes are (annotator, label), psi[l, d, t, s]."""
    made: dict[str, dict[tuple, float]] = {"one": {}, "two": {}}
    for d, weight in enumerate(levels):
        for t in range(len(gamma)):
            made["one"][d, t] = kinds[0] * weight * gamma[t] * math.prod(psi[who, d, t, s] for who, s in votes)
        for a, b in pairs:
            for k, p in enumerate(pi):
                likelihood = math.prod(p * psi[who, d, a, s] + (1 - p) * psi[who, d, b, s] for who, s in votes)
                made["two"][d, a, b, k] = kinds[1] * weight * kappa[a, b] * rho[k] * likelihood
    return made


def rank1_matrix(labels: np.ndarray, *, share: bool) -> np.ndarray:
    """A(l, j) of one sequence from labels (annotator, token), -1 = missing; nan where l did not label j."""
    A = np.full(labels.shape, np.nan)
    for who in range(labels.shape[0]):
        for j in range(labels.shape[1]):
            if labels[who, j] >= 0:
                same = int((labels[:, j] == labels[who, j]).sum())
                A[who, j] = same / int((labels[:, j] >= 0).sum()) if share else same
    return A


def rank1_svd(A: np.ndarray, *, share: bool) -> tuple[np.ndarray, np.ndarray]:
    """ω and μ of a complete matrix: the leading singular triplet, signs made positive, then scaled."""
    U, S, V = np.linalg.svd(A, full_matrices=False)
    omega, mu = np.abs(U[:, 0]) * math.sqrt(S[0]), np.abs(V[0]) * math.sqrt(S[0])
    return (omega / omega.mean(), mu * omega.mean()) if share else (omega, mu)


def rank1_error(A: np.ndarray, omega: np.ndarray, mu: np.ndarray) -> float:
    """Squared error of a rank-1 fit on the observed cells."""
    return float(np.nansum((A - np.outer(omega, mu)) ** 2))


def crowdtruth_step(
    votes: list[dict[int, int]], unit: np.ndarray, worker: np.ndarray, quality: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One update of unit, worker and label quality by vectors and cosines; votes[i] maps annotators to labels."""
    L, T = len(worker), len(quality)
    vector = [{a: np.eye(T)[s] for a, s in given.items()} for given in votes]

    def cosine(x: np.ndarray, y: np.ndarray) -> float:
        return float((quality * x * y).sum() / math.sqrt((quality * x * x).sum() * (quality * y * y).sum()))

    new_unit = np.full(len(votes), np.nan)
    for i, v in enumerate(vector):
        pairs = list(itertools.combinations(v, 2))
        if pairs:
            above = sum(cosine(v[a], v[b]) * worker[a] * worker[b] for a, b in pairs)
            new_unit[i] = above / sum(worker[a] * worker[b] for a, b in pairs)
    new_worker = np.zeros(L)
    for a in range(L):
        mine = [i for i, v in enumerate(vector) if a in v and len(v) > 1]
        if not mine:
            continue
        with_all = sum(unit[i] * cosine(vector[i][a], sum(vector[i].values()) - vector[i][a]) for i in mine)
        others = [(i, b) for i in mine for b in vector[i] if b != a]
        with_each = sum(unit[i] * worker[b] * cosine(vector[i][a], vector[i][b]) for i, b in others)
        below = sum(unit[i] * worker[b] for i, b in others)
        new_worker[a] = with_all / sum(unit[i] for i in mine) * with_each / below
    new_quality = np.ones(T)
    for t in range(T):
        above = below = 0.0
        for a, b in itertools.permutations(range(L), 2):
            shared = [i for i, v in enumerate(vector) if a in v and b in v]
            given = sum(unit[i] * vector[i][b][t] for i in shared)
            if given > 0:
                both = sum(unit[i] * vector[i][a][t] * vector[i][b][t] for i in shared)
                above += worker[a] * worker[b] * both / given
                below += worker[a] * worker[b]
        if below > 0:
            new_quality[t] = max(above / below, 1e-4)
    return new_unit, new_worker, new_quality


# --- hidden states (sequence clusters) ----------------------------------------------------------------------------


def hidden_path_weights(evidence, start, move, end):  # type: ignore[no-untyped-def]
    """Return the weight of every path through states, as {path: weight}: no sums, no logs of sums."""
    import itertools
    import math

    n, S = evidence.shape
    weights = {}
    for path in itertools.product(range(S), repeat=n):
        weight = start[path[0]] * end[path[-1]]
        for a, b in itertools.pairwise(path):
            weight *= move[a, b]
        weights[path] = weight * math.exp(sum(evidence[i, z] for i, z in enumerate(path)))
    return weights
