"""Fixtures that every folder of tests may use."""

from __future__ import annotations

import gc
import signal
import textwrap
from pathlib import Path

import pytest
from hypothesis import settings

from edl_labs.course.course_folder import without_grammars

with without_grammars():  # four seconds for each process of the run
    import jsonschema  # noqa: F401  (imported here without them, it stays so)

# The quick run draws the same everywhere, so that a change is judged by its own faults; `make test-all` draws anew.
settings.register_profile("same_draws", derandomize=True, print_blob=True)
settings.register_profile("new_draws", print_blob=True)
settings.load_profile("same_draws")

gc.disable()  # until all tests are collected: millions of objects, and none of them is let go


# A shell starts what it runs in the background with Ctrl-C ignored, and Python then leaves it so; tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def exercises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A course of its own: `exercises(lab, code)` writes an exercise module and returns its folder."""
    folder = tmp_path / "exercises"
    (folder / "goldens").mkdir(parents=True)
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(folder))

    def write(lab: str, code: str) -> Path:
        (folder / f"{lab}.py").write_text(textwrap.dedent(code))
        return folder

    return write


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test under tests/gpu carries the marker `gpu` and skips, saying why, where there is no CUDA."""
    for item in items:
        if "gpu" in Path(str(item.fspath)).parts:
            item.add_marker("gpu")


def pytest_collection_finish() -> None:
    """From here on there is garbage again."""
    gc.enable()
