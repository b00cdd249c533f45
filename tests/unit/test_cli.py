"""The command line: exit codes, sentences instead of tracebacks, and JSON that is JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from edl_labs import __version__
from edl_labs.cli import app, main
from edl_labs.cli.output import ProgressLines

ROOT = Path(__file__).resolve().parents[2]
VERBS = (
    "doctor",
    "start",
    "check",
    "diagnose",
    "new",
    "edit",
    "build",
    "test",
    "wheel",
    "run",
    "leaks",
    "publish",
    "grade",
    "collect",
    "feedback",
    "export",
    "regrade",
    "report",
    "gradescope",
    "canvas",
)


def edl_labs(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    code = "from edl_labs.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture
def said_no(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """The command in this process, from a folder: its exit code and what it wrote to standard error."""

    def run(*arguments: str, cwd: Path = ROOT) -> tuple[object, str]:
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["edl-labs", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr().err

    return run


def test_version_and_help() -> None:
    assert __version__ == edl_labs("--version").stdout.strip()
    assert set(VERBS) <= set(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_json(verb: str) -> None:
    assert "--json" in CliRunner().invoke(app, [verb, "--help"], terminal_width=120).stdout


@pytest.mark.parametrize("verb", VERBS)
def test_h_is_help(verb: str) -> None:
    short, long = (CliRunner().invoke(app, [verb, asked], terminal_width=120) for asked in ("-h", "--help"))

    assert (0, long.stdout) == (short.exit_code, short.stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "No such command"),
        (["tset"], "Did you mean 'test'?"),
        (["build"], "this is not a course"),
        (["test"], "this is not a course"),
        (["edit", "lab01_gpu_basics"], "this is not a course"),
        (["publish", "out"], "this is not a course"),
        (["leaks"], "this is not a course"),
        (["run"], "course"),
        (["grade", "lab01_gpu_basics"], "course"),
        (["run", "--smoke", "--full"], "cannot be used together"),
        (["check", "no_such.ipynb"], "no_such.ipynb"),
        (["check", "."], "notebook"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_wrong_use_is_one_sentence_and_exit_code_2(said_no, tmp_path: Path, arguments: list[str], said: str) -> None:
    code, told = said_no(*arguments, cwd=tmp_path)

    assert (2, True) == (code, said in told), told


def test_wrong_use_has_no_traceback(tmp_path: Path) -> None:
    ended = edl_labs("check", "no_such.ipynb", cwd=tmp_path)

    assert (2, True) == (ended.returncode, "no_such.ipynb" in ended.stderr), ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["test", "lab01_gpu_basic"], "lab01_gpu_basics"),
        (["test", "lab01_gpu_basics", "finish_time"], "its exercises are finish_times"),
        (["test", "finish_times"], "finish_times is an exercise, so exactly one lab must be named"),
        (["run", "lab77_nothing"], "lab77_nothing"),
        (["run", "-p", "nonsense"], "does not have the form NAME=VALUE"),
        (["run", "-p", "nonsense=1"], "nonsense"),
        (["run", "--device", "abacus"], "abacus"),
        (["run", "-j", "0"], "0 notebooks"),
        (["new", "lab1"], "is not a lab's name"),
        (["new", "lab01_gpu_basics"], "lab01_gpu_basics already exists"),
        (["edit", "lab01_gpu_basics", "--from-notebook", "none.ipynb"], "there is no"),
        (["leaks", "no_such_folder"], "there is no file or folder no_such_folder"),
        (["publish", "solutions"], "solutions"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_wrong_use_in_a_course_names_what_is_wrong(said_no, arguments: list[str], said: str) -> None:
    code, told = said_no(*arguments)

    assert (True, True) == (code in (1, 2), said in told), told


def test_json_is_the_only_thing_on_standard_output(tmp_path: Path) -> None:
    ended = edl_labs("start", "my labs", "--no-open", "--json", cwd=tmp_path)

    report = json.loads(ended.stdout)
    assert 0 == ended.returncode
    assert "lab01_gpu_basics" in report["labs"]
    assert (tmp_path / "my labs" / "lab01_gpu_basics" / "lab01_gpu_basics.ipynb").is_file()


def test_plain_progress_is_a_few_lines_not_one_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLines() as progress:
        for done in range(1001):
            progress(done, 1000, f"step {done}")

    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 20
    assert "[1000/1000] step 1000" == lines[-1]


def test_quiet_progress_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLines(quiet=True) as progress:
        progress(1, 2, "step")

    assert "" == capsys.readouterr().err
