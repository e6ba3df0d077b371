"""Print the tables of docs/choosing.md from the rows of the study of the kernel.

    python benchmarks/choosing.py

Means over seeds 0, 1 and 2, which chose the default, from results/kernel.jsonl (see benchmarks/kernel.py). Nothing is
fitted.
"""

from __future__ import annotations

from data import EIGHT as TITLES
from kernel import CHOOSING, EIGHT, read
from kernel_report import DEFAULT, FIVE, PLAIN, judged, mean, of
from report import table

WEIGHTS = {"0 (plain t-SNE)": PLAIN, "0.6": "both, 0.6", "1 (default)": DEFAULT, "1.5": "both, 1.5"}
MODES = {'`"both"`': DEFAULT, '`"input"`': "input, 1", '`"embedding"`': "embedding, 1"}
SCORES = ("trustworthiness", "continuity", "CC", "rho30", "rho5")
WORST = ("worst trustworthiness", "worst continuity")


def main() -> None:
    """Print three tables: the default on each set, then weights and neighbourhoods over all sets."""
    rows = read()
    lines = []
    for place in EIGHT:
        cells = [
            " / ".join(f"{mean(of(rows, label, (place,), CHOOSING), score):.3f}" for label in (PLAIN, DEFAULT))
            for score in FIVE
        ]
        lines.append([TITLES[place.dataset], *cells])
    print(table(["data", *SCORES], lines), end="\n\n")
    for title, settings in (("`density_weight`", WEIGHTS), ("`neighborhoods`", MODES)):
        lines = []
        for shown, label in settings.items():
            found = judged(rows, label, CHOOSING)
            worst = [f"{found[f'least {score}']:+.4f}" for score in FIVE[:2]]
            lines.append([shown, *(f"{found[score]:.3f}" for score in FIVE), *worst])
        print(table([title, *SCORES, *WORST], lines), end="\n\n")


if __name__ == "__main__":
    main()
