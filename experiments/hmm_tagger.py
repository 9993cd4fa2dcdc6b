"""HmmTagger beside the CRF with the word as its only feature, T-DGA (gold 1) → INHOUSE and RITTER-TEST.

python experiments/hmm_tagger.py

The last row learns from the text of T-DGA's own test sets as well, without their labels.
"""

from __future__ import annotations

from lasca.tagger import CrfTagger, HmmTagger
from reproduction import tweets


def main() -> None:
    """Print a Markdown table: accuracy / macro-F1."""
    corpus = tweets.tdga()
    text = [t.sequence(s) for t in tweets.unseen().values() for s in range(t.n_sequences)]
    rows = {
        "CRF, word only (lower case, l2 0.1)": CrfTagger(templates="lower[0]", l2=0.1).fit(corpus, "gold1"),
        "`HmmTagger()`": HmmTagger().fit(corpus, "gold1"),
        "`HmmTagger()` with unlabelled text": HmmTagger().fit(corpus, "gold1", unlabelled=text),
    }
    print("| tagger | INHOUSE | INHOUSE, new | RITTER |\n|---|---|---|---|")
    for name, tagger in rows.items():
        found = tweets.unseen_scores(tagger)
        cells = [
            f"{found[t]['accuracy']:.1f} / {found[t]['macro_f1']:.1f}" for t in ("INHOUSE", "INHOUSE, new", "RITTER")
        ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
