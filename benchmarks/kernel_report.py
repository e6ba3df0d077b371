"""Report of the study of the kernel, from results/kernel.jsonl. The rule is in the docstring of kernel.py."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from data import EIGHT as TITLES
from kernel import (
    CHOOSING,
    CLUSTERS,
    EIGHT,
    FAMILIES,
    HELIX,
    MORE,
    OBJECTIVES,
    REPORTED,
    ROWS,
    SCHEDULES,
    SCORES,
    SETTINGS,
    SMALL,
    Place,
    read,
)
from report import RESULTS, table, write

from drsne_paper.rows import Rows

Results = list[dict[str, Any]]
FIVE = tuple(SCORES)
DENSITY = FIVE[2:]  # the scores of density
PLAIN, DEFAULT = "plain t-SNE", "both, 1"
EARLIER = RESULTS / "kernel_earlier.jsonl"
THREE, SIX = FAMILIES[:10], FAMILIES[10:]
LOSS, PIECES, RANGE = 0.0075, 0.5, 2.0  # what the rule allows
HEADER = (
    "setting",
    "TW",
    "Cont",
    "CC",
    "rho30",
    "rho5",
    "worst TW",
    "worst Cont",
    "range",
    "three",
    "six",
    "Clusters",
    "tears",
    "small group",
    "mean of CC, rho30, rho5",
    "qualifies",
)
INTRODUCTION = """\
Which kernel, schedule, neighbourhoods, weight and clip should the default have? The rule was fixed before these \
maps were made (`benchmarks/kernel.py` states it in full): among the settings that stay within all limits below, \
take the one with the largest mean of CC, rho30 and rho5. The scores are means over the eight sets. "Worst" is the \
largest loss against plain t-SNE on any one set; the limit is .0075. "Range" is the full width of a map divided by \
the width of its central 98 %, the largest of the eight sets; the limit is 2. "Three" and "six" are families of \
three and six Gaussian groups, and "Clusters" is Controlled Clusters. These columns have the pieces in which a group \
is drawn, less those of plain t-SNE; the limit is 0.5. "Tears" counts the jumps along the Helix in three maps; there \
must be none. "Small group" is the distance to the fifth neighbour in a sparse group of 14 points, divided by the \
median of this distance in the other groups, the smallest of six maps; it must be at least 1.

