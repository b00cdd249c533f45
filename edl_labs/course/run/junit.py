"""A run as JUnit XML: one suite a lab, one case an exercise, and one case for the run itself."""

from __future__ import annotations

from xml.etree import ElementTree

from edl_labs.course.run.run_report import ExerciseResult, NotebookResult, RunFailure, RunReport
from edl_labs.course.run.safe_text import plain_text

_OF_EXERCISES = ("full-marks", "unreadable", "missing")


def junit_xml(report: RunReport) -> bytes:
    """The report as a JUnit file in UTF-8, without terminal codes and without characters that XML forbids."""
    root = ElementTree.Element("testsuites", name="edl-labs run", time=_seconds(report.seconds))
    for notebook in report.notebooks:
        root.append(_suite(notebook, report))
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _suite(notebook: NotebookResult, report: RunReport) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=plain_text(notebook.lab), time=_seconds(notebook.seconds))
    properties = ElementTree.SubElement(suite, "properties")
    facts = {"mode": report.mode, "device": notebook.device, **notebook.parameters}
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=plain_text(name), value=plain_text(value))
    suite.append(_run_case(notebook))
    for exercise in notebook.exercises:
        suite.append(_exercise_case(notebook.lab, exercise))
    suite.set("tests", str(len(notebook.exercises) + 1))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(len(suite.findall(f"testcase/{tag}"))))
    return suite


def _run_case(notebook: NotebookResult) -> ElementTree.Element:
    case = _case(notebook.lab, "notebook runs through", notebook.seconds)
    crashes = [failure for failure in notebook.failures if failure.kind not in _OF_EXERCISES]
    if crashes:
        _add(case, "error", crashes[0].what, crashes[0].kind, "\n".join(map(str, crashes)))
    return case


def _exercise_case(lab: str, exercise: ExerciseResult) -> ElementTree.Element:
    case = _case(lab, exercise.name, exercise.seconds)
    if exercise.by_hand:
        ElementTree.SubElement(case, "skipped", message="marked by hand")
    elif exercise.state == "not reached":
        _add(case, "error", exercise.what, exercise.state, exercise.what)
    elif not exercise.full:
        what = f"{exercise.points:g} of {exercise.max_points:g} points: {exercise.what or exercise.state}"
        text = str(RunFailure(exercise.state, what, exercise.why, exercise.next))
        _add(case, "failure", what, exercise.state, text)
    return case


def _case(lab: str, name: str, seconds: float) -> ElementTree.Element:
    return ElementTree.Element("testcase", classname=plain_text(lab), name=plain_text(name), time=_seconds(seconds))


def _add(case: ElementTree.Element, tag: str, message: str, kind: str, text: str) -> None:
    ElementTree.SubElement(case, tag, message=plain_text(message), type=kind).text = plain_text(text)


def _seconds(value: float) -> str:
    return f"{value:.3f}"
