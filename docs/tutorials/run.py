"""Execute the tutorial notebooks and store their outputs.

``python docs/tutorials/run.py`` executes all notebooks in place, and ``run.py own_table --folder out`` writes one of
them to the folder ``out``. A notebook whose packages or data are missing is skipped with the reason. What changes from
run to run is left out of the outputs: times of execution, progress bars and escape codes. Pictures are stored with 256
colours, so that the notebooks stay small.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import re
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_PROGRESS = re.compile(r"\|.*\| *\d+/\d+.*left|: (compiling|preparing).*\.\.\.$")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ABSOLUTE = re.compile(r"(?<![\w.])/(?:home|root|tmp|work|var|opt|Users|private)/|\b[A-Z]:\\Users\\")
_COLORS = 256
_WIDGET = "application/vnd.jupyter.widget-view+json"


def main() -> int:
    """Execute the notebooks that the command line names, or all of them."""
    parser = argparse.ArgumentParser(description="Execute the tutorial notebooks and store their outputs.")
    parser.add_argument("names", nargs="*", help="names of notebooks without .ipynb (default: all)")
    parser.add_argument("--folder", type=Path, default=HERE, help="folder of the results (default: in place)")
    options = parser.parse_args()
    for path in sorted(HERE.glob("*.ipynb")):
        if options.names and path.stem not in options.names:
            continue
        notebook = _read(path)
        reason = missing(notebook)
        if reason:
            print(f"Skipped {path.name}: {reason}")
            continue
        execute(notebook)
        tidy(notebook)
        _write(notebook, options.folder / path.name)
        print(f"Executed {path.name}.")
    return 0


def missing(notebook: Any) -> str | None:
    """Return why a notebook cannot be executed here, or None."""
    needs = notebook.metadata.get("drsne", {})
    for package in needs.get("packages", []):
        if find_spec(package) is None:
            return f"it needs {package}."
    for name in needs.get("files", []):
        if not Path(os.environ.get("DRSNE_DATA_HOME", "data"), name).exists():
            return f"the file {name} is not in the folder DRSNE_DATA_HOME."
    return None


def execute(notebook: Any) -> None:
    """Execute a notebook in a temporary folder, so that the files that it writes do not stay."""
    from nbclient import NotebookClient

    # `!drsne` finds the command of this environment.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    home = os.environ.get("DRSNE_DATA_HOME")
    added = {"PATH": path, "COLUMNS": "100"} | ({"DRSNE_DATA_HOME": os.path.abspath(home)} if home else {})
    added["PYTHONWARNINGS"] = "ignore:IProgress not found"  # tqdm without widgets, in other packages
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}})
        client.execute(env={**os.environ, **added})


def tidy(notebook: Any) -> None:
    """Leave out what changes from run to run, and refuse outputs with paths of this machine."""
    notebook.metadata = {
        key: value for key, value in notebook.metadata.items() if key in ("drsne", "kernelspec", "language_info")
    }
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in map(_tidied, _merged(cell.outputs)) if output is not None]
    places = absolute_paths(notebook)
    if places:
        raise ValueError(f"Outputs must not contain absolute paths; found {places[:3]}.")


def absolute_paths(notebook: Any) -> list[str]:
    """Return the pieces of output that contain an absolute path."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            texts = [output.get("text", ""), *output.get("data", {}).values()]
            for text in texts:
                if isinstance(text, str) and "<iframe" not in text:
                    found += [text[max(0, match.start() - 20) : match.end() + 40] for match in _ABSOLUTE.finditer(text)]
    return found


def _merged(outputs: list[Any]) -> list[Any]:
    """Join neighbouring pieces of the same stream."""
    out: list[Any] = []
    for output in outputs:
        if out and output.output_type == "stream" == out[-1].output_type and output.name == out[-1].name:
            out[-1].text += output.text
        else:
            out.append(output)
    return out


def _tidied(output: Any) -> Any:
    if output.output_type == "stream":
        lines = [line.rstrip("\r").split("\r")[-1] for line in _ESCAPES.sub("", output.text).split("\n")]
        text = "\n".join(line.rstrip() for line in lines if not _PROGRESS.search(line)).strip("\n")
        output.text = f"{text}\n"
        return output if text else None
    if _WIDGET in output.get("data", {}):
        return None
    if "image/png" in output.get("data", {}):
        output.data.pop("text/plain", None)  # an object with its address, or the size of a figure in pixels
        output.data["image/png"] = _smaller(output.data["image/png"])
        output.metadata = {}
    return output


def _smaller(encoded: str) -> str:
    """Return a picture with few colours, on a white background."""
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")
    content = io.BytesIO()
    # This method keeps the colours of small classes, which the default of Pillow merges with others.
    few = flat.quantize(_COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(content, format="PNG", optimize=True)
    return base64.b64encode(content.getvalue()).decode()


def _read(path: Path) -> Any:
    import nbformat

    return nbformat.read(path, as_version=4)


def _write(notebook: Any, path: Path) -> None:
    import nbformat

    nbformat.validate(notebook)
    path.write_text(nbformat.writes(notebook, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
