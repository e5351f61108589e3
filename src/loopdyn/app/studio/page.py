"""User interface of the studio: the text with its problems, the mechanism, its motion.

All names and messages of a model are shown as text, never as HTML.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response
from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from loopdyn.app.studio.folder import MAX_TEXT, MODELS, RUNS, Folder
from loopdyn.app.studio.modes import ModesPanel
from loopdyn.app.studio.work import LIBRARY_URL, Checked, Input, Moved, Ran
from loopdyn.app.studio.worker import Worker
from loopdyn.errors import LoopdynError, Problem
from loopdyn.formulations.registry import CLASSES, DEFAULT
from loopdyn.output.viewer.page import drawing_library
from loopdyn.quantities.wording import short

PAUSE = 0.4  # seconds without a key after which the text is checked
SLOW, COMPILING = 8.0, "(a new version compiles kernels first, once, which takes minutes)"  # shown after so many s
LONGEST = 1e5  # seconds of a run
SHOWN = 50  # problems listed
SAME = 1e-5  # fraction of the range of an input below which two values are equal: six digits are shown
NEW = "mechanism.yaml"
FIELD = "dense outlined data-key="  # properties of a field; its key follows
TABS = {"mechanism": "Mechanism", "motion": "Motion", "modes": "Modes", "facts": "Topology and mobility"}
STARTS = {"file": "start of the file", "pose": "pose shown, at rest"}


def shown(value: float) -> float:
    """Value rounded to six digits, with rounding errors as zero.

    Examples
    --------
    >>> shown(123.4567891), shown(4.6e-17)
    (123.457, 0.0)
    """
    return float(f"{value:.6g}") if abs(value) > 1e-12 else 0.0


@contextmanager
def _patience(label: ui.label) -> Iterator[None]:
    """Explain a long wait, unless another message has been shown meanwhile."""
    before = label.text

    def say() -> None:
        if label.text == before:
            label.text = f"{before} {COMPILING}"

    timer = asyncio.get_running_loop().call_later(SLOW, say)
    try:
        yield
    finally:
        timer.cancel()


def add_routes(app: FastAPI, sessions: dict[str, Session]) -> None:
    """Serve the pages of the mechanism and its motion, which are shown in frames, and the drawing library."""
    library = drawing_library()[0]

    @app.get(LIBRARY_URL)
    def send_library() -> Response:
        return Response(library, media_type="text/javascript", headers={"cache-control": "max-age=86400"})

    @app.get("/view/{token}/{kind}/{number}")
    def send_view(token: str, kind: str, number: str) -> Response:
        session = sessions.get(token)
        view = None if session is None else session.views.get(kind)
        if not view:
            return HTMLResponse("There is nothing to see yet.", status_code=404)
        return HTMLResponse(view, headers={"cache-control": "no-store"})


class Session:
    """One open page: a text, the mechanism it describes, a run of it."""

    def __init__(self, folder: Folder, file: str | None):
        self.folder, self.first = folder, file
        self.token = secrets.token_urlsafe(16)
        self.views = {"pose": "", "motion": "", "mode": ""}
        self.checker, self.runner = Worker(folder.root), Worker(folder.root)
        self.name = file or NEW
        self.saved = ""  # text in the file, if known
        self.exists = False  # whether the file was opened or saved here
        self.edits = 0
        self.served = 0  # views, to tell one from the next
        self.running = self.stopping = self.moving = False
        self.inputs: dict[str, Input] = {}
        self.ran_text: str | None = None  # text of the run that is shown
        self.pose: list[float] | None = None  # coordinates, after dragging
        self.wanted = 0.0  # value of the input
        self.checked = Checked()

    def end(self) -> None:
        """End all computations of this page."""
        self.checker.close()
        self.runner.close()

    # ------------------------------------------------------------------------------------------------ layout

    async def build(self, enter: Callable[[Session], str]) -> None:
        """Build the page, then fill it. `enter` returns why no more pages can be opened, or "" if they can."""
        self.client = ui.context.client
        here = files(__package__)
        ui.add_css((here / "style.css").read_text("utf-8"))
        keys = (here / "keys.js").read_text("utf-8").replace("{{limit}}", str(MAX_TEXT))
        ui.add_body_html(f"<script>{keys}</script>")
        ui.query("html").props("lang=en")
        with ui.element("header").classes("bar"):
            self._header()
        with ui.element("main"):
            with ui.element("section").classes("text").props('aria-label="Model file"'):
                self._editor()
            with ui.element("section").classes("views").props('aria-label="Mechanism"'):
                self._views()
        self.status = ui.label().classes("status").props("role=status aria-live=polite data-key=status")
        ui.on(
            "too_long",
            lambda: self.say(f"not inserted: more than {MAX_TEXT:,} characters. Use the command line.", True),
        )
        await self.client.connected()
        if self.client.is_deleted:  # requested by a program that is not a browser
            return
        refusal = enter(self)
        if refusal:
            self.client.content.clear()
            with self.client.content:
                ui.label(refusal).classes("status wrong").props("role=status data-key=status")
            return
        await self._list_files()
        if self.first is not None:
            await self._open(self.first)
        else:
            self._set_text(NEW, (here / "new.yaml").read_text("utf-8"), exists=False)
            self.say(f"a new mechanism: save it as {NEW}, or open a file of {self.folder.root}")
            await self.check()

    def _header(self) -> None:
        ui.label("loopdyn studio").classes("title").props("role=heading aria-level=1")
        self.file = ui.input("File", value=self.name).props(FIELD + "file spellcheck=false")
        self.file.on("keydown.enter", self.open)
        ui.button("Open", on_click=self.open).props("dense no-caps flat data-key=open")
        ui.button("Save", on_click=self.save).props('dense no-caps data-key=save title="Save (Ctrl+S)"')
        self.files = ui.select([], label="In this folder", on_change=self._chosen, with_input=True)
        self.files.props(FIELD + "files options-dense")
        ui.space()
        ui.label("Ctrl+S saves, Ctrl+Enter runs, Ctrl+. stops; Esc then Tab leaves the text").classes("hint")

    def _editor(self) -> None:
        self.editor = ui.codemirror(
            language="YAML", theme="githubLight", indent="  ", line_wrapping=True, on_change=self._edited
        )
        self.editor.classes("editor").props("data-key=editor")
        self.summary = ui.label("checking ...").classes("summary").props("role=status data-key=summary")
        self.problems = ui.element("div").classes("problems").props("data-key=problems")

    def _views(self) -> None:
        with ui.tabs(on_change=self._show_tab).props("dense no-caps align=left") as self.tabs:
            for name, label in TABS.items():
                ui.tab(name, label).props(f"data-key=tab-{name}")
        self.panels = {name: ui.element("div").classes("panel") for name in TABS}
        with self.panels["mechanism"]:
            self._mechanism_panel()
        with self.panels["motion"]:
            self._motion_panel()
        with self.panels["modes"]:
            self.modes = ModesPanel(self, self._described)
        with self.panels["facts"]:
            self.facts = ui.label().classes("facts").props("data-key=facts tabindex=0")
        self.tabs.set_value("mechanism")
        self._set_running(False)

    def _mechanism_panel(self) -> None:
        self.pose_frame = ui.element("iframe").props('title="The mechanism in 3-D" data-key=pose')
        with ui.element("div").classes("bar"):
            self.input = ui.select([], label="Input", on_change=self._input_chosen).props(FIELD + "input")
            self.slider = ui.slider(min=0, max=1, step=0.001, value=0, on_change=self._dragged)
            self.slider.props('aria-label="Value of the input" data-key=slider')
            self.value = ui.number("Value", on_change=self._dragged).props(FIELD + "value")
            ui.button("Back to start", on_click=self.check).props("dense no-caps flat data-key=back")
        self.moved = ui.label().classes("summary").props("role=status data-key=moved")

    def _motion_panel(self) -> None:
        with ui.element("div").classes("bar"):
            self.formulation = ui.select(sorted(CLASSES), value=DEFAULT, label="Formulation")
            self.formulation.props(FIELD + "formulation")
            self.seconds = ui.number("Time", value=5, min=0, suffix="s").props(FIELD + "seconds")
            self.origin = ui.select(STARTS, value="file", label="From").props(FIELD + "origin")
            self.run_button = ui.button("Run", on_click=self.run)
            self.run_button.props('dense no-caps data-key=run title="Run (Ctrl+Enter)"')
            self.stop_button = ui.button("Stop", on_click=self.stop)
            self.stop_button.props('dense no-caps data-key=stop title="Stop (Ctrl+.)"')
            self.run_name = ui.input("Run file").props(FIELD + "run-file spellcheck=false")
            ui.button("Save run", on_click=self.save_run).props("dense no-caps flat data-key=save-run")
        self.progress = ui.linear_progress(0, show_value=False)
        self.progress.props('aria-label="Progress of the run" instant-feedback')
        self.ran = ui.label("not run yet").classes("summary").props("role=status data-key=ran")
        self.stale = ui.label("the text has changed since this run").classes("summary wrong").props("data-key=stale")
        self.stale.set_visibility(False)
        self.motion_frame = ui.element("iframe").props('title="The motion, reactions and energies" data-key=motion')
        self.motion_frame.set_visibility(False)

    def _show_tab(self) -> None:
        for name, panel in self.panels.items():
            panel.set_visibility(name == self.tabs.value)

    def say(self, text: str, wrong: bool = False) -> None:
        """Show a line at the foot of the page."""
        self.status.text = text
        self.status.classes(add="wrong" if wrong else "", remove="" if wrong else "wrong")

    async def _sure(self, question: str, yes: str) -> bool:
        with self.client, ui.dialog() as dialog, ui.card():
            ui.label(question)
            with ui.row():
                ui.button(yes, on_click=lambda: dialog.submit(True)).props("no-caps data-key=yes")
                ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("no-caps flat autofocus data-key=no")
        answer = await dialog
        dialog.delete()
        return bool(answer)

    # ------------------------------------------------------------------------------------------------- files

    async def _list_files(self) -> None:
        self.files.set_options(await asyncio.to_thread(self.folder.models), value=None)

    async def _chosen(self, event: ValueChangeEventArguments[Any]) -> None:
        if event.value:
            self.file.value = event.value
            self.files.value = None
            await self.open()

    async def open(self) -> None:
        """Open the file that is named at the top."""
        if self._is_changed() and not await self._sure(f"{self.name} has changes that are not saved.", "Discard them"):
            self.file.value = self.name
            return
        await self._open(str(self.file.value or ""))

    async def _open(self, name: str) -> None:
        try:
            text = await asyncio.to_thread(self.folder.read, name)
        except LoopdynError as error:
            self.say(f"not opened: {error}", wrong=True)
            return
        if self.client.is_deleted:
            return
        self._set_text(name, text, exists=True)
        self.say(f"opened {name}")
        await self.check()

    def _set_text(self, name: str, text: str, exists: bool) -> None:
        self.name, self.saved, self.exists = name, text, exists
        self.editor.value = text
        self.file.value = name
        self.run_name.value = f"{PurePosixPath(name).with_suffix(RUNS[0])}"
        self._forget_run()
        self._show_name()

    def _is_changed(self) -> bool:
        return bool(self.editor.value != self.saved)

    def _show_name(self) -> None:
        changed = self._is_changed()
        with self.client:
            ui.page_title(f"{'● ' if changed else ''}{short(self.name)} - loopdyn studio")
            self.client.run_javascript(f"window.unsaved = {json.dumps(changed)}")

    async def save(self) -> None:
        """Save the text under the name at the top."""
        name, text = str(self.file.value or ""), str(self.editor.value)
        try:
            file = self.folder.writable(name, MODELS)
            now = await asyncio.to_thread(self.folder.read, name) if file.exists() else None
        except LoopdynError as error:
            self.say(f"not saved: {error}", wrong=True)
            return
        known = self.exists and name == self.name
        if now is not None and not (known and now == self.saved) and now != text:
            what = "was changed by another program" if known else "exists already"
            if not await self._sure(f"{name} {what}.", "Replace it"):
                self.say("not saved")
                return
        try:
            await asyncio.to_thread(self.folder.write, name, text)
        except LoopdynError as error:
            self.say(f"not saved: {error}", wrong=True)
            return
        self.name, self.saved, self.exists = name, text, True
        self._show_name()
        self.say(f"saved {name}")
        await self._list_files()

    # ------------------------------------------------------------------------------------------------- check

    async def _edited(self) -> None:
        self.edits += 1
        mine = self.edits
        await asyncio.sleep(PAUSE)
        if mine == self.edits:
            self._show_name()
            self._mark_run()
            self.modes.compare(str(self.editor.value))
            await self.check()

    async def check(self) -> None:
        """Check the text and show what it describes."""
        text, mine = str(self.editor.value), self.edits
        if len(text) > MAX_TEXT:
            self._show_problems((Problem("model file", f"the text has more than {MAX_TEXT:,} characters"),))
            return
        self.summary.text = "checking ..."
        try:
            with _patience(self.summary):
                found: Checked = await self.checker.call("check", text=text, name=self._valid_name())
        except LoopdynError as error:
            found = Checked((Problem("model file", str(error)),))
        if mine != self.edits or self.client.is_deleted:  # a changed text has a check of its own, a closed page none
            return
        self.checked = found
        self._show_problems(found.problems)
        self.facts.text = "\n\n".join(part for part in (found.topology, found.mobility) if part) or "no mechanism yet"
        if not found.problems:
            self._show_mechanism(found)

    def _valid_name(self) -> str:
        """Name whose folder is searched for included files."""
        return self.name if self.name.lower().endswith(MODELS) else NEW

    def _show_problems(self, problems: tuple[Problem, ...]) -> None:
        own = PurePosixPath(self._valid_name()).name
        lines: dict[int, list[str]] = {}
        for p in problems:
            if p.line is not None and p.file == own:
                lines.setdefault(p.line, []).append(f"{p.message}. {p.hint}" if p.hint else p.message)
        text = str(self.editor.value).split("\n")
        marks: list[dict[str, Any]] = []
        for line, messages in sorted(lines.items()):
            if line <= len(text):
                end = len("\n".join(text[:line]))
                marks.append({"kind": "line", "line": line, "class": "wrong-line"})
                marks.append({"kind": "widget", "position": end, "text": "  ◂ " + messages[0], "class": "wrong-text"})
        self.editor.decorations = marks
        self.problems.clear()
        with self.problems:
            for p in problems[:SHOWN]:
                self._problem(p, p.line if p.file == own else None)
            if len(problems) > SHOWN:
                ui.label(f"... and {len(problems) - SHOWN} more")
        if problems:
            count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
            self.summary.text = f"{count}; the mechanism shown is the last valid one"
        self.summary.classes(add="wrong" if problems else "", remove="" if problems else "wrong")

    def _problem(self, p: Problem, line: int | None) -> None:
        if line is None:
            ui.label(str(p)).classes("problem")
            return
        words = f"line {line}: {p.element}: {p.message}" + (f". {p.hint}" if p.hint else "")
        show = ui.button(words, color="negative", on_click=lambda: self.editor.reveal_line(line))
        show.classes("problem").props('flat dense no-caps align=left title="Show the line"')

    def _show_mechanism(self, found: Checked) -> None:
        dof = "1 degree of freedom" if found.dof == 1 else f"{found.dof} degrees of freedom"
        redundant = "1 redundant constraint" if found.redundant == 1 else f"{found.redundant} redundant constraints"
        self.summary.text = f"{found.name}: {dof}, {redundant}"
        if found.view != self.views["pose"] or self.pose is not None:
            self.serve("pose", found.view, self.pose_frame)
        self.pose = None
        self.inputs = {i.label: i for i in found.inputs}
        chosen = self.input.value if self.input.value in self.inputs else next(iter(self.inputs), None)
        self.input.set_options(list(self.inputs), value=chosen)
        self._input_chosen()
        self.moved.text = "drag the input: the loops are closed at every value" if chosen else "no coordinate to drag"

    def _described(self) -> dict[str, str] | None:
        """Text and name of the model; None if it has problems."""
        return None if self.checked.problems else {"text": str(self.editor.value), "name": self._valid_name()}

    def serve(self, kind: str, view: str, frame: ui.element) -> None:
        """Show a page in one of the frames."""
        self.views[kind] = view
        self.served += 1
        frame.props(f"src=/view/{self.token}/{kind}/{self.served}")

    # -------------------------------------------------------------------------------------------------- drag

    def _input_chosen(self) -> None:
        chosen = self.inputs.get(str(self.input.value))
        self.slider.set_enabled(chosen is not None)
        self.value.set_enabled(chosen is not None)
        if chosen is None:
            return
        step = 10.0 ** math.floor(math.log10((chosen.high - chosen.low) / 500 or 1.0))
        self.wanted = chosen.value
        self.slider.props.update(min=chosen.low, max=chosen.high, step=step)
        self.slider.value = chosen.value
        self.value.suffix = chosen.unit
        self.value.props["step"] = step
        self.value.value = shown(chosen.value)

    async def _dragged(self, event: ValueChangeEventArguments[Any]) -> None:
        chosen = self.inputs.get(str(self.input.value))
        if event.value is None or chosen is None:
            return
        value = float(event.value)
        if not math.isfinite(value) or abs(value - self.wanted) < SAME * (chosen.high - chosen.low):
            return  # also the echo of the two fields that show it
        self.wanted = value
        for element in (self.slider, self.value):
            if element is not event.sender:
                element.value = shown(value)
        if self.moving:
            return  # the last value is used when the mechanism is ready
        self.moving = True
        try:
            done: float | None = None
            while self.wanted != done:
                done = self.wanted
                await self._move(done)
        finally:
            self.moving = False

    async def _move(self, value: float) -> None:
        label = str(self.input.value)
        try:
            found: Moved = await self.checker.call("move", label=label, value=value)
        except LoopdynError as error:
            found = Moved(str(error))
        unit = self.inputs[label].unit
        self.moved.text = f"{label} = {value:.6g} {unit}: {found.text}"
        self.moved.classes(add="" if found.placement else "wrong", remove="wrong" if found.placement else "")
        if found.placement is not None:
            self.pose = found.q
            self.inputs[label] = replace(self.inputs[label], value=value)
            view = str(self.pose_frame.props["src"])
            self.client.run_javascript(f"placeMechanism({json.dumps(view)}, {json.dumps(found.placement)})")

    # --------------------------------------------------------------------------------------------------- run

    def _set_running(self, running: bool) -> None:
        self.running, self.stopping = running, False
        self.run_button.set_enabled(not running)
        self.stop_button.set_enabled(running)
        self.stop_button.text = "Stop"
        self.progress.set_visibility(running)
        self.progress.value = 0.0

    async def run(self) -> None:
        """Run the mechanism as chosen."""
        if self.running:
            return
        self.tabs.set_value("motion")
        seconds = self.seconds.value
        if self.checked.problems:
            self._tell_run("the model has problems. Correct them first.", wrong=True)
            return
        if seconds is None or not (0.0 < float(seconds) <= LONGEST):
            self._tell_run(f"the time must be above 0 and at most {LONGEST:g} s.", wrong=True)
            return
        name, text = self.name, str(self.editor.value)
        pose = self.pose if self.origin.value == "pose" else None
        self._set_running(True)
        self._tell_run("running ...")
        try:
            with _patience(self.ran):
                found: Ran = await self.runner.call(
                    "run",
                    self._show_progress,
                    text=text,
                    name=self._valid_name(),
                    formulation=str(self.formulation.value),
                    seconds=float(seconds),
                    pose=pose,
                )
        except LoopdynError as error:
            self._tell_run(f"not run: {error}", wrong=True)
            return
        finally:
            self._set_running(False)
        if name != self.name:
            self._tell_run(f"the run of {short(name)} has ended; it is not shown with another file")
            return
        self.ran_text = text
        self._mark_run()
        self._tell_run(found.text, wrong=found.status == "failed")
        if found.view:
            self.motion_frame.set_visibility(True)
            self.serve("motion", found.view, self.motion_frame)

    def _forget_run(self) -> None:
        """Remove the run of the previous file."""
        self.ran_text = None
        self.motion_frame.props("src=about:blank").set_visibility(False)
        self.modes.forget()
        if not self.running:
            self._tell_run("not run yet")

    def _mark_run(self) -> None:
        """Show whether the run is that of the current text."""
        self.stale.set_visibility(self.ran_text is not None and self.ran_text != self.editor.value)

    def _tell_run(self, text: str, wrong: bool = False) -> None:
        self.ran.text = text
        self.ran.classes(add="wrong" if wrong else "", remove="" if wrong else "wrong")

    def _show_progress(self, share: float) -> None:
        self.progress.value = min(1.0, share)
        if not self.stopping:
            self.ran.text = f"running: {share:.0%}" if share < 1 else "computing reactions and plots ..."

    def stop(self) -> None:
        """End a run and keep its results; called again, end it at once."""
        if self.stopping:
            self.runner.end()
            return
        self.stopping = True
        self.runner.stop()
        self.stop_button.text = "End at once"
        self.ran.text = "stopping: results so far are kept"

    async def save_run(self) -> None:
        """Save the run under the name next to the button."""
        name = str(self.run_name.value or "")
        if self.ran_text is None:
            self.say("there is no run to save. Run the mechanism first.", wrong=True)
            return
        try:
            file = self.folder.writable(name, RUNS)
            if file.exists() and not await self._sure(f"{name} exists already.", "Replace it"):
                self.say("the run is not saved")
                return
            await self.runner.call("save_run", path=str(file))
        except LoopdynError as error:
            self.say(f"the run is not saved: {error}", wrong=True)
            return
        self.say(f"saved the run as {name}")
