"""Options and arguments shared by several commands, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from loopdyn.system.system import System

ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Model file: .yaml, .xml (MJCF), .urdf (with NAME.loops.yaml, if it exists) or .sdf."
    ),
]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Override a parameter; repeatable.")
]
AngleTolerance = Annotated[
    float | None,
    typer.Option(
        help="Largest residual of redundant angles that stay open because dimensions are rounded, in the file's units."
    ),
]
LengthTolerance = Annotated[float | None, typer.Option(help="Largest residual of redundant lengths.")]
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
