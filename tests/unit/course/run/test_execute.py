"""Real runs through papermill: every dishonest end of a notebook fails the run, and the files say the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest

from edl_labs.course.run import run_plan
from edl_labs.course.run.execute import run_labs
from edl_labs.course.run.run_report import RunLimits, RunReport
from edl_labs.errors import EdlError, NothingToDo, UsageError
from tests.unit.course.run.running_kit import QUICK, check, code, explain, passed, solve, write

SHORT = RunLimits(cell_s=6, notebook_s=240)
TAGGED = ("raises-exception",)


def run_one(folder: Path, *cells: Any, limits: RunLimits = QUICK, **more: Any) -> RunReport:
    path = write(folder, "lab90_small", *cells)
    return run_labs([path], out=folder / "out", device="cpu", limits=limits, **more)


def whats(report: RunReport) -> list[str]:
    return [failure.what for _, failure in report.failures()]


def junit(folder: Path) -> ElementTree.Element:
    return ElementTree.parse(folder / "out" / "junit.xml").getroot()


def test_a_good_notebook_runs_with_full_marks_and_leaves_every_file(tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    cells = [
        code("size = 1\ndevice = 'auto'", tags=("parameters",)),
        solve("sums", "print('\\x1b[31mred\\x1b[0m', size, device)"),
        passed("sums"),
        check("sums"),
        *explain("why_so"),
    ]

    report = run_one(tmp_path, *cells, parameters={"size": 7}, progress=lambda *step: seen.append(step))
    (result,) = report.notebooks
    executed = nbformat.read(tmp_path / "out" / "lab90_small" / "lab90_small.ipynb", as_version=4)
    counts = [c.execution_count for c in executed.cells if c.cell_type == "code"]

    assert ([], 0) == (whats(report), report.exit_code)
    assert list(range(1, 7)) == counts
    assert (6, 6) == (result.cells_run, len(result.cells))
    assert {"device": "cpu", "size": 7} == result.parameters
    assert (2.0, 2.0, 2.0) == (result.points, result.max_points, report.rows()[0]["by_hand_points"])
    assert "red" in json.dumps(executed)
    assert "python3" == executed.metadata.kernelspec.name
    assert (seen[-1][0], "lab90_small: done") == (seen[-1][1], seen[-1][2])
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert (1, True, 0) == (results["schema"], results["ok"], results["exit_code"])
    stamp = json.loads((tmp_path / "out" / "env.json").read_text(encoding="utf-8"))
    assert nbformat.__version__ == stamp["packages"]["nbformat"]
    assert "cpu" == stamp["machine"]["kind"]
    cases = {c.get("name"): c for c in junit(tmp_path).iter("testcase")}
    assert {"notebook runs through", "sums", "why_so"} == set(cases)
    assert "marked by hand" == cases["why_so"].find("skipped").get("message")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("source", "tags", "kind", "what"),
    [
        ("import os; os._exit(0)", (), "dead", "the kernel died in cell 2 (import os; os._exit(0)); 2 cells never ran"),
        ("1 / 0", (), "error", "cell 2 (1 / 0) raised ZeroDivisionError: division by zero; 2 cells never ran"),
        # The same ends in other words: a kernel each, and no other way through the runner.
        *(
            pytest.param(*other, marks=pytest.mark.slow)
            for other in (
                (
                    "import sys; sys.exit(0)",
                    (),
                    "exit",
                    "cell 2 (import sys; sys.exit(0)) called sys.exit; 2 cells never ran",
                ),
                ("1", ("skip-execution",), "never-ran", "1 cell never ran; the first one is cell 2 (1)"),
                ("exit()", (), "exit", "cell 2 (exit()) called exit(); 2 cells never ran"),
                ("import sys; sys.exit()", TAGGED, "exit", "cell 2 (import sys; sys.exit()) called sys.exit"),
                ("1 / 0", TAGGED, "error", "cell 2 (1 / 0) raised ZeroDivisionError: division by zero"),
                ("input('?')", (), "error", "cell 2 (input('?')) calls input(); 2 cells never ran"),
            )
        ),
    ],
)
def test_a_notebook_that_does_not_run_through_fails(
    tmp_path: Path, source: str, tags: tuple[str, ...], kind: str, what: str
) -> None:
    report = run_one(tmp_path, code(source, tags=tags), passed("sums"), check("sums"))
    (result,) = report.notebooks

    assert ([kind], [what]) == ([f.kind for f in result.failures], whats(report))
    assert 4 == report.exit_code
    assert {"notebook", "page"} == set(result.files)
    assert all((tmp_path / "out" / file).is_file() for file in result.files.values())
    case = next(junit(tmp_path).iter("testcase"))
    assert what == case.find("error").get("message")  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_loop_without_end_is_ended_even_if_it_swallows_interrupts(tmp_path: Path) -> None:
    source = "while True:\n    try:\n        while True: pass\n    except KeyboardInterrupt:\n        pass"

    report = run_one(tmp_path, code(source), passed("sums"), check("sums"), limits=SHORT)
    assert ["cell 2 (while True:) was still running after 6 s; 2 cells never ran"] == whats(report)
    assert "not reached" == report.notebooks[0].exercises[0].state


@pytest.mark.slow
def test_the_notebook_has_a_limit_of_its_own(tmp_path: Path) -> None:
    sleeps = [code("import time; time.sleep(2)", f"sleep-{number}") for number in range(4)]

    report = run_one(tmp_path, *sleeps, limits=RunLimits(cell_s=30, notebook_s=5))
    assert ["notebook-timeout"] == [f.kind for _, f in report.failures()]
    assert whats(report)[0].startswith("the notebook was still running after 5 s, in cell ")


@pytest.mark.slow
def test_a_flood_of_output_is_stopped(tmp_path: Path) -> None:
    limits = RunLimits(cell_s=20, notebook_s=60, output_bytes=1_000_000)

    report = run_one(tmp_path, code("while True: print('x' * 10_000)"), limits=limits)
    assert ["cell 2 (while True: print('x' * 10_000)) printed or displayed more than 1 MB"] == whats(report)


@pytest.mark.slow
def test_a_cell_that_kills_the_process_around_it_costs_no_finished_work(tmp_path: Path) -> None:
    killer = code("import os, signal; os.kill(os.getppid(), signal.SIGKILL)")

    report = run_one(tmp_path, passed("sums"), check("sums"), killer, code("import time; time.sleep(9)"))
    (result,) = report.notebooks
    assert ["runner"] == [f.kind for f in result.failures]
    assert "it was ended by signal 9" == result.failures[0].why
    assert "passed" == result.exercises[0].state


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        ([code("RESULTS['sums'] = (1.0, 2.0, 'partly')"), check("sums")], "the solution of sums scores 1 of 2 points"),
        pytest.param(
            [code("check = print"), check("sums")],
            "the check of sums returned no readable score",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_solution_without_full_marks_fails_with_exit_code_1(tmp_path: Path, cells: list[Any], what: str) -> None:
    report = run_one(tmp_path, *cells)

    assert ([what], 1) == (whats(report), report.exit_code)
    case = list(junit(tmp_path).iter("testcase"))[1]
    assert ("sums", True) == (case.get("name"), case.find("failure") is not None)


@pytest.mark.slow
def test_errors_in_colour_come_out_of_junit_in_plain_text(tmp_path: Path) -> None:
    run_one(tmp_path, code(r"raise ValueError('\x1b[31mred\x1b[0m \x00 \x07')"))
    text = (tmp_path / "out" / "junit.xml").read_bytes()

    ElementTree.fromstring(text)
    assert b"\x1b" not in text
    assert b"red" in text


@pytest.mark.slow
def test_what_cells_write_stays_out_of_the_course(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("41", encoding="utf-8")
    source = "n = int(open('data.txt').read()) + 1; open('data.txt', 'w').write('0'); open('new.txt', 'w').write('')"

    report = run_one(tmp_path, code(source), code("assert n == 42"))
    assert [] == whats(report)
    assert "41" == (tmp_path / "data.txt").read_text(encoding="utf-8")
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.slow
def test_one_bad_notebook_leaves_the_others_alone(tmp_path: Path) -> None:
    paths = [write(tmp_path, "lab90_bad", code("import os; os._exit(3)")), write(tmp_path, "lab91_good", code("1"))]

    report = run_labs(paths, out=tmp_path / "out", device="cpu", jobs=2, limits=QUICK)
    assert [("lab90_bad", False), ("lab91_good", True)] == [(n.lab, n.ok) for n in report.notebooks]
    assert ["lab90_bad", "lab91_good"] == [s.get("name") for s in junit(tmp_path).iter("testsuite")]


@pytest.mark.slow
def test_braces_and_spaces_in_a_folder_are_only_characters(tmp_path: Path) -> None:
    folder = tmp_path / "a {b} c"
    folder.mkdir()

    assert [] == whats(run_one(folder, code("1")))
    assert (folder / "out" / "lab90_small" / "lab90_small.ipynb").is_file()


@dataclass
class SmallCourse:
    """As much of a course as a run needs."""

    root: Path
    parameters: dict[str, dict[str, Any]]

    def lab_names(self) -> list[str]:
        return ["lab90_small"]

    def lab(self, name: str) -> Any:
        exercise = SimpleNamespace(name="sums", kind="code", points=2)
        return SimpleNamespace(title="Small", parameters=self.parameters, exercises=(exercise,), handed_in={})

    def shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    @property
    def source(self) -> Path:
        return self.root / "build" / "source"

    @property
    def solutions(self) -> Path:
        return self.root / "solutions"

    @property
    def exercises(self) -> Path:
        return self.root / "edl_labs" / "exercises"


@pytest.fixture(autouse=True)
def labs_of_the_small_course(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run reads a lab's parameters and exercises; the small course has no sources to read them from."""
    monkeypatch.setattr(run_plan, "read_lab", lambda course, name: course.lab(name))


