"""Judges in a separate process, so that hostile evidence can exhaust only that process.

Evidence is decoded and compared there, under limits; one that kills or stalls the judge scores nothing and the next is
judged by a new one. Secret cases are drawn in such a process, too: it has the exercises imported anyway, and the
caller's own threads go on meanwhile.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from edl_labs.checks import Outcome, RegisteredExercise, plain_data
from edl_labs.checks._judge import INCOMPARABLE, READABLE
from edl_labs.checks.worker import Worker, WorkerGone
from edl_labs.checks.worker_process import Server, limit_memory
from edl_labs.course.grade.computing_time import ComputingTime
from edl_labs.course.grade.file_reader import FileReader, Reading
from edl_labs.course.grade.known_sentences import withheld, without_texts
from edl_labs.course.sandbox.gauges import process_cpu_s
from edl_labs.course.sandbox.limits import DEFAULTS, Limits
from edl_labs.errors import EdlError

_SERVER = "edl_labs.course.grade.judge_process:judging"
_DRAW_S = 600.0  # drawing takes up to a second of computing, and is our own code
_START_S = 60.0  # importing numpy and the library takes seconds where several judges start at once
_SELDOM = 50_000  # new objects between two looks for garbage; with 700, torch takes twice as long to import
_DRAWN, _REFUSED = b"+", b"-"  # before cases, and before the error that came instead
_TEXT_LETTERS = 4000  # above a screen; a traceback of a hostile depth is longer


@dataclass(frozen=True)
class Judged:
    """An outcome, and whether the evidence had a value for each case: no exception, no missing name, no stub.

    `has_errors` is whether something else than values and stubs was there. `cpu_s` is what decoding and comparing took
    now, without the start of the process.
    """

    outcome: Outcome
    all_values: bool
    cpu_s: float = 0.0
    has_errors: bool = False


class Judge:
    """Judges evidence. Start it with `with`; one judge serves one thread.

    Its process imports the exercises of `lab` as it starts, while the caller goes on; any others when they are needed.
    `known` holds earlier judgements, for judges to share: the same evidence for the same cases gives the same result.
    """

    def __init__(
        self, limits: Limits = DEFAULTS, *, lab: str = "", known: MutableMapping[bytes, Judged] | None = None
    ) -> None:
        self._limits, self._lab = limits, lab
        self._known: MutableMapping[bytes, Judged] = {} if known is None else known
        self._worker: Worker | None = None
        self._reader: FileReader | None = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def launch(self) -> None:
        """Start its process, which takes half a second, while the caller goes on."""
        if self._worker is None or not self._worker.lives:
            self.close()
            self._worker = Worker.start(_SERVER, str(self._limits.judge_bytes), self._lab)

    def close(self) -> None:
        """End the process, and the one that reads files."""
        if self._worker is not None:
            self._worker.close()
        if self._reader is not None:
            self._reader.close()

    def judge(
        self,
        exercise: RegisteredExercise,
        cases: bytes,
        evidence: bytes,
        wants: bytes,
        *,
        points: float,
        source: Sequence[str] = (),
        files: Mapping[str, bytes] = MappingProxyType({}),
        mistakes: Sequence[dict[str, Any]] = (),
    ) -> Judged:
        """The outcome of encoded evidence against the reference's. EdlError only when the judge cannot work at all.

        With `mistakes` (`KnownMistake.to_json`) the cases are the public ones, and the message is a known mistake's.

        `source` has the texts of the submitted cells, where they are evidence; `files` those next to the notebook,
        which another process reads.
        """
        what = {"lab": exercise.lab, "name": exercise.name, "points": float(points), "source": list(source)}
        what["mistakes"] = list(mistakes)
        parts = [plain_data.encode(what), cases, evidence, wants]
        handed_in = [part for name, data in sorted(files.items()) for part in (name.encode(), data)]
        key = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in (*parts, *handed_in))).digest()
        found = self._known.get(key)
        if found is None:
            found = self._judged(exercise, parts, points, files)
            # What ran when is large, and kept where it belongs; what took too long or too much may not the next time.
            if found.all_values and not found.outcome.timelines and found.outcome.what != INCOMPARABLE:
                self._known[key] = replace(found, cpu_s=0.0)
        return found

    def _judged(
        self, exercise: RegisteredExercise, parts: list[bytes], points: float, files: Mapping[str, bytes]
    ) -> Judged:
        read = self._read(exercise, files)
        pid = self._started().pid
        before_s = process_cpu_s(pid)
        try:
            answer = dict(plain_data.decode(self._ask(*parts, read.data, own_s=self._limits.judge_s)))
        except WorkerGone as gone:
            outcome = unjudged(exercise, points, why=f"comparing the results {gone.reason}")
            return Judged(outcome, all_values=False, has_errors=True)
        if "broken" in answer:
            raise EdlError(f"the judge of {exercise.name} failed", why=answer["broken"], next="run edl-labs test")
        taken_s = process_cpu_s(pid) - before_s + read.cpu_s
        values, errors = bool(answer["all_values"]), bool(answer["has_errors"])
        return Judged(Outcome(**answer["outcome"]), values, taken_s, errors)

    def _read(self, exercise: RegisteredExercise, files: Mapping[str, bytes]) -> Reading:
        if not exercise.spec.hand_ins:
            return Reading(b"")
        if self._reader is None:
            self._reader = FileReader(exercise.spec.hand_in_reader)
        return self._reader.read(files)

    def draw(self, exercise: RegisteredExercise, seed: int) -> bytes:
        """The cases that `exercise` draws from `seed`, encoded. Raises what drawing them raises."""
        asked = plain_data.encode({"lab": exercise.lab, "name": exercise.name, "seed": seed})
        try:
            answer = self._ask(asked, own_s=_DRAW_S)
        except WorkerGone as gone:
            why = "drawing the cases took too long" if gone.late else f"its process {gone.reason}"
            raise EdlError(f"could not draw the cases of {exercise.name}", why=why, next="grade again") from None
        if answer[:1] == _REFUSED:
            raise EdlError(**plain_data.decode(answer[1:]))
        return answer[1:]

    def _ask(self, *parts: bytes, own_s: float) -> bytes:
        worker = self._started()
        return worker.ask(*parts, left_s=ComputingTime(worker.pid, own_s))

    def _started(self) -> Worker:
        self.launch()
        assert self._worker is not None
        try:
            self._worker.wait(ComputingTime(self._worker.pid, _START_S))
        except WorkerGone as gone:
            why = (
                f"while starting, it {gone.reason}, so no answer was judged; the machine may lack memory or be too busy"
            )
            then = "run the same command again with fewer submissions at the same time: -j 1"
            raise EdlError("the judge did not start", why=why, next=then) from None
        return self._worker


def unjudged(exercise: RegisteredExercise, points: float, *, why: str, what: str = "", then: str = READABLE) -> Outcome:
    """The outcome of evidence that cannot be compared."""
    text = what or INCOMPARABLE
    return Outcome(
        exercise.name,
        exercise.lab,
        "wrong",
        0.0,
        points,
        what=text,
        why=why,
        next=then,
        trusting=exercise.trusting,
    )


def judging(memory_bytes: str, lab: str) -> Server:
    """What answers in the process: five parts in (what, cases, evidence, wants, files) or one (what to draw)."""
    import numpy  # noqa: F401  (before the limit, which counts what is mapped)

    if lab:
        _imported(lab)
    gc.set_threshold(_SELDOM)
    return _Answers(int(memory_bytes))


class _Answers:
    """Memory is limited from the first judgement on: what importing the exercises took is not the evidence's."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes, self._is_limited = memory_bytes, False
        self._known: dict[bytes, Any] = {}

    def __call__(self, parts: list[bytes]) -> bytes:
        what = plain_data.decode(parts[0])
        if "seed" in what:
            return _drawn(what)
        if not self._is_limited and _imported(what["lab"]):
            limit_memory(self._memory_bytes)
            self._is_limited = True
        _, cases, evidence, wants, files = parts
        return plain_data.encode(_judged(what, cases, evidence, wants, files, self._known))


