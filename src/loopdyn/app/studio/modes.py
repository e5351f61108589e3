"""Panel of the studio with the modes of small motions: a table, and each mode as a moving picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nicegui import ui

from loopdyn.app.studio.work import FoundModes
from loopdyn.errors import LoopdynError

if TYPE_CHECKING:
    from loopdyn.app.studio.page import Session

ABOUT = {"rest": "equilibrium, from the start", "start": "start of the file, with its speeds"}
FIELD = "dense outlined data-key="


class ModesPanel:
    """Modes of the mechanism that the text describes.

    Parameters
    ----------
    session : Session
    describes : callable
        Text and name of the model; None if it has problems.
    """

    def __init__(self, session: Session, describes: Callable[[], dict[str, str] | None]):
        self.session, self.describes = session, describes
        with ui.element("div").classes("bar"):
            self.about = ui.select(ABOUT, value="rest", label="About").props(FIELD + "about")
            self.button = ui.button("Find modes", on_click=self.find).props("dense no-caps data-key=find-modes")
            self.choice = ui.select({}, label="Mode", on_change=self.show).props(FIELD + "mode")
        self.table = ui.label("no modes yet").classes("facts short").props("role=status data-key=modes tabindex=0")
        self.frame = ui.element("iframe").props('title="A mode, moving" data-key=mode-view')
        self.forget()

    def forget(self) -> None:
        """Remove the modes of another text."""
        self.names: tuple[str, ...] = ()
        self.text: str | None = None  # that the modes shown are of
        self.choice.set_options({}, value=None)
        self.choice.set_enabled(False)
        self.frame.props("src=about:blank").set_visibility(False)
        self._say("no modes yet")

    def compare(self, text: str) -> None:
        """Remove the modes if they are not those of this text."""
        if self.text is not None and self.text != text:
            self.forget()

    def _say(self, text: str, wrong: bool = False) -> None:
        self.table.text = text
        self.table.classes(add="wrong" if wrong else "", remove="" if wrong else "wrong")

    async def find(self) -> None:
        """Compute the modes and show the first."""
        given = self.describes()
        self.forget()
        if given is None:
            self._say("the model has problems. Correct them first.", wrong=True)
            return
        self.button.set_enabled(False)
        self._say("finding the equilibrium and its modes ...")
        try:
            at_start = self.about.value == "start"
            found: FoundModes = await self.session.runner.call("modes", **given, at_start=at_start)
        except LoopdynError as error:
            self._say(f"no modes: {error}", wrong=True)
            return
        finally:
            self.button.set_enabled(True)
        if self.describes() != given:
            self._say("the text has changed: find the modes again")
            return
        self._say(found.text)
        self.names, self.text = found.names, given["text"]
        self.choice.set_enabled(bool(found.names))
        if found.names:
            self.choice.set_options(dict(enumerate(found.names)), value=0)

    async def show(self, _: Any = None) -> None:
        """Show the chosen mode."""
        if self.choice.value is None or not self.names:
            return
        try:
            view = await self.session.runner.call("mode", number=int(self.choice.value))
        except LoopdynError as error:
            self.session.say(f"the mode is not shown: {error}", wrong=True)
            return
        self.frame.set_visibility(True)
        self.session.serve("mode", view, self.frame)
