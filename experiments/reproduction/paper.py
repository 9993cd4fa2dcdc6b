"""The paper's own figures (Lu, arXiv 2301.01579), typed in from it, and nothing else."""

from __future__ import annotations

__all__ = ["ACC1", "ACC2", "CROWDS", "DIAGONALS_NER", "TABLE_1", "TABLE_2", "TABLE_3"]

CROWDS = ("ca1", "ca2", "ca3")

TABLE_1 = {  # accuracy of the inferred truth on T-DGA: gold 1 for ca1, ca2, ca3, then gold 2
    "mv": (91.82, 90.84, 83.70, 81.94, 81.81, 73.20),
    "ds": (93.34, 90.97, 91.99, 83.53, 81.90, 82.14),
    "mace": (89.80, 84.79, 84.56, 80.76, 76.26, 75.89),
    "sembler": (93.05, 89.58, 85.78, 83.36, 80.22, 76.99),
    "hmm-crowd": (93.40, 91.59, 90.38, 83.72, 82.06, 81.12),
    "hc": (93.30, 92.59, 92.22, 83.47, 81.73, 83.71),
}
TABLE_2 = {  # F1 on unseen tweets: RITTER-TEST for ca1, ca2, ca3, then INHOUSE
    "mv": (59.35, 58.72, 58.72, 53.15, 52.29, 48.03),
    "ds": (67.58, 60.43, 58.69, 54.33, 48.49, 48.14),
    "mace": (59.89, 58.04, 60.05, 47.92, 53.33, 49.12),
    "sembler": (59.82, 61.74, 60.53, 49.65, 50.22, 49.93),
    "hmm-crowd": (61.10, 61.30, 61.79, 49.98, 49.12, 52.40),
    "hc": (61.18, 65.12, 62.57, 52.97, 54.55, 52.88),
    "la-sca": (66.20, 67.32, 61.57, 55.65, 57.25, 50.84),
}
TABLE_3 = {  # span F1 on 3,000 sentences of the MTurk corpus: inferred truth, prediction on eng.testb
    "mv": (63.17, 38.52),
    "ds": (65.32, 39.21),
    "mace": (60.07, 37.10),
    "sembler": (63.25, 38.87),
    "hmm-crowd": (63.44, 39.31),
    "hc": (67.54, 40.56),
    "la-sca": (67.54, 41.56),
}
ACC1, ACC2 = 725 / 931, 614 / 931  # ambiguity on T-DGA, ca1, 10 % of the tokens
DIAGONALS_NER = (0.742, 0.535)  # figure 6
