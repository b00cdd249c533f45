"""How long grading a class takes: the same honest submissions with plain nbgrader and with `edl-labs grade`.

    python benchmarks/grading_throughput.py --students 40 --jobs 2
    python benchmarks/grading_throughput.py --lab all
    python benchmarks/grading_throughput.py --lab lab02_roofline --students 30 --mixed

It prints wall time, CPU time, the time T of the notebook's own checks, the overhead per submission and the memory per
worker. It also prints the ratio of the two times, the bound that T sets, and an estimate for larger classes. If the
marks differ, it prints only an error. With --mixed, it grades an honest class and one with known mistakes, untouched
exercises and endless loops, both without plain nbgrader. It then prints wall time, CPU time, disk space, and the memory
of each kind of process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.course.course_fixture import Course, make_lab_course, solved  # noqa: E402

# Targets: two workers lose 15 % to each other, and a submission costs this much CPU time in addition to its checks.
EFFICIENCY, OVERHEAD_S, SHARE = 0.85, 0.25, 0.85
ALL_CELLS = "--all-cells" in sys.argv
PLAIN = """
import os
c = get_config()
exec(open("own_config.py").read())
for name in ("pre_convert_hook", "sanitize_preprocessors", "autograde_preprocessors"):
    c.Autograde.pop(name, None)
c.Execute.timeout = 600
"""
GRADE = """
import json, sys
from pathlib import Path
from edl_labs.course.grade.classrun import grade
from edl_labs.course.course_folder import Course as Repository
course, jobs, all_cells = Repository(Path(sys.argv[2])), int(sys.argv[3]), sys.argv[4] == "all"
report = grade(sys.argv[1], course=course, jobs=jobs, all_cells=all_cells, only=sys.argv[5:])
print(json.dumps(report.to_json()))
"""


@dataclass(frozen=True)
class Taken:
    """Wall and CPU seconds of one command with everything that it started, and its largest process."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    output: str


def taken(command: list[str], course: Course) -> Taken:
    """What a command took. CPU is that of the child and all it waited for, memory that of its own largest process.

    Of all children together the system keeps one maximum, which an earlier command would have set.
    """
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(command, cwd=course.root, env=course.env, stdout=out, stderr=err, text=True)
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        said, complaints = out.read(), err.read()
    if child.returncode != 0:
        raise SystemExit(f"{command[:4]} failed:\n{said[-2000:]}{complaints[-2000:]}")
    return Taken(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, said)


def make_class(root: Path, lab: str, students: int, *, plain: bool) -> Course:
    """A course with `students` honest submissions, each different in a comment."""
    course = make_lab_course(root, lab)
    notebook = solved(course)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    source = first["source"]
    for number in range(students):
        first["source"] = f"{source}\n# student {number}"
        course.submit(f"s{number:03}", notebook)
    if plain:
        shutil.move(root / "nbgrader_config.py", root / "own_config.py")
        (root / "nbgrader_config.py").write_text(PLAIN)
    course.nbgrader("generate_assignment", lab, "--force")
    return course


def marks(course: Course, students: int) -> dict[str, dict[str, float | None]]:
    """Every automatic mark in a gradebook."""
    return {f"s{number:03}": course.scores(f"s{number:03}") for number in range(students)}


def graded_with(course: Course, *, jobs: int, only: str = "*", kept: bool = False) -> tuple[Taken, dict]:
    """A class run from nothing: earlier results and marks are thrown away, unless they are to be `kept`."""
    for name in () if kept else ("grading", "autograded"):
        shutil.rmtree(course.root / "course" / name, ignore_errors=True)
    cells = "all" if ALL_CELLS else "declared"
    found = taken([sys.executable, "-c", GRADE, course.lab, str(course.root), str(jobs), cells, only], course)
    return found, json.loads(found.output)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--lab", default="lab01_gpu_basics", help="the name of a lab, or all for a table of all labs")
    parser.add_argument("--students", type=int, default=40)
    parser.add_argument("--plain", type=int, help="how many students plain nbgrader grades; the rest is scaled")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--mixed", action="store_true", help="compare an honest class with a mixed one, with memory by process"
    )
    parser.add_argument("--all-cells", action="store_true", help="also run demonstrations")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    options = parser.parse_args()
    labs = (
        sorted(path.name for path in (REPOSITORY / "solutions").glob("lab*") if path.is_dir())
        if options.lab == "all"
        else ()
    )
    found = []
    for lab in labs or (options.lab,):
        with tempfile.TemporaryDirectory() as folder:
            if options.mixed:
                print(mixed(Path(folder), lab, students=options.students, jobs=options.jobs), flush=True)
                continue
            found.append(measure(Path(folder), lab, students=options.students, some=options.plain, jobs=options.jobs))
        print(json.dumps(found[-1]) if options.json else text(found[-1]), flush=True)
    if found and not options.json:
        print("\n" + table(found))


