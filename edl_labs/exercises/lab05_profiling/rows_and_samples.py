"""self_times and read_a_sampler: nested profiler rows and stack samples, drawn as trees of calls."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import seconds

_CHAIN = ("aten::conv2d", "aten::convolution", "aten::_convolution")
_NAMES = ("aten::linear", "aten::addmm", "aten::copy_", "aten::relu", "aten::to", "aten::_to_copy", "aten::add")
_THREADS = ("main", "backward")
# Cases of so few samples are shown whole.
_FEW = 10


@exercise("self_times")
class SelfTimes:
    """Self time by name from nested rows of two threads, and the device on which an operator really ran.

    `self_times(rows)` gives seconds by name; `ran_on(entry, cpu_flop_per_s=)` says which device did the work.
    """

    def cases(self, rng: Any) -> list[Any]:
        return [_profile(rng) for _ in range(5)]

    def probe(self, student: Any, case: Any) -> Any:
        times = student.self_times([dict(row) for row in case["rows"]])
        ran = [student.ran_on(dict(entry), cpu_flop_per_s=case["cpu_flop_per_s"]) for entry in case["entries"]]
        return {"self": sorted([name, times[name]] for name in times), "ran": ran}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        mine, rights = dict(map(tuple, got["self"])), dict(map(tuple, want["self"]))
        if set(mine) != set(rights):
            odd = sorted(set(mine) ^ set(rights))[0]
            raise Wrong(
                f"the table lacks a row, or has one too many: {odd[:40]}",
                why="every name that occurs has one row",
                next="add up what all rows of one name have",
            )
        wrong = [name for name, right in rights.items() if not close(mine[name], right, rtol=1e-6, atol=1e-12)]
        if wrong:
            raise _self_time_symptom(case, mine, rights, name=wrong[0])
        for entry, said, right in zip(case["entries"], got["ran"], want["ran"], strict=False):
            if said != right:
                raise _device_symptom(entry, str(said), right, peak=case["cpu_flop_per_s"])
        if len(got["ran"]) != len(want["ran"]):
            raise Wrong(
                "ran_on has one answer for each operator", why="there is one question for each", next="return it"
            )

    def show(self, case: Any) -> str:
        rows = sorted(case["rows"], key=lambda row: (row["thread"], row["start_s"], -row["end_s"]))
        lines = [
            f"  {row['thread']:<9}{1e6 * row['start_s']:9.3f} to {1e6 * row['end_s']:9.3f} µs  {row['name']}"
            for row in rows
        ]
        asked = [f"  flop {e['flop']:<9.3g} cpu_s {e['cpu_s']:<9.3g} cuda_s {e['cuda_s']:.3g}" for e in case["entries"]]
        head = f"ran_on, with cpu_flop_per_s = {case['cpu_flop_per_s']:.3g}:"
        return "\n".join([head, *asked, "self_times, rows (shuffled when you get them):", *lines])


@exercise("read_a_sampler")
class ReadASampler:
    """Own and total shares of the window, own and total seconds of the run, from stack samples.

    `sampler_table(samples, rate_hz=, window=)` gives shares of the window and seconds of the run for each frame.
    """

    def cases(self, rng: Any) -> list[Any]:
        return [_few_samples(rng), *(_samples(rng) for _ in range(3))]

    def probe(self, student: Any, case: Any) -> Any:
        samples = [{**sample, "stack": list(sample["stack"])} for sample in case["samples"]]
        table = student.sampler_table(samples, rate_hz=case["rate_hz"], window=case["window"])
        rows = table["rows"]
        columns = ("own", "total", "own_s", "total_s")
        listed = sorted([frame, *(rows[frame][column] for column in columns)] for frame in rows)
        return {"active": table["active"], "gil": table["gil"], "rows": listed}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        mine, rights = ({row[0]: row[1:] for row in side["rows"]} for side in (got, want))
        if set(mine) != set(rights):
            raise Wrong(
                "the rows are not the frames that were seen",
                why="a frame has a row when it is on a stack that was sampled while its thread was active",
                next="go through the stacks of active samples, all frames of each, and make a row for every name",
            )
        for frame, right in rights.items():
            for place, column in enumerate(("own", "total", "own_s", "total_s")):
                if not close(mine[frame][place], right[place], rtol=1e-6, atol=1e-12):
                    raise _sampler_symptom(case, frame, column, said=mine[frame][place], rights=right)
        for key in ("active", "gil"):
            if not close(got[key], want[key], rtol=1e-6, atol=1e-12):
                raise Wrong(
                    f"{key!r} is not {got[key]!r}",
                    why="the header counts over all samples of the run, idle ones among them",
                    next="divide by the number of samples",
                )

    def show(self, case: Any) -> str:
        idle = sum(sample["idle"] for sample in case["samples"])
        head = (
            f"{len(case['samples'])} samples at {case['rate_hz']} Hz, {idle} of them idle; the window is the last "
            f"{case['window']}"
        )
        if len(case["samples"]) > _FEW:
            return f"{head}; the last stack is {' > '.join(case['samples'][-1]['stack'])}"
        marks = [("idle " if s["idle"] else "") + ("gil " if s["gil"] else "") for s in case["samples"]]
        stacks = [" > ".join(sample["stack"]) for sample in case["samples"]]
        return "\n".join([f"{head}:", *(f"  {mark:<5}{stack}" for mark, stack in zip(marks, stacks, strict=True))])


def _profile(rng: Any) -> dict[str, Any]:
    """Rows of two threads in arbitrary order, and operators as a profiler's table has them."""
    rows: list[dict[str, Any]] = []
    for thread in _THREADS:
        moment = int(rng.integers(0, 3000))
        for top in range(int(rng.integers(3, 5))):
            end = _chain(rng, rows, thread, moment) if top == 0 else _tree(rng, rows, thread, moment, depth=3)
            # Neighbours often touch: one ends in the nanosecond in which the next begins.
            moment = end + int(rng.choice([0, 0, 700, 4000]))
    cpu_flop_per_s = float(rng.integers(4, 30)) * 1e11
    return {
        "rows": [rows[i] for i in rng.permutation(len(rows))],
        "entries": _entries(rng, cpu_flop_per_s),
        "cpu_flop_per_s": cpu_flop_per_s,
    }


