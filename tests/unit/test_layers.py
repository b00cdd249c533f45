"""Imports run downhill, and importing the package stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEVELS = {
    **dict.fromkeys(("errors", "units", "stats", "values", "presenters", "palette"), 0),
    **dict.fromkeys(("device", "clock", "virtual", "hardware"), 1),
    "bench": 2,
    "roofline": 3,
    **dict.fromkeys(("numerics", "pipeline", "trace"), 4),
    **dict.fromkeys(("plots", "ui", "checks"), 5),
    "exercises": 6,
    "course": 7,
    "cli": 8,
}
HEAVY = ("torch", "numpy", "matplotlib", "IPython", "ipywidgets", "scipy")
# An edge that goes uphill on purpose, with the reason.
ALLOWED: dict[tuple[str, str], str] = {}


def imports(text: str) -> set[str]:
    """The packages of edl_labs that a module's text imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("edl_labs.")}
    return found & set(LEVELS)


def modules() -> list[Path]:
    return sorted((ROOT / "edl_labs").rglob("*.py"))


def uphill(part: str, text: str) -> list[str]:
    return [
        other
        for other in sorted(imports(text))
        if other != part and LEVELS[other] > LEVELS[part] and (part, other) not in ALLOWED
    ]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_each_module_imports_only_downhill(path: Path) -> None:
    part = path.relative_to(ROOT / "edl_labs").parts[0].removesuffix(".py")
    if part in ("__init__", "_former_paths"):
        return
    assert part in LEVELS, f"{part} has no level in DESIGN; give it one here"

    assert [] == uphill(part, path.read_text(encoding="utf-8"))


def test_the_layer_check_can_fail() -> None:
    assert ["course"] == uphill("bench", "def f():\n    from edl_labs.course.grade import judge")


def heavy_after(statement: str) -> list[str]:
    code = f"{statement}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return ast.literal_eval(out.stdout)


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert [] == heavy_after("import edl_labs")


def test_the_import_guard_can_fail() -> None:
    assert ["numpy"] == heavy_after("import edl_labs, numpy")


def test_student_modules_never_import_the_course() -> None:
    student = [p for p in modules() if p.relative_to(ROOT / "edl_labs").parts[0] in ("checks", "ui", "exercises")]

    offenders = {p.name for p in student if imports(p.read_text(encoding="utf-8")) & {"course"}}

    assert set() == offenders
