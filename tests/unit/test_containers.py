"""The image for instructors and the container for students: what they copy exists, what they run is a verb of ours."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import typer.main

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the Dockerfile with its text, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split()[0], line.partition(" ")[2]) for line in text.splitlines() if line.strip()]


def verbs() -> set[str]:
    from edl_labs.cli import app

    return set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_the_image_starts_from_one_release_and_copies_what_is_there() -> None:
    made = instructions()
    sources = [word for name, text in made if name == "COPY" for word in text.split()[:-1]]

    assert ("FROM", "python:3.11-slim-bookworm") == made[0]
    assert [] == [source for source in sources if not (ROOT / source).exists()]


def test_the_image_installs_what_make_installs_and_keeps_no_package_lists() -> None:
    runs = [text for name, text in instructions() if name == "RUN"]
    packages = re.search(r"^SYSTEM_PACKAGES := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert packages is not None
    assert set(packages.group(1).split()) <= set(shlex.split(runs[0]))
    assert runs[0].endswith("rm -rf /var/lib/apt/lists/*")
    assert set(re.findall(r"\.\[([\w,]+)\]", runs[1])[0].split(",")) <= EXTRAS


def test_both_containers_run_verbs_that_exist() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    made = dict(instructions())
    commands = f"{container['postCreateCommand']} && {container['postAttachCommand']}"
    asked = {*re.findall(r"edl-labs (\w+)", commands), *json.loads(made["CMD"])}

    assert ["edl-labs"] == json.loads(made["ENTRYPOINT"])
    assert asked <= verbs()
    assert set(re.findall(r"\.\[([\w,]+)\]", commands)[0].split(",")) <= EXTRAS


def test_what_the_image_leaves_out_is_not_what_it_copies() -> None:
    ignored = {line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")}
    copied = {word for name, text in instructions() if name == "COPY" for word in text.split()[:-1]}

    assert set() == ignored & copied
