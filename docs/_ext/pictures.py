"""Pictures that cells draw: the text that describes one becomes its alt text."""

from __future__ import annotations

from typing import Any

from docutils import nodes


def _describe(app: Any, doctree: Any) -> None:
    for cell in doctree.findall(lambda node: isinstance(node, nodes.container) and "cell_output" in node["classes"]):
        for image in cell.findall(nodes.image):
            if not image.get("alt"):
                image["alt"] = "what the cell above draws; the text around it says what is to be seen"


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("doctree-read", _describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
