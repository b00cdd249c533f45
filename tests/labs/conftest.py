from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def _own_exercises():
    """The package's exercises, whatever course a fixture that still lives elsewhere has chosen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EDL_LABS_EXERCISES", raising=False)
        yield