def mixed(root: Path, lab: str, *, students: int, jobs: int) -> str:
    """A line for an honest class and one for a mixed class of the same size."""
    from benchmarks.mixed_class import submit_mixed, watched_memory

    lines = []
    for kind in ("honest", "mixed"):
        course = make_class(root / kind, lab, students, plain=False)
        if kind == "mixed":
            submit_mixed(course, students=students, root=REPOSITORY)
        with watched_memory() as peaks:
            took, _ = graded_with(course, jobs=jobs)
        disk = sum(path.stat().st_size for path in (course.root / "course").rglob("*") if path.is_file())
        memory = ", ".join(
            f"{role} {peak / 1e6:.0f}" for role, peak in sorted(peaks.items(), key=lambda item: -item[1])
        )
        line = f"{lab} {kind:<6} {students} submissions: {took.wall_s:.1f} s, CPU {took.cpu_s:.1f} s"
        lines.append(f"{line}, disk {disk / 1e6:.1f} MB; MB: {memory}")
    return "\n".join(lines)


def plainly(plain: Course, *, graded: int, students: int) -> Taken:
    """Plain `nbgrader autograde` of `graded` submissions, its seconds beyond its start taken as often as there are."""
    command = [sys.executable, "-m", "nbgrader", "autograde", plain.lab, "--quiet"]
    theirs, start = taken(command, plain), taken(command, plain)  # the second time nothing is left to grade
    times = students / graded

    def scaled(all_s: float, start_s: float) -> float:
        return start_s + (all_s - start_s) * times

    return replace(
        theirs, wall_s=scaled(theirs.wall_s, start.wall_s), cpu_s=scaled(theirs.cpu_s, start.cpu_s), output=""
    )


def measure(root: Path, lab: str, *, students: int, some: int | None, jobs: int) -> dict:
    """Every figure that is printed; plain nbgrader grades `some` of the students, or all."""
    graded = min(some or students, students)
    ours = make_class(root / "ours", lab, students, plain=False)
    plain = make_class(root / "plain", lab, graded, plain=True)
    first, alone = graded_with(ours, jobs=1, only="s000")
    report_s = alone["rows"][0]["own_s"]
    one, _ = graded_with(ours, jobs=1)
    many, report = graded_with(ours, jobs=jobs)
    again, _ = graded_with(ours, jobs=jobs, kept=True)
    theirs = plainly(plain, graded=graded, students=students)
    right = marks(plain, graded)
    if any(found != right[f"s{int(name[1:]) % graded:03}"] for name, found in marks(ours, students).items()):
        raise SystemExit("The marks differ, so the times cannot be compared.")
    rows = report["rows"]
    own_cpu_s = sum(row["own_cpu_s"] for row in rows) / students
    judge_cpu_s = sum(row["judge_cpu_s"] for row in rows) / students
    return {
        "lab": lab,
        "students": students,
        "jobs": jobs,
        "cores": len(os.sched_getaffinity(0)),
        "plain": asdict(theirs) | {"output": "", "graded": graded},
        "one": asdict(one) | {"output": ""},
        "many": asdict(many) | {"output": ""},
        "notebook_cpu_s": own_cpu_s,
        "judge_cpu_s": judge_cpu_s,
        "start_wall_s": first.wall_s - report_s,
        "start_cpu_s": first.cpu_s - own_cpu_s,
        "overhead_cpu_s": (many.cpu_s - first.cpu_s) / (students - 1) - own_cpu_s,
        "merge_s": again.wall_s / students,
        "kernel_peak_bytes": max(row["peak_bytes"] for row in rows),
        "ratio": theirs.wall_s / many.wall_s,
        "bound_ratio": theirs.wall_s / (own_cpu_s * students / jobs),
        "allowed_ratio": theirs.wall_s * EFFICIENCY * jobs / ((own_cpu_s + OVERHEAD_S) * students),
        "efficiency": one.wall_s / (jobs * many.wall_s),
    }


