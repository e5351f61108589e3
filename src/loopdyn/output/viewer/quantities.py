"""Quantities of a run that a page can plot: arrays, and groups of columns of one unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loopdyn.errors import ModelError, Problem
from loopdyn.output.drawing import determined
from loopdyn.output.viewer.in_plane import transmissions
from loopdyn.output.viewer.numbers import Array, packed
from loopdyn.quantities.wording import nearest
from loopdyn.results.units import coordinate_units, speed_units
from loopdyn.system.system import System

# Variables that are drawn together: prefix, title, unit, logarithmic.
FAMILIES = (("energy", "Energy", "J", False), ("residual", "Residuals of the constraints", "", True))
APART = "energy_balance"  # an error, many orders below the energies


def quantities_of(system: System, data: Any, joints: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Arrays by name, and the groups of columns of one unit that can be plotted."""
    arrays: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for name, what, labels, units in (
        ("q", "Coordinates", system.coordinates, coordinate_units(system)),
        ("v", "Speeds", system.speeds, speed_units(system)),
        ("a", "Accelerations", system.speeds, speed_units(system, 2)),
    ):
        if name in data:
            arrays[name] = packed(data[name].values)
            for unit in dict.fromkeys(units):
                columns = [k for k, u in enumerate(units) if u == unit]
                shown = "quaternions" if unit == "1" else unit
                groups.append(_group(name, what, shown, name, columns, [labels[k] for k in columns]))
    if "wrench" in data:
        groups += _reactions(system, data, joints, arrays)
    groups += _over_time(data, arrays)
    return arrays, groups


def _reactions(system: System, data: Any, joints: list[str], arrays: dict[str, Any]) -> list[dict[str, Any]]:
    if not joints:
        return []
    arrays["wrench"] = packed(data["wrench"].sel(joint=joints).values)
    unique = determined(data).sel(joint=joints).values
    names = [str(c) for c in data["component"].values]
    groups = []
    for n, joint in enumerate(joints):
        for what, unit, first in (("Reaction force", "force", 3), ("Reaction moment", "torque", 0)):
            columns = [6 * n + k for k in range(first, first + 3)]
            shown, three = system.units.symbol(unit), names[first : first + 3]
            group = _group(f"wrench:{joint}", f"{what} in {joint}", shown, "wrench", columns, three)
            group["open"] = [not bool(unique[n, k]) for k in range(first, first + 3)]
            groups.append(group)
    return groups


def _over_time(data: Any, arrays: dict[str, Any]) -> list[dict[str, Any]]:
    """Groups of all other variables that depend on time and at most one more dimension."""
    others = {
        str(name): v
        for name, v in data.data_vars.items()
        if v.dims[:1] == ("time",) and len(v.dims) <= 2 and v.size and v.dtype.kind in "fiub" and name not in arrays
    }
    groups = []
    for prefix, title, unit, logarithmic in FAMILIES:
        members = [n for n in others if n.startswith(prefix + "_") and n != APART]
        if not members:
            continue
        columns = [others.pop(n).values.reshape(data.sizes["time"], -1) for n in members]
        values = np.column_stack([c[:, 0] if c.shape[1] == 1 else np.abs(c).max(axis=1) for c in columns])
        if prefix == "energy":
            members, values = [*members, "total"], np.column_stack([values, values.sum(axis=1)])
        arrays[prefix] = packed(values)
        names = [n.removeprefix(prefix + "_") for n in members]
        groups.append(_group(prefix, title, unit, prefix, list(range(len(names))), names) | {"log": logarithmic})
    for name, v in others.items():
        arrays[name] = packed(v.values)
        names = [name] if v.ndim == 1 else [str(label) for label in v[v.dims[1]].values]
        title = name.replace("_", " ").capitalize()
        for unit, columns in _by_unit(v).items():
            groups.append(_group(name, title, unit, name, columns, [names[k] for k in columns]))
    return groups


def transmission_groups(system: System, poses: tuple[Array, Array], arrays: dict[str, Any]) -> list[dict[str, Any]]:
    """Group of the transmission angles of a planar mechanism, whose array is added to `arrays`; empty without any."""
    angles = transmissions(system, poses)
    if not angles:
        return []
    arrays["transmission"] = packed(np.column_stack(list(angles.values())))
    names = [f"at {name}" for name in angles]
    columns = list(range(len(names)))
    return [_group("transmission", "Transmission angle", system.units.angle, "transmission", columns, names)]


def _by_unit(v: Any) -> dict[str, list[int]]:
    """Columns of a variable by unit, which it has itself or a coordinate has for each label."""
    unit = v.attrs.get("units", "")
    each = [str(x) for x in v[unit].values] if unit in v.coords else [unit] * (1 if v.ndim == 1 else v.shape[1])
    return {u: [k for k, x in enumerate(each) if x == u] for u in dict.fromkeys(each)}


def _group(key: str, title: str, unit: str, array: str, columns: list[int], names: Sequence[str]) -> dict[str, Any]:
    return {"key": key, "title": title, "unit": unit, "array": array, "columns": columns, "names": list(names)}


def chosen_plots(groups: list[dict[str, Any]], plots: Sequence[str] | None) -> list[int]:
    """Indices of the groups that are shown initially."""
    known = list(dict.fromkeys(g["key"] for g in groups))
    chosen = [k for k in ("q", "energy") if k in known] if plots is None else list(plots)
    wrong = [name for name in chosen if name not in known]
    if wrong:
        raise ModelError(Problem("plots", f"there is no quantity '{n}' in the run", nearest(n, known)) for n in wrong)
    return [k for name in chosen for k, g in enumerate(groups) if g["key"] == name]
