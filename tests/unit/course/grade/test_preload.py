"""Kernels are forked with what a lab imports, found out without importing it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from edl_labs.course.assignment import Assignment, KnownCell
from edl_labs.course.grade.class_kernels import ALWAYS, BEHIND_OPTIMIZERS, imported, preload_of


def assignment(*sources: str, name: str = "lab01_gpu_basics", own: bool = False) -> Assignment:
    cells = tuple(KnownCell("code", f"c{index}", source, source, {}) for index, source in enumerate(sources))
    return Assignment(name, cells, (), {}, {}, own)


def test_modules_that_the_lab_imports_are_preloaded():
    found = preload_of(assignment("from edl_labs import units, check\nimport torchvision.transforms as t"))

    assert set(ALWAYS) <= set(found)
    assert {"edl_labs.units", "torchvision.transforms", "edl_labs.exercises.lab01_gpu_basics"} <= set(found)


def test_what_the_lab_does_not_import_is_left_out():
    assert not {n for n in preload_of(assignment("import json")) if n.startswith(("torchvision", "scipy", "json"))}


def test_names_that_are_no_modules_are_left_out():
    found = preload_of(assignment("from edl_labs import check, no_such\nfrom edl_labs.clock import clock_for"))

    assert "edl_labs.clock" in found
    assert not {"edl_labs.check", "edl_labs.no_such", "edl_labs.clock.clock_for"} & set(found)


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("lab01_gpu_basics", "import torch", False),
        ("lab01_gpu_basics", "o = torch.optim.SGD(weights)", True),
        ("lab03_mixed_precision", "import torch", True),  # its probes make optimizers
    ],
)
def test_what_torch_imports_behind_the_first_optimizer_is_preloaded(name: str, text: str, wanted: bool):
    assert wanted == (BEHIND_OPTIMIZERS in preload_of(assignment(text, name=name)))


def test_a_course_with_exercises_of_its_own_preloads_none():
    assert not [name for name in preload_of(assignment("", own=True)) if name.startswith("edl_labs.exercises")]


@pytest.mark.parametrize("code", ["%matplotlib inline\nimport torch", "def f(:", "\0"])
def test_text_that_is_no_python_imports_nothing(code: str):
    assert [] == imported(code)


@pytest.mark.slow
def test_a_class_run_starts_without_grammars_of_internet_names():
    code = "import sys\nimport edl_labs.course.grade.classrun\nprint('rfc3987_syntax.syntax_helpers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)

    assert "False" == done.stdout.strip()


@pytest.mark.slow
def test_finding_out_imports_nothing():
    code = (
        "import sys\nfrom edl_labs.course.grade.class_kernels import preload_of\n"
        "from edl_labs.course.assignment import Assignment, KnownCell\n"
        "text = 'import torchvision.ops\\nfrom edl_labs.plots import style'\n"
        "preload_of(Assignment('x', (KnownCell('code', 'a', text, text, {}),), (), {}, {}, True))\n"
        "print([n for n in ('torch', 'torchvision', 'matplotlib', 'edl_labs.plots') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert "[]" == done.stdout.strip()
