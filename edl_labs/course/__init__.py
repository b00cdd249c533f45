"""Everything that students never see: authoring, runs without a browser, grading, the sandbox, and marks."""
