"""The leak scan: a planted solution line is found wherever students can look."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab import leaks
from edl_labs.course.lab.build import build
from edl_labs.course.lab.read import read_lab, read_labs
from edl_labs.course.lab.secret_functions import SecretFunction, secret_functions
from tests.unit.course.lab import kit

LINE = "twice_as_long_s = 4 * half_of(duration_s)"


@pytest.fixture
def known(course: Course) -> list[leaks.Secret]:
    """The secrets of the small course."""
    return leaks.secrets([read_lab(course, kit.LAB)])


def test_secrets_are_solution_lines_rubrics_and_model_answers(known: list[leaks.Secret]) -> None:
    texts = {secret.text for secret in known}

    assert {
        LINE,
        *("1 point: says that nothing is kept", "says that nothing is kept"),
        *("2 points: names the allocator as what could be kept", "names the allocator as what could be kept"),
        "Nothing is kept between the runs, so that both pay the same. The allocator could keep its blocks.",
        *("Nothing is kept between the runs, so that both pay the same.", "The allocator could keep its blocks."),
    } == texts
    assert [f"solutions/{kit.LAB}/{kit.LAB}.py:24"] == [f"{s.file}:{s.line}" for s in known if s.text == LINE]


@pytest.mark.parametrize(
    ("line", "nothing"),
    [
        *(("return total", True), ("for span in spans:", True), ("if workers == 0:", True), ("return -1.0", True)),
        *(
            ("except BaseException as error:", True),
            ("if not self.rows:", True),
            ('if kind in ("conv", "pool"):', True),
        ),
        *(("return total / calls", False), ("for row in sorted(rows):", False), ("if size > 2 * limit:", False)),
        *(("if n: total = n * 2", False), ("return x; y = f(x)", False), ("for i in rows: total += i * scale", False)),
        *(("main_s = max(main_s, device_s)", False), ("return self.clock.now_s()", False), ("def f(:", False)),
    ],
)
def test_a_line_that_any_program_might_have_gives_nothing_away(line: str, nothing: bool) -> None:
    assert nothing == leaks.says_nothing(line)


def test_short_lines_and_lines_of_the_stub_are_no_secrets(course: Course) -> None:
    kit.replace(kit.source(course), f"    {LINE}", f'    """Twice the duration."""\n    x = 1 + 1\n    {LINE}')

    texts = {secret.text for secret in leaks.secrets([read_lab(course, kit.LAB)])}

    assert not texts & {'"""Twice the duration."""', "x = 1 + 1"}
    assert LINE in texts


def test_a_line_that_lab_toml_calls_public_is_no_secret(course: Course) -> None:
    kit.replace(kit.toml(course), 'device = "any"', f'device = "any"\npublic_lines = ["{LINE}"]')

    assert LINE not in {secret.text for secret in leaks.secrets([read_lab(course, kit.LAB)])}


PLANTED = {
    "notes.md": f"As you see, `{LINE}` does it.",
    "indented.py": f"def f():\n        {LINE}\n",
    "commented.py": f"# {LINE}",
    "spaced.py": "twice_as_long_s  =  4 * half_of(duration_s)",
    "data.json": json.dumps({"a": [{"b": LINE}]}),
    "cell.ipynb": json.dumps({"cells": [{"source": ["x = 1\n", f"{LINE}\n"], "outputs": []}]}),
    "output.ipynb": json.dumps({"cells": [{"source": [], "outputs": [{"text": [LINE[:10], LINE[10:]]}]}]}),
    "answer.html": "<p>Nothing is kept between the runs, so that both pay the same.</p>",
    "rubric.txt": "names the allocator as what could be kept",
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_line_is_found(tmp_path, known: list[leaks.Secret], name: str) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / name).write_text(PLANTED[name])

    found = leaks.scan([tmp_path / "tree"], known, root=tmp_path)

    assert {f"tree/{name}"} == {leak.path for leak in found}


def test_a_quoted_line_is_found_through_the_escapes_of_json(course: Course, tmp_path) -> None:
    quoted = 'twice_as_long_s = {"a": 4}["a"] * half_of(duration_s)'
    kit.replace(kit.source(course), LINE, quoted)
    known = leaks.secrets([read_lab(course, kit.LAB)])
    (tmp_path / "x.ipynb").write_text(json.dumps({"cells": [{"source": quoted}]}))

    assert leaks.scan([tmp_path / "x.ipynb"], known)


def test_a_planted_line_is_found_in_a_wheel(tmp_path, known: list[leaks.Secret]) -> None:
    wheel = tmp_path / "edl_labs-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("edl_labs/helper.py", f"def f():\n    {LINE}\n")

    found = leaks.scan([wheel], known, root=tmp_path)

    assert ["edl_labs-1-py3-none-any.whl/edl_labs/helper.py"] == [leak.path for leak in found]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("line.gz", gzip.compress(LINE.encode(), mtime=0)),
        ("wide.txt", LINE.encode("utf-16")),
        ("wide_without_mark.txt", LINE.encode("utf-16-le")),
        ("respaced.py", LINE.replace(" ", "").encode()),
        (".ipynb_checkpoints/line.txt", LINE.encode()),
    ],
    ids=["gzip", "wide", "wide without mark", "respaced", "checkpoint"],
)
def test_a_planted_line_is_found_however_it_is_stored(
    tmp_path: Path, known: list[leaks.Secret], name: str, data: bytes
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(data)

    assert leaks.scan([tmp_path], known)


def test_a_planted_line_is_found_in_a_page_that_colours_it_word_by_word(tmp_path, known: list[leaks.Secret]) -> None:
    words = "".join(f'<span class="n">{word}</span> ' for word in LINE.replace("*", "&#42;").split())
    (tmp_path / "lab.html").write_text(f"<pre>{words}</pre>", encoding="utf-8")

    assert [LINE] == [leak.secret.text for leak in leaks.scan([tmp_path / "lab.html"], known)]


def test_part_of_a_longer_word_is_no_leak(tmp_path, known: list[leaks.Secret]) -> None:
    (tmp_path / "x.py").write_text("return twice_as_long_seconds\nno_return twice_as_long_s2\n")

    assert [] == leaks.scan([tmp_path / "x.py"], known)


def test_a_built_course_leaks_nothing(built: Course, known: list[leaks.Secret]) -> None:
    assert [] == leaks.scan_course(built, known)


def test_the_judges_part_is_not_public_and_the_exercises_beside_it_are(course: Course) -> None:
    drawing = kit.with_judge(course)
    known = leaks.secrets([read_lab(course, kit.LAB)])
    drawing.write_text(f"# {LINE}\n")

    assert [] == leaks.scan_course(course, known)

    (drawing.parents[1] / "doubling_time.py").write_text(f"# {LINE}\n")

    assert [f"edl_labs/exercises/{kit.LAB}/doubling_time.py"] == [
        leak.path for leak in leaks.scan_course(course, known)
    ]


def judges_copy(body: str, *, arguments: str = "rng") -> str:
    return f"def anything({arguments}):\n    {body}\n"


BODY = "low_s, high_s = sorted(rng.uniform(0.5, 4.0, 2))\n    return [low_s * 2, high_s / 3, low_s + high_s]"


@pytest.fixture
def functions(course: Course) -> list[SecretFunction]:
    """The secret functions of the small course, whose judge draws with BODY, and with a helper of a long name."""
    helper = "\n\ndef _longest_duration_drawn(rng):\n    return 1\n"
    kit.with_judge(course).write_text(
        "from edl_labs.checks import case_source\n\n\n"
        f'@case_source("doubled_time")\ndef cases(rng):\n    {BODY}\n{helper}'
    )
    return secret_functions(course, [read_lab(course, kit.LAB)])


@pytest.mark.parametrize(
    ("text", "leaks_it"),
    [
        (judges_copy(BODY), True),
        (judges_copy('"""Words."""\n    ' + BODY), True),
        (judges_copy(BODY.replace("low_s", "a").replace("high_s", "b").replace("rng", "r"), arguments="r"), True),
        (judges_copy(BODY.replace("/ 3", "/ 4")), False),
        ("def _longest_duration_drawn():\n    pass\n", True),
        ("# _longest_duration_drawn\n", False),
        ("def cases(rng):\n    return []\n", False),
        ("not python at all", False),
    ],
)
def test_a_function_of_the_judge_is_found_by_its_body_and_by_a_name_that_none_has_by_chance(
    functions, tmp_path, text, leaks_it
) -> None:
    archive = tmp_path / "course-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        wheel.writestr("edl_labs/anything.py", text)

    found = leaks.scan([archive], [], functions=functions, root=tmp_path)

    assert leaks_it == bool(found)
    assert not leaks_it or f"edl_labs/exercises/{kit.LAB}/judge/durations.py" in str(found[0])


def test_a_solutions_function_is_found_under_other_names_in_a_notebook(course: Course, tmp_path) -> None:
    solution = "runs = [half_of(duration_s) for _ in range(4)]\n    return sum(runs) + max(runs) - min(runs)"
    kit.replace(kit.source(course), f"{LINE}\n    return twice_as_long_s", solution)
    known = secret_functions(course, [read_lab(course, kit.LAB)])
    copied = "def f(x):\n    a = [half_of(x) for _ in range(4)]\n    return sum(a) + max(a) - min(a)"
    cells = [{"cell_type": "markdown", "source": "x"}, {"cell_type": "code", "source": copied.splitlines(True)}]
    (tmp_path / "lab.ipynb").write_text(json.dumps({"cells": cells}))

    (leak,) = leaks.scan([tmp_path / "lab.ipynb"], [], functions=known, root=tmp_path)

    assert ("lab.ipynb", f"solutions/{kit.LAB}/{kit.LAB}.py:21") == (
        leak.path,
        f"{leak.secret.file}:{leak.secret.line}",
    )


def test_what_a_stub_holds_too_is_no_secret_function(course: Course) -> None:
    assert [] == [one for one in secret_functions(course, [read_lab(course, kit.LAB)]) if one.digest]


def test_a_file_of_a_judges_part_is_a_leak_whatever_it_holds(tmp_path) -> None:
    archive = tmp_path / "course-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        wheel.writestr(f"edl_labs/exercises/{kit.LAB}/judge/notes.txt", "nothing")

    assert ["the judge's code"] == [leak.secret.text for leak in leaks.scan([archive], [], root=tmp_path)]


def test_a_build_refuses_to_write_a_leak(course: Course) -> None:
    kit.replace(kit.source(course), "print(size)", f"def doubled(duration_s):\n    {LINE}")

    with pytest.raises(leaks.LeakError) as caught:
        build(course)

    where = f"labs/{kit.LAB}/{kit.LAB}.ipynb contains {LINE!r}, from solutions/{kit.LAB}/{kit.LAB}.py:24"
    assert f"a solution would leak: {where}" == caught.value.what
    assert not course.labs.exists()


def test_a_hint_that_holds_a_solution_line_is_a_leak(course: Course) -> None:
    kit.replace(kit.toml(course), '"Add the duration to itself."', f'"Write `{LINE}`."')

    with pytest.raises(leaks.LeakError, match="goldens"):
        build(course)


def test_build_check_finds_a_leak_in_the_package(built: Course) -> None:
    (built.root / "edl_labs" / "helper.py").write_text(f"{LINE}\n")

    with pytest.raises(leaks.LeakError, match=r"edl_labs/helper\.py"):
        build(built, check=True)


REPOSITORY = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this repository."""
    from hatchling.builders.wheel import WheelBuilder

    builder = WheelBuilder(str(REPOSITORY))
    return Path(next(builder.build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])))


