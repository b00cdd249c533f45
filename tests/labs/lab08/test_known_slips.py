"""Known slips of lab08 and lab08b: each has a sentence, shows in the cases of every seed, and is told from the others.

Cases carry digests of what slips answer. What is right, or alike, would have equal digests in all cases.
"""

from __future__ import annotations

import pytest

from edl_labs.checks.lab_exercises import load_lab
from edl_labs.exercises.lab08_kernels import first_layer_prices, paths_of_warps
from edl_labs.exercises.lab08_kernels.stem_slips import HANDED
from edl_labs.exercises.lab08_kernels.stem_slips import SAID as STEMS
from edl_labs.exercises.lab08b_layouts import memory_layouts
from edl_labs.exercises.lab08b_layouts.stride_slips import COPIED, READ
from edl_labs.exercises.slip_digests import digest, named_slip
from tests.labs.conftest import SOLUTIONS, parse


def exercise_of(lab, name):
    """The exercise, and what its solution gives for the cases of a seed."""
    names = {}
    for cell in parse((SOLUTIONS / lab / f"{lab}.py").read_text(encoding="utf-8"), file=lab):
        if cell.role in ("setup", "parameters", "given", "solve"):
            exec(compile(cell.source, cell.label, "exec"), names)
    found = next(one for one in load_lab(lab) if one.name == name)
    student = type("Student", (), {key: staticmethod(value) for key, value in names.items() if callable(value)})
    return found, student


def of_stems(which):
    prices = first_layer_prices
    return lambda case, got: digest((s for part in prices.PARTS for s in got[which][part]), least=prices.CLOSEST)


def of_copies(case, got):
    return digest(memory_layouts.copies_as_text(dict(one)) for one in got["copied"])


SLIPS = {
    "stems": ("lab08_kernels", "first_layers", "slips", STEMS, of_stems("alone")),
    "shapes": ("lab08_kernels", "first_layers", "handing_on", HANDED, of_stems("upto")),
    "paths": ("lab08_kernels", "warp_paths", "slips", paths_of_warps.SAID, lambda case, got: digest([got["issued"]])),
    "readings": ("lab08b_layouts", "strides", "read_slips", READ, lambda case, got: digest(got["read"])),
    "copies": ("lab08b_layouts", "strides", "copy_slips", COPIED, of_copies),
}


@pytest.mark.parametrize("kind", SLIPS)
def test_every_slip_has_a_sentence_shows_and_is_told_from_the_others(kind):
    lab, name, field, said, own = SLIPS[kind]
    found, student = exercise_of(lab, name)
    for seed in (1, 2, 3):
        cases = found.draw_cases(seed)
        right = tuple(own(case, found.spec.probe(student, dict(case.given))) for case in cases)
        slips = {slip: tuple(case[field][slip] for case in cases) for slip in said}

        assert [set(said)] * len(cases) == [set(case[field]) for case in cases]
        assert [] == [slip for slip, answers in slips.items() if answers == right]
        assert len(said) == len(set(slips.values()))


def test_a_digest_is_of_six_digits_and_of_whatever_comes():
    assert digest([0.1 + 0.2, "hit"]) == digest([0.3, "hit"])
    assert digest([0.3]) != digest([0.300001])
    assert digest([1e-14, 1.0], least=1e-13) == digest([0, 1])
    assert digest([None, 10**4000, float("nan"), [1]]) == digest([None, 10**4000, float("nan"), [1]])


def test_a_slip_is_named_where_it_gives_the_answers_to_all_cases():
    cases = [{"slips": {"one": digest([1]), "two": digest([number])}} for number in (1, 2)]
    said = {"one": ("one", "", ""), "two": ("two", "", "")}

    assert "two" == str(named_slip(cases, [digest([1]), digest([2])], said).what)
    assert named_slip(cases, [digest([2]), digest([2])], said) is None
