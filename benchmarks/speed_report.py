"""Tables, ratios and the picture of the speed study, from its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from report import RESULTS, table
from speed import METHODS

NAMES = {
    "mnist": "MNIST",
    "mnist+fashion": "MNIST + Fashion-MNIST",
    "covertype": "Covertype",
    "gaussians": "mixture of 100 Gaussians",
}
Row = dict[str, Any]


def sections(rows: list[Row]) -> list[str]:
    good = [row for row in rows if "error" not in row]
    parts = [
        "Seconds on the threads that each row names, each run in a process of its own with warm kernel caches: the "
        "small fit before the timed one is its warm-up. Data are 50 principal components (MNIST, Fashion-MNIST), 10 "
        "standardised features (Covertype), or 50-d. t-SNE runs have 750 iterations, 250 of them exaggerated. "
        '"given P" is the optimisation alone on one matrix of affinities, from the same kind of start. KL is on '
        "that same matrix, with the partition sum over all pairs; TW (10), CC and rho_S (30 neighbours) are over 2000 "
        "sampled points (of a million, 300); peak memory is of the whole process, its data and libraries included.",
    ]
    for name in NAMES:
        for n in sorted({row["n"] for row in good if row["dataset"] == name}):
            some = [row for row in good if (row["dataset"], row["n"]) == (name, n)]
            parts.append(f"## {NAMES[name]}, {n:,} points\n\n" + _table(some))
            if ratios := _ratios(some):
                parts.append(ratios)
    if growth := _growth([row for row in good if row["dataset"] == "covertype"]):
        parts.append("## Growth on Covertype\n\n" + growth)
    if failed := [row for row in rows if "error" in row]:
        parts.append(
            "## Failed\n\n"
            + "\n".join(f"- {row['dataset']} {row['n']} {METHODS[row['method']].title}" for row in failed)
        )
    if _picture([row for row in good if row["dataset"] == "mnist"]):
        parts.append("![seconds against the number of points](speed.png)")
    machines = sorted({row["machine"] for row in good})
    parts.append("Rows were made on: " + "; ".join(machines) + ".")
    return parts


def _table(some: list[Row]) -> str:
    def number(row: Row, key: str, form: str) -> str:
        return format(row[key], form) if key in row else ""

    header = ["method", "version", "import", "warm-up", "neighbours", "optimisation", "total", "KL", "TW", "CC"]
    header += ["rho_S", "peak GB"]
    lines = []
    for row in sorted(some, key=lambda row: row.get("total", 0.0)):
        method = METHODS[row["method"]]
        times = [number(row, key, ".1f") for key in ("import", "warm-up", "neighbours", "optimisation")]
        lines.append(
            [
                method.title,
                row["version"],
                *times,
                "" if method.given else number(row, "total", ".1f"),
                number(row, "kl", ".4f"),
                number(row, "trustworthiness", ".4f"),
                number(row, "concentration_correlation", ".3f"),
                number(row, "density_rank_correlation", ".3f"),
                f"{row['peak'] / 1e9:.2f}",
            ]
        )
    return table(header, lines)


def _ratios(some: list[Row]) -> str:
    by = {row["method"]: row for row in some}
    lines = []
    if {"drsne_given", "opentsne_given"} <= set(by):
        a, b = by["drsne_given"], by["opentsne_given"]
        lines.append(
            f"- given the same P, our optimisation takes {a['optimisation'] / b['optimisation']:.3f} of openTSNE's "
            f"time; our KL differs from its by {100 * (a['kl'] / b['kl'] - 1):+.2f} %"
        )
    for mine, others in (
        ("drsne_plain", ("opentsne",)),
        ("drsne_30", ("densmap", "umap", "sklearn", "pacmap")),
    ):
        for other in others:
            if mine in by and other in by:
                ratio = by[mine]["total"] / by[other]["total"]
                lines.append(
                    f"- the whole fit of {METHODS[mine].title} takes {ratio:.3f} of {METHODS[other].title}'s time"
                )
    return "\n".join(lines)


def _growth(some: list[Row]) -> str:
    lines = []
    for method in dict.fromkeys(row["method"] for row in some):
        points = sorted((row["n"], row["optimisation"] / 750, row["peak"]) for row in some if row["method"] == method)
        if len(points) > 2:
            n, seconds, peak = (np.array(column, dtype=float) for column in zip(*points, strict=True))
            time_slope = np.polyfit(np.log(n), np.log(seconds), 1)[0]
            per_point = np.polyfit(n, peak, 1)
            lines.append(
                [METHODS[method].title, f"{time_slope:.2f}", f"{per_point[0] / 1e3:.2f}", f"{per_point[1] / 1e9:.2f}"]
            )
    header = ["method", "exponent of the time per iteration", "kB per point", "GB besides"]
    return table(header, lines) if lines else ""


def _picture(some: list[Row]) -> bool:
    if len({row["n"] for row in some}) < 2:
        return False
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    whole = [row for row in some if not METHODS[row["method"]].given]
    for method in dict.fromkeys(row["method"] for row in whole):
        points = sorted((row["n"], row["total"]) for row in whole if row["method"] == method)
        line = {"ls": "-", "marker": "o", "lw": 2.2} if METHODS[method].ours else {"ls": "--", "marker": "s", "lw": 1.2}
        axes.plot(*zip(*points, strict=True), ms=5, label=METHODS[method].title, **line)
    axes.set(xscale="log", yscale="log", xlabel="points (MNIST, 50 principal components)", ylabel="seconds, whole fit")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False, fontsize=9)
    axes.set_title("Whole fit, two threads, warm caches")
    figure.savefig(RESULTS / "speed.png", dpi=130)
    plt.close(figure)
    return True
