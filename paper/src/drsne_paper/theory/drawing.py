"""Figures of the checks, drawn from the numbers in their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_BLUE, _ORANGE, _GREEN, _GREY = "#2f6db3", "#d9822b", "#3b8f5a", "0.55"
Numbers = Mapping[str, Any]


def _figure(columns: int, rows: int, width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.tick_params(labelsize=8)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    return figure, axes


def changes(curves: Mapping[str, Sequence[Numbers]]) -> Any:
    """Draw the largest change of a relative concentration against the scale factor, with a curve for each smoothing."""
    figure, axes = _figure(1, 1, 5.6, 3.4)
    axis = axes[0, 0]
    for (label, cases), colour in zip(curves.items(), (_BLUE, _ORANGE, _GREEN), strict=False):
        axis.loglog([case["label"] for case in cases], [max(case["profile"], 1e-17) for case in cases], "o-",
                    color=colour, markersize=4, linewidth=1.2, label=label)  # fmt: skip
    first = next(iter(curves.values()))
    axis.loglog([case["label"] for case in first], [case["rounding"] for case in first], "--", color=_GREY,
                linewidth=1.0, label="bound from rounding")  # fmt: skip
    axis.set_ylim(1e-17, 1.0)
    axis.set_xlabel("factor that the map is scaled by", fontsize=9)
    axis.set_ylabel("largest relative change of $\\tilde c_i$", fontsize=9)
    axis.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.set_size_inches(7.6, 3.4)
    return figure


def amplified(tables: Mapping[str, Sequence[Numbers]]) -> Any:
    """Draw the loss and the correlations against beta, with a column for each data set."""
    figure, axes = _figure(len(tables), 2, 3.7, 2.4)
    for column, (title, rows) in enumerate(tables.items()):
        beta = [row["beta"] for row in rows]
        top, bottom = axes[:, column]
        top.plot(beta, [row["loss"] for row in rows], "o-", color=_BLUE, markersize=4, label="pointwise loss")
        top.plot(beta, [row["spread"] for row in rows], "--", color=_BLUE, linewidth=1.0,
                 label="$(1 - \\beta)^2$ Var(log r) alone")  # fmt: skip
        top.set_yscale("function", functions=(np.sqrt, np.square))  # so that the zero at beta = 1 can be seen
        top.set_ylim(bottom=0.0)
        top.set_title(title, fontsize=10)
        bottom.plot(beta, [row["pearson"] for row in rows], "o-", color=_ORANGE, markersize=5, label="Pearson, log r")
        bottom.plot(beta, [row["spearman"] for row in rows], "x", color="0.2", markersize=5, label="rank correlation")
        bottom.plot(beta, [row["densne"] for row in rows], "s--", color=_GREEN, markersize=3.5, linewidth=1.0,
                    label="den-SNE's, with its shift")  # fmt: skip
        bottom.set_ylim(0.0, 1.08)
        bottom.set_xlabel("$\\beta$", fontsize=9)
        for axis in (top, bottom):
            axis.set_xscale("log")
            axis.set_xticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"])
            axis.minorticks_off()
            axis.axvline(1.0, color="0.85", linewidth=0.8, zorder=0)
    axes[0, 0].set_ylabel("loss (root scale)", fontsize=9)
    axes[1, 0].set_ylabel("correlation", fontsize=9)
    axes[0, 0].legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(0.12, 1.0))
    axes[1, 0].legend(fontsize=8, frameon=False, loc="lower right")
    return figure


def densities(panels: Sequence[tuple[str, Numbers]]) -> Any:
    """Draw log density against log concentration, with a panel for each data set.

    The slope of each line is the dimension.
    """
    figure, axes = _figure(len(panels), 1, 2.4, 2.9)
    for axis, (title, numbers) in zip(axes[0], panels, strict=True):
        points = {name: np.asarray(values) for name, values in numbers["points"].items()}
        for name, colour, label in (("true", _ORANGE, "true density"), ("knn", _BLUE, "kNN estimate")):
            if name in points:
                axis.scatter(points["log_c"], points[name], s=5, color=colour, alpha=0.6, linewidths=0, label=label)
        x = np.array([points["log_c"].min(), points["log_c"].max()])
        middle = np.median(points["log_c"]), np.median(points["knn"])
        axis.plot(x, middle[1] + numbers["d"] * (x - middle[0]), color="0.2", linewidth=1.0, label="slope d")
        axis.set_title(f"{title} = {numbers['d']:.3g}", fontsize=9)
        axis.set_xlabel("$\\log\\ \\tilde c_i$", fontsize=9)
    axes[0, 0].set_ylabel("log density", fontsize=9)
    axes[0, 0].legend(fontsize=7, frameon=False, markerscale=2, loc="lower right")
    return figure
