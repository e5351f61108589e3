"""``loopdyn convert``: models in the formats of other tools."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from loopdyn.app.cli.answers import list_problems, print_json, print_lines, print_text
from loopdyn.app.cli.options import AsJson


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help=".yaml, .xml (MJCF), .urdf or .sdf.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help=".yaml, .xml (MJCF) or .urdf (with a sidecar file).")],
    loops: Annotated[
        Path | None, typer.Option("--loops", help="Sidecar file of a URDF; by default NAME.loops.yaml, if it exists.")
    ] = None,
    keyframe: Annotated[str | None, typer.Option("--keyframe", help="Keyframe of MJCF to start from.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Model of an SDF file that has several.")] = None,
    leave_out: Annotated[bool, typer.Option("--leave-out", help="Leave out what OUT cannot describe.")] = False,
    mend: Annotated[bool, typer.Option("--mend", help="Replace impossible inertias of URDF and SDF.")] = False,
    as_json: AsJson = False,
) -> None:
    """Convert a model between loopdyn, MuJoCo (MJCF), URDF and SDF, loops included.

    Prints what was converted, changed and left out. Elements that the format of OUT
    cannot describe are errors, with the exit code 1, unless --leave-out is given.
    With a URDF a second file NAME.loops.yaml is written, which has its loops and
    whatever else URDF cannot describe.

    Example: loopdyn convert robot.xml robot.yaml
    """
    from loopdyn.interchange.convert import convert as run

    with list_problems(f"loopdyn convert {source} {target}"):
        reports = run(source, target, loops=loops, keyframe=keyframe, model=model, leave_out=leave_out, mend=mend)
    if as_json:
        print_json([asdict(report) for report in reports])
        return
    for report in reports:
        print_text(str(report))
    print_lines(f"written           {target}")
