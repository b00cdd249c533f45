"""The house: imports run downhill, importing stays light, and each idea has one home."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit import house

ROOT = Path(__file__).resolve().parents[2]
MODULES = house.read_package(ROOT)
LEVELS = {
    **dict.fromkeys(("arguments", "errors", "units", "stats", "values", "presenters", "palette"), 0),
    **dict.fromkeys(("device", "clock", "virtual", "hardware"), 1),
    "bench": 2,
    "roofline": 3,
    **dict.fromkeys(("graph", "inference", "numerics", "pipeline", "predict", "trace"), 4),
    **dict.fromkeys(("plots", "ui", "checks"), 5),
    "exercises": 6,
    "course": 7,
    "cli": 8,
}
FACADE = "edl_labs"  # it belongs to no level
HEAVY = ("torch", "numpy", "matplotlib", "IPython", "ipywidgets", "scipy")
# An edge that goes uphill on purpose, with the reason.
ALLOWED: dict[tuple[str, str], str] = {}
# A stem that stands twice because its subject forces it, with the reason.
SAME_STEM: dict[str, str] = {
    "errors": "each part's own messages",
    "judge": "each lab's own draws of secret cases",
}
# A group of modules, or of neighbours in one folder, that import each other, with the reason.
CYCLES: dict[frozenset[str], str] = {}
CYCLES_AT_MOST = 2


def part_of(module: str) -> str:
    return module.split(".")[1]


def uphill(modules: Mapping[str, house.Module]) -> set[tuple[str, str]]:
    """(part, part) of every import, early, late or for types, from a lower level to a higher one."""
    edges = {
        (part_of(module.name), part_of(other))
        for module in modules.values()
        for other in module.imports
        if FACADE not in (module.name, other)
    }
    return {(part, other) for part, other in edges if LEVELS[part] < LEVELS[other]}


def package_of(tmp_path: Path, **files: str) -> dict[str, house.Module]:
    """A small package called edl_labs, with a module a keyword (`__` stands for a dot)."""
    for name, text in {"": "", **files}.items():
        path = tmp_path / "edl_labs" / (name.replace("__", "/") + ".py" if name else "__init__.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return house.read_package(tmp_path)


@pytest.mark.parametrize("part", sorted({part_of(name) for name in MODULES if name != FACADE}))
def test_each_part_has_a_level(part: str) -> None:
    assert part in LEVELS, f"{part} has no level; give it one here and in CONTRIBUTING.md"


def test_imports_run_downhill() -> None:
    assert set(ALLOWED) == uphill(MODULES), "an edge that is not listed, or a listed exception that nothing needs"


@pytest.mark.parametrize(
    "text",
    [
        "from edl_labs.course import grade",
        "def f():\n    import edl_labs.course.grade",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from edl_labs.course.grade import x",
    ],
)
def test_the_layer_check_sees_early_late_and_typing_imports(tmp_path: Path, text: str) -> None:
    assert {("bench", "course")} == uphill(package_of(tmp_path, bench__a=text, course__grade=""))


def test_no_stem_stands_twice() -> None:
    repeated = house.repeated_stems(MODULES, frozenset(SAME_STEM))

    assert {} == repeated, "give each of them a name that says what it holds, or list it above with the reason"


@pytest.mark.parametrize("stem", SAME_STEM)
def test_each_exempt_stem_does_stand_twice(stem: str) -> None:
    assert stem in house.repeated_stems(MODULES, frozenset()), "nothing needs this exception any more"


def test_the_check_of_stems_can_fail_and_a_folder_counts_once(tmp_path: Path) -> None:
    modules = package_of(tmp_path, bench___a="", trace__a="", bench____init__="", trace__b="")

    assert {"a": ["edl_labs.bench._a", "edl_labs.trace.a"]} == house.repeated_stems(modules, frozenset())


def test_parallel_folders_may_share_their_names(tmp_path: Path) -> None:
    modules = package_of(tmp_path, virtual__gpu__engine="", virtual__warp__engine="", trace__engine="", virtual__a="")

    assert {} == house.repeated_stems(modules, frozenset())


def test_no_small_module_has_a_single_user() -> None:
    assert {} == house.single_user_modules(MODULES), "a module under 60 lines with one user lives in that user"


def test_the_check_of_single_users_can_fail(tmp_path: Path) -> None:
    modules = package_of(tmp_path, a="def f():\n    from edl_labs.b import x", b="x = 1")

    assert {"edl_labs.b": "edl_labs.a"} == house.single_user_modules(modules)


def test_imports_have_no_cycle_without_a_reason() -> None:
    found = {*house.cycles(MODULES), *house.mutual_parts(MODULES)}

    assert set(CYCLES) == found, "a cycle that is not listed, or a listed one that is gone"
    assert len(CYCLES) <= CYCLES_AT_MOST


def test_the_check_of_cycles_sees_late_imports(tmp_path: Path) -> None:
    late = "def f():\n    from edl_labs import c"
    modules = package_of(tmp_path, a="import edl_labs.b", b=late, c="import edl_labs.a")

    assert [frozenset({"edl_labs.a", "edl_labs.b", "edl_labs.c"})] == house.cycles(modules)


def test_the_check_of_cycles_sees_folders_and_files_that_import_each_other(tmp_path: Path) -> None:
    """No two modules import each other, and yet neither `a` nor `b` can be read, or moved, without the other."""
    down, up = "import edl_labs.course.b.low", "def f():\n    from edl_labs.course.a import low"
    modules = package_of(tmp_path, course__a__high=down, course__a__low="", course__b__high=up, course__b__low="")

    assert [] == house.cycles(modules)
    assert [frozenset({"edl_labs.course.a", "edl_labs.course.b"})] == house.mutual_parts(modules)


def test_parts_of_one_level_may_not_import_each_other_either(tmp_path: Path) -> None:
    modules = package_of(
        tmp_path,
        trace__a="import edl_labs.numerics.b",
        numerics__b="",
        numerics__c="import edl_labs.trace.d",
        trace__d="",
    )

    assert set() == uphill(modules)
    assert [frozenset({"edl_labs.trace", "edl_labs.numerics"})] == house.mutual_parts(modules)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_each_tuning_constant_says_where_it_comes_from(module: str) -> None:
    assert [] == house.unexplained_constants(MODULES[module].path), "measured, a datasheet, a promise: a few words"


def test_the_check_of_constants_can_fail(tmp_path: Path) -> None:
    path = tmp_path / "constants.py"
    path.write_text("_A = 3\n_B = 2 * 1024  # a page\n# one screen\nROWS = (40, 80)\nNAME = 'x'\n_C: float = -1e-3\n")

    assert ["constants.py:1 _A = 3", "constants.py:6 _C: float = -1e-3"] == house.unexplained_constants(path)


def heavy_after(statement: str) -> list[str]:
    code = f"{statement}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return ast.literal_eval(out.stdout)


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert [] == heavy_after("import edl_labs")


def test_the_import_guard_can_fail() -> None:
    assert ["numpy"] == heavy_after("import edl_labs, numpy")


def test_student_modules_never_import_the_course() -> None:
    students = [m for m in MODULES.values() if m.name.split(".")[1:2] in (["checks"], ["ui"], ["exercises"])]

    assert students
    assert [] == [m.name for m in students if any(part_of(i) == "course" for i in m.imports if "." in i)]
