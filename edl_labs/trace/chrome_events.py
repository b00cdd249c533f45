"""From the events of a Chrome trace to the rows of the table, each with its kind, in the words of each profiler."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

from edl_labs.trace.collectives import with_communication
from edl_labs.trace.errors import TraceError
from edl_labs.trace.event_kinds import is_known, kind_of
from edl_labs.trace.ranks import by_rank
from edl_labs.trace.trace_table import NUMBER, TableBuilder, Trace
from edl_labs.units import counted

_LINKS = ("correlation", "correlationId", "correlation_id", "correlationID", "Correlation ID")
_BYTES = ("bytes", "Bytes", "size", "moved_bytes")
_LINES = ("line", "CallFrom")
_DEVICE_FROM = NUMBER["kernel"]
# The format's unit of time, in seconds.
_MICROSECOND = 1e-6
# Sizes are left out: they differ between ranks where shards do.
_COLLECTIVE = ("Collective name", "Process Group Name", "Seq")
# All arguments of an event that are read here.
READ_ARGUMENTS = (*_LINKS, *_BYTES, *_LINES, *_COLLECTIVE, "stream", "device")
# What a trace says of itself that is kept with it.
_KEPT = {"deviceProperties": list, "traceName": str, "schemaVersion": int, "distributedInfo": dict}
# Beyond this a float cannot tell neighbouring microseconds apart.
_FAR = 1e18
# Lanes of further devices count from here: numbers that no stream has.
_OTHER_DEVICES = 1 << 30


class ChromeEvents:
    """Takes the events of a trace one by one, and builds its table."""

    def __init__(self) -> None:
        self._table = TableBuilder()
        self._kinds: dict[tuple[str, str], int] = {}
        self._rows: dict[tuple[Any, Any], int] = {}
        self._streams: dict[int, Any] = {}
        self._lanes: dict[tuple[Any, int], int] = {}
        self._open: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
        self._row_names: dict[tuple[Any, Any], str] = {}
        self._backwards: list[str] = []
        self._unread: dict[str, tuple[int, float]] = {}
        self._devices: dict[int, Any] = {}
        self.seen = 0
        self._virtual = self._torch = False

    def take(self, event: dict[str, Any]) -> None:
        """Keep one event: complete ones, begins with their ends, names of rows, and arrows of issue."""
        self.seen += 1
        phase = event.get("ph")
        if phase == "X":
            self._complete(event)
        elif phase == "B":
            self._open.setdefault(_place(event), []).append(event)
        elif phase == "E":
            self._close(event)
        elif phase == "M":
            self._named(event)
        elif phase in ("s", "f") and event.get("cat") == "issue":
            self._flow(event)
        elif phase in ("b", "S", "P"):
            self.leave_out("asynchronous or sampled events")

    def build(self, label: str, meta: dict[str, Any]) -> tuple[Trace, ...]:
        """A table for each rank; TraceError where the events hold nothing of a loop, or times that cannot be."""
        if self._backwards:
            raise TraceError(
                f"{label} contains {counted(len(self._backwards), 'event')} with a negative duration",
                why=f"{self._backwards[0]} ends before it begins, so no share could be computed correctly",
                next="record the trace again; such times come from a clock that was adjusted during the run, or from a "
                "truncated file",
            )
        if not len(self._table):
            raise TraceError(
                f"{label} contains no training loop",
                why=f"none of its {self.seen:,} events is an operator, a runtime call, a kernel or an annotation",
                next="record it with torch.profiler, VirtualGPU or nsys, and export it while the profiler still has "
                "the data",
            )
        origin = "VirtualGPU" if self._virtual else str(meta.get("origin") or _origin(meta, torch=self._torch))
        kept = {key: value for key, value in meta.items() if isinstance(value, _KEPT.get(key, ()))}
        for _ in chain.from_iterable(self._open.values()):
            self.leave_out("events without an end")
        kept["unread"] = self._unread
        trace = self._table.build(origin=origin, unit_s=_MICROSECOND, meta=kept)
        devices = {trace.rows[row]: device for row, device in self._devices.items()}
        trace = replace(trace, meta={**trace.meta, "devices": devices})
        processes = {row: place[0] for place, row in self._rows.items()}
        ranks = by_rank(trace, [processes[row] for row in range(len(trace.rows))], label=label)
        # Correlation ids of two processes are alike: what a collective launched is known within one alone.
        return tuple(map(with_communication, ranks))

    def _complete(self, event: dict[str, Any]) -> None:
        category, name = event.get("cat") or "", event.get("name")
        if type(name) is not str or type(category) is not str:
            self.leave_out("events without a name")
            return
        key = (category, name)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = self._number(category, name)
        start, duration = event.get("ts"), event.get("dur", 0)
        if kind < 0:
            self._left_out(category, duration)
            return
        if type(start) is not float:
            start = _number(start)
        if type(duration) is not float:
            duration = _number(duration)
        if start is None or duration is None or not (-_FAR < start < _FAR and -_FAR < duration < _FAR):
            self.leave_out("events without a readable time")
            return
        if duration < 0:
            self._backwards.append(name)
            return
        args = event.get("args")
        link, stream, moved, line = self._details(args) if args else (-1, -1, -1, -1)
        place = _place(event)
        row = self._rows.get(place)
        if row is None:
            row = self._rows[place] = self._table.row(self._row_names.get(place, f"{place[0]}/{place[1]}"))
        collective = -1
        if kind >= _DEVICE_FROM:
            stream = self._lane(args, place[0], stream, row)
            self._devices.setdefault(row, _device(args))
            # What torch knows of the collective that a kernel is part of.
            if label := _collective(args):
                kind, collective = NUMBER["communication"], self._table.name(label)
        self._table.add(
            kind, self._table.name(name), row=row, start=start, end=start + duration, link=link, stream=stream,
            moved_bytes=moved, line=line, collective=collective,
        )  # fmt: skip

    def _left_out(self, category: str, duration: Any) -> None:
        """Count an event of a category that is not known; those drawn for orientation are left out on purpose."""
        if not is_known(category):
            label = f'category "{category}"' if category else "events without a category"
            self.leave_out(label, taken_s=(_number(duration) or 0.0) * _MICROSECOND)

    def leave_out(self, label: str, *, count: int = 1, taken_s: float = 0.0) -> None:
        """Note events that are not read, and how long they take."""
        known, known_s = self._unread.get(label, (0, 0.0))
        self._unread[label] = known + count, known_s + taken_s

    def _lane(self, args: Any, place: Any, stream: int, row: int) -> int:
        """The number of a stream, its own where two devices have streams of one number; the row where it has none."""
        if stream < 0:
            return row
        device = (place, _device(args))
        if self._streams.setdefault(stream, device) == device:
            return stream
        return self._lanes.setdefault((device, stream), _OTHER_DEVICES + len(self._lanes))

    def _number(self, category: str, name: str) -> int:
        kind = kind_of(category, name)
        self._torch |= category in ("cpu_op", "python_function", "user_annotation")
        return -1 if kind is None else NUMBER[kind]

    def _details(self, args: dict[str, Any]) -> tuple[int, int, int, int]:
        if type(args) is not dict:
            return -1, -1, -1, -1
        link = _first(args, _LINKS)
        stream = args.get("stream", -1)
        line = next(filter(None, map(args.get, _LINES)), None)
        return (
            link,
            stream if type(stream) is int and abs(stream) < 2**31 else -1,
            _first(args, _BYTES),
            self._table.name(line) if type(line) is str and line else -1,
        )

    def _close(self, event: dict[str, Any]) -> None:
        stack = self._open.get(_place(event))
        if not stack:
            self.leave_out("events without a beginning")
        else:
            begin = stack.pop()
            first, last = _number(begin.get("ts")), _number(event.get("ts"))
            if first is not None and last is not None:
                self._complete({**begin, "dur": last - first})

    def _named(self, event: dict[str, Any]) -> None:
        args = event.get("args")
        if event.get("name") == "thread_name" and isinstance(args, dict):
            place = _place(event)
            self._row_names[place] = f"{place[0]}/{place[1]} {args.get('name', '')}".strip()
        elif event.get("name") == "process_name" and isinstance(args, dict):
            self._virtual |= args.get("name") == "VirtualGPU"

    def _flow(self, event: dict[str, Any]) -> None:
        """VirtualGPU's arrows come right after the event they start or end at: they name its link after the fact."""
        number = event.get("id")
        if type(number) is int:
            self._table.link_last(number)


