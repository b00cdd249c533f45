"""One run in the forms of several profilers tells the same; several ranks in one file stay apart."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from edl_labs.trace import Trace, TraceError, attribute, diagnose, read_ranks, read_trace
from tests.unit.trace.loops import run
from tests.unit.trace.test_trace_reader import KINETO, written
from tests.unit.trace.trace_files import kineto, nsys

LOOPS: dict[str, dict[str, Any]] = {
    "sync": {"kernel_s": 10e-6, "reads": 5},
    "launch": {"kernel_s": 1e-6},
    "data": {"kernel_s": 10e-6, "data_s": 2e-3},
}


def shares(trace: Trace) -> dict[str, Any]:
    return {cause: pytest.approx(share, abs=0.02) for cause, share in attribute(trace).shares.items()}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_an_nsys_export_tells_what_the_machine_did(tmp_path: Path, loop: dict[str, Any]) -> None:
    own = run(**loop).trace()
    read = read_trace(nsys(own, tmp_path / "run.sqlite"))

    assert "Nsight Systems" == read.origin
    assert shares(own) == attribute(read).shares
    assert len(own.steps) == len(read.steps)


def test_copies_of_nsys_keep_their_bytes_and_memories(tmp_path: Path) -> None:
    trace = read_trace(nsys(run(kernel_s=10e-6, reads=1).trace(), tmp_path / "run.sqlite"))
    copies = {(event.name, event.moved_bytes) for event in trace.events("copy")}

    assert {("Memcpy DtoH (Device -> Pinned)", 4)} <= copies


def test_a_database_that_is_none_of_nsys_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE songs (title TEXT)")
    base.commit()
    base.close()

    with pytest.raises(TraceError, match="not have the tables of an nsys export"):
        read_trace(path)


def test_a_broken_database_is_refused(tmp_path: Path) -> None:
    path = nsys(run(kernel_s=10e-6).trace(), tmp_path / "run.sqlite")
    path.write_bytes(path.read_bytes()[:3000])

    with pytest.raises(TraceError, match="is not a trace"):
        read_trace(path)


def test_a_byte_order_mark_is_no_matter(tmp_path: Path) -> None:
    path = written(tmp_path)
    marked = tmp_path / "marked.json"
    marked.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    assert len(read_trace(path)) == len(read_trace(marked))


@pytest.mark.parametrize("number", range(5))
def test_events_that_end_before_they_begin_are_refused_by_name(number: int) -> None:
    events = [{**event, "dur": -3.0} if place == number else event for place, event in enumerate(KINETO)]

    with pytest.raises(TraceError, match="1 event with a negative duration") as caught:
        read_trace(events)
    assert KINETO[number]["name"] in caught.value.why


def two_ranks() -> tuple[list[Trace], list[dict[str, Any]]]:
    """Two ranks that do different things, with the same correlation ids, and one file of both."""
    traces = [run(**LOOPS["sync"]).trace(), run(**LOOPS["data"]).trace()]
    return traces, [*kineto(traces[0], pid=900, device=0), *kineto(traces[1], pid=901, device=1)]


def test_two_ranks_in_one_file_are_two_traces(tmp_path: Path) -> None:
    traces, events = two_ranks()
    ranks = read_ranks(written(tmp_path, events))

    assert [shares(trace) for trace in traces] == [attribute(rank).shares for rank in ranks]
    assert [0, 1] == [rank.meta["rank"] for rank in ranks]


def test_two_ranks_are_not_merged_without_a_word(tmp_path: Path) -> None:
    traces, events = two_ranks()
    path = written(tmp_path, events)

    with pytest.raises(TraceError, match="contains 2 ranks"):
        diagnose(path)
    with pytest.raises(TraceError, match="but no rank 2"):
        read_trace(path, rank=2)
    assert shares(traces[1]) == attribute(read_trace(path, rank=1)).shares


def test_two_processes_of_an_nsys_export_are_two_ranks(tmp_path: Path) -> None:
    own = run(**LOOPS["sync"]).trace()
    ranks = read_ranks(nsys(own, tmp_path / "run.sqlite", pids=(11, 12)))

    assert [shares(own)] * 2 == [attribute(rank).shares for rank in ranks]


def test_ranks_whose_kernels_lie_on_one_row_are_refused() -> None:
    first, second = (run(**LOOPS[loop]).trace() for loop in ("sync", "data"))
    events = [*kineto(first, pid=1, device=0), *kineto(second, pid=2, device=0)]

    with pytest.raises(TraceError, match="cannot be separated"):
        read_trace(events)


@pytest.mark.parametrize("mark", ["nccl:all_reduce", "c10d::allreduce_", "ncclAllReduce", "record_param_comms"])
def test_kernels_launched_inside_a_collective_communicate_whatever_their_name(mark: str) -> None:
    inside = {"ph": "X", "cat": "cpu_op" if "c10d" in mark else "user_annotation", "name": mark, "pid": 1, "tid": 1}
    events = [*KINETO, {**inside, "ts": 1e12 + 18, "dur": 14.0}]

    assert ["kernel"] == [event.kind for event in read_trace(KINETO).events("kernel", "communication")]
    assert ["communication"] == [event.kind for event in read_trace(events).events("kernel", "communication")]


@pytest.mark.parametrize(
    "name", ["void vllm::cross_device_reduce_1stage<__half, 8>", "void deep_ep::intranode::dispatch<8, 768>"]
)
def test_collectives_of_serving_engines_communicate(name: str) -> None:
    events = kineto(run(**LOOPS["launch"]).trace(), pid=1, device=0, name=name)

    assert not len(read_trace(events).select("kernel"))


def test_the_command_shows_a_report_of_each_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from edl_labs.cli import app

    path = written(tmp_path, two_ranks()[1])
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["diagnose", str(path)])
    page = (tmp_path / "trace.json.diagnosis.html").read_text(encoding="utf-8")

    assert 0 == told.exit_code
    assert told.output.startswith("2 ranks: balanced")
    assert "trace.json, rank 1: data-bound" in told.output
    assert 2 == page.count("data:image/png;base64,")
    assert "https://" not in page


def test_the_command_gives_json_and_one_rank(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from edl_labs.cli import app

    path = written(tmp_path, two_ranks()[1])
    told = CliRunner().invoke(app, ["diagnose", str(path), "--rank", "0", "--json"])
    (report,) = json.loads(told.output)["ranks"]

    assert "trace.json, rank 0" == report["name"]
