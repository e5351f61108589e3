"""``loopdyn inspect``: check of a model, its topology and mobility."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loopdyn.app.cli.answers import print_json, print_lines, print_text, printable, stop
from loopdyn.app.cli.conversion import pair_of_tolerances
from loopdyn.app.cli.models import load_system
from loopdyn.app.cli.options import AngleTolerance, AsJson, LengthTolerance, ModelFile, Parameters
from loopdyn.errors import LoopdynError

if TYPE_CHECKING:
    from loopdyn.system.system import System

SHOWN = 12  # most bodies and forces that are listed by name


def inspect(
    file: ModelFile,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Check a model file and show its topology and mobility.

    Prints the tree of bodies, the cut joints, the loops, the sizes of the
    equations, then degrees of freedom, redundant constraints and statically
    indeterminate reactions at the start of the model. If the model is wrong, every
    problem is listed with its line; if its loops cannot be closed, a message after
    the topology says so. The exit code is then 1.

    Example: loopdyn inspect four_bar.yaml
    """
    command = f"loopdyn inspect {file}"
    system = load_system(file, changed, command)  # a wrong model ends it, before slow modules are imported

    from loopdyn.analysis.assembly import assemble
    from loopdyn.analysis.mobility import mobility

    if not as_json:
        _show(system)
    error_text = ""
    data = _as_data(system) if as_json else {}
    try:
        state = assemble(system, tolerance=pair_of_tolerances(angle_tolerance, length_tolerance))
        found = mobility(system, state)
    except LoopdynError as error:
        error_text = printable(str(error))
        data |= {"assembled": False, "error": error_text}
    else:
        data |= {"assembled": True, "note": state.note, "mobility": asdict(found)}
        if not as_json:
            print_lines("", f"start             {state.note}", "")
            print_text(str(found))
    if as_json:
        print_json(data)
    if error_text:
        stop(f"{error_text}\nThe topology is valid; mobility needs closed loops.", command)


def _as_data(system: System) -> dict[str, Any]:
    topology = system.topology
    return {
        "name": system.name,
        "units": system.mechanism.units.model_dump(),
        "bodies": list(topology.order),
        "joints": {e.name: e.type for e in topology.edges},
        "floating": list(topology.free_roots),
        "cut_joints": list(topology.cuts),
        "loops": [
            {"bodies": list(p.bodies), "joints": list(p.joints), "base": p.base, "closing": p.closing}
            for p in topology.loops
        ],
        "forces": list(system.forces),
        "nb": system.nb,
        "nq": system.nq,
        "nv": system.nv,
        "nc": system.nc,
        "coordinates": list(system.coordinates),
        "speeds": list(system.speeds),
        "constraint_rows": list(system.constraint_rows),
        "warnings": list(system.warnings),
    }


def _show(system: System) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True, markup=False)
    title, *tree = str(system.topology).split("\n")
    console.print(printable(title), style="bold")
    for line in tree:
        console.print(printable(line))
    console.print()
    for what, value in _sizes(system):
        console.print(f"{what:<18}{printable(value)}")


def _masses(system: System) -> str:
    """Masses of the bodies, and their sum."""
    from loopdyn.engine import records as rec

    body = system.model.body[system.n_bases :, rec.MASS] / system.units.factor("mass")
    names = system.bodies[system.n_bases :]
    listed = [f"{name} {mass:.4g}" for name, mass in zip(names[:SHOWN], body, strict=False)]
    more = ["..."] if len(names) > SHOWN else []
    return f"{body.sum():.4g} in all: {', '.join([*listed, *more])}"


def _sizes(system: System) -> list[tuple[str, str]]:
    topology, units = system.topology, system.mechanism.units.model_dump()
    return [
        ("bodies", str(system.nb)),
        (f"masses in {system.units.mass}", _masses(system)),
        ("joints", f"{len(topology.edges)}, of which {len(topology.cuts)} cut"),
        ("loops", str(len(topology.loops))),
        ("coordinates", f"nq = {system.nq}"),
        ("speeds", f"nv = {system.nv}"),
        ("constraint rows", f"nc = {system.nc}"),
        ("forces", ", ".join(system.forces[:SHOWN]) + (", ..." if len(system.forces) > SHOWN else "") or "none"),
        ("units of the file", ", ".join(f"{kind} {unit}" for kind, unit in units.items())),
    ]
