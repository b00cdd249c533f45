"""Every verb from a plain install, without the packages of the extras: three lines, and never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from edl_labs.cli import app, not_installed

# Import names of what no plain install brings, as pyproject's extras list it.
HIDDEN = (
    "nbgrader", "jupytext", "nbconvert", "hatchling", "jsonschema", "latex2mathml", "msgspec", "nh3", "papermill",
    "psutil", "pyseccomp", "torchvision", "canvasapi", "psycopg", "ray", "jupyterlab", "pandas", "h5py",
)  # fmt: skip
CALLS = {
    "doctor": ["--sandbox"],
    "start": ["my-labs", "--no-open"],
    "check": ["nothing.ipynb"],
    "diagnose": ["nothing.json"],
    "predict": ["torchvision:resnet50"],
    "calibrate": [],
    "record": [],
    "new": ["lab99_x"],
    "edit": ["lab01_gpu_basics", "--help"],
    "build": ["lab01_gpu_basics"],
    "test": ["lab01_gpu_basics"],
    "leaks": ["nothing.whl"],
    "publish": ["out"],
    "wheel": [],
    "run": ["lab01_gpu_basics", "--smoke"],
    "course": ["my-course"],
    "collect": ["lab01_gpu_basics", "x.zip", "--from", "canvas"],
    "grade": ["lab01_gpu_basics"],
    "feedback": ["lab01_gpu_basics"],
    "export": ["lab01_gpu_basics", "--to", "csv", "--out", "x.csv"],
    "regrade": ["lab01_gpu_basics", "ridge"],
    "report": ["lab01_gpu_basics"],
    "gradescope": ["lab01_gpu_basics"],
    "canvas": ["lab01_gpu_basics", "--url", "https://canvas.example.edu", "--course", "1", "--to", "2"],
    "leaderboard": ["lab01_gpu_basics"],
}
HIDES = """
import contextlib, io, json, sys, traceback
from importlib.machinery import PathFinder
hidden, calls = json.loads(sys.argv[1])
class Hides:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hides())
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.split(".")[0] in hidden else find(name, *rest)
import importlib.util
spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.split(".")[0] in hidden else spec(name, *rest)
"""
DRIVER = (
    HIDES
    + """
from edl_labs.cli import main
said = {}
for verb, given in calls.items():
    sys.argv, told, code = ["edl-labs", verb, *given], io.StringIO(), None
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            traceback.print_exc()
    said[verb] = [code, told.getvalue()]
print(json.dumps(said))
"""
)
LOADS = (
    HIDES
    + """
import edl_labs.trace.handed_in, edl_labs.bench.own_recordings
from edl_labs.checks.lab_exercises import lab_names, load_lab
for lab in lab_names():
    load_lab(lab)
"""
)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Exit code and words of each verb, from an empty folder."""
    given = json.dumps([HIDDEN, CALLS])
    folder: Path = tmp_path_factory.mktemp("plain")
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER, given], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_the_exercises_of_every_lab_load_from_a_plain_install() -> None:
    given = json.dumps([HIDDEN, {}])
    ran = subprocess.run([sys.executable, "-c", LOADS, given], capture_output=True, text=True, timeout=120, check=False)

    assert ran.returncode == 0, ran.stderr


def test_every_verb_is_tried() -> None:
    assert set(CALLS) == set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("verb", CALLS)
def test_a_verb_says_what_is_missing_and_how_to_install_it(said: dict[str, tuple[int, str]], verb: str) -> None:
    code, told = said[verb]

    assert "Traceback" not in told, told
    assert code is not None or told
    if "is not installed" in told:
        assert code == 2
        assert "next:" in told
        assert "pip install" in told


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "extra"), [("doctor", "instructor"), ("course", "instructor"), ("predict", "vision")])
def test_what_needs_an_extra_names_it(said: dict[str, tuple[int, str]], verb: str, extra: str) -> None:
    assert f'pip install "edl-labs[{extra}]"' in said[verb][1]


def test_a_package_of_nobodys_is_named_as_it_is() -> None:
    assert "pip install timm" in str(not_installed("timm"))
    assert "[lab]" in str(not_installed("PIL"))
