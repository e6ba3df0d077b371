"""Rewrite rows of version 0.1.0 so that they are identified by structured fields instead of words.

    PYTHONPATH=src python paper/migrate.py [FOLDER]

Rows of the ablations, the run times and the theory were identified by names such as "pbmc3k, 30 components", and those
of the theory by the text of their claims. This program replaces the names by fields, computes the new keys, and checks
that every row is one that the study expects. Measured numbers are copied as they are. Rows that are already in the new
form are not changed, so the program can be run twice.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from drsne.experiments import studies
from drsne.experiments.rows import Row, Rows, key
from drsne.experiments.studies import _exponent, theory

IDENTITY = ("dataset", "method", "params", "seed", "scores", "data", "against", "sample", "resampled")
EXPONENTS = {title: list(setting) for setting, title in _exponent.SETTINGS.items()}
RANKS = {"1, 1": "one", "D, d": "ambient", "intrinsic, d": "intrinsic"}
# Subject and title of a check, which identified it: its name, data set and number of dimensions.
CHECKS = {
    ("invariance", "map scaled"): ("map_scaled", "digits", None),
    ("invariance", "map moved"): ("map_moved", "digits", None),
    ("invariance", "map turned"): ("map_turned", "digits", None),
    ("invariance", "data scaled"): ("data_scaled", "digits", None),
    ("invariance", "data moved"): ("data_moved", "digits", None),
    ("invariance", "data turned"): ("data_turned", "digits", None),
    ("invariance", "map scaled, single precision"): ("map_scaled_single", "digits", None),
    ("invariance", "map moved, single precision"): ("map_moved_single", "digits", None),
    ("invariance", "map turned, single precision"): ("map_turned_single", "digits", None),
    ("invariance", "map scaled, absolute epsilon"): ("map_scaled_absolute_epsilon", "digits", None),
    ("invariance", "data scaled, absolute epsilon"): ("data_scaled_absolute_epsilon", "digits", None),
    ("invariance", "map scaled, epsilon under the root"): ("map_scaled_root_epsilon", "digits", None),
    ("scale component", "mean attached, no epsilon"): ("scale_attached", "digits", None),
    ("scale component", "mean attached, default epsilon"): ("scale_attached_smoothed", "digits", None),
    ("scale component", "mean detached"): ("scale_detached", "digits", None),
    ("finite differences", "no epsilon"): ("gradient_exact", "digits", None),
    ("finite differences", "epsilon a fixed length"): ("gradient_length", "digits", None),
    ("finite differences", "default epsilon"): ("gradient_smoothed", "digits", None),
    ("finite differences", "mean detached"): ("gradient_detached", "digits", None),
    ("amplification", "closed form, Digits"): ("amplification_closed_form", "digits", None),
    ("amplification", "zero at 1 alone, Digits"): ("amplification_zero", "digits", None),
    ("amplification", "correlations, Digits"): ("amplification_correlations", "digits", None),
    ("amplification", "closed form, Controlled Clusters"): ("amplification_closed_form", "controlled_clusters", None),
    ("amplification", "zero at 1 alone, Controlled Clusters"): ("amplification_zero", "controlled_clusters", None),
    ("amplification", "correlations, Controlled Clusters"): ("amplification_correlations", "controlled_clusters", None),
    ("concentration and density", "kNN density, Gaussian in 1-d"): ("knn_density", "gaussian", 1),
    ("concentration and density", "kNN density, Gaussian in 2-d"): ("knn_density", "gaussian", 2),
    ("concentration and density", "kNN density, Gaussian in 5-d"): ("knn_density", "gaussian", 5),
    ("concentration and density", "kNN density, Gaussian in 10-d"): ("knn_density", "gaussian", 10),
    ("concentration and density", "kNN density, Digits"): ("knn_density", "digits", None),
    ("concentration and density", "true density, Gaussian in 1-d"): ("true_density", "gaussian", 1),
    ("concentration and density", "true density, Gaussian in 2-d"): ("true_density", "gaussian", 2),
    ("concentration and density", "true density, Gaussian in 5-d"): ("true_density", "gaussian", 5),
    ("concentration and density", "true density, Gaussian in 10-d"): ("true_density", "gaussian", 10),
    ("ranks of density", "exponents D and d, Digits"): ("density_ranks", "digits", None),
}


def migrate_ablation(row: Row) -> Row:
    """Replace the number of components in the name of the data, and the names of exponents."""
    row = {**row, "study": "ablations", "dataset": "pbmc3k", "data": components(row["dataset"])}
    if row.get("against"):
        row["against"] = components(row["against"])
    if row["method"] == _exponent.EXPONENT:
        label, strength = row["value"]
        row["value"] = [*EXPONENTS[label], strength]
        rest = {name: value for name, value in row["params"].items() if name != "exponents"}
        row["params"] = rest | dict(zip(_exponent.METHOD.parameter, row["value"], strict=True))
    return row


def components(name: str) -> dict[str, int]:
    """Return the parameters of data that were called "pbmc3k, 30 components, clusters of 15 neighbours"."""
    number, near = re.fullmatch(r"pbmc3k, (\d+) components(, clusters of 15 neighbours)?", name).groups()
    return {"n_components": int(number), "cluster_neighbors": 300 if int(number) == 30 and not near else 15}


def migrate_runtime(row: Row) -> Row:
    """Replace the number of points in the name of the data."""
    name, number = re.fullmatch(r"(\w+), (\d+) rows", row["dataset"]).groups()
    return {**row, "study": "runtime", "dataset": name, "data": {"n_samples": int(number)}}


def migrate_theory(row: Row) -> Row:
    """Replace the texts of a check by its name, and collect its results."""
    name, dataset, d = CHECKS[row["group"], row["check"]]
    (check,) = [one for one in theory.CHECKS if (one.name, one.dataset, one.data.get("d")) == (name, dataset, d)]
    part = theory._part([check], theory.Sizes(**row["size"]))
    numbers = {RANKS.get(name, name): value for name, value in row["numbers"].items()}
    details = {"number": row["number"], "bound": row["bound"], "at_least": row["least"], "holds": row["passed"]}
    kept = {name: row[name] for name in ("seconds", "commit", "versions")}
    identity = part.identity(part.datasets[0], check.name, None, 0)
    new = {**identity, "study": "theory", "value": None, "error": None, "metrics": {}, **kept}
    return {**new, "details": {**details, "numbers": numbers}}


MIGRATIONS = {"ablations": migrate_ablation, "runtime": migrate_runtime, "theory": migrate_theory}


def migrate(study: str, row: Row) -> Row:
    """Return a row in the new form."""
    if study in MIGRATIONS and "check" not in row and "data" in row:
        return row
    if study in MIGRATIONS:
        row = MIGRATIONS[study](row)
    if "found" in row:
        row = {name: value for name, value in row.items() if name != "found"} | {"details": row["found"]}
    identity: dict[str, Any] = {name: row[name] for name in IDENTITY if name in row}
    return {**row, "key": key(identity)}


def main(folder: Path) -> None:
    """Rewrite the rows of all studies in a folder."""
    for study in studies.names():
        file = folder / study / "rows.jsonl"
        if not file.exists():
            continue
        expected = {one for part in studies.load(study).parts() for one in part.all_keys()}
        old = Rows(file).read()
        new = [migrate(study, row) for row in old]
        found = expected & {row["key"] for row in new}
        file.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in new), encoding="utf-8")
        print(f"{study}: {len(new)} rows, {len(found)} of {len(expected)} expected runs have one")
        if found != expected:
            raise SystemExit(f"{study}: {len(expected - found)} runs lost their rows.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