def _imported(lab: str) -> bool:
    from edl_labs.checks.lab_exercises import load_lab

    try:
        return bool(load_lab(lab))
    except Exception:
        return False


def _drawn(what: dict[str, Any]) -> bytes:
    from edl_labs.checks.lab_exercises import load_lab
    from edl_labs.checks.spec import plain_cases

    try:
        exercise = next(e for e in load_lab(what["lab"]) if e.name == what["name"])
        return _DRAWN + plain_data.encode(plain_cases(exercise.draw_cases(what["seed"])))
    except EdlError as error:
        return _REFUSED + plain_data.encode({"what": error.what, "why": error.why, "next": error.next})
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        return _REFUSED + plain_data.encode({"what": f"the cases of {what['name']} cannot be drawn", "why": why})


def _judged(
    what: dict[str, Any], cases: bytes, evidence: bytes, wants: bytes, files: bytes, known: dict[bytes, Any]
) -> Any:
    from edl_labs.checks import judge
    from edl_labs.checks.known_mistakes import KnownMistake, named
    from edl_labs.checks.lab_exercises import load_lab
    from edl_labs.checks.spec import cases_of, copied_cases, kept_timelines, with_hand_ins

    try:
        exercise = next(e for e in load_lab(what["lab"]) if e.name == what["name"])
        drawn = cases_of(known.setdefault(cases, plain_data.decode(cases)))
        right = known.setdefault(wants, plain_data.decode(wants))
    except Exception as error:
        return {"broken": f"{type(error).__name__}: {error}"}
    try:
        got = without_texts(plain_data.decode(evidence), exercise.lab)
        if exercise.spec.source_is_evidence:
            got = with_source(got, what["source"])
    except EdlError as error:
        unread = unjudged(exercise, what["points"], why=error.what)
        return {"outcome": _fields(unread), "all_values": False, "has_errors": True}
    asked = copied_cases(drawn)
    if files:
        asked = with_hand_ins(asked, plain_data.decode(files))
    outcome = judge(exercise, asked, got, plain_data.plain_copy(right), points=what["points"])
    if what["mistakes"]:
        said = named(outcome, [KnownMistake.from_json(one) for one in what["mistakes"]], got, right)
        return {"outcome": asdict(cut_short(said)), "all_values": _all_have(got, "value"), "has_errors": False}
    if outcome.points:
        kept = kept_timelines(exercise.spec, copied_cases(drawn), got, plain_data.plain_copy(right))
        outcome = replace(outcome, timelines=kept)
    all_values, has_errors = _all_have(got, "value"), not _all_have(got, "value", "stub")
    return {"outcome": _fields(outcome), "all_values": all_values, "has_errors": has_errors}


