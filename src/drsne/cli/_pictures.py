"""The pictures that commands draw."""

from __future__ import annotations

from typing import Any


def two_panels(model: Any, label: Any, title: str | None) -> Any:
    """Return a figure of a map, coloured by label (if there is one) and by the concentration of the data."""
    from drsne import pl

    panels = [] if label is None else [(label, title or "label")]
    panels.append(("concentration", "Density"))
    figure = pl.new_figure((6.2 * len(panels) + 0.6, 5.4))
    for axis, (color, name) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        pl.embedding(model, color, ax=axis, title=name)
    return figure
