"""Formulas as MathML, which browsers set by themselves: no script, no font and no other host."""

from __future__ import annotations

from typing import Any

import latex2mathml.converter
from docutils import nodes


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(latex2mathml.converter.convert(node.astext()))
    raise nodes.SkipNode


def _display(self: Any, node: nodes.math_block) -> None:
    self.body.append(f"<div>{latex2mathml.converter.convert(node.astext(), display='block')}</div>")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
