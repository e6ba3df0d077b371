"""Rewrite the committed rows of version 0.1.0 in the format of the studies of the paper (drsne.experiments.rows).

    PYTHONPATH=src:benchmarks python benchmarks/migrate.py [--maps OLD NEW]

Data sets and scores get the names that they have in the package, and every row gets a key. Measured numbers are copied
as they are. Rows that are already in the new form are not changed. With ``--maps``, maps of the quality study that were
kept in the earlier format are copied to files that are named by these keys.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import defaults
import kernel
import large
import numpy as np
from data import EIGHT
from families import MADE
from quality_methods import METHODS, rows, study
from report import RESULTS, Results

from drsne.experiments.rows import Row, Rows, key

DATASETS = {title: name for name, title in EIGHT.items()}
SCORES = {
    "trustworthiness_10": "trustworthiness",
    "continuity_10": "continuity",
    "concentration_correlation_29": "concentration_correlation",
    "density_rank_correlation_30": "density_rank_correlation",
    "density_rank_correlation_5": "local_density_rank_correlation",
    "fragmentation": "fragmentation",
}


def quality_identity(row: Row) -> tuple[dict[str, Any], Any]:
    """Return the identity of a row of the quality study, and its value of the grid."""
    value = row["params"].get(METHODS[row["method"]].parameter)
    return study().identity(DATASETS[row["set"]], row["method"], value, row["seed"]), value


def quality_row(row: Row) -> Row:
    """Return a row of the quality study in the new form."""
    identity, value = quality_identity(row)
    name, version = row["version"].rsplit(" ", 1)
    return {
        "key": key(identity),
        "study": "quality",
        **identity,
        "value": value,
        "error": None,
        "metrics": {SCORES[name]: score for name, score in row["scores"].items()},
        "seconds": {"optimization": row["seconds"]},
        "versions": {name: version},
        "commit": None,
    }


KERNEL_SCORES = {
    "trustworthiness": "trustworthiness",
    "continuity": "continuity",
    "cc": "concentration_correlation",
    "rho30": "density_rank_correlation",
    "rho5": "local_density_rank_correlation",
}
KERNEL_DETAILS = ("range", "contrast", "pieces", "fifth", "tears", "kl")


def kernel_row(row: Row) -> Row:
    """Return a row of the study of the kernel in the new form."""
    family, _, number = row["set"].rpartition("-")
    if family in MADE:
        place = kernel.Place(family, int(number))
    elif row["set"] in MADE:
        place = kernel.Place(row["set"], 0)
    else:
        title = row["set"].replace("4-Gaussians-50-d", "4 Gaussians 50-d")
        place = kernel.Place({**DATASETS, "Covertype": "covertype", "CIFAR-10": "cifar10"}[title])
    identity = kernel.part(place, [], []).identity(place.dataset, "drsne", row["setting"], row["seed"])
    return {
        "key": key(identity),
        "study": "kernel",
        **identity,
        "value": row["setting"],
        "error": None,
        "metrics": {new: row[old] for old, new in KERNEL_SCORES.items() if old in row},
        "details": {name: row[name] for name in KERNEL_DETAILS if name in row},
        "seconds": {"optimization": row["seconds"]},
    }


def migrate_kernel() -> None:
    """Rewrite results/kernel.jsonl and results/kernel_earlier.jsonl."""
    for path in (kernel.ROWS, RESULTS / "kernel_earlier.jsonl"):
        old = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        new = [row if "key" in row else kernel_row(row) for row in old]
        rewrite(Rows(path), new)
        print(f"{path.stem}: {len(new)} rows")


LARGE_VARIANTS = {title: variant for variant, title in large.TITLES.items()} | {'neighborhoods="both"': "both"}
# Benchmarks that are not grids of methods: the fields that identify a row, and what earlier rows did not record.
OTHERS: dict[str, tuple[Results, dict[str, Any]]] = {
    "defaults": (defaults.ROWS, {}),
    "densne": (Results("densne", "dataset", "settings", "lambda", "seed"), {}),
    "large": (Results("large", "dataset", "default", "variant"), {"default": {"kernel": "fixed", "weight": 2.1}}),
    "paths": (Results("paths", "dataset", "seed", "path"), {}),
    "robust": (Results("robust", "kernel", "dataset", "weight", "k", "perplexity"), {"kernel": "fixed"}),
}


def other_row(name: str, results: Results, missing: dict[str, Any], row: Row) -> Row:
    """Return a row of one of the other benchmarks in the new form."""
    row = {**missing, **row}
    if "set" in row:
        row = {"dataset": DATASETS.get(row["set"], row["set"])} | {f: row[f] for f in row if f != "set"}
    if name == "defaults" and "variant" in row:
        row["setting"] = defaults.jobs_of(row["part"])[row.pop("variant")]
    if name == "large":
        row["variant"] = LARGE_VARIANTS.get(row["variant"], row["variant"])
    if not isinstance(row.get("seconds", {}), dict):
        row["seconds"] = {"total": row["seconds"]}
    return {"key": results.key(row), "study": name, **row}


def migrate_others() -> None:
    """Rewrite the rows of the other benchmarks; earlier versions of a row are dropped."""
    for name, (results, missing) in OTHERS.items():
        path = results.rows.path
        old = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        new = [row if "key" in row else other_row(name, results, missing, row) for row in old]
        last = {row["key"]: row for row in new}
        rewrite(results.rows, list(last.values()))
        print(f"{name}: {len(old)} rows, {len(last)} of them the last of their kind")


def rewrite(file: Rows, new: list[Row]) -> None:
    """Replace the rows of a file."""
    part = file.path.with_suffix(".part")
    part.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in new), encoding="utf-8")
    part.replace(file.path)


def migrate_quality() -> None:
    """Rewrite results/quality.jsonl, and check that no run lost its row."""
    old = [json.loads(line) for line in rows().path.read_text(encoding="utf-8").splitlines()]
    new = [row if "key" in row else quality_row(row) for row in old]
    rewrite(rows(), new)
    expected = study().all_keys()
    print(f"quality: {len(new)} rows, {len(expected & {row['key'] for row in new})} of {len(expected)} expected runs")


def copy_maps(old: Path, new: Path) -> None:
    """Copy maps of the earlier format to files that are named by the keys of their rows."""
    new.mkdir(parents=True, exist_ok=True)
    for file in sorted(old.glob("*.npz")):
        with np.load(file) as content:
            identity, _ = quality_identity(json.loads(str(content["row"])))
            np.save(new / f"{key(identity)}.npy", content["embedding"])


def main() -> None:
    """Rewrite the rows, and copy maps if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--maps", nargs=2, type=Path, metavar=("OLD", "NEW"))
    options = parser.parse_args()
    migrate_quality()
    migrate_kernel()
    migrate_others()
    if options.maps:
        copy_maps(*options.maps)


if __name__ == "__main__":
    main()
