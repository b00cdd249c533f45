"""Running labs: papermill runs, reports, a student's headless check, and what this machine can do."""
