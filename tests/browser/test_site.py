"""The site in a real browser, as `make docs` leaves it: search, pictures, explorers, nothing from elsewhere."""

from __future__ import annotations

import functools
import http.server
import re
import runpy
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.axe import axe_script, violations
from tests.browser.jupyter import ROOT, SHOTS
from tests.course.browser import NEEDS_BROWSER

HTML = ROOT / "build" / "site" / "html"
pytestmark = [
    *NEEDS_BROWSER,
    pytest.mark.slow,
    pytest.mark.skipif(not (HTML / "index.html").is_file(), reason="the site has not been built: make docs"),
]
PYTHON_MS = 120_000  # loading Pyodide and the library, on a busy machine
LABS = sorted(path.stem for path in (ROOT / "labs").glob("lab*/*.ipynb"))
PAGES = (
    "index",
    "students",
    "instructors",
    "maintainers",
    "explore",
    "gallery",
    "library/measure",
    "api/index",
    "labs/index",
)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of a server on loopback that gives the built pages."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(HTML)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def asked(page: Any, site: str) -> list[str]:
    """Every address outside the site that the page asks for."""
    outside: list[str] = []

    def note(request: Any) -> None:
        if not request.url.startswith((site, "data:", "blob:")):
            outside.append(request.url)

    page.on("request", note)
    return outside


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_no_other_host_has_no_broken_script_and_passes_axe(
    page: Any, site: str, asked: list[str], name: str
) -> None:
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.goto(f"{site}/{name}.html")
    page.wait_for_load_state("networkidle")
    axe_script()

    assert [] == asked
    assert [] == broken
    assert [] == violations(page, ("main", "header"))
    assert [] == page.evaluate("[...document.images].filter(i => !i.alt).map(i => i.src)")


def test_a_picture_says_what_the_library_says_of_it(page: Any, site: str) -> None:
    page.goto(f"{site}/gallery.html")
    told = page.evaluate("[...document.querySelectorAll('.cell_output img')].map(i => i.alt)")

    assert len(told) == len(set(told)) > 5
    assert all(text.startswith("Plot ") for text in told)


def test_search_finds_compare(page: Any, site: str) -> None:
    page.goto(f"{site}/search.html?q=compare")
    page.wait_for_selector("#search-results li a")

    assert "compare" in page.inner_text("#search-results").lower()


def test_code_is_copied_without_its_prompts(page: Any, site: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site)
    page.goto(f"{site}/students.html")
    page.hover("div.highlight >> nth=0")
    page.click("button.copybtn >> nth=0")
    page.wait_for_function("navigator.clipboard.readText().then(text => text.includes('edl-labs start'))")


@pytest.mark.parametrize("name", LABS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_lab_shows_its_pictures_and_no_traceback(
    page: Any, site: str, asked: list[str], name: str, scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{site}/labs/{name}/{name}.html")
    page.wait_for_load_state("networkidle")
    loaded = page.evaluate("[...document.querySelectorAll('.cell_output img')].map(i => i.naturalWidth > 50)")
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"site-{name}-{scheme}.png", full_page=True)

    # Before anything is written, most pictures of some labs still wait for the student's code.
    assert loaded or "once" in page.inner_text("main")
    assert all(loaded)
    assert "Traceback" not in page.inner_text("main")
    assert [] == asked


@pytest.mark.parametrize("name", LABS)
def test_a_labs_page_gives_the_released_notebook(page: Any, site: str, name: str) -> None:
    page.goto(f"{site}/labs/{name}/{name}.html")
    with page.expect_download() as given:
        page.get_by_role("link", name="Download the notebook").click()

    assert (ROOT / "labs" / name / f"{name}.ipynb").read_bytes() == Path(given.value.path()).read_bytes()


@pytest.mark.parametrize("name", ["compare", "measure", "Timer"])
def test_a_name_that_is_described_elsewhere_leads_there(page: Any, site: str, name: str) -> None:
    page.goto(f"{site}/api/edl_labs.bench.html")
    page.get_by_role("link", name=name, exact=True).first.click()

    assert page.url.endswith(f"api/edl_labs.html#edl_labs.{name}")
    assert page.locator(f"[id='edl_labs.{name}']").is_visible()


def test_a_phone_has_no_sideways_scroll_and_letters_that_can_be_read(page: Any, site: str) -> None:
    page.set_viewport_size({"width": 400, "height": 900})
    for name in PAGES:
        page.goto(f"{site}/{name}.html")
        page.wait_for_load_state("networkidle")
        wide = "[...document.querySelectorAll('article code, article dt')].filter(e => !e.closest('pre, table'))"
        cut = page.evaluate(f"{wide}.filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.innerText)")
        letters = page.evaluate(
            "[...document.querySelectorAll('svg.edl-picture text')].map(t => t.getBoundingClientRect().height)"
        )

        assert [] == cut
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert all(height >= 11 for height in letters)  # px, as small print


def test_a_page_that_was_opened_as_a_file_says_what_its_explorer_needs(page: Any) -> None:
    page.goto((HTML / "index.html").as_uri())
    said = "getComputedStyle(document.querySelector('.edl-explorer'), '::before')"
    page.wait_for_function(f"{said}.visibility === 'visible'")

    assert "http.server" in page.evaluate(f"{said}.content")


def test_the_first_picture_is_there_at_once_and_follows_its_slider(page: Any, site: str, asked: list[str]) -> None:
    page.goto(site)
    told = page.locator(".edl-explorer [role=status]")
    told.filter(has_text="4 chunks").wait_for()
    slider = page.locator(".edl-explorer input[type=range]").first
    slider.focus()
    page.keyboard.press("ArrowRight")
    told.filter(has_text="6 chunks").wait_for(timeout=2000)  # kept with the page: no Python is loaded for it

    assert "6 chunks" in (page.locator("svg.edl-picture").get_attribute("aria-label") or "")
    assert not any("pyodide" in address for address in asked)


def test_tiles_follow_their_sliders_without_python(page: Any, site: str) -> None:
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    page.goto(f"{site}/explore.html")
    explorer = page.locator(".edl-explorer[data-kind=tiles]")
    told = explorer.locator("[role=status]")
    told.filter(has_text="96 programs").wait_for()
    explorer.locator("input[type=range]").last.focus()
    page.keyboard.press("ArrowRight")
    told.filter(has_text="48 programs").wait_for(timeout=2000)

    assert "48 programs" in (explorer.locator("svg.edl-picture").get_attribute("aria-label") or "")
    assert 3 == explorer.locator("svg text", has_text="×").count()
    assert not any("pyodide" in address for address in loaded)


@pytest.mark.parametrize("kind", ["timeline", "roofline", "buckets", "slow_rank"])
def test_an_explorer_asks_the_library_for_other_settings(page: Any, site: str, asked: list[str], kind: str) -> None:
    page.goto(f"{site}/explore.html")
    explorer = page.locator(f".edl-explorer[data-kind={kind}]")
    told = explorer.locator("[role=status]")
    told.filter(has_text="modelled").wait_for()
    before = told.inner_text()
    explorer.locator("input[type=range]").last.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        """([kind, before]) => {
            const text = document.querySelector(`[data-kind=${kind}] [role=status]`).innerText;
            return text.startsWith("modelled") && text !== before
        }""",
        arg=[kind, before],
        timeout=PYTHON_MS,
    )

    assert [] == asked


