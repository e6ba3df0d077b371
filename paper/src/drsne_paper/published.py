"""The paper's numbers, read from ``paper.json`` in this folder, which names its sources."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from importlib.resources import files
from typing import Any

# For each of our methods, the column of the paper's tables that it is compared with.
COLUMN = {"drsne_adaptive": "drsne", "drsne_both": "drsne", "drsne_code": "drsne", "drsne_text": "drsne"}


@lru_cache(maxsize=1)
def everything() -> dict[str, Any]:
    """Return the content of the whole file."""
    content: dict[str, Any] = json.loads((files("drsne_paper") / "paper.json").read_text(encoding="utf-8"))
    return content


def main(dataset: str, method: str, score: str, *, corrected: bool = True) -> tuple[float, float]:
    """Return a mean and its standard deviation from the main table, or nan; ``corrected`` corrects printed errors."""
    column, known = COLUMN.get(method, method), everything()
    value = known["table"].get(dataset, {}).get(column, {}).get(score)
    if corrected:
        value = known["corrected"].get(dataset, {}).get(column, {}).get(score, value)
    return (math.nan, math.nan) if value is None else (float(value[0]), float(value[1]))


def selected(dataset: str, method: str) -> list[float]:
    """Return the parameters that the authors' runs selected, for seeds 0, 1, ...; empty if they are not known."""
    found: list[float] = everything()["selected"].get(dataset, {}).get(COLUMN.get(method, method), [])
    return found


def selected_scores(dataset: str, method: str) -> list[list[float]]:
    """Return the trustworthiness and concentration correlation of the authors' runs, for seeds 0, 1 and 2."""
    found: list[list[float]] = everything()["selected_scores"].get(dataset, {}).get(COLUMN.get(method, method), [])
    return found


def ablation(table: str, value: float, score: str) -> tuple[float, float]:
    """Return a mean and its standard deviation from a table of ablations ("lambda", "pca" or "k"), or nan."""
    found = everything()["ablations"][table].get(f"{value:g}", {}).get(score)
    mean, std = found or (None, None)
    return math.nan if mean is None else float(mean), math.nan if std is None else float(std)


def progression(table: str, value: float) -> dict[str, float]:
    """Return the scores of a map in a figure of ablations, from the authors' files; empty if they are not known."""
    found: dict[str, float] = everything()["ablation_figures"].get(table, {}).get(f"{value:g}", {})
    return found


def anomaly(dataset: str, method: str, section: str, detector: str) -> tuple[float, float]:
    """Return the AUPRC and its standard deviation from the section "best" or "oracle_if" of the anomaly tables, or nan.

    If a cell differs from the authors' own result files, the number in the files is returned.
    """
    column, known = COLUMN.get(method, method), everything()
    found = known["anomaly"].get(dataset, {}).get(column, {}).get(section, {}).get(detector)
    found = known["anomaly_corrected"].get(dataset, {}).get(column, {}).get(section, {}).get(detector, found)
    return (math.nan, math.nan) if found is None else (float(found[0]), float(found[1]))


def anomaly_settings(dataset: str, method: str) -> list[tuple[float, ...]]:
    """Return the sorted settings of a method that the anomaly tables are based on; empty if none are known."""
    found = everything()["anomaly"].get(dataset, {}).get(COLUMN.get(method, method), {})
    settings = [*(found.get("settings_best") or {}).values(), found.get("settings_oracle_if")]
    return sorted({tuple(float(value) for value in one) for one in settings if one})


def anomaly_selected(dataset: str, method: str, section: str = "best") -> dict[str, tuple[float, ...]]:
    """Return the setting that each detector's cell in the anomaly tables is based on; empty if none are known.

    In the section "best" each detector has its own setting; in the section "oracle_if" all have the same one.
    """
    found = everything()["anomaly"].get(dataset, {}).get(COLUMN.get(method, method), {})
    settings = found.get("settings_best") or {}
    if section == "oracle_if" and (single := found.get("settings_oracle_if")):
        settings = dict.fromkeys(settings, single)
    return {detector: tuple(map(float, setting)) for detector, setting in settings.items()}


def tradeoff(dataset: str, lam: float) -> tuple[float, float]:
    """Return the trustworthiness and concentration correlation that the trade-off figure shows, or nan."""
    found = everything()["tradeoff"].get(dataset, {}).get(f"{lam:g}")
    return (math.nan, math.nan) if found is None else (float(found[0]), float(found[1]))


def timing() -> dict[int, float]:
    """Return the median seconds of the authors' runs on their machine, for each number of points."""
    return {int(n): float(seconds) for n, seconds in everything()["timing"].items()}
