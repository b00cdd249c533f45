"""A user's strict type checker sees the library's types: no name of a facade is Any."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LAZY = ("bench", "numerics", "pipeline", "roofline")


@pytest.mark.slow  # `make types` checks the file too, with the project's own settings
@pytest.mark.timeout(600)
def test_a_users_file_passes_a_strict_type_checker_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    from mypy import api

    wrong = tmp_path / "wrong_user.py"
    wrong.write_text("from edl_labs.bench import measure\n\nx: str = measure(len).median_s\n", encoding="utf-8")
    said, errors, _ = api.run(["--strict", "--no-error-summary", str(HERE / "typed_user.py"), str(wrong)])

    assert "" == errors
    assert ["wrong_user.py"] == [Path(line.partition(":")[0]).name for line in said.splitlines()], said
    assert 'expression has type "float", variable has type "str"' in said


@pytest.mark.parametrize("part", LAZY)
def test_what_type_checkers_see_is_what_the_facade_has(part: str) -> None:
    module = import_module(f"edl_labs.{part}")
    tree = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: str(node.module) for node in imports for alias in node.names}

    assert set(module.__all__) == seen.keys()
    assert all(getattr(import_module(home), name) is getattr(module, name) for name, home in seen.items())
