"""The command ``drsne demo``, which shows what the package does, on data that need no download."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from drsne.cli import Command, note
from drsne.cli._files import Outputs, two_panels
from drsne.cli._options import OUTPUT, adding


def run(options: argparse.Namespace) -> int:
    """Embed scikit-learn's Digits, and write a table, a picture and a page."""
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    has_matplotlib = find_spec("matplotlib") is not None
    names = ("digits.csv", *(["digits.png"] if has_matplotlib else []), "digits.html")
    places = {name: str(folder / name) for name in names}
    outputs = Outputs(options, [])
    for name, place in places.items():
        outputs.check(place, name)
    from sklearn.datasets import load_digits

    from drsne import DRSNE, explorer

    X, digit = load_digits(return_X_y=True)
    note(f"Embedding {len(X):,} images of handwritten digits.", options)
    model = DRSNE(random_state=0, n_jobs=options.jobs, verbose=0 if options.quiet else 1).fit(X)
    columns = {
        **{f"drsne{place + 1}": model.embedding_[:, place] for place in range(2)},
        "concentration_data": model.input_concentration_,
        "concentration_map": model.concentration_,
        "digit": digit,
    }
    outputs.table(places["digits.csv"], columns)
    if has_matplotlib:
        outputs.figure(places["digits.png"], two_panels(model, digit, "digit"))
    else:
        note("Left out the picture. Plots need matplotlib: pip install 'drsne[plot]'.", options)
    outputs.page(places["digits.html"], explorer.page(model, labels=digit, label_name="digit", title="Digits"))
    note(f"Open {places['digits.html']} in a browser to explore the map.", options)
    return 0


COMMAND = Command(
    "embed handwritten digits, and write a table, a picture and a page",
    adding("--folder", "--jobs", *OUTPUT),
    run,
    "  drsne demo",
)
