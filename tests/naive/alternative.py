"""The alternative annotator test word by word: dictionaries, loops, scipy's t-test."""

from __future__ import annotations

from scipy.stats import ttest_1samp

Labels = dict[str, dict[str, list[str]]]
"""annotator -> sequence -> labels"""


def spans(labels: list[str]) -> set[tuple[int, int, str]]:
    found, start = set(), None
    for i, label in enumerate([*labels, "O"]):
        if start is not None and (label == "O" or label.startswith("B-") or label[2:] != labels[start][2:]):
            found.add((start, i, labels[start][2:]))
            start = None
        if label != "O" and start is None:
            start = i
    return found


def alike(a: list[str], b: list[str]) -> float:
    if all(label == "O" or label[:2] in ("B-", "I-") for label in a + b):
        x, y = spans(a), spans(b)
        return 2 * len(x & y) / (len(x) + len(y)) if x or y else 1.0
    return sum(p == q for p, q in zip(a, b)) / len(a)


def alternative(
    people: Labels, model: dict[str, list[str]], epsilon: float, q: float
) -> tuple[float, float, list[float]]:
    """Return winning rate, advantage, and the p-value of every person."""
    p_values, advantages = [], []
    for person, own in people.items():
        differences, wins = [], []
        for item in own:
            others = [o[item] for name, o in people.items() if name != person and item in o]
            if item not in model or not others:
                continue
            of_model = sum(alike(model[item], o) for o in others) / len(others)
            of_person = sum(alike(own[item], o) for o in others) / len(others)
            model_wins, person_wins = of_model >= of_person - 1e-12, of_person >= of_model - 1e-12
            differences.append(int(person_wins) - int(model_wins))
            wins.append(int(model_wins))
        p_values.append(float(ttest_1samp(differences, epsilon, alternative="less").pvalue))
        advantages.append(sum(wins) / len(wins))
    m = len(p_values)
    harmonic = sum(1 / i for i in range(1, m + 1))
    ranked = sorted(p_values)
    k = max((i for i in range(1, m + 1) if ranked[i - 1] <= i * q / (m * harmonic)), default=0)
    return k / m, sum(advantages) / m, p_values
