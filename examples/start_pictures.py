"""Draw the figures of docs/start.md with the code of that page.

Run it as ``python examples/start_pictures.py [folder]``. The folder is docs/images by default. The script requires
``drsne[all]``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image
from reading_maps import write_small
from sklearn.datasets import load_digits, load_iris

from drsne import DRSNE, cli, pl

WIDTH = 1000  # of the picture that the command writes, in pixels


def flowers(place: Path) -> None:
    """Run the command of the page, and write its picture with fewer pixels."""
    iris = load_iris(as_frame=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = iris.data.assign(species=iris.target_names[iris.target])
        table.to_csv(folder / "flowers.csv", index=False)
        words = ["embed", "flowers.csv", "-o", "map.csv", "--plot", "map.png", "--explore", "map.html"]
        words = [str(folder / word) if "." in word else word for word in words]
        if cli.main([*words, "--label", "species"]) != 0:
            raise RuntimeError("The command failed.")
        with Image.open(folder / "map.png") as picture:
            size = (WIDTH, round(picture.height * WIDTH / picture.width))
            small = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
            small.quantize(256, kmeans=3).save(place, optimize=True)


def digits(place: Path) -> None:
    """Write the picture of the lines for a notebook."""
    X, digit = load_digits(return_X_y=True)
    model = DRSNE(random_state=0, n_jobs=-1).fit(X)
    write_small(pl.embedding(model, digit).figure, place)


def main(folder: Path) -> None:
    """Write both figures."""
    folder.mkdir(parents=True, exist_ok=True)
    flowers(folder / "start_flowers.png")
    digits(folder / "start_digits.png")
    print(f"Wrote start_flowers.png and start_digits.png to {folder}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images"))
