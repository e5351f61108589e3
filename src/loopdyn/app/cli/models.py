"""Models of the files that commands are given, and their starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loopdyn.app.cli.answers import list_problems, print_lines
from loopdyn.app.cli.options import assignments

if TYPE_CHECKING:
    from loopdyn.model.mechanism import Mechanism
    from loopdyn.system.system import State, System


def load_mechanism(file: Path, changed: list[str] | None) -> Mechanism:
    """The model of a file, with other values of parameters where they are given; says what is not as in the file."""
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
    """The compiled model of a file; if anything is wrong with it, all problems are listed, with the exit code 1."""
    with list_problems(command):
        return load_mechanism(file, changed).compile()


def tolerance_in_si(mechanism: Mechanism, angle: float | None, length: float | None) -> tuple[float, float] | None:
    """Tolerances of assembly in SI units; None if none was given."""
    if angle is None and length is None:
        return None
    units = mechanism.resolver().units
    return (angle or 0.0) * units.factor("angle"), (length or 0.0) * units.factor("length")


def tolerated_start(system: System, angle: float | None, length: float | None, t: float | None = None) -> State | None:
    """The start of the model, closed within tolerances; None if none was given: each command then closes it itself."""
    from loopdyn.analysis.assembly import assemble

    tolerance = tolerance_in_si(system.mechanism, angle, length)
    return None if tolerance is None else assemble(system, t=t, tolerance=tolerance)
