"""Each block of code on the site: run when it is built, run here, or marked as shell, text or a fragment."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UNRUN = ("sh", "bat", "text", "toml", "{toctree}", "{raw} html")  # what no reader takes for Python
FRAGMENT = "# a fragment"


def blocks(path: Path) -> list[tuple[str, str]]:
    """Language and text of each block of a page."""
    return BLOCK.findall(path.read_text(encoding="utf-8"))


def python(path: Path) -> list[str]:
    """Whole programs that the build does not run."""
    return [text for said, text in blocks(path) if said == "python" and not text.startswith(FRAGMENT)]


def gallery() -> list[tuple[str, str]]:
    """Heading and block of each picture."""
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    return [(part.partition("\n")[0], BLOCK.findall(part)[0][1]) for part in text.split("\n## ")[1:]]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_block_is_run_or_says_that_it_is_not(path: Path) -> None:
    kinds = {said for said, _ in blocks(path)}
    run = {"{code-cell}"} if "file_format: mystnb" in path.read_text(encoding="utf-8") else set()

    assert kinds <= {*UNRUN, "python", *run}


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in PAGES if python(path)], ids=lambda path: path.stem)
def test_python_that_the_build_does_not_run_runs(path: Path) -> None:
    for text in python(path):
        exec(compile(text, str(path), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("path", [path for path in PAGES if any(said == "toml" for said, _ in blocks(path))])
def test_toml_is_toml(path: Path) -> None:
    for said, text in blocks(path):
        if said == "toml":
            tomllib.loads(text)


@pytest.mark.slow
@pytest.mark.parametrize(("heading", "text"), gallery(), ids=[heading for heading, _ in gallery()])
def test_a_picture_of_the_gallery_is_drawn_by_its_lines_alone(heading: str, text: str) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, heading, "exec"), {"__name__": "__main__"})

    assert plt.get_fignums()
    plt.close("all")


def test_a_command_that_is_shown_is_the_one_whose_output_is_shown() -> None:
    text = (ROOT / "docs" / "library" / "predict.md").read_text(encoding="utf-8")
    pairs = re.findall(r"```sh\n(.*?)```\n\n```\{code-cell\}\n:tags: \[remove-input\]\n\n!(.*?)\n```", text, re.DOTALL)

    assert len(pairs) == text.count("\n!") == 2
    for shown, run in pairs:
        assert shown.replace("\\\n", "").split() == run.split()
