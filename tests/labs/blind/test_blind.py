"""No wrong answer of a blind batch gets full marks, and no right one loses any."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.labs.trials import Mistake, Trial
from tests.labs.trials.play import lab_of_trial, play

BATCHES = sorted(Path(__file__).parent.glob("lab*/*.toml"))
SECOND = sorted(Path(__file__).parent.glob("second/lab*/*.toml"))
# Right by another reading of the text, which says more since; or not right at all.
REFUSED = {
    "attention.always_normalized": "the host answers a call without keys by itself; now a kernel has to",
    "split_a_block.every_other_channel": "parts were not said to be neighbouring columns; now they are",
    "ring.list_of_chunks": "not right: the truth of a buffer is a value, which nobody has while a program is recorded",
    "continuous.latest_arrival_goes": "not right: p99 of the first token is 7 times a good schedule's in one case",
    "continuous.oldest_first_recursion": "keeps blocks in reserve; the text says since that a good schedule holds none",
    "continuous.sums_first": "keeps blocks in reserve; the text says since that a good schedule holds none",
    "continuous.latest_arrival_out": "keeps blocks in reserve; the text says since that a good schedule holds none",
    "continuous.half_a_block_each_in_reserve": "not right: p99 of the first token is 2.3 times a good schedule's",
}
# Wrong answers that no case loses points for: not wrong by the text, alike on all machines that are drawn, or open.
PASSED = {
    "broken_timers.step_against_the_launch": "alike: no kernel that is drawn is shorter than a launch",
    "broken_timers.any_wait_is_a_sync": "alike: no queue that is drawn is full",
    "broken_timers.launch_rate_means_no_sync": "alike: no kernel that is drawn is shorter than a launch",
    "broken_timers.cache_seen_in_the_first_run": "loses a fifth on secret draws; goldens have plain reports",
    "broken_timers.coarse_against_launch": "alike: no step that is drawn is between a launch and a call",
    "broken_timers.two_waits_are_per_call": "alike: no timer that is drawn waits twice but after each call",
    "broken_timers.any_other_stream_is_wrong": "loses everything on secret draws; goldens have plain reports",
    "broken_timers.only_if_none_finished": "loses a third or more on secret draws; goldens have plain reports",
    "amdahl.everything_free_raises": "the text asks for no such case, and the solution raises there too",
    "fused_or_not.update_in_place_not_read": "not wrong by the text: each step writes a new tensor",
    "aligned_shapes.whole_bytes_per_element": "not wrong by the text: it names no elements below a byte",
    "diagnose.weight_itemsize_ignored": "the text of diagnose names no weight_itemsize",
    "intensity.takes_the_weight_itemsize_out": "not wrong by the text: cells that use an operation again pass a copy",
    "aligned_shapes.changes_its_argument": "alike: padded again, the sides that it left behind stay as they are",
    "aligned_shapes.aligned_sides_grow_too": "right: the side as it is stays among the choices",
    "whose_fault.slowest_worker_for_all": "alike: all workers that are drawn take the same time on average",
    "overlap_plan.waits_before_any_record": "right: an event that was never recorded holds nobody up",
    "read_plan.stop_of_the_last": "not wrong by the text: samples of a shard do not overlap",
    "read_plan.overlaps_read_twice": "not wrong by the text: samples of a shard do not overlap",
    "read_plan.last_stop_wins": "not wrong by the text: samples of a shard do not overlap",
    "planted.copied_again": "not one of the six faults: its copies are pinned, and overlap",
    "planted.kept_on_the_host_alone": "not one of the six faults: its copies are pinned, and overlap",
    "who_hangs.came_already": "right: whose call is there waits, and who waits is not lost, ended or slow",
    "guards.hits_are_seen_too": "right: what hits has values of a version, or values that are free already",
    "guards.all_calls_are_seen": "right: what hits has values of a version, or values that are free already",
    "rank_gains.not_issued_ends_at_zero": "alike: no operation of another row comes after one that is not issued",
    "calibrate.less_than_the_share": "open: sums of shares in fp64 would decide whether exactly 0.05 % are too many",
    "row_softmax.difference_in_fp16": "right: tl.max of fp16 values is fp32 in Triton, and so is the difference",
    "single.two_units_always": "right by the bar: two units reach 91 % of light in all jobs of six draws",
    "honest_timer.mean_of_five_runs": "right: all runs take equally long here, so the number is that of two readings",
    "dynamic_scale.steps_with_zeros": "open: a step with gradients of 0 is not seen",
    "train_it.tensors_returned": "accepted: a tensor of one number is taken for the number",
    "buckets.whenever_the_link_is_free": "open: within 3 % of the best groups in the cases that are drawn",
    "ring.last_chunk_takes_the_rest": "open: no short buffer with a large rest is drawn",
    "who_hangs.group_without_number": "right: calls that are not done have the same number in all ranks of a group",
    "who_hangs.largest_size_is_at_fault": "open: the odd size is always the larger one",
    "fuse.contraction_fed_through_others": "open: no case has it",
    "fuse.reductions_computed_twice": "open: no case has it",
    "micro_batch.requests_instead_of_numbers": "right: a request of the queue is read as its number",
}


def answers(path: Path, kind: str) -> tuple[Mistake, ...]:
    """The wrong answers (`mistake`) or the right ones (`honest`) of a file, each with its whole code.

    An answer has its `code`, or `changes` of the file's `base`: pairs of a text and what takes its place everywhere.
    """
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(Mistake(one["name"], one["wrong"], _code(one, read.get("base", ""))) for one in read[kind])


def _code(answer: dict[str, Any], base: str) -> str:
    code = answer.get("code", base)
    for old, new in answer.get("changes", ()):
        assert old in code, f"{answer['name']}: {old!r} is not in the base"
        code = code.replace(old, new)
    return str(code)


@pytest.mark.parametrize(
    "path", BATCHES + SECOND, ids=lambda path: f"{path.parent.parent.name}-{path.parent.name}-{path.stem}"
)
def test_an_exercise_has_eleven_wrong_answers_and_three_right_ones(path: Path) -> None:
    for kind, least in (("mistake", 11), ("honest", 3)):
        names = [one.name for one in answers(path, kind)]

        assert len(set(names)) == len(names) >= least


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", BATCHES + SECOND, ids=lambda path: f"{path.parent.parent.name}-{path.parent.name}-{path.stem}"
)
def test_wrong_answers_lose_points_and_right_ones_none(path: Path) -> None:
    lab, exercise = path.parent.name, path.stem
    points = {
        kind: {
            one.name: one.points
            for one in play(Trial(lab, exercise, path.parent, answers(path, kind)), lab_of_trial(lab))
        }
        for kind in ("mistake", "honest")
    }

    passed = [name for name, share in points["mistake"].items() if share == 1]
    assert [] == [name for name in passed if f"{exercise}.{name}" not in PASSED]
    lost = [name for name, share in points["honest"].items() if share < 1]
    assert [] == [name for name in lost if f"{exercise}.{name}" not in REFUSED]
