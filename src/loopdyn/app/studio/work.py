"""Computations of the studio, in a separate process: check a text, move an input, run, save the run, find modes.

If a model takes minutes, runs out of memory or crashes the process, the page stays alive. Messages are plain data:
``("progress", share)``, ``("done", result)``, ``("error", text)``.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.equilibrium import equilibrium
from loopdyn.analysis.linearize import linearize
from loopdyn.analysis.mobility import mobility
from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.io.yaml import load_text
from loopdyn.output.viewer.page import page_text
from loopdyn.output.viewer.scene import StillPose, describe
from loopdyn.results.modes import Modes
from loopdyn.results.run import Run
from loopdyn.run.simulate import simulate
from loopdyn.system.system import State, System
from loopdyn.tree.functions import terms

LIBRARY_URL = "/drawing_library.js"
THEME = {"theme": "light"}  # as the studio itself
ROOM = 0.3  # margin around the mechanism for dragging, as a fraction of its size
PER_SECOND, OUTPUTS = 100, (200, 1000)  # outputs of a run that are kept: as many as a page stores at most
EVERY = 0.1  # seconds between two reports of progress
TRIES = 3  # starts of an assembly while the input is dragged: from the current pose it closes at once or not at all


@dataclass(frozen=True)
class Input:
    """A joint coordinate that can be dragged, in units of the model."""

    label: str
    unit: str
    low: float
    high: float
    value: float


@dataclass(frozen=True)
class Checked:
    """Result of a check: problems of the text, or the mechanism it describes."""

    problems: tuple[Problem, ...] = ()
    name: str = ""
    topology: str = ""
    mobility: str = ""
    dof: int | None = None
    redundant: int | None = None
    inputs: tuple[Input, ...] = ()
    view: str = ""  # page with the mechanism


@dataclass(frozen=True)
class Moved:
    """Pose for a dragged input, or the reason why there is none."""

    text: str
    placement: dict[str, list[float]] | None = None
    q: list[float] | None = None


@dataclass(frozen=True)
class Ran:
    """Run as shown on the page."""

    status: str
    text: str
    view: str


@dataclass(frozen=True)
class FoundModes:
    """Table of modes, and the name of each."""

    text: str
    names: tuple[str, ...]


class Desk:
    """Current model, its pose, its run and its modes."""

    def __init__(self, root: str):
        self.root = Path(root)
        self.system: System | None = None
        self.state: State | None = None
        self.result: Run | None = None
        self.shapes: Modes | None = None

    # ------------------------------------------------------------------------------------------------ model

    def check(self, text: str, name: str) -> Checked:
        """Check a text as the content of file `name` in the folder."""
        self.system = self.state = None
        try:
            mechanism = load_text(text, self.root / name, within=self.root)
            system = mechanism.compile()
        except ModelError as error:
            return Checked(error.problems)
        except LoopdynError as error:
            return Checked((Problem("model", str(error)),))
        topology = "\n".join([str(system.topology), *(f"note: {w}" for w in system.warnings)])
        try:
            state = assemble(system)
        except LoopdynError as error:
            problem = Problem("start", str(error))
            return Checked((problem,), system.name, topology)
        found = mobility(system, state)
        self.system, self.state = system, state
        view = page_text(describe(StillPose(system, state), room=ROOM) | THEME, system.name, LIBRARY_URL)
        report = f"{found}\n\nstart: {state.note}"
        inputs = tuple(inputs_of(system, state))
        return Checked((), system.name, topology, report, found.dof, found.redundant, inputs, view)

    def move(self, label: str, value: float) -> Moved:
        """Move a coordinate to a value in units of the model, with closed loops, from the current pose."""
        if self.system is None or self.state is None:
            raise LoopdynError("there is no mechanism to move. Correct the model first.")
        try:
            state = assemble(self.system, {label: value}, near=self.state, tries=TRIES, limits=False)
        except LoopdynError as error:
            return Moved(str(error))
        self.state = state
        gap = float(np.abs(terms(self.system, state).phi / self.system.row_units).max(initial=0.0))
        placement = StillPose(self.system, state).placement()
        return Moved(f"all loops closed to {gap:.0e} rad, or relative to size", placement, state.q.tolist())

    # -------------------------------------------------------------------------------------------------- run

    def run(
        self,
        text: str,
        name: str,
        formulation: str,
        seconds: float,
        pose: list[float] | None,
        report: Callable[[float], bool],
    ) -> Ran:
        """Simulate a text from its start or, at rest, from a pose.

        `report` is called with the fraction that is done, and returns whether the run must stop.
        """
        self.result = None
        system = load_text(text, self.root / name, within=self.root).compile()
        state = assemble(system) if pose is None else assemble(system, np.array(pose), limits=False)
        start, told = state.t, [time.perf_counter()]

        def progress(t: float) -> None:
            if time.perf_counter() - told[0] > EVERY:
                told[0] = time.perf_counter()
                if report((t - start) / seconds):
                    raise KeyboardInterrupt

        span, n = (start, start + seconds), int(np.clip(seconds * PER_SECOND, *OUTPUTS))
        run = simulate(
            system, state, span, t_eval=np.linspace(*span, n + 1), formulation=formulation, progress=progress
        )
        report(1.0)
        self.result = run
        view = ""
        if len(run.path):
            view = page_text(describe(run, plots=first_plots(run)) | THEME, system.name, LIBRARY_URL)
        lines = [
            f"{run.status}: {run.message}",
            f"{formulation}: {run.statistics.steps} steps in {run.statistics.seconds:.2f} s, energy error "
            f"{run.energy_error:.1e}, largest residual {run.largest_residual:.1e} rad, or relative to size",
        ]
        lines += [f"{e.name} at t = {e.t:.6g} s" for e in run.events[:3]]
        return Ran(run.status, "\n".join(lines), view)

    def save_run(self, path: str) -> str:
        """Write the last run; the path was checked."""
        if self.result is None:
            raise LoopdynError("there is no run to save. Run the mechanism first.")
        self.result.save(path)
        return path

    # ------------------------------------------------------------------------------------------------ modes

    def modes(self, text: str, name: str, at_start: bool) -> FoundModes:
        """Modes of a text about the equilibrium in which it comes to rest, or about its start."""
        self.shapes = None
        system = load_text(text, self.root / name, within=self.root).compile()
        start = assemble(system)
        found = linearize(system, start if at_start else equilibrium(system, start))
        self.shapes = shapes = found.modes()
        rows = zip(shapes.poles.tolist(), shapes.frequency.tolist(), shapes.damping.tolist(), strict=True)
        names = (
            f"{f:.5g} Hz, damping {z:.4f}" if p.imag else f"{p.real:.5g} rad/s, no oscillation" for p, f, z in rows
        )
        return FoundModes(str(found), tuple(f"{n}: {label}" for n, label in enumerate(names)))

    def mode(self, number: int) -> str:
        """Page with one period of a mode."""
        if self.shapes is None:
            raise LoopdynError("there are no modes to show. Find them first.")
        film = self.shapes._film(number)
        scene = describe(film, forces=False, plots=["q"]) | THEME
        return page_text(scene, f"{film.system.name}, mode {number}", LIBRARY_URL)


def first_plots(run: Run) -> list[str]:
    """Quantities plotted by default: coordinates, reactions in a joint that closes a loop, criterion, energies.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> first_plots(ld.simulate(system, ld.assemble(system), (0, 0.1), progress=False))
    ['q', 'wrench:A', 'energy', 'residual']
    """
    joints = [str(name) for name in run.data["joint"].values]
    cut = [name for name in run.system.topology.cuts if name in joints]
    shown = ["q", *(f"wrench:{name}" for name in [*cut, *joints][:1])]
    return [*shown, *(["criterion"] if "criterion" in run.data else []), "energy", "residual"]


def inputs_of(system: System, state: State) -> list[Input]:
    """Inputs that can be dragged: scalar coordinates of the tree, within their limits.

    Without limits the range is one turn for an angle and the size of the mechanism for a length, from the start.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> [(i.label, i.unit, round(i.high - i.low, 4)) for i in inputs_of(system, ld.assemble(system))][:1]
    [('A', 'rad', 6.2832)]
    """
    units = system.mechanism.units
    driven = {d.joint for d in system.mechanism.drivers.values()}
    found = []
    for label, of in system.labels.scalars.items():
        if not of.joint.in_tree or label in driven:
            continue
        now, reach = float(state.q[of.place]), np.pi if of.dimension == "angle" else system.size
        low, high = system.limits.get(label, (-np.inf, np.inf))
        low, high = (x if np.isfinite(x) else now + side * reach for x, side in ((low, -1), (high, 1)))
        one = units.factor(of.dimension)
        name = units.angle if of.dimension == "angle" else units.length
        found.append(Input(label, name, low / one, high / one, now / one))
    return found


# ------------------------------------------------------------------------------------------------ the process


def serve(messages: Connection, stops: Connection, root: str) -> None:
    """Answer messages until the other end is closed. An item in `stops` ends the current run."""
    desk = Desk(root)

    def report(share: float) -> bool:
        messages.send(("progress", share))
        return stops.poll()

    while True:
        try:
            name, arguments = messages.recv()
        except KeyboardInterrupt:  # Ctrl-C in the terminal, which reaches this process too: the server decides
            continue
        except (EOFError, OSError):
            return
        while stops.poll():  # intended for a run that had already ended
            stops.recv()
        if name == "run":
            arguments["report"] = report
        try:
            answer = ("done", getattr(desk, name)(**arguments))
        except LoopdynError as error:
            answer = ("error", str(error))
        except KeyboardInterrupt:
            answer = ("error", "stopped.")
        except Exception as error:  # an error in loopdyn itself: it is reported, and the studio continues
            traceback.print_exc(file=sys.stderr)
            answer = ("error", f"unexpected {type(error).__name__}: {error}. The terminal shows the traceback.")
        try:
            messages.send(answer)
        except OSError:
            return
