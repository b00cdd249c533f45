"""Notebooks on rented hosts: the lines that install a release on Colab and Kaggle, and the badges that lead there."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from edl_labs import __version__
from edl_labs.course.course_file import read_course_file, wrong

_HOSTED = """\
# On Colab and Kaggle only: this release of the course's library. It asks for no
# version of torch, so the host's stays.
import importlib.util
import os
import subprocess
import sys

is_rented = {{"COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"}} & set(os.environ)
if is_rented and importlib.util.find_spec("{module}") is None:
    release = os.environ.get("EDL_LABS_INSTALL", "{install}")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", release]
    subprocess.run(pip, check=True)
    importlib.invalidate_caches()

"""
_MODULE, _INSTALL = (re.compile(rf'({before})"[^"]*"') for before in (r"find_spec\(", r'"EDL_LABS_INSTALL", '))
_BADGES = (
    ("Open in Colab", "https://colab.research.google.com/assets/colab-badge.svg", "colab.research.google.com/github"),
    ("Open in Kaggle", "https://kaggle.com/static/images/open-in-kaggle.svg", "kaggle.com/kernels/welcome?src="),
)


def hosted(source: str, *, module: str, install: str) -> str:
    """The set-up cell with the lines that a rented host needs before it: it installs `install` for its `module`."""
    return _HOSTED.format(module=module, install=install.replace('"', "")) + source


def unhosted(source: str) -> str:
    """A set-up cell as a release on a package index has it, whatever wheel the course hosts."""
    source = _MODULE.sub(r'\1"edl_labs"', source, count=1)
    return _INSTALL.sub(rf'\1"edl-labs=={__version__}"', source, count=1)


def repository(root: Path) -> str:
    """OWNER/NAME of the course's public repository, from `[course] repository` of course.toml; empty when not said."""
    found = read_course_file(root).course.repository
    parts = found.removeprefix("https://github.com/").removesuffix(".git").strip("/").split("/")
    if found and len(parts) != 2:
        why = "badges need the owner and the name of a repository"
        raise wrong(f"repository is {found!r}", why, 'write repository = "owner/name"')
    return "/".join(parts) if found else ""


def badges(name: str, owner_and_name: str) -> str:
    """Markdown that opens the lab `name` on rented hosts; empty without a repository."""
    if not owner_and_name:
        return ""
    path = quote(f"{owner_and_name}/blob/main/labs/{name}/{name}.ipynb")
    (colab, colab_picture, colab_at), (kaggle, kaggle_picture, kaggle_at) = _BADGES
    links = (
        f"[![{colab}]({colab_picture})](https://{colab_at}/{path})",
        f"[![{kaggle}]({kaggle_picture})](https://{kaggle_at}https://github.com/{path})",
    )
    return " ".join(links)