def course(folder: Path, *cells: Any, **parameters: dict[str, Any]) -> Any:
    made = SmallCourse(folder, parameters)
    (made.source / "lab90_small").mkdir(parents=True)
    write(made.source / "lab90_small", "lab90_small", code("size = 1", tags=("parameters",)), *cells)
    return made


@pytest.mark.parametrize(("mode", "size"), [("smoke", 3), pytest.param("full", 5, marks=pytest.mark.slow)])
def test_parameters_come_from_the_mode_of_the_lab(tmp_path: Path, mode: str, size: int) -> None:
    ask = code(f"assert size == {size}; import os; assert 'exercises' in os.environ['EDL_LABS_EXERCISES']")
    made = course(tmp_path, ask, passed("sums"), check("sums"), smoke={"size": 3}, full={"size": 5})

    report = run_labs((), mode=mode, device="cpu", course=made, limits=QUICK)
    assert ([], 0) == (whats(report), report.exit_code)
    assert str(tmp_path / "build" / "executed") == report.folder


@pytest.mark.slow
def test_a_lab_whose_notebook_lost_an_exercise_fails(tmp_path: Path) -> None:
    made = course(tmp_path, code("1"), smoke={})

    assert ["there is no check of sums"] == whats(run_labs((), device="cpu", course=made, limits=QUICK))


