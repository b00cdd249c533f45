"""What the site's explorers ask the library runs without numpy, torch and matplotlib, as it must in a browser."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "docs" / "_static"
BARE = """
import json, sys
class Bare:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numpy", "torch", "matplotlib", "ipywidgets", "IPython", "rich", "typer", "tqdm"}:
            raise ImportError(name + " is not in the browser")
sys.meta_path.insert(0, Bare())
import explorers
found = {}
for kind, controls in explorers.CONTROLS.items():
    for place in (0, -1):
        result = getattr(explorers, kind)(**{name: values[place] for name, _, values, _, _ in controls})
        found[f"{kind} {place}"] = result
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def answers() -> dict[str, dict]:
    path = {"PYTHONPATH": f"{ROOT}:{STATIC}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, env=path, check=True)
    return json.loads(done.stdout)


def test_each_explorer_answers_at_both_ends_of_its_sliders(answers) -> None:
    assert 10 == len(answers)
    assert all(answer["told"] for answer in answers.values())
    assert [] == [name for name, answer in answers.items() if "spans" in answer and not answer["spans"]]


def test_spans_lie_within_the_picture(answers) -> None:
    for answer in answers.values():
        for row, _, _, start_s, end_s in answer.get("spans", ()):
            assert 0 <= row < len(answer["rows"])
            assert 0 <= start_s <= end_s <= answer["end_s"] * (1 + 1e-9)


def test_chunks_on_streams_hide_what_one_chunk_cannot(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(STATIC))
    import explorers

    one, four = explorers.streams(chunks=1, count=1), explorers.streams(chunks=4, count=4)

    assert four["end_s"] < 0.6 * one["end_s"]


@pytest.fixture(scope="module")
def states() -> dict[str, dict]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(STATIC))
        patch.syspath_prepend(str(ROOT / "scripts"))
        return runpy.run_path(str(ROOT / "scripts" / "build_site.py"), run_name="site")["states"]()


def test_the_page_has_all_settings_of_the_explorer_that_needs_numpy(states) -> None:
    controls, kept = states["tiles"]["controls"], states["tiles"]["states"]

    assert {",".join(map(str, place)) for place in product(*(range(len(one[2])) for one in controls))} == set(kept)


def test_tiles_move_what_the_formula_says(states) -> None:
    for state in states["tiles"]["states"].values():
        (rows, columns, depth), (bm, bn) = state["sizes"], state["tile"]
        moved = {name: (size, often) for name, size, often in state["bars"]}
        expected = {"A": (rows * depth, columns // bn), "B": (depth * columns, rows // bm), "C": (rows * columns, 1)}

        assert {name: (2 * size * often, often) for name, (size, often) in expected.items()} == moved
        assert f"{rows * columns // (bm * bn)} programs" in state["told"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gpu.launch('k', duration_s=1e-3)", "modelled: 1 ms"),
        ("x = 1\n1 / 0", "ZeroDivisionError in line 2: division by zero"),
        ("gpu.launch(", "SyntaxError"),
        ("raise SystemExit", "SystemExit in line 1"),
    ],
)
def test_a_program_of_a_visitor_is_run_or_told_what_is_wrong(monkeypatch, text, told) -> None:
    monkeypatch.syspath_prepend(str(STATIC))
    import explorers

    assert told in explorers.program(text=text)["told"]


@pytest.mark.slow
def test_the_table_of_formats_gives_every_value_of_the_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """explore.js computes sign × scale × (whole + fraction / 2^m): here the same sum, over all patterns."""
    from edl_labs import numerics

    monkeypatch.syspath_prepend(str(ROOT / "scripts"))  # as when the script itself runs
    site = runpy.run_path(str(ROOT / "scripts" / "build_site.py"), run_name="site")
    wrong = []
    for table in site["formats"]():
        fmt = numerics.FORMATS[table["name"]]
        patterns = range(1 << fmt.bits) if fmt.bits <= 16 else range(0, 1 << fmt.bits, (1 << fmt.bits) // 4099)
        wrong += [pattern for pattern in patterns if not same(value(table, pattern), float(fmt.decode(pattern)))]

    assert [] == wrong[:5]


def value(table: dict, pattern: int) -> float:
    """What explore.js shows for a bit pattern."""
    bits = f"{pattern:0{table['bits']}b}"
    if bits in table["specials"]:
        return float(table["specials"][bits])
    ulps = 1 << table["mantissa_bits"]
    fraction, exponent = pattern % ulps, pattern // ulps % len(table["exponents"])
    sign = -1 if table["signed"] and bits[0] == "1" else 1
    if table["exponents"][exponent] is None:
        return float("nan") if fraction else sign * float("inf")
    scale, whole = table["exponents"][exponent]
    return sign * scale * (whole + fraction / ulps)


def same(one: float, other: float) -> bool:
    return one == other or (one != one and other != other)
