"""Every command that a message, a page or a file of the project shows exists, with the options that it shows."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import typer

from edl_labs.cli import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for place in ("docs", "labs", "solutions", "scripts", "benchmarks", "edl_labs", ".github", ".devcontainer")
    for pattern in ("*.md", "*.html", "*.toml", "*.yml", "*.yaml", "*.sh", "*.txt", "*.ipynb", "*.json")
    for path in (ROOT / place).rglob(pattern)
    if "data" not in path.relative_to(ROOT).parts
)
PAGES += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "Dockerfile")]
MODULES = sorted(
    path for place in ("edl_labs", "solutions", "tools", "benchmarks") for path in (ROOT / place).rglob("*.py")
)
VERBS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# In running text a command ends with its clause; `{…}` and `@lab@` stand for values.
CLAUSE = re.compile(r"edl-labs(?:\.exe)? +((?:(?!edl-labs)[^.;:()`\"'\n]|\.(?=\S))+)")
VALUE = re.compile(r"\{[^{}]*\}|@\w+@|…")
FILE = re.compile(r"(?<![\w/.-])(?:tests|benchmarks|tools|scripts|docs)/[\w/-]+\.(?:py|md|sh)\b")
VERB = re.compile(r"[a-z]+")
SEPARATORS = {"&&", "||", ";", "|", "&", "(", ")", ">", "<"}
PROSE = {"and", "brings", "is", "in", "with", "by", "or", "has", "itself", "on"}  # what may follow the package's name
OPTION = re.compile(r"(?<!\S)--?[a-z][\w-]*")


@dataclass(frozen=True)
class Shown:
    """A command as it is shown: its words behind `edl-labs`, and whether it is one whole line of a shell."""

    place: str
    words: tuple[str, ...]
    whole: bool = False

    def __str__(self) -> str:
        return f"{self.place}: edl-labs {' '.join(self.words)}"


def texts_of(source: str) -> Iterator[str]:
    """The texts in a module, its docstrings too; what an f-string fills in is `{}`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def in_text(text: str, place: str) -> Iterator[Shown]:
    """The commands in running text: what follows `edl-labs`, if it is a word, and the options in its clause."""
    for found in CLAUSE.finditer(VALUE.sub("VALUE", text)):
        words = [word.strip(",*") for word in found[1].split()]
        if words and VERB.fullmatch(words[0]) and words[0] not in PROSE:
            yield Shown(place, (words[0], *(word for word in words[1:] if OPTION.fullmatch(word))))


def in_blocks(text: str, place: str) -> Iterator[Shown]:
    """The commands in blocks of shell, whole."""
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.shlex(line, posix=True, punctuation_chars=True)
            words.whitespace_split = True
            for is_between, part in groupby(words if "edl-labs" in line else (), key=lambda word: word in SEPARATORS):
                command = [] if is_between else [*part]
                if command[:1] == ["edl-labs"]:
                    yield Shown(place, tuple(command[1:]), whole=True)


def fault(shown: Shown) -> str:
    """What is wrong with a command; empty where it parses."""
    verb, *arguments = shown.words or ("",)
    if verb in ("--version", "--help", "-h"):
        return ""
    command = VERBS.get(verb)
    if command is None:
        return f"no command {verb}"
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"-h", "--help"}
    unknown = [word for word in arguments if OPTION.fullmatch(word) and word not in known]
    if unknown or not shown.whole:
        return f"{verb} has no option {unknown[0]}" if unknown else ""
    try:
        command.make_context(verb, list(arguments))
    except Exception as error:  # of whichever click Typer brings
        return str(error.format_message() if hasattr(error, "format_message") else error)
    return ""


@cache
def pages() -> list[tuple[str, str]]:
    """The text of each page and file that people read, with its place."""
    return [(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))) for path in PAGES]


@cache
def messages() -> list[tuple[str, str]]:
    """The texts in modules, with their places."""
    files = ((path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))) for path in MODULES)
    return [(text, place) for source, place in files for text in texts_of(source)]


def everything() -> list[Shown]:
    """Every command that is shown anywhere."""
    found = [shown for text, place in pages() for shown in in_blocks(text, place)]
    running = [(BLOCK.sub("", text), place) for text, place in pages()] + messages()
    return found + [shown for text, place in running for shown in in_text(text, place)]


def test_every_command_that_is_shown_exists_with_its_options() -> None:
    shown = everything()
    in_messages = [one for one in shown if one.place.startswith("edl_labs/")]

    assert [] == [f"{one}: {what}" for one in shown if (what := fault(one))]
    assert 20 < sum(one.whole for one in shown)
    assert 150 < len(in_messages)
    assert 25 < sum(len(one.words) > 1 for one in in_messages)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("next: edl-labs dance", "no command dance"),
        ("run edl-labs grade {lab} --quickly, then edl-labs report", "grade has no option --quickly"),
        ("`edl-labs wheel --judge` in a checkout, then edl-labs gradescope {lab} --weel FILE here", "no option --weel"),
        ("```sh\nedl-labs course\n```", "issing argument"),
        ("```sh\nmkdir a && edl-labs doctor \\\n    --sandbox now # x\n```", "now"),
        ("```sh\nedl-labs grade lab01 -j many\n```", "valid integer"),
    ],
)
def test_a_command_that_does_not_exist_is_found(text: str, said: str) -> None:
    found = [*in_blocks(text, "page"), *in_text(BLOCK.sub("", text), "page")]

    assert said in "; ".join(filter(None, map(fault, found)))


def is_module(name: str) -> bool:
    """Whether a module or package of that name is here."""
    path = ROOT / name.rstrip(".").replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


def test_commands_of_nbgrader_and_make_and_files_that_are_shown_exist() -> None:
    from nbgrader.apps import NbGraderApp

    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    app_class = NbGraderApp()
    known = {"nbgrader": set(app_class.subcommands), "make": targets}
    texts = pages() + messages()
    named = [(place, tool, word) for text, place in texts for tool, word in re.findall(r"`(make|nbgrader) (\w+)", text)]
    named += [
        (place, "nbgrader", word) for text, place in texts for word in re.findall(r"nbgrader ([a-z]+_[a-z]+)", text)
    ]
    files = [(place, path) for text, place in texts for path in FILE.findall(text)]
    modules = [
        (place, name) for text, place in texts for name in re.findall(r"python -m ((?:tools|tests)[.][a-z_.]+)", text)
    ]

    assert [] == [one for one in named if one[2] not in known[one[1]]]
    assert [] == [one for one in files if not (ROOT / one[1]).exists()]
    assert [] == [one for one in modules if not is_module(one[1])]
    assert 20 < len(named)
    assert 20 < len(files)
