"""The Dockerfile and the devcontainer, as far as a machine without containers can tell: their files, their steps."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"
KNOWN = ("FROM", "ENV", "RUN", "WORKDIR", "COPY", "ENTRYPOINT", "CMD")


def instructions() -> Iterator[tuple[str, str]]:
    """Each instruction and what follows it, with continued lines joined and comments left out."""
    text = re.sub(r"(?m)^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8")).replace("\\\n", " ")
    for line in filter(str.strip, text.splitlines()):
        name, _, rest = line.partition(" ")
        yield name, rest.strip()


def copies() -> list[tuple[list[str], str]]:
    words = [shlex.split(rest) for name, rest in instructions() if name == "COPY"]
    return [(sources, target) for *sources, target in words]


def devcontainer() -> dict[str, str]:
    return json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def test_the_dockerfile_begins_with_a_pinned_python_and_copies_what_is_there() -> None:
    names = [name for name, _ in instructions()]

    assert "FROM" == names[0]
    assert set(names) <= set(KNOWN)
    assert all(re.fullmatch(r"python:3\.\d+-[\w-]+", rest) for name, rest in instructions() if name == "FROM")
    assert [] == [one for sources, _ in copies() for one in sources if not (ROOT / one).exists()]
    assert ["edl-labs"] == [json.loads(rest)[0] for name, rest in instructions() if name == "ENTRYPOINT"]


def test_lists_of_packages_are_not_left_in_the_image() -> None:
    installs = [rest for name, rest in instructions() if name == "RUN" and "apt-get install" in rest]

    assert installs
    assert all("--no-install-recommends" in rest and "rm -rf /var/lib/apt/lists/*" in rest for rest in installs)


def environment(folder: Path) -> dict[str, str]:
    """The variables of a shell whose Python is a new one in `folder`."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "EDL_LABS", "VIRTUAL"))}
    return {**kept, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}


def shell(command: str, folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-ec", command], cwd=folder, env=variables, capture_output=True, text=True, timeout=1500, check=False
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_dockerfiles_steps_make_a_place_where_classes_are_graded(tmp_path: Path) -> None:
    inside, course = tmp_path / "opt", tmp_path / "course"
    course.mkdir()
    for sources, target in copies():
        for source in sources:
            to = inside / (target if target not in (".", "./") else source)
            to.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, to)
    (pip,) = [rest for name, rest in instructions() if name == "RUN" and rest.startswith("pip install")]
    variables = environment(tmp_path / "python")

    done = shell(pip, inside, variables)
    assert 0 == done.returncode, done.stderr[-2000:]
    doctor = json.loads(shell("edl-labs doctor --json", course, variables).stdout)
    graded = shell(
        "edl-labs course my-course && cd my-course && edl-labs build && edl-labs test --seeds 2", course, variables
    )

    assert {"ok"} == {row["state"] for row in doctor["rows"] if row["name"] in ("python", "torch", "labs", "kernel")}
    assert 0 == graded.returncode, graded.stdout[-1000:] + graded.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_devcontainers_command_lays_out_every_lab(tmp_path: Path) -> None:
    here = tmp_path / "checkout"
    shutil.copytree(ROOT, here, ignore=shutil.ignore_patterns(".venv", ".git", "build", ".*_cache", "__pycache__"))
    variables = environment(tmp_path / "python")

    done = shell(devcontainer()["postCreateCommand"], here, variables)
    said = shell(devcontainer()["postAttachCommand"], here, variables)

    assert 0 == done.returncode, done.stderr[-2000:]
    assert sorted(path.name for path in (ROOT / "labs").glob("lab*")) == sorted(
        path.name for path in (here / "my-labs").glob("lab*")
    )
    assert "torch" in said.stdout
