"""A user's strict type checker sees the library's types: no public name is Any."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_overloads

import pytest

import edl_labs

HERE = Path(__file__).parent
LAZY = ("", ".bench", ".graph", ".numerics", ".pipeline", ".roofline")
# What these return depends on the caller: the inputs of any exercise, a hint as the notebook shows it, any batch.
ANYTHING = {"case", "hint", "rounded_network"}

WRONG = """
import edl_labs
from edl_labs import Timer, compare, measure, sweep

measure(3)
measure(len, budget=0.1)
compare([len, len])
sweep(len, 3)
Timer(clock="cuda")
x: str = measure(len).median_s
y: str = edl_labs.numerics.FP16.round(0.1)
"""


def public_names() -> Iterator[tuple[str, str]]:
    for module in ("edl_labs", *(f"edl_labs.{part}" for part in edl_labs._MODULES)):
        for name in getattr(import_module(module), "__all__", ()):
            yield module, name


def user_of_all_names(folder: Path) -> Path:
    names = list(public_names())
    lines = [f"from {module} import {name} as v{at}" for at, (module, name) in enumerate(names)]
    lines += [f"reveal_type(v{at})" for at in range(len(names))]
    path = folder / "all_names.py"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def wrong_lines(said: str) -> set[int]:
    return {int(line) for line in re.findall(r"wrong_user\.py:(\d+)", said)}


@pytest.mark.slow  # `make types` checks typed_user.py too, with the project's own settings
@pytest.mark.timeout(600)
def test_mypy_accepts_a_users_file_refuses_wrong_calls_and_finds_no_name_that_is_any(tmp_path: Path) -> None:
    from mypy import api

    wrong = tmp_path / "wrong_user.py"
    wrong.write_text(WRONG, encoding="utf-8")
    names = user_of_all_names(tmp_path)
    said, errors, _ = api.run(["--strict", "--no-error-summary", str(HERE / "typed_user.py"), str(wrong), str(names)])

    assert "" == errors
    revealed = [line for line in said.splitlines() if "all_names.py" in line]
    assert len(list(public_names())) == len(revealed)
    assert [] == [line for line in revealed if 'is "Any"' in line]
    others = [line for line in said.splitlines() if "all_names.py" not in line and ": error" in line]
    assert set(range(5, 12)) == wrong_lines("\n".join(others)), others
    assert {"wrong_user.py"} == {Path(line.partition(":")[0]).name for line in others}


@pytest.mark.skipif(find_spec("basedpyright") is None, reason="basedpyright, of the extra dev, is not installed")
@pytest.mark.timeout(600)
def test_pyright_refuses_wrong_calls_and_finds_no_name_that_is_any(tmp_path: Path) -> None:
    (tmp_path / "wrong_user.py").write_text(WRONG, encoding="utf-8")
    user_of_all_names(tmp_path)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}', encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path).stdout

    revealed = re.findall(r'Type of "(v\d+)" is "(.+)', said)
    assert len(list(public_names())) == len(revealed)
    assert [] == [(name, text) for name, text in revealed if text.startswith(('Any"', 'Unknown"'))]
    assert set(range(5, 12)) == wrong_lines("\n".join(line for line in said.splitlines() if "error:" in line))


@pytest.mark.parametrize("part", LAZY)
def test_what_type_checkers_see_is_what_the_facade_has(part: str) -> None:
    module = import_module(f"edl_labs{part}")
    tree = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: str(node.module) for node in imports for alias in node.names}
    modules = set() if part else set(edl_labs._MODULES)

    assert {*module.__all__} - {"__version__"} | modules == seen.keys()
    for name, home in seen.items():
        assert (import_module(f"{home}.{name}") if name in modules else getattr(import_module(home), name)) is getattr(
            module, name
        )


def returned(value: Any) -> dict[str, Any]:
    """What the public functions of a class, or the function itself, say that they return."""
    if not inspect.isclass(value):
        return {"": inspect.signature(value).return_annotation} if inspect.isfunction(value) else {}
    fields = getattr(value, "__dataclass_fields__", {})
    parts = {name: part for name, part in vars(value).items() if not name.startswith("_") and name not in fields}
    functions = {name: getattr(part, "fget", getattr(part, "__func__", part)) for name, part in parts.items()}
    return {
        name: inspect.signature(function).return_annotation
        for name, function in functions.items()
        if inspect.isfunction(function) and not get_overloads(function)
    }


def test_each_public_function_says_what_it_returns() -> None:
    silent = [
        f"{module}.{name} {part}".strip()
        for module, name in public_names()
        if name not in ANYTHING
        for part, kind in returned(getattr(import_module(module), name)).items()
        if kind in (Any, "Any", inspect.Signature.empty)
    ]

    assert [] == silent