def _row(thread: str, name: str, start_ns: int, end_ns: int) -> dict[str, Any]:
    return {"name": name, "thread": thread, "start_s": start_ns / 1e9, "end_s": end_ns / 1e9}


def _chain(rng: Any, rows: list[dict[str, Any]], thread: str, start: int) -> int:
    """A convolution as the deck shows it: three wrappers around the work; when it ends."""
    inner = [int(rng.integers(4_000, 9_000)), int(rng.integers(8_000, 14_000)), int(rng.integers(300_000, 900_000))]
    edges = [int(rng.integers(2_000, 20_000)) for _ in range(6)]
    moment = start + sum(edges[:3])
    for name, spent in zip(("aten::contiguous", "aten::empty", "aten::mkldnn_convolution"), inner, strict=True):
        rows.append(_row(thread, name, moment, moment + spent))
        moment += spent
    for level, name in enumerate(reversed(_CHAIN)):
        moment += edges[5 - level]
        rows.append(_row(thread, name, start + sum(edges[: 2 - level]), moment))
    return moment


def _tree(rng: Any, rows: list[dict[str, Any]], thread: str, start: int, *, depth: int) -> int:
    """A drawn operator with what it calls, itself among it now and then; when it ends."""
    name, moment = str(rng.choice(_NAMES)), start + int(rng.choice([0, 500, 2500]))
    children = int(rng.integers(0, 4)) if depth else 0
    for _ in range(children):
        moment = _tree(rng, rows, thread, moment, depth=depth - 1) + int(rng.choice([0, 0, 300, 1100]))
    end = moment + int(rng.integers(1_000, 30_000))
    rows.append(_row(thread, name, start, end))
    return end


def _entries(rng: Any, cpu_flop_per_s: float) -> list[dict[str, Any]]:
    """Operators whose columns say on which device they ran: large and small, on either, and a coincidence."""
    kinds = [str(kind) for kind in rng.permutation(["cpu"] * 2 + ["small cpu"] * 2 + ["gpu"] * 2 + ["small gpu"] * 2)]
    entries = [_entry(rng, kind, cpu_flop_per_s) for kind in [*kinds, "coincidence"]]
    return [entries[i] for i in rng.permutation(len(entries))]


