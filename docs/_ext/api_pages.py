"""Writes a page for each public module, with every public name of it, before the sources are read."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

# The public modules in the order in which somebody meets them; `edl_labs.course` and `cli` are verbs, not a library.
MODULES = (
    "edl_labs",
    "edl_labs.bench",
    "edl_labs.roofline",
    "edl_labs.roofline.network",
    "edl_labs.numerics",
    "edl_labs.pipeline",
    "edl_labs.trace",
    "edl_labs.virtual",
    "edl_labs.virtual.gpu",
    "edl_labs.virtual.cluster",
    "edl_labs.virtual.memory",
    "edl_labs.virtual.loader",
    "edl_labs.virtual.warp",
    "edl_labs.virtual.tiles",
    "edl_labs.virtual.server",
    "edl_labs.graph",
    "edl_labs.inference",
    "edl_labs.predict",
    "edl_labs.hardware",
    "edl_labs.clock",
    "edl_labs.device",
    "edl_labs.stats",
    "edl_labs.units",
    "edl_labs.checks",
    "edl_labs.errors",
    "edl_labs.plots",
    "edl_labs.plots.style",
    "edl_labs.plots.timings",
    "edl_labs.plots.roofs",
    "edl_labs.plots.timeline_picture",
    "edl_labs.plots.cluster_picture",
    "edl_labs.plots.quantization",
    "edl_labs.plots.number_formats",
    "edl_labs.plots.memory_pictures",
    "edl_labs.plots.data_pipelines",
    "edl_labs.plots.trace_pictures",
    "edl_labs.plots.graph_picture",
    "edl_labs.plots.prediction_pictures",
    "edl_labs.plots.serving_pictures",
    "edl_labs.plots.warp_picture",
    "edl_labs.ui",
)


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: its `__all__`, or what it defines itself without an underscore in front."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not name.startswith("__")]
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return [name for name in own if not name.startswith("_")]


def offered() -> tuple[dict[str, list[tuple[str, Any]]], dict[str, list[str]]]:
    """Public names by module, each at the first module that has it, and by module the full names of those that have
    stood before: the facade's names stand on the facade's page, and the others lead there.
    """
    seen: dict[int, str] = {}
    found: dict[str, list[tuple[str, Any]]] = {}
    elsewhere: dict[str, list[str]] = {}
    for path in MODULES:
        try:
            module = importlib.import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
            continue
        found[path], elsewhere[path] = [], []
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.ismodule(value):
                continue
            if id(value) in seen:
                elsewhere[path].append(seen[id(value)])
                continue
            if callable(value):
                seen[id(value)] = f"{path}.{name}"
            found[path].append((name, value))
    return found, elsewhere


def write_pages(app: Any) -> None:
    """One page a module, and the page that lists them."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    rows, pages = [], []
    found, elsewhere = offered()
    for path, names in found.items():
        module = importlib.import_module(path)
        said = (inspect.getdoc(module) or "").split("\n")[0]
        rows.append(f"| [{path}]({path}.md) | {said} | {len(names) + len(elsewhere[path])} |")
        pages.append(path)
        _write(folder / f"{path}.md", _page(path, said, names, elsewhere[path]))
    table = ["| module | what it is for | names |", "|---|---|---|", *rows]
    toctree = ["```{toctree}", ":hidden:", "", *pages, "```"]
    intro = "Every public name, from its docstring; the examples in them are run by the tests."
    _write(folder / "index.md", "\n".join(["# API", "", intro, "", *table, "", *toctree, ""]))


def _page(path: str, said: str, names: list[tuple[str, Any]], elsewhere: list[str]) -> str:
    lines = [f"# {path}", "", said, ""]
    if elsewhere:
        links = ", ".join(f"{{py:obj}}`{full.rpartition('.')[2]} <{full}>`" for full in elsewhere)
        lines += [f"Also here, and described where they are met first: {links}.", ""]
    lines += ["```{eval-rst}", f".. py:module:: {path}", "   :no-typesetting:", ""]
    for name, value in names:
        lines += _entry(f"{path}.{name}", value)
    return "\n".join([*lines, "```", ""])


def _entry(full: str, value: Any) -> list[str]:
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        return [f".. {kind}:: {full}", "   :members:", ""]
    if callable(value):
        return [f".. autofunction:: {full}", ""]
    return [f".. py:data:: {full}", f"   :value: {_short(value)}", ""]


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "…"


def _write(path: Path, text: str) -> None:
    """Only where something changed: Sphinx reads again what is newer."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def readable(app: Any, what: str, name: str, value: Any, options: Any, signature: str, returns: str) -> Any:
    """A signature without `<factory>`, which is no Python: Sphinx would show all of it as it stands, unread."""
    return (signature.replace("<factory>", "..."), returns) if signature else None


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("autodoc-process-signature", readable)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
