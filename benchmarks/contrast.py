"""Compare the automatic contrast with one of at most 2, and with other weights, on held-out seeds.

    python benchmarks/contrast.py [--jobs 2]
    python benchmarks/contrast.py --report            write only results/contrast.md

The contrast is how much a map enlarges densities that differ little in the data. Its rule was chosen in an earlier
study (results/contrast_choice.md), with other seeds and mostly with other data. The data are the fifteen sets of the
quality study, with the seeds 3 to 5. The row "before" has a contrast of at most 2, and "now" is the default, which also
has other weights.

Each run is a line of results/contrast.jsonl, so an interrupted study resumes where it stopped.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from data import EXTENDED, MEAN_OVER, extended_data
from quality_methods import span
from runner import FIVE, RESULTS, table, write

from drsne import DRSNE
from drsne.terms.contrast import STANDS_OUT, USUAL
from drsne.terms.profile import DEFAULT_SMOOTHING, group_neighbors, profile, repeated
from drsne_paper import Rows, Study, run
from drsne_paper.methods import Method, Run, Workspace
from drsne_paper.rows import Row
from drsne_paper.runner import rows_of_study

ROWS = Rows(RESULTS / "contrast.jsonl")
K = 30  # number of neighbours of radii
WEIGHTS = (0.3, 1.0, 3.0, 10.0)
LABELS = dict(zip([*FIVE, "fragmentation"], ("TW", "Cont", "CC", "rho30", "rho5", "Frag"), strict=True))
DENSITY = tuple(FIVE)[2:]
# Contrast, the part of the contrast above 2 that the kernel provides, and weight. A contrast of 0 stands for the one
# before the study that chose the rule, and None for the default.
GRID = ((0.0, 1.0, 1.0), *((None, None, weight) for weight in WEIGHTS))


def before(distances: np.ndarray) -> float:
    """Return the contrast of at most 2 that data have."""
    radii = repeated(distances, group_neighbors(distances)).mean(axis=1)
    s = float(np.log(profile(radii, 1.0, DEFAULT_SMOOTHING).radius).std())
    return float(f"{max(1.0, min(STANDS_OUT / s, USUAL)):.3g}")


def maps(workspace: Workspace, values: Sequence[Any], seed: int) -> Iterator[Run]:
    """Yield a map for each value of the grid."""
    for value in values:
        contrast = "auto" if value[0] is None else before(workspace.neighbors(K)[0].distances)
        start = time.perf_counter()
        model = DRSNE(density_weight=value[2], contrast=contrast, random_state=seed)
        Y = np.asarray(model.fit_transform(workspace.X), np.float64)
        seconds = {"optimization": time.perf_counter() - start}
        yield Run(value, Y, seconds, {"contrast": model.contrast_, "deviation": float(model.concentration_.std())})


def details(dataset: str, X: Any, Y: np.ndarray, labels: Any) -> dict[str, float]:
    """Return the span of a map."""
    return {"span": span(Y)}


def study() -> Study:
    """Return the runs."""
    method = Method(title="drsne", parameter=("contrast", "part", "weight"), grid=GRID, maps=maps)
    return Study(
        name="contrast", datasets=tuple(EXTENDED), methods=("held_out",), seeds=(3, 4, 5),
        scores=(*FIVE.items(), ("fragmentation", 10)), data=extended_data, variants={"held_out": method}, extra=details,
    )  # fmt: skip


def results() -> list[Row]:
    """Return the rows."""
    return rows_of_study(study(), ROWS.read())


def means() -> dict[tuple[str, Any], dict[str, float]]:
    """Return the mean scores over seeds by data set and weight, or "before"."""
    by_setting = defaultdict(list)
    for row in results():
        setting = "before" if row["params"]["contrast"] == 0.0 else row["params"]["weight"]
        by_setting[row["dataset"], setting].append(row["metrics"] | row["details"])
    return {where: {s: float(np.mean([one[s] for one in some])) for s in some[0]} for where, some in by_setting.items()}


def line(found: dict[str, float]) -> list[str]:
    """Return the scores of a line of the table."""
    return [*(f"{found[s]:.3f}" for s in LABELS), f"{found['span']:.2f}", f"{found['deviation']:.3f}"]


def held_out() -> str:
    """Return the scores of the held-out seeds before and now, and how they change with the weight."""
    found, lines, weights = means(), [], []
    for name, title in EXTENDED.items():
        for which, label in (("before", "before"), (1.0, "now")):
            here = found[name, which]
            lines.append([title, label, f"{here['contrast']:.2f}", *line(here)])
        series = {s: [found[name, weight][s] for weight in WEIGHTS] for s in ("trustworthiness", *DENSITY)}
        falls = [max(0.0, *(a - b for a, b in combinations(series[s], 2))) for s in DENSITY[:2]]
        cells = [" / ".join(f"{value:.3f}" for value in values) for values in series.values()]
        weights.append([title, *cells, *(f"{fall:.3f}" for fall in falls)])
    for which, label in (("before", "before"), (1.0, "now"), (3.0, "now, weight 3")):
        mean = {s: float(np.mean([found[name, which][s] for name in MEAN_OVER])) for s in found["digits", which]}
        lines.append(["mean without noise and 5,000 words", label, "", *line(mean)])
    labels = [LABELS[s] for s in ("trustworthiness", *DENSITY)]
    return (
        table(["data", "", "contrast", *LABELS.values(), "span", "deviation"], lines)
        + f"\n\nWith the weights {', '.join(map(str, WEIGHTS))}, and the largest fall of CC and of rho30 when the "
        + "weight rises:\n\n"
        + table(["data", *labels, "fall of CC", "fall of rho30"], weights)
    )


def main() -> None:
    """Make the missing runs and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="write only the report")
    parser.add_argument("--jobs", type=int, default=1, help="processes, with one thread each")
    options = parser.parse_args()
    if not options.report:
        run(study(), ROWS, jobs=options.jobs)
    text = (__doc__ or "").split("\n\n")[2]
    write(
        "contrast", "The contrast on held-out seeds", "python benchmarks/contrast.py", text, held_out(), rows=results()
    )


if __name__ == "__main__":
    main()