def _entry(rng: Any, kind: str, cpu_flop_per_s: float) -> dict[str, Any]:
    flop, launch_s = float(rng.integers(2, 40)) * 1e8, float(rng.uniform(1.5e-5, 6e-5))
    if kind == "cpu":
        cpu_s = flop / cpu_flop_per_s / float(rng.uniform(0.2, 0.7))
        cuda_s = cpu_s * (1 + float(rng.uniform(-0.004, 0.004)))
    elif kind == "small cpu":
        flop, cpu_s = 0.0, float(rng.uniform(5e-6, 2e-5))
        cuda_s = cpu_s * (1 + float(rng.uniform(-0.04, 0.04)))
    elif kind == "small gpu":
        flop, cpu_s = 0.0, launch_s
        cuda_s = launch_s * float(rng.uniform(0.05, 0.4))
    else:
        cuda_s = flop / cpu_flop_per_s / float(rng.uniform(5, 30))
        cpu_s = cuda_s * (1 + float(rng.uniform(-0.01, 0.01))) if kind == "coincidence" else launch_s
        # A launch that happens to last as long as its kernel is the other kind.
        cpu_s = 2 * cpu_s if kind == "gpu" and 0.9 < cpu_s / cuda_s < 1.1 else cpu_s
    return {"flop": flop, "cpu_s": round(cpu_s, 9), "cuda_s": round(cuda_s, 9)}


def _totals(case: Any) -> dict[str, float]:
    totals: dict[str, float] = {}
    for row in case["rows"]:
        totals[row["name"]] = totals.get(row["name"], 0.0) + row["end_s"] - row["start_s"]
    return totals


def _self_time_symptom(case: Any, mine: Any, rights: Any, *, name: str) -> Wrong:
    said = mine[name]
    if any(type(value) in (int, float) and value < 0 for value in mine.values()):
        worst = min((n for n in mine if type(mine[n]) in (int, float)), key=mine.__getitem__)
        return Wrong(
            f"the self time of {worst} is negative",
            why="somebody's time was taken off more than once: a grandchild's lies inside its parent's",
            next="take off the rows directly inside, not all that are inside",
        )
    if close(said, _totals(case)[name], rtol=1e-6):
        return Wrong(
            f"{name} has its total time, not its self time",
            why="what it calls is counted in its row too, and again in rows of its own",
            next="take off what the rows directly inside it last",
        )
    have, should = (sum(v for v in side.values() if type(v) in (int, float)) for side in (mine, rights))
    if not close(have, should, rtol=1e-6):
        return Wrong(
            "the self times do not add up to the time in which the threads were busy",
            why=f"they add up to {seconds(have)}, and the outermost rows to {seconds(should)}",
            next="a row lies inside another one only on its own thread; names may repeat, inside themselves too",
        )
    return Wrong(
        f"{name} has {said!r} s, which is not its self time",
        why="the sum over all names is right, so time moved from one name to another",
        next="a row's parent is the shortest row of its thread that holds it whole",
    )


def _device_symptom(entry: Any, said: str, right: str, *, peak: float) -> Wrong:
    columns = ", ".join(f"{key} {entry[key]:.3g}" for key in ("flop", "cpu_s", "cuda_s"))
    rate = f"{columns}, cpu_flop_per_s {peak:.3g}"
    if said not in ("cpu", "gpu"):
        return Wrong(f"{said[:30]!r} is not a device", why='there are "cpu" and "gpu"', next="return one of them")
    if right == "cpu":
        return Wrong(
            "an operator that never left the CPU was put on the GPU",
            why=f"a CUDA column alone proves nothing: {rate}",
            next="when are the two columns two readings of one wall clock?",
        )
    return Wrong(
        "an operator that ran on the GPU was put on the CPU",
        why=f"compare with what the CPU could do, and the columns with each other: {rate}",
        next="first ask whether the CPU could have been so fast at all",
    )


_MODULES = ("als.py", "csc.py", "nearest.py", "coo.py", "loader.py", "sparse.py", "train.py", "model.py")
_FUNCTIONS = ("fit", "tocsr", "weigh", "read", "collate", "decode", "step", "normalize", "shuffle", "walk")