def test_an_unknown_parameter_stops_the_run_before_it_starts(tmp_path: Path) -> None:
    made = course(tmp_path, code("open('ran', 'w')"), smoke={"sise": 3})

    with pytest.raises(UsageError) as error:
        run_labs((), mode="smoke", device="cpu", course=made)
    assert (
        "[parameters.smoke] of solutions/lab90_small/lab.toml sets 'sise', but lab90_small has no such parameter"
        == error.value.what
    )
    assert "its parameters cell assigns size" == error.value.why
    assert "did you mean size?" == error.value.next
    assert not (tmp_path / "build" / "executed").exists()


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"parameters": {"sizes": 1}}, "the command sets 'sizes', but lab90_small has no such parameter"),
        ({"mode": "quick"}, "there is no mode 'quick'"),
        ({"device": "tpu"}, "there is no device 'tpu'"),
        ({"jobs": 0}, "cannot run 0 notebooks at the same time"),
        ({"labs": ["lab90_small", "lab90_small"]}, "lab90_small is listed twice"),
        ({"labs": ["lab91_other.ipynb"]}, "there is no file lab91_other.ipynb"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_runs(tmp_path: Path, more: dict[str, Any], what: str) -> None:
    made = course(tmp_path, smoke={})

    with pytest.raises(UsageError) as error:
        run_labs(**{"labs": (), "device": "cpu", "course": made, **more})
    assert (what, 2) == (error.value.what, error.value.exit_code)


def test_a_lab_that_was_not_built_says_how(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        run_labs((), device="cpu", course=SmallCourse(tmp_path, {"smoke": {}}))  # type: ignore[arg-type]
    assert "lab90_small has not been built" == error.value.what
    assert "run edl-labs build" == error.value.next


def test_a_course_without_labs_is_nothing_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = SmallCourse(tmp_path, {})
    monkeypatch.setattr(SmallCourse, "lab_names", lambda self: [])

    with pytest.raises(NothingToDo) as error:
        run_labs((), device="cpu", course=made)  # type: ignore[arg-type]
    assert 6 == error.value.exit_code


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_limit_is_a_positive_number(value: float) -> None:
    with pytest.raises(EdlError, match="cell_s is"):
        RunLimits(cell_s=value)


@pytest.mark.slow
def test_a_stopped_run_leaves_no_kernel_behind_and_starts_no_other_notebook(tmp_path: Path) -> None:
    beacon = code(
        "import os, pathlib; pathlib.Path(os.environ['BEACON']).write_text(str(os.getpid()))\nwhile True: pass"
    )
    paths = [write(tmp_path, "lab90_endless", beacon), write(tmp_path, "lab91_next", code("1"))]
    script = (
        "import sys; from edl_labs.course.run.execute import run_labs\n"
        "run_labs(sys.argv[2:], out=sys.argv[1], device='cpu', jobs=1)"
    )
    env = {**os.environ, "BEACON": str(tmp_path / "pid")}
    command = [sys.executable, "-c", script, str(tmp_path / "out"), *map(str, paths)]

    process = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
    assert eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    kernel = int((tmp_path / "pid").read_text())
    process.send_signal(signal.SIGINT)

    assert 0 != process.wait(timeout=60)
    assert eventually(lambda: not Path(f"/proc/{kernel}").exists())
    assert not (tmp_path / "out" / "results.json").exists()
    assert not (tmp_path / "out" / "lab91_next").exists()


def eventually(happened: Callable[[], Any], *, within_s: float = 60.0) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if happened():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_numbers_that_json_has_not_are_text_in_the_results(tmp_path: Path) -> None:
    tagged = code("limit = 1.0", tags=("parameters",))

    run_one(tmp_path, tagged, code("assert limit == float('inf')"), parameters={"limit": float("inf")})
    text = (tmp_path / "out" / "results.json").read_text(encoding="utf-8")

    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert "inf" == json.loads(text, parse_constant=refuse)["notebooks"][0]["parameters"]["limit"]
