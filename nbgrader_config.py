"""An nbgrader course over this repository: source = build/source, release = labs, the class = course/."""

import os
from pathlib import Path

c = get_config()  # noqa: F821  (nbgrader puts it there)

root = Path(__file__).resolve().parent
(root / "course").mkdir(exist_ok=True)  # sqlite makes files, not folders

c.CourseDirectory.root = str(root)
c.CourseDirectory.course_id = os.environ.get("EDL_LABS_COURSE", "edl")
c.CourseDirectory.source_directory = "build/source"
c.CourseDirectory.release_directory = "labs"
c.CourseDirectory.submitted_directory = "course/submitted"
c.CourseDirectory.autograded_directory = "course/autograded"
c.CourseDirectory.feedback_directory = "course/feedback"
c.CourseDirectory.solution_directory = "course/solution"
c.CourseDirectory.db_url = os.environ.get("EDL_LABS_DB", f"sqlite:///{root / 'course' / 'gradebook.db'}")
c.CourseDirectory.include = [
    "*.ipynb",
    "timestamp.txt",
    "submission_secret.txt",
]  # nothing else beside a notebook counts

# A stub of ours raises NotImplementedError, which check() calls "not attempted".
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}

# Students' code runs in a sandbox and is judged from outside it: no output of a notebook is ever read as a score.
c.Autograde.pre_convert_hook = "edl_labs.course.grade.preprocessors.set_files_aside"
c.Autograde.sanitize_preprocessors = [
    "edl_labs.course.grade.preprocessors.Mend",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "edl_labs.course.grade.preprocessors.JudgeOutside",
    "nbgrader.preprocessors.IgnorePattern",
    "edl_labs.course.grade.preprocessors.SaveMarks",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# A student's own name, and the folder's, are text in formgrader's page, whatever is in them.
c.HTMLExporter.preprocessors = [
    "edl_labs.course.grade.student_names.EscapedNames",
    "edl_labs.course.marks.nbgrader_plugins.NotesForGraders",  # model answer and rubric, in formgrader alone
]

# Comments of feedback.toml are spelt out, and every page can be released, whichever way the work came in.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    "edl_labs.course.marks.nbgrader_plugins.ReadyForRelease",
]

# Due dates, extensions and what lateness costs are in course.toml; without that file nbgrader's own rules hold.
c.AssignLatePenalties.plugin_class = "edl_labs.course.marks.nbgrader_plugins.CourseLatePolicy"
