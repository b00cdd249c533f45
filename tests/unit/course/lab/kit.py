"""A small course in a temporary folder: one lab with one exercise in code and one in prose."""

from __future__ import annotations

from pathlib import Path

from edl_labs.course.course_folder import Course

LAB = "lab80_doubling"
SOURCE = '''\
# %% [markdown]
# # Doubling
#
# About 30 minutes.

# %% setup
try:
    from edl_labs import check, hint
except ImportError as error:
    raise ImportError("edl_labs is not installed") from error

# %% parameters
size = 4
label = "full"

# %% given
def half_of(value_s):
    return value_s / 2

# %% solve="doubled_time"
def doubled_time(duration_s):
    """Twice the duration."""
    ### BEGIN SOLUTION
    twice_as_long_s = 4 * half_of(duration_s)
    return twice_as_long_s
    ### END SOLUTION

# %% check="doubled_time"
check("doubled_time")

# %%
print(size)

# %% [markdown] explain="why_twice"
# **Explain.** Why does the second run take as long as the first?
'''
TOML = '''\
title = "Doubling"
minutes = 30
device = "any"

[parameters.smoke]
size = 1
label = "smoke"

[parameters.full]
size = 4
label = "full"

[[exercise]]
name = "doubled_time"
points = 2
hints = [
  "How long do two runs take?",
  "Add the duration to itself.",
]

[[exercise]]
name = "why_twice"
kind = "explain"
points = 3
hints = ["What is cached?", "What is cached after the first run, and what is not?"]
rubric = ["1 point: says that nothing is kept", "2 points: names the allocator as what could be kept"]
model_answer = """
Nothing is kept between the runs, so that both pay the same. The allocator could keep its blocks.
"""
'''
EXERCISES = '''\
"""The exercises of lab80_doubling."""

from edl_labs.checks import Case, Exercise, Wrong, close, exercise


@exercise("doubled_time")
class DoubledTime(Exercise):
    """Twice a duration."""

    answers = "all"

    def cases(self, rng):
        durations = [float(x) for x in rng.uniform(1, 2, 4)]
        return [Case(given={"x": x}) for x in durations]

    def probe(self, student, given):
        return student.doubled_time(given["x"])

    def compare(self, case, got, want):
        if close(got, case["x"]):
            raise Wrong("the duration came back as it was", why="nothing was added", next='hint("doubled_time")')
        if close(got, case["x"] ** 2):
            raise Wrong("the duration was squared", why="two runs add up", next='hint("doubled_time")')
        if not close(got, want):
            raise Wrong("another value came back", why="two runs add up", next='hint("doubled_time")')
'''
MISTAKES = """\
# %% mistake="same"
# told: the duration came back as it was
def doubled_time(duration_s):
    return duration_s


# %% mistake="squared"
# told: the duration was squared
def doubled_time(duration_s):
    return duration_s**2
"""


def write_course(root: Path) -> Course:
    """The course in `root`, not yet built."""
    course = Course(root)
    folder = course.solutions / LAB
    (folder / "mistakes").mkdir(parents=True)
    course.exercises.mkdir(parents=True)
    (folder / f"{LAB}.py").write_text(SOURCE)
    (folder / "lab.toml").write_text(TOML)
    mistakes(course).write_text(MISTAKES)
    (course.exercises / f"{LAB}.py").write_text(EXERCISES)
    (root / "LICENSE").write_text("MIT\n")
    return course


def source(course: Course) -> Path:
    """The lab's text."""
    return course.solutions / LAB / f"{LAB}.py"


def toml(course: Course) -> Path:
    """The lab's facts."""
    return course.solutions / LAB / "lab.toml"


def mistakes(course: Course, exercise: str = "doubled_time") -> Path:
    """The known mistakes of an exercise."""
    return course.solutions / LAB / "mistakes" / f"{exercise}.py"


def as_folder(course: Course) -> Path:
    """The lab's module of exercises made a folder of one topic; the folder."""
    (course.exercises / f"{LAB}.py").unlink()
    folder = course.exercises / LAB
    folder.mkdir()
    (folder / "doubling_time.py").write_text(EXERCISES)
    (folder / "__init__.py").write_text("from .doubling_time import DoubledTime\n\nEXERCISES = (DoubledTime,)\n")
    return folder


def with_judge(course: Course) -> Path:
    """The lab as a folder whose cases are drawn in its judge/; the module that draws them."""
    folder = as_folder(course)
    method = EXERCISES[EXERCISES.index("    def cases") : EXERCISES.index("    def probe")]
    replace(folder / "doubling_time.py", method, "")
    (folder / "judge").mkdir()
    (folder / "judge" / "__init__.py").write_text("from . import durations\n")
    drawing = folder / "judge" / "durations.py"
    body = '    drawn = [float(x) for x in rng.uniform(1, 2, 4)]\n    return [Case(given={"x": x}) for x in drawn]\n'
    head = 'from edl_labs.checks import Case, case_source\n\n\n@case_source("doubled_time")\ndef cases(rng):\n'
    drawing.write_text(head + body)
    return drawing


def replace(path: Path, old: str, new: str) -> None:
    """Change a file that holds `old`."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


SECOND = '''

@exercise("quadrupled_time"{uses})
class Quadrupled(DoubledTime):
    """Four times a duration, by what doubles it."""

    def probe(self, student, given):
        return student.quadrupled_time(given["x"])
'''
SECOND_CELLS = """
# %% solve="quadrupled_time"
def quadrupled_time(duration_s):
    ### BEGIN SOLUTION
    return doubled_time(doubled_time(duration_s))
    ### END SOLUTION

# %% check="quadrupled_time"
check("quadrupled_time")
"""
SECOND_TABLE = '\n[[exercise]]\nname = "quadrupled_time"\npoints = 1\nhints = ["Once more.", "Double it twice."]\n'
SECOND_MISTAKES = """\
# %% mistake="a"
# told: came back as it was
def quadrupled_time(duration_s):
    return duration_s


# %% mistake="b"
# told: another value came back
def quadrupled_time(duration_s):
    return -duration_s
"""


def add_second(course: Course, *, uses: str = "", worth: str = "points = 1") -> None:
    """A second exercise that calls the first."""
    module = course.exercises / f"{LAB}.py"
    module.write_text(module.read_text() + SECOND.replace("{uses}", uses))
    source(course).write_text(source(course).read_text() + SECOND_CELLS)
    toml(course).write_text(toml(course).read_text() + SECOND_TABLE.replace("points = 1", worth))
    mistakes(course, "quadrupled_time").write_text(SECOND_MISTAKES)
