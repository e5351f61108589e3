"""Page of a mechanism before any simulation: moved along an input, or in its start pose."""

from __future__ import annotations

from pathlib import Path

from loopdyn.analysis.mobility import mobility
from loopdyn.errors import LoopdynError
from loopdyn.output.report import driven, input_of
from loopdyn.output.viewer.page import write_page
from loopdyn.output.viewer.scene import StillPose
from loopdyn.system.system import State, System


def write_view(
    system: System, state: State, page: Path, turn: str | None = None, over: tuple[float, float] | None = None
) -> str:
    """Write the page; return a line that says what it shows.

    Parameters
    ----------
    system : System
    state : State
        Start pose, closed.
    page : Path
        File to write, ending in ``.html``.
    turn : str, optional
        Coordinate to move; by default that of a driver or motor, or the first angle if there is one degree of freedom.
        If it was given and cannot be moved, the error is raised; else the page shows the start pose.
    over : (float, float), optional
        Range of the coordinate in the units of the model; by default a turn.

    Examples
    --------
    >>> import tempfile, loopdyn as ld
    >>> system = ld.library.double_pendulum().compile()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_view(system, system.state(), Path(folder) / "page.html")
    'double_pendulum in its start pose: it has no driver or motor, and 2 degrees of freedom. Name a coordinate to move.'
    """
    label = turn or input_of(system) or _only_freedom(system, state)
    if label is None:
        write_page(StillPose(system, state), page)
        n = mobility(system, state).dof
        why = f"it has no driver or motor, and {n} degrees of freedom. Name a coordinate to move."
        return f"{system.name} in its start pose: {why}"
    try:
        found = driven(system, state, label, over)
        found.animate(page)
    except LoopdynError as error:
        if turn is not None or over is not None:
            raise
        write_page(StillPose(system, state), page)
        return f"{system.name} in its start pose: {error}"
    return f"{system.name}, moved along {label}: {found.message or found.status}"


def _only_freedom(system: System, state: State) -> str | None:
    """First angle of the tree that moves, in a mechanism with one degree of freedom; None in any other."""
    angles = [k for k, label in system.labels.coordinates.items() if label.dimension == "angle" and label.place >= 0]
    return angles[0] if angles and mobility(system, state).dof == 1 else None
