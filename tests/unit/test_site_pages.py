"""What pages become on the site: links to sections lead there, labs have their numbers, the table is narrow."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LABS = sorted((ROOT / "labs").glob("lab*/*.ipynb"))


@pytest.fixture(scope="module")
def pages() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "site_pages.py"), run_name="site_pages")


@pytest.mark.parametrize(
    ("asked", "leads"),
    [
        ("2.-The-host-does-not-wait", "2-the-host-does-not-wait"),
        ("5.-What-does-a-measured-speed-up-mean%3F", "5-what-does-a-measured-speed-up-mean"),
        ("7.-Tiles-and-waves%3A-the-half-empty-pan", "7-tiles-and-waves-the-half-empty-pan"),
        ("10-there-already", "10-there-already"),
    ],
)
def test_a_notebooks_link_to_a_section_leads_to_it(pages: dict[str, Any], asked: str, leads: str) -> None:
    page = f'<section id="{leads}"></section><a class="x" href="#{asked}">there</a>'
    mended, dead = pages["anchored"](page, "labs/lab01/lab01.html", {"labs/lab01/lab01.html": pages["ids"](page)})

    assert f'href="#{leads}"' in mended
    assert [] == dead


def test_a_link_to_no_section_is_told(pages: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.html").write_text('<a href="deep/b.html#gone">x</a><a href="deep/c.html#any">no page of ours</a>')
    (tmp_path / "deep" / "b.html").write_text('<h1 id="here"></h1><a href="../a.html#Gone%21">x</a>')

    assert pages["mend_anchors"](tmp_path) == ["a.html -> deep/b.html#gone", "deep/b.html -> ../a.html#Gone!"]


def test_a_source_leads_to_its_member_under_the_packages_name(pages: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "source.html").write_text('<a href="api.html#edl_labs.Sweep.plot">docs</a>')
    (tmp_path / "api.html").write_text('<dt id="edl_labs.bench.Sweep.plot"></dt><dt id="edl_labs.bench.Sweep"></dt>')

    assert [] == pages["mend_anchors"](tmp_path)
    assert "#edl_labs.bench.Sweep.plot" in (tmp_path / "source.html").read_text()


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return runpy.run_path(str(ROOT / "scripts" / "build_site.py"), run_name="build_site")["linked"]


def test_links_between_pages_lead_to_pages_or_stop_the_build(linked: Any) -> None:
    here, homes = ROOT / "docs" / "students.md", {"labs/README.md": "labs/index.md"}

    assert linked("[labs](../labs/README.md#a)", here, "students.md", homes) == "[labs](/labs/index.md#a)"
    assert linked("[more](/api/edl_labs.bench.md)", here, "students.md", homes) == "[more](/api/edl_labs.bench.md)"
    assert linked("[the rules](../pyproject.toml)", here, "students.md", homes) == "the rules"
    with pytest.raises(ValueError, match="links to a file that does not exist"):
        linked("[labs](labs/index.md)", here, "students.md", homes)


@pytest.mark.parametrize("path", LABS, ids=lambda path: path.stem)
def test_a_labs_page_has_its_number_the_notebook_to_download_and_its_set_up_folded(
    pages: dict[str, Any], path: Path
) -> None:
    before, after = json.loads(path.read_bytes()), json.loads(pages["lab_page"](path.read_bytes(), path.stem))

    assert after["cells"][0]["source"].startswith(f"# {path.stem.partition('_')[0]}: ")
    assert f"</files/{path.stem}.ipynb>" in after["cells"][0]["source"]
    assert ["hide-input"] == after["cells"][1]["metadata"].pop("tags")
    assert after["cells"][1]["metadata"].pop("mystnb")
    assert before["cells"][1:] == after["cells"][1:]
    assert before["metadata"] == after["metadata"]


def test_the_table_of_labs_comes_after_what_to_do_and_names_every_lab(pages: dict[str, Any]) -> None:
    text = pages["table_of_labs"]((ROOT / "labs" / "README.md").read_text(encoding="utf-8"))

    assert text.index("pip install") < text.index("| lab |") < text.index("```{dropdown}")
    assert all(text.count(f"]({path.stem}/{path.name})") == 1 for path in LABS)
    assert "`finish_times`" not in text.partition("```{dropdown}")[0]
    assert "`finish_times`" in text
