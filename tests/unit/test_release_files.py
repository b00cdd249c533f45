"""What goes onto PyPI is checked before: contents, size, version. Planted mistakes are found."""

from __future__ import annotations

import runpy
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import edl_labs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def release() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "release_files.py"), run_name="release_files")


def a_wheel(folder: Path, *more: str, without: str = "", metadata: str = "2.4") -> Path:
    names = ["edl_labs/cli/__init__.py", "edl_labs/labs/lab01_gpu_basics/lab01_gpu_basics.ipynb"]
    names += ["edl_labs/exercises/goldens/lab01_gpu_basics.json", *more]
    with zipfile.ZipFile(folder / "edl_labs-0.1.0-py3-none-any.whl", "w") as wheel:
        for name in names:
            if not without or without not in name:
                wheel.writestr(name, "")
        wheel.writestr("edl_labs-0.1.0.dist-info/METADATA", f"Metadata-Version: {metadata}\nName: edl-labs\n\nText\n")
    return folder / "edl_labs-0.1.0-py3-none-any.whl"


def test_a_whole_wheel_has_no_problems(release, tmp_path) -> None:
    assert [] == release["problems"](a_wheel(tmp_path))


@pytest.mark.parametrize("name", ["solutions/lab01/x.py", "edl_labs/exercises/lab01/judge/x.py", "tests/conftest.py"])
def test_what_students_must_not_have_is_found(release, tmp_path, name) -> None:
    assert [f"holds {name}"] == release["problems"](a_wheel(tmp_path, name))


def test_what_is_missing_is_found(release, tmp_path) -> None:
    assert ["lacks goldens/lab01_gpu_basics.json"] == release["problems"](a_wheel(tmp_path, without="goldens"))


def test_metadata_that_the_upload_would_refuse_are_found(release, tmp_path) -> None:
    assert ["has core metadata 2.5; the upload takes 2.1 to 2.4"] == release["problems"](
        a_wheel(tmp_path, metadata="2.5")
    )


def test_a_tag_must_be_the_version_and_stand_in_the_changelog(release) -> None:
    assert [] == release["version_problems"]("refs/heads/main")
    assert [] == release["version_problems"](f"refs/tags/v{edl_labs.__version__}")
    assert any("the tag is v9.9.9" in line for line in release["version_problems"]("refs/tags/v9.9.9"))


def test_the_citation_names_this_version() -> None:
    assert edl_labs.__version__ == yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
