"""One notebook file on a host like Colab or Kaggle: the wheel comes, and nothing that was there is replaced."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

LAB = "lab01_gpu_basics"
ROOT = Path(__file__).resolve().parents[2]
SETUP = "import json, sys; exec(''.join(json.load(open(sys.argv[1]))['cells'][1]['source'])); import edl_labs; "


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from hatchling.builders.wheel import WheelBuilder

    return Path(next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("dist")))))


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """An interpreter that has everything installed but edl_labs, and no repository near it."""
    here, there = Path(sysconfig.get_path("purelib")), tmp_path / "packages"
    there.mkdir()
    for entry in here.iterdir():
        if "edl_labs" not in entry.name.lower() and entry.suffix != ".pth":
            (there / entry.name).symlink_to(entry)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "host")], check=True)
    site = next((tmp_path / "host" / "lib").glob("python*")) / "site-packages"
    (site / "packages.pth").write_text(f"{there}\n")
    notebook = tmp_path / "work" / f"{LAB}.ipynb"
    notebook.parent.mkdir()
    shutil.copy(ROOT / "labs" / LAB / notebook.name, notebook)
    return tmp_path / "host" / "bin" / "python"


def environment(**more: str) -> dict[str, str]:
    dropped = ("PYTHONPATH", "EDL_LABS_EXERCISES", "JUPYTER_PREFER_ENV_PATH", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PIP_NO_INDEX": "1", "MPLBACKEND": "module://matplotlib_inline.backend_inline", **more}


def ran(python: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    folder = python.parents[2] / "work"
    command = [str(python), *arguments]
    return subprocess.run(command, cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize(
    "variable", ["COLAB_RELEASE_TAG", pytest.param("KAGGLE_KERNEL_RUN_TYPE", marks=pytest.mark.slow)]
)
def test_the_first_cell_installs_the_release_on_a_rented_host(host: Path, wheel: Path, variable: str):
    code = SETUP + "import importlib.metadata as m; print(edl_labs.__file__, m.version('torch'), check)"
    done = ran(host, "-c", code, f"{LAB}.ipynb", **{variable: "1", "EDL_LABS_INSTALL": str(wheel)})

    assert 0 == done.returncode, done.stderr
    assert str(host.parents[1]) in done.stdout.split()[0]
    assert [] == [path.name for path in host.parents[1].rglob("site-packages/torch*")]


def test_elsewhere_nothing_is_installed_and_the_message_says_what_to_do(host: Path, wheel: Path):
    done = ran(host, "-c", SETUP, f"{LAB}.ipynb", EDL_LABS_INSTALL=str(wheel))

    assert 0 != done.returncode
    assert "edl_labs is not installed in this kernel; labs/README.md says how" in done.stderr


@pytest.mark.slow
def test_a_release_that_is_there_is_left_alone(host: Path, wheel: Path, tmp_path: Path):
    first = ran(host, "-c", SETUP, f"{LAB}.ipynb", COLAB_RELEASE_TAG="1", EDL_LABS_INSTALL=str(wheel))
    again = ran(host, "-c", SETUP, f"{LAB}.ipynb", COLAB_RELEASE_TAG="1", EDL_LABS_INSTALL=str(tmp_path / "none.whl"))

    assert (0, 0) == (first.returncode, again.returncode), first.stderr + again.stderr


@pytest.mark.slow
def test_a_whole_notebook_runs_from_its_file_and_the_wheel_alone(host: Path, wheel: Path):
    execute = "import sys; from nbclient.cli import main; sys.argv[1:] = ['--inplace', sys.argv[1]]; main()"
    done = ran(host, "-c", execute, f"{LAB}.ipynb", COLAB_RELEASE_TAG="1", EDL_LABS_INSTALL=str(wheel))
    notebook = json.loads((host.parents[2] / "work" / f"{LAB}.ipynb").read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]

    assert 0 == done.returncode, done.stderr[-3000:]
    assert all(cell["execution_count"] for cell in code if "".join(cell["source"]).strip())
    assert [] == [out for cell in code for out in cell["outputs"] if out["output_type"] == "error"]
