"""axe-core: what a screen reader, a keyboard or weak eyes would stumble over in what we draw."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.browser.jupyter import ROOT

VERSION = "4.14.1"
_FOLDER = ROOT / "build" / "axe"
# What comes from us: prose, outputs and widgets. Menus, prompts and editors are JupyterLab's.
OURS = (".jp-RenderedMarkdown", ".jp-RenderedHTMLCommon", ".jp-RenderedImage", ".widget-subarea", ".jupyter-widgets")
# JupyterLab 4.6 makes these of an output's PNG and drops the alternative text that comes with it (`renderImage` sets no
# `alt`). Whether we gave one is asked of the notebook: `OpenNotebook.pictures_without_text`.
_DRAWN_BY_JUPYTERLAB = ".jp-RenderedImage > img"
# Rules of whole pages say nothing of a part of one.
_OF_PAGES = ("region", "page-has-heading-one", "landmark-one-main", "bypass", "scrollable-region-focusable")


def axe_script() -> Path:
    """axe-core's script: npm installs this one version into `build/axe`, once."""
    script = _FOLDER / VERSION / "node_modules" / "axe-core" / "axe.min.js"
    if script.is_file():
        return script
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm here, which installs axe-core into build/: apt-get install npm")
    command = [npm, "install", "--no-save", "--no-audit", "--no-fund", f"--prefix={script.parents[2]}"]
    done = subprocess.run([*command, f"axe-core@{VERSION}"], capture_output=True, text=True, timeout=300)
    if not script.is_file():
        pytest.skip(f"axe-core cannot be installed here: {done.stderr[-300:]}")
    return script


def violations(page: Any, ours: tuple[str, ...] = OURS) -> list[str]:
    """Serious and critical violations in what we draw, a line each: rule, what is wrong, and the first elements."""
    page.add_script_tag(path=axe_script())
    found = page.evaluate(
        """async ([ours, theirs, off]) => {
            const include = ours.filter(selector => document.querySelector(selector)).map(selector => [selector])
            const rules = Object.fromEntries(off.map(name => [name, {enabled: false}]))
            const result = await axe.run({include, exclude: [[theirs]]}, {rules, resultTypes: ['violations']})
            return [include.length, result.violations]
        }""",
        [list(ours), _DRAWN_BY_JUPYTERLAB, list(_OF_PAGES)],
    )
    assert found[0], "there was nothing of ours in the page"
    return [_line(one) for one in found[1] if one["impact"] in ("serious", "critical")]


def _line(violation: dict[str, Any]) -> str:
    nodes = violation["nodes"]
    shown = "\n".join(f"    {node['html'][:200]}\n      {node['failureSummary'][:300]}" for node in nodes[:4])
    return f"{violation['id']} ({violation['impact']}): {violation['help']}, {len(nodes)} times\n{shown}"