def _samples(rng: Any) -> dict[str, Any]:
    """A run in two phases, so that the window is not like the run; stacks with a function that calls itself."""
    frames = _frames(rng, 9)
    count, window = int(rng.integers(60, 110)), int(rng.integers(20, 40))
    change = count - int(rng.integers(window // 4, window - 5))
    early, late = _stacks(rng, frames[:6]), _stacks(rng, frames[3:])
    samples = []
    for number in range(count):
        stacks = early if number < change else late
        idle = bool(rng.random() < 0.15)
        stack = stacks[min(int(rng.exponential(1.3)), len(stacks) - 1)]
        samples.append({"idle": idle, "gil": not idle and bool(rng.random() < 0.35), "stack": stack})
    return {"samples": samples, "rate_hz": int(rng.choice([50, 100, 200])), "window": window}


def _few_samples(rng: Any) -> dict[str, Any]:
    """A run of eight samples that one can count by hand, with all that longer runs have."""
    root, again, late, leaf = _frames(rng, 4)
    early = [[root, leaf], [root, leaf], [root, again, leaf, again]]
    recent = [[root, late], [root], [root, leaf]]
    samples = [
        {"idle": False, "gil": bool(rng.random() < 0.5), "stack": part[i]}
        for part in (early, recent)
        for i in rng.permutation(3)
    ]
    samples.insert(int(rng.integers(0, 4)), {"idle": True, "gil": False, "stack": [root, leaf]})
    samples.insert(int(rng.integers(5, 8)), {"idle": True, "gil": False, "stack": [root, late]})
    return {"samples": samples, "rate_hz": int(rng.choice([50, 100, 200])), "window": 4}


def _frames(rng: Any, count: int) -> list[str]:
    functions = rng.permutation(_FUNCTIONS)[:count]
    return [f"{name} ({rng.choice(_MODULES)}:{int(rng.integers(10, 300))})" for name in functions]


def _stacks(rng: Any, frames: list[str]) -> list[list[str]]:
    """Stacks from the outermost frame to the innermost one; the second holds one frame twice."""
    root, again = frames[0], frames[2]
    plain = [[root, *(str(f) for f in rng.permutation(frames[1:])[: int(rng.integers(1, 4))])] for _ in range(4)]
    return [plain[0], [root, again, frames[1], again], *plain[1:], [root]]


def _sampler_symptom(case: Any, frame: str, column: str, *, said: Any, rights: Any) -> Wrong:
    _, _, own_s, total_s = rights
    stacks = [sample["stack"] for sample in case["samples"] if not sample["idle"]]
    window = case["window"]
    recent = [sample["stack"] for sample in case["samples"][-window:] if not sample["idle"]]
    roots = {"own": sum(stack[0] == frame for stack in recent) / window}
    roots["own_s"] = sum(stack[0] == frame for stack in stacks) / case["rate_hz"]
    if column in roots and close(said, roots[column], atol=1e-12):
        return Wrong(
            f"the own time of {frame} is taken from the wrong end of the stack",
            why="a sample is the own time of one frame: the one that was running",
            next="the outermost frame comes first; which one runs?",
        )
    repeated = sum(stack.count(frame) for stack in stacks) / case["rate_hz"]
    if column == "total_s" and close(said, repeated) and not close(repeated, total_s):
        return Wrong(
            f"{frame} has more total time than there was",
            why="it is on some stacks twice, since it calls itself, and each sample is one tick of time",
            next="a sample counts once for each different frame on its stack",
        )
    whole = {"own": own_s, "total": total_s}.get(column)
    if whole is not None and close(said, whole * case["rate_hz"] / len(case["samples"])):
        return Wrong(
            f"the share of {frame} is of the whole run",
            why="shares are of the last samples, the window; seconds are of the run",
            next=f"look at the last {window} samples for own and total",
        )
    return Wrong(
        f"{column!r} of {frame} is wrong",
        why=f"{said!r} came back; {_COLUMNS[column]}",
        next="count by hand for this one frame, in the stacks of active samples",
    )


_COLUMNS = {
    "own": "it is the share of the window's samples in which the frame runs itself",
    "total": "it is the share of the window's samples that have the frame on their stack",
    "own_s": "it is the number of samples of the run in which the frame runs itself, over the rate",
    "total_s": "it is the number of samples of the run that have the frame on their stack, over the rate",
}
