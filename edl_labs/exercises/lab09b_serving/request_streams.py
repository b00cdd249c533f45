"""streams: independent requests of small kernels on a GPU whose SMs they share, judged by their answers' times."""

from __future__ import annotations

import json
from itertools import pairwise
from statistics import fmean
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.recorded_programs import require_bound
from edl_labs.units import counted, seconds
from edl_labs.virtual import Replay, ReplayError, VirtualGPU, VirtualMachine, replay
from edl_labs.virtual.case_program import CaseProgram

MOST_TIME = 1.05  # of the best known program's last and mean answer, promised in the text
_MAX_OPERATIONS = 20_000  # of some hundred kernels


@exercise("streams")
class Streams(Exercise):
    """Requests that do not depend on one another, each a chain of small kernels, answered as early as can be.

    `serve(gpu, requests)` launches them; the evidence is the program.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"program": ""}

    def probe(self, student: Any, given: Any) -> Any:
        gpu = VirtualGPU(machine_of(given))
        student.serve(gpu, [{**one} for one in given["requests"]])
        gpu.now_s()
        return {"program": json.dumps(gpu.program, separators=(",", ":"))}

    def public_want(self, case: Any, want: Any) -> Any:
        """The times of a good program: itself it would be one to copy."""
        last_s, mean_s, streams = _answers(case, _replayed(case, want["program"]))
        return {"last_s": last_s, "mean_s": mean_s, "streams": streams}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run = _replayed(case, got["program"])
        _judge_kernels(case, run)
        best = want if "last_s" in want else self.public_want(case, want)
        last_s, mean_s, streams = _answers(case, run)
        if last_s > MOST_TIME * best["last_s"]:
            raise _slow(case, run, last_s, best, streams)
        if mean_s > MOST_TIME * best["mean_s"]:
            raise _late(case, run, mean_s, best, streams)
        if not run.readings or not run.readings[-1].drained:
            why = "kernels are still running at that time"
            raise Wrong(
                "the answers are not ready when your function returns",
                why=why,
                next="call synchronize() once, at the end",
            )

    def format_answer(self, case: Any, got: Any) -> str:
        """What the program reached."""
        try:
            run = _replayed(case, got["program"])
            _judge_kernels(case, run)
        except Wrong:
            return "not the requests' kernels"
        last_s, mean_s, streams = _answers(case, run)
        return f"last answer after {seconds(last_s)}, {seconds(mean_s)} on average, in {counted(streams, 'stream')}"

    def format_case(self, case: Any) -> str:
        """The device and the requests."""
        machine, one = machine_of(case), case["requests"][0]
        return (
            f"{machine.sm_count} SMs, {seconds(machine.launch_overhead_s)} per launch; {len(case['requests'])} "
            f"requests of {one['steps']} kernels, each with {one['blocks']} blocks of {seconds(one['block_s'])}"
        )


def machine_of(case: Any) -> VirtualMachine:
    """The GPU of a case, with its context made."""
    return VirtualMachine.of("A100-80GB", launch_overhead_s=case["launch_s"], sm_count=case["sm_count"]).warm()


def _replayed(case: Any, text: Any) -> Replay:
    try:
        return replay(json.loads(text), machine_of(case), max_operations=_MAX_OPERATIONS)
    except (TypeError, ValueError, RecursionError):
        why, then = "the record cannot be read", "use only the GPU's own calls, and do not change its record"
    except ReplayError as error:
        why, then = f"{error.what}: {error.why}", error.next
    raise Wrong("this GPU could not have run the recorded program", why=why, next=then)


def _kernels(case: Any) -> list[dict[str, Any]]:
    """The launches that one_step and whole_loop of the lab's text record."""
    gpu = VirtualGPU(machine_of(case))
    for number, one in enumerate(case["requests"]):
        sizes = {f"step{at}": one["block_s"] for at in range(one["steps"])} | {"loop": one["steps"] * one["block_s"]}
        for name, took_s in sizes.items():
            gpu.launch(f"request{number} {name}", duration_s=took_s, blocks=one["blocks"])
    return gpu.program


def _launches(run: Replay) -> list[dict[str, Any]]:
    return [entry for entry in run.program if entry["op"] == "launch"]


