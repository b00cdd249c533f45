"""JupyterLab as `edl-labs start` opens it, and a notebook of it in a real browser."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHOTS = ROOT / "build" / "screenshots"
TOKEN = "a-token-of-this-test"
RUN_MS = 600_000  # all cells of the slowest lab that is opened here, on two busy cores
STEP_MS = 180_000  # anything else: the server starts and torch is imported in seconds, or in minutes beside neighbours
_NO_QUESTIONS = {
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": {"fetchNews": "false", "checkForUpdates": False},
    # Every output stands in the document, so that all of it can be read and judged.
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"},
}


@dataclass(frozen=True)
class Started:
    """A running server: where it is, and the folder that `edl-labs start` filled."""

    url: str
    folder: Path


@contextmanager
def started(folder: Path, home: Path) -> Iterator[Started]:
    """`edl-labs start` into an empty folder, on a free port, with settings of this test alone."""
    settings = home / "settings"
    for name, values in _NO_QUESTIONS.items():
        (settings / name).parent.mkdir(parents=True, exist_ok=True)
        (settings / name).write_text(json.dumps(values))
    config = {
        "ServerApp": {"port": 0, "ip": "127.0.0.1", "open_browser": False},
        "IdentityProvider": {"token": TOKEN},
        "LabApp": {"expose_app_in_browser": True, "user_settings_dir": str(settings)},
        "JupyterNotebookApp": {"expose_app_in_browser": True, "user_settings_dir": str(settings)},
    }
    (home / "config").mkdir()
    (home / "config" / "jupyter_server_config.json").write_text(json.dumps(config))
    own = {name: str(home / name.lower()) for name in ("JUPYTER_RUNTIME_DIR", "JUPYTERLAB_WORKSPACES_DIR", "HOME")}
    env = {**os.environ, **own, "JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTERLAB_SETTINGS_DIR": str(settings)}
    log = home / "server.log"
    with log.open("w") as out:
        command = [str(Path(sys.executable).with_name("edl-labs")), "start", str(folder)]
        process = subprocess.Popen(command, cwd=home, env=env, stdout=out, stderr=out, start_new_session=True)
        try:
            yield Started(_address(process, Path(own["JUPYTER_RUNTIME_DIR"]), log), folder)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=60)


def _address(process: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    deadline = time.monotonic() + STEP_MS / 1e3
    while time.monotonic() < deadline and process.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            try:
                return str(json.loads(path.read_text())["url"]).rstrip("/")
            except ValueError:  # half written
                pass
        time.sleep(0.1)
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text()}")


_LISTEN = """() => {
    const session = window.jupyterapp.shell.currentWidget.context.sessionContext
    window.edlBegun = {cells: 0, restarts: 0}
    if (window.edlListensTo === session) return
    window.edlListensTo = session
    session.iopubMessage.connect((_, message) => {
        if (message.header.msg_type === 'execute_input') window.edlBegun.cells += 1
    })
    session.statusChanged.connect((_, status) => {
        if (status === 'restarting') window.edlBegun.restarts += 1
    })
}"""
_IDLE = """what => {
    const context = window.jupyterapp?.shell.currentWidget?.context
    if (what && !window.edlBegun[what]) return false
    if (context?.sessionContext.session?.kernel?.status !== 'idle') return false
    return ![...document.querySelectorAll('.jp-InputPrompt')].some(e => e.textContent.includes('[*]'))
}"""


_LINES = "input[placeholder$=', then Enter']"  # as `edl_labs.ui.predictions` asks
_CHOICES = "button.jupyter-button[title*=' … ']"
_FEWER = "([selector, count]) => document.querySelectorAll(selector).length < count"
# What JupyterLab and ipywidgets put in the place of a widget.
_BROKEN = re.compile("javascript error|Error displaying widget|Error creating widget|Loading widget")


class OpenNotebook:
    """A notebook in the browser, and what a student does to it. Each wait is for a condition, none for a time."""

    def __init__(self, page: Any, server: Started, path: str, *, seven: bool = False) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        # A workspace of its own: none of the tabs that an earlier page left open.
        place = "notebooks" if seven else f"lab/workspaces/{Path(path).parent}/tree"
        page.goto(f"{server.url}/{place}/{path}?token={TOKEN}")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=STEP_MS)
        self._idle_after(None)
        self.theme("JupyterLab Light")  # the server keeps what an earlier test chose
        # Notebook 7.6 opens with two errors of its own ("reading 'schema'", "registered"); ours come when cells run.
        self.errors.clear()

    def _idle_after(self, what: str | None) -> None:
        """Waits until the kernel has nothing left to do, after it has begun with `what` if that is given."""
        self.page.wait_for_function(_IDLE, arg=what, timeout=RUN_MS)

    def listen(self) -> None:
        """From now on count what the kernel begins: `run_all`, `run` and `restart` wait for it."""
        self.page.evaluate(_LISTEN)

    def menu(self, menu: str, entry: str) -> None:
        """Chooses an entry of a menu, as people do."""
        self.page.locator(".lm-MenuBar-itemLabel", has_text=re.compile(f"^{menu}$")).click()
        self.page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{entry}$")).first.click()

    def run_all(self) -> None:
        """Run All Cells, to the end."""
        self.listen()
        self.menu("Run", "Run All Cells")
        self._idle_after("cells")

    def restart(self) -> None:
        """A fresh kernel, by the menu and its question."""
        self.listen()
        self.menu("Kernel", "Restart Kernel…")
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        self._idle_after("restarts")

    def code(self, text: str) -> Any:
        """The one code cell whose source begins with `text`."""
        number = self.page.evaluate(
            """text => window.jupyterapp.shell.currentWidget.content.widgets.findIndex(
                cell => cell.model.type === 'code' && cell.model.sharedModel.source.startsWith(text))""",
            text,
        )
        assert number >= 0, f"no code cell begins with {text!r}"
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def having(self, cell_id: str) -> Any:
        """The cell with that id."""
        number = self.page.evaluate(
            """id => window.jupyterapp.shell.currentWidget.content.widgets.findIndex(cell => cell.model.id === id)""",
            cell_id,
        )
        assert number >= 0, f"no cell has the id {cell_id!r}"
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def below(self, cell: Any) -> Any:
        """A new cell below one, by the key that students use; what was below it moves on."""
        cell.locator(".jp-InputPrompt").first.click()
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("b")
        number = self.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCellIndex")
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def write(self, cell: Any, source: str) -> None:
        """Types a source into a cell in place of what is there."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(source)

    def run(self, cell: Any) -> Any:
        """Runs one cell with the keys that students use; gives where its outputs stand. A folded one is opened."""
        if (folded := cell.locator(".jp-InputPlaceholder")).count():
            folded.click()
        self.listen()
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        self._idle_after("cells")
        return cell.locator(".jp-Cell-outputWrapper")

    def run_above(self, cell: Any) -> None:
        """Run All Above Selected Cell, to the end."""
        cell.locator(".jp-InputPrompt").first.click()
        self.listen()
        self.menu("Run", "Run All Above Selected Cell")
        self._idle_after("cells")

    def output(self, cell: Any) -> str:
        """What a cell has put out, as it is read."""
        return " ".join(cell.locator(".jp-Cell-outputWrapper").inner_text().split())

    def predict_all(self) -> int:
        """Fills each box for a prediction with its own example, or its first choice; how many there were."""
        lines, choices = self.page.locator(_LINES), self.page.locator(_CHOICES)
        filled = 0
        while count := lines.count():
            line = lines.first
            shown = re.match(r"such as (\S+)", line.get_attribute("placeholder"))  # "in a few words" else
            line.fill(shown[1] if shown else "a guess")
            line.press("Enter")
            self.page.wait_for_function(_FEWER, arg=[_LINES, count])
            filled += 1
        while count := choices.count():
            choices.first.click()
            self.page.wait_for_function(_FEWER, arg=[_CHOICES, count])
            filled += 1
        return filled

    def tracebacks(self) -> list[str]:
        """The last lines of the exceptions that cells ended with, and of pictures that the page could not show."""
        found: list[str] = self.page.evaluate(
            """() => window.jupyterapp.shell.currentWidget.content.model.toJSON().cells
                .flatMap(cell => (cell.outputs ?? []).filter(output => output.output_type === 'error'))
                .map(output => `${output.ename}: ${output.evalue}`)"""
        )
        broken = self.page.locator(".jp-OutputArea-output", has_text=_BROKEN)
        return found + [one[:200] for one in broken.all_inner_texts()]

    def pictures_without_text(self) -> list[str]:
        """First lines of the cells with a picture that carries no alternative text, as the notebook would be saved."""
        found: list[str] = self.page.evaluate(
            """() => window.jupyterapp.shell.currentWidget.content.model.toJSON().cells
                .filter(cell => (cell.outputs ?? []).some(
                    output => output.data?.['image/png'] && !output.metadata?.['image/png']?.alt))
                .map(cell => String(cell.source).split('\\n')[0])"""
        )
        return found

    def long_texts(self, most: int = 5000) -> list[str]:
        """First lines of the cells that put out more characters of text than anybody reads."""
        found: list[str] = self.page.evaluate(
            """most => window.jupyterapp.shell.currentWidget.content.model.toJSON().cells
                .filter(cell => (cell.outputs ?? []).some(
                    output => String(output.data?.['text/plain'] ?? output.text ?? '').length > most))
                .map(cell => String(cell.source).split('\\n')[0])""",
            most,
        )
        return found

    def theme(self, name: str) -> None:
        """JupyterLab's theme: 'JupyterLab Light' or 'JupyterLab Dark'."""
        self.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", name)
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
        self.painted()

    def painted(self) -> None:
        """Waits until the browser has drawn what stands in the document now."""
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
        )

    def shot_of_all(self, name: str, most: int = 12) -> None:
        """Pictures of the whole notebook, a window of cells each: `name-01.png` and so on, at most so many."""
        scrolled = self.page.locator(".jp-WindowedPanel-outer").first
        high = self.page.viewport_size["height"] - 150  # the toolbars
        total = scrolled.evaluate("panel => panel.scrollHeight")
        for number in range(min(most, -(-total // high))):
            top = number * max(high, total / most)
            scrolled.evaluate("(panel, top) => panel.scrollTo(0, top)", top)
            self.painted()
            self.shot(f"{name}-{number + 1:02}")

    def shot(self, name: str, what: Any = None) -> Path:
        """A picture of the page, or of a part of it, in `build/screenshots`."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"{name}.png"
        (self.page if what is None else what).screenshot(path=path)
        return path