def test_a_line_planted_in_the_wheel_of_this_repository_is_found(wheel: Path, tmp_path: Path) -> None:
    planted = tmp_path / wheel.name
    planted.write_bytes(wheel.read_bytes())
    secret = leaks.secrets(read_labs(Course(REPOSITORY)))[0]
    with zipfile.ZipFile(planted, "a") as archive:
        archive.writestr("edl_labs/planted.py", f"    {secret.text}\n")

    found = leaks.scan([planted], [secret], root=tmp_path)

    assert [f"{wheel.name}/edl_labs/planted.py"] == [leak.path for leak in found]


def test_the_wheel_holds_the_released_labs_and_no_sources(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    assert [f"edl_labs/labs/{n}/{n}.ipynb" for n in Course(REPOSITORY).lab_names()] == [
        name for name in names if name.endswith(".ipynb")
    ]
    assert not [name for name in names if "solutions" in name or "/mistakes/" in name or name.endswith("lab.toml")]


def test_the_value_of_a_return_is_secret_without_the_word_too(course: Course) -> None:
    kit.replace(kit.source(course), "return twice_as_long_s", "return twice_as_long_s + 0 * duration_s")
    lab = read_lab(course, kit.LAB)
    known = {secret.text for secret in leaks.secrets([lab])}

    assert {"return twice_as_long_s + 0 * duration_s", "twice_as_long_s + 0 * duration_s"} <= known
    assert leaks.scan_bytes("labs/x.md", b"It is `twice_as_long_s + 0 * duration_s`.", [*leaks.secrets([lab])])
