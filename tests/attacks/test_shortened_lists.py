"""Lists of right evidence that are cut short earn nothing: what is missing is not compared with nothing."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.spec import given_halves
from tests.attacks.test_bound_programs import SOLUTIONS, solved

SEED = 777
QUICK = ("lab02_roofline", "lab12_language_model")
Path = tuple[str, ...]
SHORTER: dict[str, Callable[[list[Any]], list[Any]]] = {
    "empty": lambda every: [],
    "half": lambda every: every[: len(every) // 2],
    "all but the last": lambda every: every[:-1],
}
# Fields of exercises whose whole evidence is called an answer, or of an answer, that only explain a wrong one.
EXPLAIN = {
    "count_a_model": ("longer", "wider"),
    "fold_batch_norm": ("layers.*.bias_shape",),
    "rank_gains": ("alone_s",),
    "same_curve": ("enlarged", "exchanged", "mixed", "other_first"),
    "kv_int8": ("parts.rounded",),
}


@pytest.fixture(autouse=True)
def _own_exercises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)


def lists_in(value: Any, at: Path = ()) -> Iterator[Path]:
    """Where lists are; all items of a list share one path."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from lists_in(one, (*at, str(key)))
    elif isinstance(value, list):
        yield at
        for one in value:
            yield from lists_in(one, (*at, "*"))


def cut(value: Any, path: Path, how: Callable[[list[Any]], list[Any]]) -> Any:
    """The evidence with all lists of a path shortened."""
    if not path:
        return how(value) if isinstance(value, list) else value
    if isinstance(value, dict):
        return {key: cut(one, path[1:], how) if key == path[0] else one for key, one in value.items()}
    if isinstance(value, list) and path[0] == "*":
        return [cut(one, path[1:], how) for one in value]
    return value


def is_answer(answers: Any, path: Path) -> bool:
    """Whether a list is what the text asks for, and no mere claim, about which `--forge` lies."""
    plain = ".".join(name for name in path if name != "*")
    return answers == "all" or any(plain == one or plain.startswith(f"{one}.") for one in answers)


def earning(lab: str) -> list[str]:
    """The lists of a lab that may be cut short."""
    os.environ.pop("EDL_LABS_EXERCISES", None)
    found = []
    for one in load_lab(lab):
        if one.trusting:
            continue
        cases = one.draw_cases(SEED)
        want = [record["value"] for record in collect(one, dict(solved(lab)), given_halves(cases))]
        full = judge(one, cases, [{"value": value} for value in want], want, points=1).points
        for path in sorted({path for value in want for path in lists_in(value)}):
            name = ".".join(path)
            if not is_answer(one.spec.answers, path) or name.startswith(EXPLAIN.get(one.name, ("\n",))):
                continue
            for words, how in SHORTER.items():
                got = [cut(copy.deepcopy(value), path, how) for value in want]
                records = [{"value": value} for value in got]
                if got != want and judge(one, cases, records, want, points=1).points >= full:
                    found.append(f"{one.name}: {name}: {words}")
    return found


LABS = sorted(path.name for path in SOLUTIONS.iterdir() if (path / "lab.toml").exists())


@pytest.mark.parametrize("lab", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in LABS])
def test_no_list_may_be_cut_short(lab: str) -> None:
    assert [] == earning(lab)
