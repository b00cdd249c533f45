"""Pictures that cells draw: the description that the library puts beside each becomes its alt text."""

from __future__ import annotations

import functools
from typing import Any

from myst_nb.core.render import NbElementRenderer


def _with_its_text(render_image: Any) -> Any:
    """MyST-NB's rendering of a picture, which leaves out the `alt` that lies in the output's metadata."""

    @functools.wraps(render_image)
    def rendered(self: NbElementRenderer, data: Any) -> list[Any]:
        made: list[Any] = render_image(self, data)
        told = data.output_metadata.get(data.mime_type, {}).get("alt")
        for image in made:
            image["alt"] = image.get("alt") or told or "a picture drawn by the cell above"
        return made

    return rendered


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    NbElementRenderer.render_image = _with_its_text(NbElementRenderer.render_image)  # no hook of its own for this
    return {"parallel_read_safe": True, "parallel_write_safe": True}
