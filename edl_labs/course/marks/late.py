"""What lateness costs, through the plugin that nbgrader asks."""

from __future__ import annotations

from pathlib import Path

from nbgrader.plugins import LateSubmissionPlugin

from edl_labs.course.marks.policy import read_policy


class CourseLatePolicy(LateSubmissionPlugin):
    """nbgrader's late-submission plugin with the rules of course.toml; without that file, nbgrader's own."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """The points lost, None for none."""
        root = Path(str(self.config.CourseDirectory.get("root", "") or Path.cwd()))
        if not (root / "course.toml").is_file():
            found = super().late_submission_penalty(student_id, score, total_seconds_late)
            return None if found is None else float(found)
        return read_policy(root).late.penalty(score, late_s=total_seconds_late) or None