def _place(event: dict[str, Any]) -> tuple[Any, Any]:
    """Process and thread of an event; their text where a file has lists there."""
    process, thread = event.get("pid"), event.get("tid")
    return (process, thread) if process.__hash__ and thread.__hash__ else (str(process), str(thread))


def _device(args: Any) -> Any:
    device = args.get("device") if type(args) is dict else None
    return device if device.__hash__ else str(device)


def _origin(meta: dict[str, Any], *, torch: bool) -> str:
    return "torch.profiler" if torch or "deviceProperties" in meta or "schemaVersion" in meta else "a Chrome trace"


def _collective(args: Any) -> str:
    """What a collective is called in all ranks: its name, group and number, as far as torch says them."""
    if type(args) is not dict or "Collective name" not in args:
        return ""
    return " ".join(str(args[key]) for key in _COLLECTIVE if key in args)


def _first(args: dict[str, Any], keys: tuple[str, ...]) -> int:
    for key in keys:
        value = args.get(key)
        if type(value) is int and 0 <= value < 2**63:
            return value
        if type(value) is str and value.isascii() and value.isdigit() and len(value) < 19:
            return int(value)
    return -1


def _number(value: Any) -> float | None:
    if type(value) is str:
        try:
            value = float(value)
        except ValueError:
            return None
    if type(value) not in (int, float):
        return None
    return float(value) if abs(value) < _FAR else None
