"""Options and arguments shared by several commands, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

if TYPE_CHECKING:
    from loopdyn.system.system import System

READABLE = (".yaml", ".yml", ".xml", ".mjcf", ".urdf", ".sdf")  # model files, by their endings


def complete_models(incomplete: str) -> list[str]:
    """Model files and folders whose names begin with a text, for the completion of shells.

    Examples
    --------
    >>> complete_models("no such folder/x")
    []
    """
    folder = Path(incomplete if incomplete.endswith("/") else Path(incomplete).parent)
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    shown = [f"{f}/" if f.is_dir() else str(f) for f in found if f.is_dir() or f.suffix.lower() in READABLE]
    return [name for name in shown if name.startswith(incomplete)]


ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Model file: .yaml, .xml (MJCF), .urdf (with NAME.loops.yaml, if it exists) or .sdf.",
        autocompletion=complete_models,
    ),
]
# The names in the registries of formulations and integrators, which are slow to import; a test compares them.
FormulationName = Literal[
    "auto", "graph", "relative", "rcr", "partition", "closure", "momentum", "absolute", "oracle"
]  # fmt: skip
IntegratorName = Literal[
    "auto", "dop853", "dp5", "rk4", "abm", "generalized_alpha", "stiff", "steps", "extrapolation", "moreau"
]  # fmt: skip
DriftName = Literal["projection", "velocity", "baumgarte", "none"]
# A repeatable option takes an enumeration, not a Literal.
Formulations = StrEnum("Formulations", {name: name for name in get_args(FormulationName)})  # type: ignore[misc]
BENCHES = ("A01", "A02", "A02-40", "A03", "A04", "A05", "ladder-1", "ladder-10", "ladder-100", "all")
Benches = StrEnum("Benches", {name: name for name in BENCHES})  # type: ignore[misc]
# -t has one meaning in all commands.
Duration = Annotated[float, typer.Option("-t", "--time", metavar="SECONDS", help="Duration in s.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Override a parameter (file's units); repeatable."),
]
AngleTolerance = Annotated[
    float | None,
    typer.Option(
        help="Largest residual of redundant angles that stay open because dimensions are rounded, in units of the file."
    ),
]
LengthTolerance = Annotated[
    float | None, typer.Option(help="Largest residual of redundant lengths, in units of the file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".gif", ".mp4", ".png")


def assignments(option: str, given: list[str] | None) -> dict[str, str]:
    """Mapping of NAME to TEXT from arguments NAME=TEXT."""
    found: dict[str, str] = {}
    for text in given or []:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise typer.BadParameter(f"'{text}' is not of the form NAME=VALUE.", param_hint=option)
        if name in found:
            raise typer.BadParameter(f"'{name}' is given twice.", param_hint=option)
        found[name] = value
    return found


def check_labels(system: System, option: str, labels: Iterable[str]) -> None:
    """Raise if the model does not have these coordinates."""
    from loopdyn.quantities.wording import nearest

    known = {**system.labels.coordinates, **system.labels.speeds}
    for label in labels:
        if label not in known:
            hint = nearest(label, known)
            raise typer.BadParameter(f"there is no joint coordinate '{label}'. {hint}", param_hint=option)


# ------------------------------------------------------------------------------------------------ files to write


def check_names(**files: tuple[Path | None, tuple[str, ...]]) -> None:
    """Raise if a file cannot be written, before anything is computed."""
    for option, (file, endings) in files.items():
        if file is None:
            continue
        if endings and file.suffix not in endings:
            raise typer.BadParameter(f"'{file}' must end in {' or '.join(endings)}.", param_hint=f"--{option}")
        if not file.parent.is_dir():
            raise typer.BadParameter(f"there is no folder '{file.parent}'. Create it first.", param_hint=f"--{option}")
        if file.is_dir():
            raise typer.BadParameter(f"'{file}' is a folder. Give the name of a file.", param_hint=f"--{option}")


def write_files(*files: tuple[Path | None, Callable[[Path], object]]) -> list[str]:
    """Write the requested files, each by its writer; return their names."""
    wanted = [(file, write) for file, write in files if file is not None]
    for file, write in wanted:
        write(file)
    return [str(file) for file, _ in wanted]


def write_plot(file: Path, draw: Callable[[], Any], **options: Any) -> None:
    """Write the figure of `draw` to a file."""
    draw_into_files()
    import matplotlib.pyplot as plt

    from loopdyn.files import write_figure

    figure = draw()
    write_figure(file, figure, **options)
    plt.close(figure)


def draw_into_files() -> None:
    """Let matplotlib draw into files, without windows."""
    import matplotlib

    matplotlib.use("Agg")
