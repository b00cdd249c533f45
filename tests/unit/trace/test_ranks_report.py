"""One report over all ranks: who waits for whom, the imbalance, and what communication is hidden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edl_labs.cli import app
from edl_labs.errors import UsageError
from edl_labs.trace import RanksDiagnosis, diagnose_ranks, read_trace

STEP_US = 10_000.0


def rank_events(number: int, compute_us: float, *, ranks: int = 2, hidden_us: float = 0.0, **args: Any) -> list[Any]:
    """Steps of 10 ms: a kernel, then an all-reduce that ends 9 ms into the step on every rank.

    The all-reduce begins `hidden_us` before the kernel ends.
    """
    pid, device = 100 + number, {"pid": number, "args": {"device": number}}
    events: list[Any] = []
    for step in range(4):
        # Clocks of ranks need not agree.
        start = STEP_US * step + 77_777.0 * number
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start, "dur": STEP_US}
        events.append({"ph": "X", **mark, "pid": pid, "tid": pid})
        reduce_us = start + 10 + compute_us - hidden_us
        for place, (name, begins, ends) in enumerate(
            (
                ("gemm", start + 10, start + 10 + compute_us),
                ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", reduce_us, start + 9000),
            )
        ):
            link = {"correlation": 2 * step + place}
            call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + place, "dur": 1.0, "args": link}
            work = {"cat": "kernel", "name": name, "ts": begins, "dur": ends - begins, "pid": number, "tid": 7 + place}
            more = args if place else {}
            events.append({"ph": "X", **call, "pid": pid, "tid": pid})
            events.append({"ph": "X", **work, "args": {**link, **device["args"], "stream": 7 + place, **more}})
    return events


def found(*computes_us: float, **options: Any) -> RanksDiagnosis:
    return diagnose_ranks(
        [read_trace(rank_events(number, taken, **options)) for number, taken in enumerate(computes_us)]
    )


def test_the_last_to_arrive_is_waited_for() -> None:
    report = found(4000.0, 7000.0, 5000.0)

    assert [0, 1, 2] == [rank.rank for rank in report.ranks]
    assert pytest.approx([3e-3, 0.0, 2e-3]) == [rank.waits_s for rank in report.ranks]
    assert pytest.approx([0.0, 5e-3, 0.0]) == [rank.waited_for_s for rank in report.ranks]
    assert pytest.approx(3e-3) == report.waits_s[0][1]
    assert report.text().startswith("3 ranks: rank 1 arrives last; another rank waits up to 3 ms per step (30 %)\n")
    assert "rank 2 waits 2 ms per step for rank 1" in report.text()


def test_imbalance_is_of_computing() -> None:
    assert pytest.approx(7000 / 5500 - 1, rel=1e-3) == found(4000.0, 7000.0).imbalance


@pytest.mark.parametrize(("hidden_us", "share"), [(0.0, 0.0), (1000.0, 0.2), (2500.0, 0.3846)])
def test_overlap_is_hidden_communication_as_a_part_of_all(hidden_us: float, share: float) -> None:
    report = found(5000.0, 5000.0, hidden_us=hidden_us)

    # The all-reduce takes what is left of 8990 µs after the kernel, and what is hidden.
    assert pytest.approx(hidden_us / (3990.0 + hidden_us), rel=1e-6) == report.ranks[0].overlap
    assert pytest.approx(share, abs=0.001) == report.ranks[1].overlap
    assert pytest.approx(3990e-6, rel=0.01) == report.ranks[0].exposed_s


def test_ranks_that_arrive_together_are_balanced() -> None:
    assert found(5000.0, 5000.0).text().startswith("2 ranks: balanced")


def test_no_overlap_is_zero_without_a_sign_and_a_rank_given_twice_is_noted() -> None:
    trace = read_trace({"distributedInfo": {"rank": 5}, "traceEvents": rank_events(0, 5000.0)})
    report = diagnose_ranks([trace, trace])

    assert "-0 %" not in report.text()
    assert (
        "2 traces say that they belong to rank 5, so the ranks are numbered in the order of the traces",
    ) == report.notes


def test_a_single_rank_is_not_called_balanced() -> None:
    assert diagnose_ranks(read_trace(rank_events(0, 4000.0))).text().startswith("1 rank: there is no other rank")


def test_without_communication_there_is_no_overlap() -> None:
    events = [event for event in rank_events(0, 4000.0) if "nccl" not in event["name"]]
    report = diagnose_ranks([read_trace(events), read_trace(events)])

    assert report.ranks[0].overlap is None
    assert report == RanksDiagnosis.from_json(report.to_json())


def test_ranks_say_their_own_numbers(tmp_path: Path) -> None:
    paths = []
    for place, rank in enumerate((3, 1)):
        path = tmp_path / f"{place}.json"
        tree = {
            "distributedInfo": {"rank": rank, "world_size": 4},
            "traceEvents": rank_events(rank, 4000.0 + 500 * rank),
        }
        path.write_text(json.dumps(tree), encoding="utf-8")
        paths.append(path)
    report = diagnose_ranks(paths)

    assert [(1, "1.json"), (3, "0.json")] == [(rank.rank, rank.name) for rank in report.ranks]
    assert ("only 2 of 4 ranks were passed, so waiting for the other ranks is not visible",) == report.notes


def test_groups_are_compared_within_themselves() -> None:
    """Two pairs of ranks: the slow pair delays nobody of the other."""
    traces = [
        read_trace(
            rank_events(number, taken, **{"Collective name": "allreduce", "Process Group Name": str(number // 2)})
        )
        for number, taken in enumerate((4000.0, 5000.0, 7000.0, 8000.0))
    ]
    waits = diagnose_ranks(traces).waits_s

    assert pytest.approx([1e-3, 1e-3]) == [waits[0][1], waits[2][3]]
    assert 0.0 == waits[0][2] == waits[0][3] == waits[1][3]


def test_sizes_that_differ_between_ranks_do_not_part_a_collective() -> None:
    sizes = ({"Collective name": "reduce_scatter", "In msg nelems": count} for count in (100, 99))
    traces = [read_trace(rank_events(number, 4000.0 + 1000 * number, **size)) for number, size in enumerate(sizes)]

    assert pytest.approx(1e-3) == diagnose_ranks(traces).waits_s[0][1]


def test_transfers_between_two_of_many_ranks_are_not_compared() -> None:
    sends = {"Collective name": "send", "Process Group Name": "0"}
    traces = [read_trace(rank_events(number, 4000.0 + 1000 * number, **sends)) for number in range(3)]
    report = diagnose_ranks(traces)

    assert ("send 0 is not compared, because the traces do not say which two ranks exchange data",) == report.notes
    assert [0.0] * 3 == [rank.waits_s for rank in report.ranks]


def test_ranks_that_differ_in_their_collectives_are_noted() -> None:
    short = rank_events(1, 5000.0)[:-6]
    report = diagnose_ranks([read_trace(rank_events(0, 4000.0)), read_trace(short)])

    assert any(
        "ranks differ in how often ncclDevKernel_AllReduce_Sum_f32_RING_LL runs" in note for note in report.notes
    )


def test_collectives_of_a_cpu_are_compared_by_their_annotations() -> None:
    def gloo(wait_us: float) -> list[Any]:
        events = []
        for step in range(4):
            start, place = STEP_US * step, {"ph": "X", "pid": 1, "tid": 1}
            events += [
                {**place, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start, "dur": STEP_US},
                {**place, "cat": "cpu_op", "name": "aten::mm", "ts": start, "dur": 9000 - wait_us},
                {
                    **place,
                    "cat": "user_annotation",
                    "name": "gloo:all_reduce",
                    "ts": start + 9000 - wait_us,
                    "dur": wait_us,
                },
            ]
        return events

    report = diagnose_ranks([read_trace(gloo(1000.0)), read_trace(gloo(4000.0))])

    assert pytest.approx(3e-3) == report.waits_s[1][0]
    assert pytest.approx(0.4) == report.reports[1].shares["communication"]


def test_one_file_of_all_ranks_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "both.json"
    path.write_text(json.dumps([*rank_events(0, 4000.0), *rank_events(1, 7000.0)]), encoding="utf-8")

    assert ["both.json, rank 0", "both.json, rank 1"] == [rank.name for rank in diagnose_ranks(path).ranks]


def test_no_trace_is_refused() -> None:
    with pytest.raises(UsageError, match="no trace was passed"):
        diagnose_ranks([])


def test_the_command_takes_a_file_a_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, taken in enumerate((4000.0, 7000.0)):
        text = json.dumps({"traceEvents": rank_events(number, taken)})
        (tmp_path / f"rank{number}.json").write_text(text, encoding="utf-8")
    told = CliRunner().invoke(app, ["diagnose", "rank0.json", "rank1.json"])
    plain = json.loads(CliRunner().invoke(app, ["diagnose", "rank0.json", "rank1.json", "--json"]).output)
    page = (tmp_path / "rank0.json.diagnosis.html").read_text(encoding="utf-8")

    assert 0 == told.exit_code
    assert told.output.startswith("2 ranks: rank 1 arrives last")
    assert "\nrank1.json: GPU-bound" in told.output
    assert ["rank0.json", "rank1.json"] == [report["name"] for report in plain["ranks"]]
    assert pytest.approx(3e-3) == plain["across"]["waits_s"][0][1]
    assert "rank 0 waits 3 ms per step for rank 1" in page
