"""Turn the tutorial notebooks into pages when the site is built. Notebooks are not executed.

A notebook becomes Markdown, which mkdocs renders and checks like any other page. Pictures and interactive pages in its
outputs become files beside the page, so that the site needs no script and downloads nothing.
"""

from __future__ import annotations

import base64
import html
import json
import posixpath
import re
from typing import Any

_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
_FRAME = re.compile(r'<iframe\b([^>]*?)\ssrcdoc="([^"]*)"([^>]*)>', re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Replace each notebook with a page, the files that the page shows, and a copy of the notebook to download."""
    from mkdocs.structure.files import File

    class Notebook(File):
        def is_documentation_page(self) -> bool:
            return True

    for file in [each for each in files if each.src_uri.endswith(".ipynb")]:
        stem = posixpath.splitext(file.src_uri)[0]
        text, attached = page_of(json.loads(file.content_string), posixpath.basename(stem))
        attached[f"{posixpath.basename(stem)}.ipynb"] = file.content_bytes
        files.remove(file)
        files.append(Notebook.generated(config, file.src_uri, content=text))
        for name, content in attached.items():
            files.append(File.generated(config, f"{stem}_files/{name}", content=content))
    return files


def page_of(notebook: dict[str, Any], name: str) -> tuple[str, dict[str, bytes]]:
    """Return the Markdown of a notebook, and the files that it shows, which are in the folder ``<name>_files``."""
    parts: list[str] = []
    attached: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        source = _text(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            if len(parts) == 1:
                parts.append(f"[Download this page as a notebook]({name}_files/{name}.ipynb)")
            continue
        parts.append(f"```python\n{source}\n```")
        alt = cell["metadata"].get("alt", "The output of the code above")
        parts += [_output(each, alt, f"{name}_files", attached) for each in cell["outputs"]]
    return "\n\n".join(parts) + "\n", attached


def _output(output: dict[str, Any], alt: str, folder: str, attached: dict[str, bytes]) -> str:
    if output["output_type"] == "stream":
        return _block(_text(output["text"]))
    data = output["data"]
    if "image/png" in data:
        name = f"picture_{len(attached) + 1}.png"
        attached[name] = base64.b64decode(_text(data["image/png"]))
        return f"![{alt}]({folder}/{name})"
    if "text/html" not in data:
        return _block(_text(data["text/plain"]))
    content = _STYLE.sub("", _text(data["text/html"]))
    frame = _FRAME.search(content)
    if frame:  # a page of the explorer
        name = f"page_{len(attached) + 1}.html"
        attached[name] = html.unescape(frame[2]).encode()
        return f'<iframe{frame[1]} loading="lazy" src="{folder}/{name}"{frame[3]}></iframe>'
    lines = [line.strip() for line in content.splitlines() if line.strip()]
    return '<div class="output">' + "\n".join(lines).replace(' border="1"', "") + "</div>"


def _block(text: str) -> str:
    return f'<pre class="output"><code>{html.escape(text.rstrip())}</code></pre>'


def _text(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
