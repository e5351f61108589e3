"""Report of a mechanism: one self-contained page with pictures, tables and settings; it begins with what counts."""

from __future__ import annotations

import base64
import copy
import io
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loopdyn.analysis.assembly import assemble, assembled
from loopdyn.analysis.drive import drive
from loopdyn.analysis.mobility import Mobility, mobility
from loopdyn.errors import LoopdynError
from loopdyn.files import write
from loopdyn.model.mechanism import Mechanism
from loopdyn.output.first_page import cycle_of, motors_of, plot_motor_loads, worst_bearings
from loopdyn.quantities.times import check_span
from loopdyn.quantities.wording import unknown
from loopdyn.results.drive import Drive
from loopdyn.results.run import Run
from loopdyn.run.simulate import simulate
from loopdyn.studies.variants import Variants
from loopdyn.system.system import State, System

if TYPE_CHECKING:
    import pandas

DPI = 110
POLAR = 6  # most bearings whose polar load is drawn
PACKAGES = ("loopdyn", "numpy", "scipy", "numba")

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1c2430;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{margin-bottom:0}h2{margin-top:2.5rem;border-bottom:1px solid #d5dae0}
img{max-width:100%;height:auto}pre{background:#f4f6f8;padding:.8rem;overflow-x:auto;font-size:13px}
.first{break-after:page}table{border-collapse:collapse;font-size:14px;display:block;overflow-x:auto}
td,th{border:1px solid #d5dae0;padding:.2rem .6rem;text-align:left}
td.number{text-align:right;font-variant-numeric:tabular-nums}.why{color:#a33}
"""


@dataclass
class _Page:
    """Parts of a page, in their order."""

    title: str

    def __post_init__(self) -> None:
        self.parts: list[str] = []

    def head(self, text: str) -> None:
        self.parts.append(f"<h2>{escape(text)}</h2>")

    def say(self, text: str, kind: str = "") -> None:
        mark = f' class="{kind}"' if kind else ""
        self.parts.append(f"<p{mark}>{escape(text)}</p>")

    def text(self, text: str) -> None:
        self.parts.append(f"<pre>{escape(text)}</pre>")

    def picture(self, figure: Any, about: str) -> None:
        """Add a figure and close it."""
        import matplotlib.pyplot as plt

        with io.BytesIO() as data:
            figure.savefig(data, format="png", dpi=DPI, bbox_inches="tight")
            code = base64.b64encode(data.getvalue()).decode()
        plt.close(figure)
        self.parts.append(f'<p><img alt="{escape(about, quote=True)}" src="data:image/png;base64,{code}"></p>')

    def table(self, rows: Sequence[Sequence[Any]], heads: Sequence[str] = ()) -> None:
        def cell(x: Any) -> str:
            if isinstance(x, float | np.floating):
                return f'<td class="number">{"" if np.isnan(x) else format(x, ".5g")}</td>'
            return f"<td>{escape(str(x))}</td>"

        top = "<tr>" + "".join(f"<th>{escape(str(h))}</th>" for h in heads) + "</tr>" if heads else ""
        self.parts.append(
            f"<table>{top}" + "".join("<tr>" + "".join(cell(x) for x in row) + "</tr>" for row in rows) + "</table>"
        )

    def frame(self, frame: pandas.DataFrame, first: str) -> None:
        """Add a data frame, with its index as the first column."""
        rows = [[str(name), *row] for name, row in zip(frame.index, frame.itertuples(index=False), strict=True)]
        self.table(rows, [first, *(str(c) for c in frame.columns)])

    def __str__(self) -> str:
        title = escape(self.title)
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
            f"<body><h1>{title}</h1>{''.join(self.parts)}</body></html>"
        )


def report(
    mechanism: Mechanism,
    path: str | os.PathLike[str],
    *,
    t_span: tuple[float, float] = (0.0, 1.0),
    turn: str | None = None,
    over: tuple[float, float] | None = None,
    variants: Variants | None = None,
    tolerance: float | tuple[float, float] | None = None,
    title: str | None = None,
    author: str = "",
    notes: str = "",
    **options: Any,
) -> Path:
    """Write a page about a mechanism, from picture and mobility to kinematic analysis, a run, loads and settings.

    Its first page has what counts: author, notes and units, the load of each motor over its speed with its
    characteristic, and the worst bearings, the last cycle apart from the start-up. If a part cannot be computed for
    this mechanism, the page says why.

    Parameters
    ----------
    mechanism : Mechanism
    path : file ending in .html
    t_span : (float, float)
        First and last time of the run, s.
    turn : str, optional
        Input of the kinematic analysis; by default the coordinate of the first driver or motor.
    over : (2,), optional
        Its range in the units of the model; by default a full turn from the start, for an angle.
    variants : Variants, optional
        Runs of :func:`loopdyn.analyses.variants` to compare with it.
    tolerance : float or (angle, length), optional
        Largest residual of redundant constraints, in declared units: see :func:`loopdyn.assemble`.
    title : str, optional
        Heading; by default the name of the mechanism.
    author, notes : str, optional
        For the first page; an empty line begins a new paragraph of the notes.
    **options
        Options of :func:`loopdyn.simulate`.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile, matplotlib, loopdyn as ld
    >>> matplotlib.use("Agg")
    >>> page = ld.report(ld.library.four_bar(), tempfile.mkdtemp() + "/report.html", turn="A", progress=False)
    >>> "Loads of bearings" in page.read_text()
    True
    """
    file = Path(path)
    if file.suffix != ".html":
        raise LoopdynError(f"a report is a page: the name '{file.name}' must end in .html.")
    if not file.parent.is_dir():
        raise LoopdynError(f"there is no folder '{file.parent}' for the report. Create it first.")
    check_span(t_span)
    system = mechanism.compile()
    labels = system.labels.coordinates
    if turn is not None and turn not in labels:
        raise unknown("report", "coordinate", [turn], labels)
    state = assemble(system, t=t_span[0], tolerance=tolerance)
    page = _Page(title or f"Report: {mechanism.name}")
    run = simulate(system, state, t_span, **options)
    if run.status == "interrupted":  # a page about a part of a run would be misleading
        raise KeyboardInterrupt
    _first(page, run, turn or input_of(system), author, notes)
    _model(page, system, state)
    _mobility(page, mobility(system, state))
    _drive(page, system, state, turn or input_of(system), over)
    _run(page, run)
    _loads(page, run)
    _energy(page, run)
    if variants is not None:
        _variants(page, variants)
    _settings(page, run)
    write(file, str(page))
    return file


# --------------------------------------------------------------------------------------------------- sections


def _first(page: _Page, run: Run, label: str | None, author: str, notes: str) -> None:
    """Begin with author, notes and units, then motors and worst bearings, the last cycle apart from the start-up."""
    units = ", ".join(f"{kind} {unit}" for kind, unit in run.system.mechanism.units.model_dump().items())
    page.parts.append('<section class="first">')
    page.say(", ".join(filter(None, [author, date.today().isoformat()])))
    for paragraph in filter(None, (text.strip() for text in notes.split("\n\n"))):
        page.say(paragraph)
    page.say(f"Units: {units}.")
    cycle = cycle_of(run, label)
    if cycle is None:
        page.say("Largest values are those of the whole run: it has no full turn of an input that could be told apart.")
    else:
        since = float(run.path.t[cycle.first])
        page.say(f"Last cycle: the last full turn of {label}, from {since:.4g} s on. What is before is the start-up.")
    figure = plot_motor_loads(run, cycle) if len(run.path) > 1 else None
    if figure is not None:
        page.picture(figure, "Loads of the motors over their speeds")
    page.head("Worst bearings")
    force = run.system.units.force
    peaks = (
        [f"largest in {force}"]
        if cycle is None
        else [f"{part}, largest in {force}" for part in ("start-up", "last cycle")]
    )
    page.table(worst_bearings(run, cycle), ["bearing", *peaks, f"RMS in {force}"])
    page.parts.append("</section>")


def _model(page: _Page, system: System, state: State) -> None:
    from loopdyn.output.plot.mechanism import plot_system

    m = system.mechanism
    page.head("Mechanism")
    page.picture(plot_system(system, state).figure, f"{m.name} at its start")
    page.say(f"Start: {state.note or 'as given'}")
    if m.parameters:
        units = ", ".join(f"{kind} {unit}" for kind, unit in m.units.model_dump().items())
        page.say(f"Parameters, in the units of the model ({units}):")
        page.table([[name, value] for name, value in m.parameters.items()], ["parameter", "value"])
    page.text(str(system.topology))


def _mobility(page: _Page, found: Mobility) -> None:
    page.head("Mobility and redundancy")
    page.text(str(found))


def input_of(system: System) -> str | None:
    """Coordinate of the first driver or motor."""
    given = [*(d.joint for d in system.mechanism.drivers.values()), *motors_of(system).values()]
    return next((str(j) for j in given if isinstance(j, str)), None)


def _drive(page: _Page, system: System, state: State, label: str | None, over: tuple[float, float] | None) -> None:
    page.head("Drive")
    if label is None:
        page.say("The model has no driver or motor; name an input coordinate to see its curves here.")
        return
    try:
        found = driven(system, state, label, over)
    except LoopdynError as error:
        page.say(f"No curves: {error}", "why")
        return
    page.text(str(found))
    page.picture(found.plot(), f"{system.name} driven at {label}")


def driven(system: System, state: State, label: str, over: tuple[float, float] | None) -> Drive:
    """Kinematic analysis over the range, or a turn from the start. The input replaces a driver of its coordinate."""
    m = system.mechanism
    if any(d.joint == label for d in m.drivers.values()):
        m = copy.deepcopy(m)
        m.drivers = {name: d for name, d in m.drivers.items() if d.joint != label}
        system = m.compile()
    if over is None:
        if label in system.labels.coordinates and system.labels.coordinates[label].dimension != "angle":
            raise LoopdynError(f"'{label}' is not an angle and has no full turn. Give its range.")
        degree = m.units.factor("angle")
        start = float(state.q[system.coordinates.index(label)]) / degree if label in system.coordinates else 0.0
        over = (start, start + 2.0 * np.pi / degree)
    left = state.tolerated  # rows of a system without the driver may have other names
    near = None if left is None else assembled(system, tolerance=(left.angle, left.length))
    return drive(system, label, over, near=near)


def _run(page: _Page, run: Run) -> None:
    page.head("Run")
    page.say(f"{run.status}: {run.message}", "" if run.status in ("finished", "stopped") else "why")
    if run.decided:
        page.say(f"Automatic decisions: {run.decided}.")
    if run.events:
        page.table([[float(e.t), e.name] for e in run.events], ["t in s", "event"])
    if len(run.path) > 1:
        page.picture(run.plot.overview(), f"{run.system.name}: coordinates, speeds and energies over time")


def _loads(page: _Page, run: Run) -> None:
    page.head("Loads of bearings")
    if len(run.path) < 2:
        page.say("There are too few outputs for loads.")
        return
    bearings = run.bearings()
    page.text(str(bearings))
    for joint in bearings.joints[:POLAR]:
        try:
            page.picture(run.plot.polar(joint), f"Rotating load of {joint}")
        except LoopdynError as error:
            page.say(str(error))
    page.say("Smallest and largest values with their times, and RMS; '?' marks statically indeterminate components.")
    page.frame(run.summary(), "quantity")
    page.head("Shaking forces")
    page.picture(run.plot.shaking(), f"{run.system.name}: shaking force and moment")


def _energy(page: _Page, run: Run) -> None:
    page.head("Energy balance")
    page.say(
        f"Relative energy-balance error: {run.energy_error:.1e}. Largest residual "
        f"of a loop: {run.largest_residual:.1e} rad, or relative to the mechanism's size."
    )
    if len(run.path) > 1:
        page.picture(run.plot.energies(), f"{run.system.name}: energies")


def _variants(page: _Page, found: Variants) -> None:
    page.head("Variants")
    if found.stopped:
        page.say(found.stopped, "why")
    page.frame(found.table(), "variant")
    for v in found.failed:
        page.say(f"{v.name} failed: {v.why}", "why")
    runs = [v.run for v in found.variants if v.run is not None]
    if runs:
        label = runs[0].system.coordinates[0]
        page.picture(found.plot(label), f"{label} of all variants")


def _settings(page: _Page, run: Run) -> None:
    page.head("Settings and versions")
    page.table([[k, v] for k, v in run.settings.items()], ["setting", "value"])
    facts: Mapping[str, str] = {
        **{name: _version(name) for name in PACKAGES},
        "Python": platform.python_version(),
        "system": platform.platform(),
        "date": date.today().isoformat(),
    }
    page.table([[k, v] for k, v in facts.items()], ["software", "version"])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


__all__ = ["report"]
