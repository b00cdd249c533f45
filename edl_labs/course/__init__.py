"""Everything that students never see: authoring, headless runs, grading, the sandbox, and marks."""