def test_a_visitors_program_runs_and_an_endless_one_is_stopped(page: Any, site: str) -> None:
    page.goto(f"{site}/explore.html")
    editor = page.locator(".edl-editor")
    editor.locator("button").click()
    editor.locator("pre").filter(has_text="the host waited").wait_for(timeout=PYTHON_MS)
    assert editor.locator("svg rect").count() > 4

    editor.locator("textarea").fill("while True:\n    pass")
    editor.locator("button").click()
    editor.locator("pre").filter(has_text=re.compile("a loop that never ends")).wait_for(timeout=PYTHON_MS)


def test_bits_of_a_format_are_flipped_and_named(page: Any, site: str) -> None:
    page.goto(f"{site}/explore.html")
    formats = page.locator(".edl-formats")
    formats.locator("select").select_option(label="fp16")
    formats.locator("button").first.click()

    assert "fp16: -1 " in formats.locator("[role=status]").inner_text()
    assert "sign bit 15: 1" == formats.locator("button").first.get_attribute("aria-label")


def test_no_link_inside_the_site_leads_nowhere() -> None:
    broken = []
    for path in HTML.rglob("*.html"):
        for target in re.findall(r'href="([^"#?:]+)(?:[#?][^"]*)?"', path.read_text(encoding="utf-8")):
            if not (path.parent / target).resolve().exists():
                broken.append(f"{path.relative_to(HTML)} -> {target}")

    assert [] == sorted(set(broken))[:10]


def test_no_link_leads_to_a_section_that_is_not_there() -> None:
    pages = runpy.run_path(str(ROOT / "scripts" / "site_pages.py"), run_name="site_pages")
    texts = {path.relative_to(HTML).as_posix(): path.read_text(encoding="utf-8") for path in HTML.rglob("*.html")}
    known = {name: pages["ids"](text) for name, text in texts.items()}
    found = {name: pages["anchored"](text, name, known) for name, text in texts.items()}

    assert [] == [link for _, dead in found.values() for link in dead]
    assert [] == [name for name, (mended, _) in found.items() if mended != texts[name]]


@pytest.mark.parametrize("word", ["clone", "license", "actions", "plagiarism", "cheating", "collab", "install"])
def test_search_answers_a_visitors_word_with_a_page_for_visitors(page: Any, site: str, word: str) -> None:
    page.goto(f"{site}/search.html?q={word}")
    page.wait_for_selector("#search-results li a")
    first = page.inner_text("#search-results li >> nth=0")

    assert re.search("Students|Instructors|CI maintainers|Labs|Grading|Writing|edl_labs", first)
    assert not re.search("Changelog|Contributing", page.inner_text("#search-results"))


@pytest.mark.parametrize("word", ["windows", "macos", "kaggle", "colab"])
def test_search_leads_a_student_to_their_system(page: Any, site: str, word: str) -> None:
    page.goto(f"{site}/search.html?q={word}")
    page.wait_for_selector("#search-results li a")

    assert page.inner_text("#search-results li >> nth=0").startswith("Students")


def test_the_first_screen_has_the_doors_and_the_line_that_installs(page: Any, site: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(site)

    for name in ("I am a student", "I teach", "I run the CI"):
        box = page.get_by_role("link", name=name).bounding_box()
        assert box["y"] + box["height"] < 720
    assert page.locator("div.highlight").first.bounding_box()["y"] < 720
    controls = page.locator(".edl-explorer input")
    controls.first.wait_for()
    assert all(controls.nth(i).get_attribute("aria-label") for i in range(controls.count()))


def test_no_page_holds_what_only_a_solution_has(tmp_path: Path) -> None:
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.leaks import scan, secrets
    from edl_labs.course.lab.read import read_labs

    known = secrets(read_labs(Course.at(ROOT) if hasattr(Course, "at") else Course.find()))

    assert [] == scan([path for path in HTML.iterdir() if path.name != "_static"], known)