def _judge_kernels(case: Any, run: Replay) -> None:
    """Every step of every request once, in its order and in one stream, of its size; or one fused loop instead."""
    if any(entry["op"] not in ("launch", "stream", "synchronize", "sync_stream", "now", "event", "record", "wait",
                               "sync_event", "query_stream", "query_event") for entry in run.program):  # fmt: skip
        raise Wrong(
            "your program contains something other than kernels",
            why="requests consist only of kernels",
            next="use only launches and streams",
        )
    launched = {entry["name"].split(" ")[0] for entry in _launches(run)}
    for number, one in enumerate(case["requests"]):
        mine = [entry for entry in _launches(run) if entry["name"].split(" ")[0] == f"request{number}"]
        names = [entry["name"] for entry in mine]
        steps = [f"request{number} step{at}" for at in range(one["steps"])]
        fused = [f"request{number} loop"]
        if names not in (steps, fused):
            why = f"for request {number}, got {counted(len(names), 'launch')}"
            why += f": {', '.join(names[:3])} …" if names else ""
            then = (
                'launch all steps in order ("request0 step0", "request0 step1", …), or only the loop ("request0 loop")'
            )
            never = [at for at in range(len(case["requests"])) if f"request{at}" not in launched]
            times = {names.count(one) for one in names}
            if len(times) == 1 and max(times) > 1 and never:
                why = f"request {number} is launched {max(times)} times, but request {never[0]} never"
                then = (
                    "pass the request's number to one_step() and whole_loop(): its position in the list of all requests"
                )
            raise Wrong("your program does not compute each request exactly once", why=why, next=then)
        took_s = one["block_s"] * (one["steps"] if names == fused else 1)
        if names == fused and not one["fusible"]:
            why = f"`fusible` is False for request {number}: the state of its loop does not fit into the SMs"
            raise Wrong(
                "your program fuses a loop that cannot be a single kernel", why=why, next="launch its steps one by one"
            )
        if any(entry.get("blocks") != one["blocks"] or abs(entry["duration_s"] - took_s) > 1e-12 for entry in mine):
            size = f"{counted(one['blocks'], 'block')} of {seconds(one['block_s'])}"
            why = f"each step of request {number} must have {size}"
            raise Wrong(
                "one of your kernels does not have the size of its request",
                why=why,
                next="use one_step() and whole_loop()",
            )
        if len({entry["stream"] for entry in mine}) > 1:
            why = f"the steps of request {number} are in {len({entry['stream'] for entry in mine})} streams"
            then = "keep a request in one stream, because each step reads what the previous step wrote"
            raise Wrong("in your program, the steps of a request may overtake one another", why=why, next=then)
    require_bound(run, CaseProgram(named=_kernels(case)))
    if len(_launches(run)) > sum(one["steps"] for one in case["requests"]):
        raise Wrong(
            "some of your kernels belong to no request",
            why="your program launches more kernels than the requests have",
            next="use one_step() and whole_loop()",
        )


def _answers(case: Any, run: Replay) -> tuple[float, float, int]:
    """When the last request is answered, when they are on average, and in how many streams they are."""
    ends: dict[str, float] = {}
    for span in run.timeline.spans:
        if span.kind == "kernel":
            request = span.name.split(" ")[0]
            ends[request] = max(ends.get(request, 0.0), span.end_s)
    streams = len({entry["stream"] for entry in _launches(run)})
    return max(ends.values(), default=0.0), fmean(ends.values()) if ends else 0.0, streams


def _is_unfused(case: Any, run: Replay) -> bool:
    return any(one["fusible"] for one in case["requests"]) and len(_launches(run)) > len(case["requests"])


def _slow(case: Any, run: Replay, last_s: float, best: Any, streams: int) -> Wrong:
    why = f"the last answer is ready after {seconds(last_s)}, but {seconds(best['last_s'])} is possible"
    if _is_unfused(case, run):
        why += f"; there are {len(_launches(run))} launches, but {len(case['requests'])} are enough"
        return Wrong(
            "in your program, every time step pays for a launch",
            why=why,
            next="which requests may run as a single kernel?",
        )
    if run.blocking > 1:
        why += f"; the host waits {run.blocking} times"
        return Wrong(
            "the host waits before your program has launched everything",
            why=why,
            next="call synchronize() once, at the end",
        )
    if streams == 1:
        why += f"; a kernel has {case['requests'][0]['blocks']} blocks, and there are {case['sm_count']} SMs"
        return Wrong(
            "your single stream leaves most SMs idle", why=why, next="use several streams, so that requests overlap"
        )
    if streams < best["streams"]:
        why += f"; you use {streams} streams, but more kernels than that fit side by side"
        return Wrong(
            "you use too few streams to fill the chip",
            why=why,
            next="how many kernels of a request's size fit side by side?",
        )
    if streams > best["streams"]:
        return _crowded(case, why, streams)
    names = [entry["name"].split(" ")[0] for entry in _launches(run)]
    if len(names) > len(set(names)) == 1 + sum(a != b for a, b in pairwise(names)):
        why += "; each request is launched completely before the next one's first step"
        return Wrong(
            "your program feeds one stream at a time",
            why=why,
            next="take turns: launch one step of each request, then the next step of each",
        )
    return Wrong(
        "your program does not keep the chip busy",
        why=why,
        next="which streams wait for the host, and which wait for SMs?",
    )


def _late(case: Any, run: Replay, mean_s: float, best: Any, streams: int) -> Wrong:
    why = f"answers are ready after {seconds(mean_s)} on average, but {seconds(best['mean_s'])} is possible"
    if run.blocking > 1:
        why += f"; the host waits {run.blocking} times"
        return Wrong(
            "the host waits before your program has launched everything",
            why=why,
            next="call synchronize() once, at the end",
        )
    if streams > best["streams"]:
        return _crowded(case, why, streams)
    if _takes_turns_within(run):
        why += "; within a stream, requests begin before the requests ahead of them have ended"
        then = "let a stream finish one request before it begins the next: which steps must be launched first?"
        return Wrong("in your program, all requests take turns, so all end late", why=why, next=then)
    return Wrong(
        "your mean time to an answer is too long", why=why, next="finish some requests before you begin others"
    )


def _crowded(case: Any, why: str, streams: int) -> Wrong:
    """What more streams than fit do to one another."""
    blocks = case["requests"][0]["blocks"]
    why += f"; you use {streams} streams, each kernel has {blocks} blocks, and there are {case['sm_count']} SMs"
    then = "use fewer streams: more of them help only if SMs are idle"
    return Wrong("you use more streams than fit, so requests delay each other", why=why, next=then)


def _takes_turns_within(run: Replay) -> bool:
    """Whether in some stream a request goes on after another one has begun."""
    order: dict[Any, list[str]] = {}
    for entry in _launches(run):
        order.setdefault(entry["stream"], []).append(entry["name"].split(" ")[0])
    return any(1 + sum(a != b for a, b in pairwise(names)) > len(set(names)) for names in order.values())