These fits took 1,000 iterations, except for the last row of the schedules, and had a contrast of at most 2. The \
default now takes 700 iterations (`iterations.md`), and its contrast is higher for data whose radii differ little \
(`contrast.md`)."""
OBJECTIVE_TEXT = """\
All with the adaptive kernel and the schedule of the default, except for the first rows. The clip is 1 % unless the \
name says otherwise. "Default before" is `kernel="fixed"` with the neighbours in the data, weight 2.1 and no clip. \
The rows of the fixed kernel with a density term come from the earlier part of the study."""
SCHEDULE_TEXT = """\
Weight 1, both neighbourhoods and a clip of 1 %. The default has 75 iterations of early exaggeration with the fixed \
kernel. Then the exaggeration falls over 175 iterations, and the scales of the kernel grow over 125. The density \
term takes part in the last 100 of 1,000 iterations. Each row changes one thing. More iterations with the density \
term have slightly better density scores, but more pieces."""
EARLIER_TEXT = """\
These schedules were tried before, on the seeds 0 to 2 only, most of them with an earlier version of the tree \
engine. The iterations are those of exaggeration, of t-SNE and with the density term; the exaggeration is released \
in the first iterations of the second part. The first column says when the scales of the kernel grow: "start" from \
the first iteration; "ramp" gradually, over the first 125 iterations of the second part unless another number is \
given; "at once" in one step when that part begins; "density" together with the density term. Counts of pieces on \
three seeds are uncertain by about 1: the setting "start, 75/625/300, release 175, weight 1" had -0.4 here, and +2.9 \
when twelve seeds were counted. It also tore the Helix twice in each of three maps."""
HELD_OUT_TEXT = """\
The setting that the rule chooses, on the seeds 3, 4 and 5, which were not used for the choice; the data sets were. \
"Contrast" is the standard deviation of the logarithms of 30-neighbour distances in the map, divided by that in the \
winsorised data."""


def mean(rows: Results, name: str) -> float:
    """Return the mean of a field over rows."""
    return float(np.mean([row[name] for row in rows])) if rows else float("nan")


def of(rows: Results, label: str, places: tuple[Place, ...], seeds: tuple[int, ...]) -> Results:
    """Return the rows of a setting."""
    return [r for r in rows if r["setting"] == SETTINGS[label] and r["place"] in places and r["seed"] in seeds]


def more_pieces(rows: Results, label: str, places: tuple[Place, ...], seeds: tuple[int, ...]) -> float:
    """Return the pieces per group beyond those of plain t-SNE."""
    counts = [[piece for row in of(rows, each, places, seeds) for piece in row["pieces"]] for each in (label, PLAIN)]
    return float(np.mean(counts[0]) - np.mean(counts[1])) if all(counts) else float("nan")


def judged(rows: Results, label: str, seeds: tuple[int, ...]) -> dict[str, float]:
    """Return what the rule looks at, for one setting."""
    per_set = {place: of(rows, label, (place,), seeds) for place in EIGHT}
    plain = {place: of(rows, PLAIN, (place,), seeds) for place in EIGHT}
    out = {score: float(np.mean([mean(found, score) for found in per_set.values()])) for score in FIVE}
    for score in FIVE[:2]:
        out[f"least {score}"] = min(mean(per_set[place], score) - mean(plain[place], score) for place in EIGHT)
    out["range"] = max(mean(found, "range") for found in per_set.values())
    out["contrast"] = min(mean(found, "contrast") for found in per_set.values())
    out["three"] = more_pieces(rows, label, THREE, (0,))
    out["six"] = more_pieces(rows, label, SIX, (0,))
    out["clusters"] = more_pieces(rows, label, (CLUSTERS,), seeds + MORE if seeds == CHOOSING else seeds)
    out["helix"] = more_pieces(rows, label, (HELIX,), seeds)
    out["tears"] = float(sum(row.get("tears", np.nan) for row in per_set[HELIX]))
    small = of(rows, label, SMALL, (0,))
    out["small"] = min((row["fifth"][3] / np.median(row["fifth"][:3]) for row in small), default=np.nan)
    out["density"] = sum(out[score] for score in DENSITY) / len(DENSITY)
    return out


def qualifies(found: dict[str, float]) -> bool:
    """Return whether a setting meets every condition of the rule."""
    return (
        all(found[f"least {score}"] >= -LOSS for score in FIVE[:2])
        and all(found[name] <= PIECES for name in ("three", "six", "clusters"))
        and found["tears"] == 0
        and found["small"] >= 1.0
        and found["range"] <= RANGE
    )


def settings_table(rows: Results, labels: list[str]) -> str:
    """Return one line for each setting that has the eight sets."""
    lines = []
    for label in labels:
        if {row["place"] for row in of(rows, label, EIGHT, CHOOSING)} != set(EIGHT):
            continue
        found = judged(rows, label, CHOOSING)
        cells = [f"{found[score]:.3f}" for score in FIVE]
        cells += [f"{found[f'least {score}']:+.4f}" for score in FIVE[:2]] + [f"{found['range']:.2f}"]
        cells += [f"{found[name]:+.2f}" for name in ("three", "six", "clusters")]
        tears = "-" if np.isnan(found["tears"]) else f"{found['tears']:.0f}"
        cells += [tears, f"{found['small']:.1f}", f"{found['density']:.4f}"]
        verdict = "baseline" if label == PLAIN else "yes" if qualifies(found) else "no"
        lines.append([f"**{label}**" if SETTINGS[label] == SETTINGS[DEFAULT] else label, *cells, verdict])
    return table(HEADER, lines)


def held_out(rows: Results) -> str:
    """Return the scores of the default on held-out seeds, one line for each set."""
    lines = []
    for place in EIGHT:
        ours, plain = (of(rows, label, (place,), REPORTED) for label in (DEFAULT, PLAIN))
        cells = [f"{mean(plain, score):.4f} / {mean(ours, score):.4f}" for score in FIVE]
        more = f"{more_pieces(rows, DEFAULT, (place,), REPORTED):+.2f}" if "pieces" in ours[0] else ""
        lines.append(
            [TITLES[place.dataset], *cells, f"{mean(ours, 'range'):.2f}", f"{mean(ours, 'contrast'):.2f}", more]
        )
    header = ["data", *(f"{score}, t-SNE / ours" for score in ("TW", "Cont", "CC", "rho30", "rho5"))]
    return table([*header, "range", "contrast", "pieces more"], lines)


def earlier_schedules() -> str:
    """Return the schedules that were tried before, with the pieces of Clusters and the worst loss of TW."""
    rows = read(EARLIER)
    plain = [row for row in rows if row["setting"] == SETTINGS[PLAIN]]
    base = [piece for row in plain if row["place"] == CLUSTERS for piece in row["pieces"]]
    trust = {
        place: mean([row for row in plain if row["place"] == place and row["seed"] in CHOOSING], FIVE[0])
        for place in EIGHT
    }
    lines = []
    for setting in _different(rows):
        found = [row for row in rows if row["setting"] == setting and row["seed"] in CHOOSING]
        counts = [piece for row in found if row["place"] == CLUSTERS for piece in row["pieces"]]
        if not counts:
            continue
        sets = [place for place in EIGHT if any(row["place"] == place for row in found)]
        worst = min(mean([row for row in found if row["place"] == place], FIVE[0]) - trust[place] for place in sets)
        lines.append(
            [
                setting["growth"] + (f" over {setting['ramp']}" if "ramp" in setting else ""),
                "/".join(map(str, setting["iterations"])),
                setting["release"],
                f"{setting['neighborhoods']}, {setting['weight']:g}",
                ", ".join(_other(setting)) or "-",
                f"{np.mean(counts) - np.mean(base):+.1f}",
                f"{worst:+.4f} ({len(sets)})",
            ]
        )
    header = ["scales grow", "iterations", "release", "neighbourhoods, weight", "other"]
    return table(
        [*header, "Clusters, pieces more", "worst TW (of sets)"], sorted(lines, key=lambda line: float(line[-2]))
    )


def _different(rows: Results) -> list[dict[str, Any]]:
    """Return the adaptive settings of rows, each once."""
    found = {json.dumps(row["setting"], sort_keys=True): row["setting"] for row in rows}
    return [setting for setting in found.values() if setting["kernel"] == "adaptive"]


def _other(setting: dict[str, Any]) -> list[str]:
    out = [] if setting["quantile"] == 0.01 else [f"clip {100 * setting['quantile']:g} %"]
    out += [] if setting["local"] else ["steps in map units"]
    out += [f"weight rises over {100 * setting['dramp']:g} % of its iterations"] if "dramp" in setting else []
    return out + ([f"rate {setting['rate']:g}"] if "rate" in setting else [])


def report() -> None:
    """Write results/kernel.md."""
    rows = read()
    fixed = [SETTINGS[label] for label in ("default before", "fixed kernel, both, 1")]
    rows += [row for row in read(EARLIER) if row["setting"] in fixed]
    write(
        "kernel",
        "The kernel and the default",
        "python benchmarks/kernel.py",
        INTRODUCTION,
        f"## Objectives\n\n{OBJECTIVE_TEXT}\n\n{settings_table(rows, list(OBJECTIVES))}",
        f"## Schedules\n\n{SCHEDULE_TEXT}\n\n{settings_table(rows, list(SCHEDULES))}",
        f"## The default on other seeds\n\n{HELD_OUT_TEXT}\n\n{held_out(rows)}",
        f"## Schedules that were tried before\n\n{EARLIER_TEXT}\n\n{earlier_schedules()}",
        rows=[*Rows(ROWS).read(), *Rows(EARLIER).read()],
    )
