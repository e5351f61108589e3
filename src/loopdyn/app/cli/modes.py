"""``loopdyn modes``: poles and modes of small motions about an equilibrium."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopdyn.app.cli.answers import exit_on_error, print_json, print_lines, print_text
from loopdyn.app.cli.models import load_system, tolerated_start
from loopdyn.app.cli.options import (
    PAGES,
    PICTURES,
    AngleTolerance,
    AsJson,
    LengthTolerance,
    ModelFile,
    Parameters,
    check_names,
    write_files,
    write_plot,
)


def modes(
    file: ModelFile,
    at_start: Annotated[
        bool, typer.Option("--at-start", help="At the start of the model with its speeds, not at an equilibrium.")
    ] = False,
    inputs: Annotated[list[str] | None, typer.Option("--input", metavar="MOTOR", help="Input; repeatable.")] = None,
    outputs: Annotated[list[str] | None, typer.Option("--output", metavar="A", help="Output; repeatable.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write the poles: .png, .svg, .pdf.")] = None,
    animate: Annotated[Path | None, typer.Option("--animate", help="Write a mode: .html, .gif, .mp4, .png.")] = None,
    mode: Annotated[int, typer.Option("--mode", help="Number of the mode that is written.")] = 0,
    save: Annotated[Path | None, typer.Option("--save", help="Write A, B, C, D: .npz, .mat.")] = None,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Poles and modes of small motions: frequencies, damping, what moves.

    The mechanism is released at the start of the model and comes to rest in a stable
    equilibrium, about which it is linearized; with --at-start it is linearized at the
    start itself, with its speeds. The exit code is 1 if the model is wrong, no
    equilibrium is found or the pose is singular.

    Example: loopdyn modes double_wishbone.yaml --animate mode.html
    """
    from loopdyn.analysis.assembly import assemble
    from loopdyn.analysis.equilibrium import equilibrium
    from loopdyn.analysis.linearize import linearize

    command = f"loopdyn modes {file}"
    check_names(plot=(plot, PICTURES), animate=(animate, PAGES), save=(save, (".npz", ".mat")))
    system = load_system(file, changed, command)
    with exit_on_error(command, "the model or the options"):
        begin = tolerated_start(system, angle_tolerance, length_tolerance)
        if at_start:
            state = assemble(system) if begin is None else begin
        else:
            state = equilibrium(system, begin).state
        found = linearize(system, state, inputs=inputs, outputs=outputs)
        shapes = found.modes()
        written = write_files(
            (plot, lambda name: write_plot(name, found.plot)),
            (animate, lambda name: shapes.animate(mode, name)),
            (save, found.save),
        )
    if as_json:
        print_json({"name": system.name} | found.as_data() | {"written": written})
    else:
        print_text(str(found))
        print_lines(*(["", f"written           {', '.join(written)}"] if written else []))
