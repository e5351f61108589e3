"""Models from the files of a command, and their start states."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loopdyn.app.cli.answers import list_problems, print_lines
from loopdyn.app.cli.conversion import pair_of_tolerances
from loopdyn.app.cli.options import assignments

if TYPE_CHECKING:
    from loopdyn.model.mechanism import Mechanism
    from loopdyn.system.system import State, System


def load_mechanism(file: Path, changed: list[str] | None) -> Mechanism:
    """Model of a file, with overridden parameters, which are printed."""
    from loopdyn.interchange.loading import read_model

    values: dict[str, float | str] = {}
    for name, text in assignments("--set", changed).items():
        try:
            values[name] = float(text)
        except ValueError:
            values[name] = text  # a formula of other parameters
    mechanism, report = read_model(file)
    if report is not None:  # to standard error: standard output may be JSON
        print_lines(report.title, *report.losses(), err=True)
    return mechanism.with_(**values)


def load_system(file: Path, changed: list[str] | None, command: str) -> System:
    """Compiled model of a file; if it is wrong, all problems are listed, with the exit code 1."""
    with list_problems(command):
        return load_mechanism(file, changed).compile()


def tolerated_start(system: System, angle: float | None, length: float | None, t: float | None = None) -> State | None:
    """Start of the model, closed within tolerances; None without tolerances: each command then closes it itself."""
    from loopdyn.analysis.assembly import assemble

    tolerance = pair_of_tolerances(angle, length)
    return None if tolerance is None else assemble(system, t=t, tolerance=tolerance)