def with_source(records: Any, source: list[str]) -> Any:
    """The records with the submitted cells' texts in each value, whatever source the student's process sent.

    >>> with_source([{"value": {"source": ["forged"], "program": "p"}}, {"stub": True}], ["def f(): ..."])
    [{'value': {'source': ['def f(): ...'], 'program': 'p'}}, {'stub': True}]
    """
    if not isinstance(records, list):
        return records
    return [{**one, "value": {**one["value"], "source": list(source)}} if _is_table(one) else one for one in records]


def _is_table(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("value"), dict)


def _all_have(records: Any, *keys: str) -> bool:
    return isinstance(records, list) and all(isinstance(r, dict) and any(key in r for key in keys) for r in records)


def _fields(outcome: Outcome) -> dict[str, Any]:
    """What leaves this process: nothing of a secret case does."""
    return asdict(cut_short(withheld(outcome)))


def cut_short(outcome: Outcome) -> Outcome:
    """The outcome, its texts cut to a length that people read and bytes can carry."""
    texts: dict[str, Any] = {key: value for key, value in vars(outcome).items() if type(value) is str}
    return replace(
        outcome, **{key: text[:_TEXT_LETTERS].encode("utf-8", "replace").decode() for key, text in texts.items()}
    )


def public(outcome: Outcome) -> Outcome:
    """The outcome as a student may read it: secret cases stay secret, so that the same seed can grade again."""
    return replace(outcome, case_text="", case_index=None, printed="", timelines={})