def table(found: list[dict]) -> str:
    """A line for each lab: the ratio to plain nbgrader, beside what the checks' own CPU and the overhead allow.

    On a machine that others use, CPU a submission says more than the seconds that passed.
    """
    head = f"{'lab':<24} {'plain s':>8} {'ours s':>8} {'plain CPU':>9} {'our CPU':>9} {'checks':>7}"
    head += f" {'judge':>6} {'other':>7} {'start':>6}"
    lines = [f"{head} {'ratio':>6} {'bound':>6} {'share':>6} {'workers':>8} {'MB each':>8} {'largest':>8}"]
    for one in found:
        ours, students, share = one["many"], one["students"], one["ratio"] / one["allowed_ratio"]
        seconds = f"{one['plain']['wall_s']:8.1f} {ours['wall_s']:8.1f}"
        each = f"{one['plain']['cpu_s'] / students:9.2f} {ours['cpu_s'] / students:9.2f}"
        own = f"{one['notebook_cpu_s']:7.2f} {one['judge_cpu_s']:6.2f} {one['overhead_cpu_s']:7.2f}"
        own += f" {one['start_cpu_s']:6.1f}"
        ratios = f"{one['ratio']:6.1f} {one['allowed_ratio']:6.1f} {share:6.0%}"
        workers = f"{one['efficiency']:8.2f} {one['kernel_peak_bytes'] / 1e6:8.0f}"
        workers += f" {ours['peak_bytes'] / 1e6:8.0f}"
        lines.append(f"{one['lab']:<24} {seconds} {each} {own} {ratios} {workers}")
    lines.append(
        "CPU: seconds per submission, with the start; checks: a kernel's CPU time; start: CPU seconds per class;"
    )
    lines.append(
        "MB each: what a kernel adds to the memory that it shares with its parent; largest: MB of the largest process;"
    )
    lines.append(
        "other: all other CPU seconds per submission, with the judge; plain: nbgrader's time, scaled to all students;"
    )
    lines.append(f"bound: workers × {EFFICIENCY} × plain / (checks + {OVERHEAD_S} s); the target is {SHARE:.0%} of it")
    return "\n".join(lines)


def sizing_s(figures: dict, *, students: int, cores: int) -> float:
    """Seconds for a class on `cores` cores, extrapolated: the start, then the slower of graders and the one writer.

    Cores are assumed to be as fast, and as much in each other's way, as those that were measured.
    """
    each_s = (figures["many"]["wall_s"] - figures["start_wall_s"]) * figures["jobs"] / figures["students"]
    return figures["start_wall_s"] + students * max(each_s / cores, figures["merge_s"])


def sizing(figures: dict) -> str:
    """Submissions an hour, and hours for classes of three sizes."""
    each_s = sizing_s(figures, students=1, cores=1) - figures["start_wall_s"]
    merged = f"the writer merges {3600 / figures['merge_s']:.0f} per hour"
    lines = [f"{3600 / each_s:.0f} submissions per hour and core; {merged}"]
    for students in (100, 1_000, 10_000):
        times = (f"{c} cores {sizing_s(figures, students=students, cores=c) / 60:.1f} min" for c in (2, 16, 64))
        lines.append(f"{students:>6} students: {', '.join(times)}")
    return "\n".join(lines)


def text(figures: dict) -> str:
    """The figures as people read them."""
    plain, one, many = figures["plain"], figures["one"], figures["many"]
    wanted = min(10.0, 0.9 * figures["bound_ratio"])
    return "\n".join(
        [
            f"{figures['students']} submissions of {figures['lab']}, {figures['cores']} cores; the marks are equal",
            f"plain nbgrader autograde   {plain['wall_s']:8.1f} s   CPU {plain['cpu_s']:8.1f} s",
            f"edl-labs grade, 1 worker   {one['wall_s']:8.1f} s   CPU {one['cpu_s']:8.1f} s",
            f"edl-labs grade, {figures['jobs']} workers  {many['wall_s']:8.1f} s   CPU {many['cpu_s']:8.1f} s",
            f"the notebook's own T       {figures['notebook_cpu_s']:8.2f} s of CPU per submission",
            f"overhead                   {figures['overhead_cpu_s']:8.2f} s of CPU per submission, with the gradebook "
            f"and {figures['judge_cpu_s']:.2f} s of comparison",
            f"start                      {figures['start_cpu_s']:8.2f} s of CPU per class: imports and the solution",
            f"memory                     {many['peak_bytes'] / 1e6:8.0f} MB in the largest process, "
            f"{figures['kernel_peak_bytes'] / 1e6:.0f} MB per kernel",
            f"ratio                      {figures['ratio']:8.1f}   (bound from T {figures['bound_ratio']:.1f}; "
            f"target {wanted:.1f} {'met' if figures['ratio'] >= wanted else 'missed'})",
            f"target ratio               {SHARE * figures['allowed_ratio']:8.1f}   ({SHARE:.0%} of "
            f"{figures['jobs']} × {EFFICIENCY} × plain / (own CPU + {OVERHEAD_S} s) = {figures['allowed_ratio']:.1f})",
            f"efficiency                 {figures['efficiency']:8.2f}",
            "",
            "estimate for larger classes (one course folder, no GPU; with a GPU: 3600 / T submissions per GPU hour):",
            sizing(figures),
        ]
    )


if __name__ == "__main__":
    main()
