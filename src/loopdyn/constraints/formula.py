"""Relations of joint coordinates and speeds given by a formula: phi(t, q) = 0, and psi(t, q, v) = 0 at velocity level.

Both are *linear* records (:mod:`loopdyn.engine.records`) whose factors are computed at the state. The variables of the
program are t and, for each entry j, its coordinate (1 + 2 j) and its speed (2 + 2 j). Run along the motion at zero
joint accelerations, the program gives the row and its derivatives in time; run along one variable, a factor:

=============  ===================================  ==============================================
               phi(t, q) = 0                        psi(t, q, v) = 0
=============  ===================================  ==============================================
position       phi                                  no condition (0)
velocity       phi' = sum d phi/dx x' + phi_t       psi
acceleration   sum d phi/dx x'' = gamma             sum d psi/dx' x'' = gamma
factor         d phi/dx                             d psi/dx'
gamma          -phi'' at zero accelerations         -psi' at zero accelerations
=============  ===================================  ==============================================
"""

from __future__ import annotations

from collections.abc import Mapping

from loopdyn.constraints.base import LinearRecord
from loopdyn.engine.jit import inline
from loopdyn.forces.base import Freedom, Places, law_program
from loopdyn.quantities.expressions import run_program
from loopdyn.quantities.units import Path, Resolver
from loopdyn.quantities.wording import nearest


def formula_record(
    formula: float | str,
    coordinates: Mapping[str, str],
    speeds: Mapping[str, str] | None,
    r: Resolver,
    places: Places,
    element: str,
    path: Path,
) -> LinearRecord | None:
    """One entry per freedom, whether its coordinate, its speed or both are named; no `speeds`: of positions."""
    holonomic = speeds is None
    speeds = speeds or {}
    key, moving = ("coordinates", coordinates) if holonomic else ("speeds", speeds)
    if not isinstance(formula, str):
        r.problem(element, "'formula' is a number", "Write a formula of the names given.", (*path, "formula"))
        return None
    if not _names_are_sound(coordinates, speeds, key, r, element, path):
        return None
    found = _entries(coordinates, speeds, r, places, element, path)
    if found is None:
        return None
    entries, variables = found
    if not _formula_fits(formula, variables, r, element, (*path, "formula")):
        return None
    dimension = "angle" if all(entries[label].rotation for label in moving.values()) else "length"
    # variables that the formula does not name are there all the same, under names that no formula can use
    names = ["t", *(f"{what} {label}" for label in entries for what in ("coordinate", "speed"))]
    dimensions = ["number"] * len(names)
    for name, (number, unit) in variables.items():
        names[number], dimensions[number] = name, unit
    program = law_program(formula, dict(zip(names, dimensions, strict=True)), dimension, r, element, (*path, "formula"))
    return LinearRecord(list(entries.values()), [0.0] * len(entries), program, dimension, holonomic)


def _names_are_sound(
    coordinates: Mapping[str, str],
    speeds: Mapping[str, str],
    key: str,
    r: Resolver,
    element: str,
    path: Path,
) -> bool:
    """Whether there are names of the key, and each means one thing; else a problem is recorded."""
    problems = len(r.problems)
    if not {"coordinates": coordinates, "speeds": speeds}[key]:
        r.problem(element, f"names no {key}", f"Give '{key}' as a mapping of names to joint {key}.", (*path, key))
    for group, given in (("coordinates", coordinates), ("speeds", speeds)):
        if "t" in given:
            r.problem(element, "'t' is time", "Use another name.", (*path, group, "t"))
    for name in coordinates.keys() & speeds.keys():
        r.problem(element, f"'{name}' names a coordinate and a speed", "Use two names.", (*path, "speeds", name))
    return len(r.problems) == problems


def _entries(
    coordinates: Mapping[str, str], speeds: Mapping[str, str], r: Resolver, places: Places, element: str, path: Path
) -> tuple[dict[str, Freedom], dict[str, tuple[int, str]]] | None:
    """Freedoms by label; variables of the program by name, with their number and dimension."""
    entries: dict[str, Freedom] = {}
    variables: dict[str, tuple[int, str]] = {}
    for group, given in (("coordinates", coordinates), ("speeds", speeds)):
        for name, label in given.items():
            where = (*path, group, name)
            f = entries.get(label) or places.freedom(label, element, where)
            if f is None:
                return None
            if group == "coordinates" and f.dimension == "":
                hint = "Use a joint with scalar coordinates, or a UserConstraint."
                r.problem(element, f"'{label}' has no single coordinate", hint, where)
                return None
            entries.setdefault(label, f)
            number = 1 + 2 * list(entries).index(label)
            if group == "speeds":
                variables[name] = number + 1, "angular_speed" if f.rotation else "speed"
            else:
                variables[name] = number, f.dimension
    return entries, variables


def _formula_fits(
    formula: str, variables: Mapping[str, tuple[int, str]], r: Resolver, element: str, path: Path
) -> bool:
    """Whether the formula can be read and uses all variables, and nothing else; else a problem is recorded."""
    read = r.expression(formula, element, path)
    if read is None:
        return False
    unused = [name for name in variables if name not in read.names]
    unknown = sorted(read.names - {"t", *variables, *r.parameters})
    for name in unused:
        r.problem(element, f"the formula does not use '{name}'", "Remove it, or use it.", path)
    for name in unknown:
        hint = nearest(name, ["t", *variables, *r.parameters])
        r.problem(element, f"the formula uses '{name}', which has no meaning", hint, path)
    return not (unused or unknown)


@inline
def formula_terms(model, work, program, first, count, of_velocities):
    """phi, velocity residual, gamma and phi_t of a relation whose entries were put by `put_motion`.

    Leaves the factors in `work.factor`.
    """
    jets = work.jets
    begin, end = model.program[program], model.program[program + 1]
    jets[0, 0], jets[0, 1], jets[0, 2] = work.t[0], 1.0, 0.0
    f, f1, f2 = run_program(model.code, begin, end, model.constants, jets, work.stack)
    for k in range(1 + 2 * count):
        jets[k, 1] = 0.0
        jets[k, 2] = 0.0
    speed = 1 if of_velocities else 0
    carried = 0.0 * f  # part of psi that the factors account for
    for j in range(count):
        k = 1 + 2 * j + speed
        jets[k, 1] = 1.0
        work.factor[first + j] = run_program(model.code, begin, end, model.constants, jets, work.stack)[1]
        jets[k, 1] = 0.0
        carried += work.factor[first + j] * jets[2 + 2 * j, 0]
    if of_velocities:
        return 0.0 * f, f, -f1, f - carried
    return f, f1, -f2, f1 - carried
