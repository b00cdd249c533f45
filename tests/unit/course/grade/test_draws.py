"""Which secret cases count: one of a class's draws, by student and submission, the same wherever it is graded."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.spec import plain_cases
from edl_labs.course.course_file import set_limits
from edl_labs.course.grade.secret_cases import Draws, class_draws
from edl_labs.course.grade.submission import Submission, SubmittedCell
from edl_labs.course.sandbox.limits import DEFAULTS


def test_a_new_class_has_a_pool_that_is_recorded(tmp_path: Path):
    made = class_draws(tmp_path, count=8)

    assert 8 == made.count
    assert made == class_draws(tmp_path, count=8) == class_draws(tmp_path, count=3)
    assert 0o600 == (tmp_path / "seed.json").stat().st_mode & 0o777


def test_a_class_of_before_keeps_its_one_draw(tmp_path: Path):
    (tmp_path / "seed.json").write_text('{"seed": 5}')
    known = class_draws(tmp_path, count=8)

    assert Draws(5, 1) == known
    assert {5} == {known.seed_of(known.number(student, "digest")) for student in "abcdefgh"}


def test_a_given_seed_is_one_draw_unless_it_comes_with_its_class_count(tmp_path: Path):
    assert Draws(7, 1) == class_draws(tmp_path, seed=7)
    assert {"seed": 7} == json.loads((tmp_path / "seed.json").read_text())
    assert Draws(7, 8) == class_draws(tmp_path, seed=7, count=8) == class_draws(tmp_path)


def test_the_draw_is_a_keyed_hash_of_student_and_submission():
    pool = Draws(11, 8)
    told = hmac.new(b"11", json.dumps(["ana", "abc"]).encode(), hashlib.sha256).digest()

    assert int.from_bytes(told, "big") % 8 == pool.number("ana", "abc")


def test_every_draw_counts_for_about_as_many():
    pool = Draws(11, 8)
    counts = Counter(pool.number(f"student{number}", "digest") for number in range(4000))

    assert set(range(8)) == set(counts)
    assert 400 < min(counts.values()) < max(counts.values()) < 600


def test_another_submission_may_have_another_draw():
    assert 1 < len({Draws(11, 8).number("ana", f"digest{number}") for number in range(20)})


def test_draws_hold_different_cases():
    pool = Draws(11, 8)
    exercise = next(e for e in load_lab("lab01_gpu_basics") if e.name == "tile_quantization")
    drawn = {json.dumps(plain_cases(exercise.draw_cases(pool.seed_of(number)))) for number in range(8)}

    assert 8 == len(drawn)


def test_a_course_sets_how_many_draws_it_has_and_its_results_keep_their_names():
    assert 4 == set_limits({"draws": 4}).draws
    assert DEFAULTS.key() == replace(DEFAULTS, draws=4).key()


def test_outputs_that_are_shown_are_part_of_what_was_handed_in():
    bare, shown = (Submission((SubmittedCell("code", "a", "x", outputs=outputs),)) for outputs in (b"", b'[{"a": 1}]'))

    assert bare.digest == Submission((SubmittedCell("code", "a", "x"),)).digest
    assert bare.digest != shown.digest
