"""Public names: listed in stubs, imported when they are first asked for, with their arguments checked from then on.

The names at the top are listed in ``loopdyn/__init__.pyi``; all others are in the namespaces :data:`NAMESPACES`. A
namespace whose types come from many modules has a stub, too, and is made by :func:`offer`; the others import their few
modules and have a list ``__all__``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

# Modules of further public names: ld.forces.JointTendon.
NAMESPACES = (
    "analyses",
    "constraints",
    "contacts",
    "designs",
    "errors",
    "events",
    "forces",
    "formulations",
    "integrators",
    "joints",
    "results",
)

# Names that were at the top in 0.1, and where they are now.
MOVED = {
    name: f"{namespace}.{name}"
    for namespace, names in {
        "analyses": "branches coordinates equations measures preload reconnect singular_poses variants zero_force",
        "constraints": "Coupler Distance Driver PointMotion PointOnCurve PointOnLine PointOnPlane Relation Rolling "
        "Slot UserConstraint VelocityRelation",
        "errors": "AssemblyError ConvergenceError ExpressionError ModelError Problem RunError SingularityError",
        "events": "At Crossing Event Limits Lock Release",
        "forces": "Actuator AppliedForce Bushing JointFriction JointSpring Motor SpringDamper Table UserForce",
        "formulations": "Formulation Oracle Solution check_formulation",
        "integrators": "ABM Baumgarte DOP853 DP5 Extrapolation GeneralizedAlpha Integrator RK4 Steps Stiff",
        "joints": "Helical Rotation Translational Weld",
        "results": "Bearings Branches Change Coordinates Drive DriveEvent Equations Equilibria Equilibrium "
        "InverseDynamics Measure Mobility Preload Reactions Run Topology Variant Variants compare_runs",
    }.items()
    for name in names.split()
} | {
    f"tree.{name}": f"tree.open_tree_{name}"  # they ignore the loops
    for name in ("body_jacobian", "forward_dynamics", "inverse_dynamics", "mass_matrix")
}

_LINE = re.compile(r"^from (\.*)([\w.]*) import (\w+) as \3$", re.MULTILINE)  # of a stub


def places(package: str, file: str) -> dict[str, str]:
    """Modules of the names in the stub next to a file, by name.

    Examples
    --------
    >>> import loopdyn
    >>> places("loopdyn", loopdyn.__file__)["simulate"]
    'loopdyn.run.simulate'
    """
    with open(os.path.splitext(file)[0] + ".pyi", encoding="utf-8") as stub:
        found = _LINE.findall(stub.read())
    parts = package.split(".")
    above = {dots: ".".join(parts[: len(parts) + 1 - len(dots)]) for dots in (".", "..")[: len(parts)]}
    return {name: f"{above[dots]}.{module}".rstrip(".") for dots, module, name in found}


def offer(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose public names are in the stub next to `file`.

    An object is imported when it is first asked for; the arguments of everything that its import has loaded are checked
    from then on (:mod:`loopdyn.arguments`).
    """
    modules = places(package, file)
    known: dict[str, Any] = {}  # as globals of the package they would be taken for functions of its file

    def find(name: str) -> Any:
        if name in known:
            return known[name]
        if name not in modules:
            raise missing(package, name)
        known[name] = _checked(name, modules[name], package)
        return known[name]

    names = sorted(modules)
    return find, lambda: names, list(names)


def _checked(name: str, module: str, package: str) -> Any:
    """Object of this name with its arguments checked, a module with those of all its public names."""
    from loopdyn.arguments import check, check_loaded

    home = vars(import_module(module))
    found = home[name] if name in home and module != package else import_module(f"{module}.{name}")
    check_loaded()
    return check(found, package)


def listed() -> set[str]:
    """All names in stubs: at the top and in the namespaces that have one."""
    folder, found = os.path.dirname(__file__), set()
    for package in ("loopdyn", *(f"loopdyn.{namespace}" for namespace in NAMESPACES)):
        file = os.path.join(folder, *package.split(".")[1:], "__init__.py")
        found |= set(places(package, file)) if os.path.exists(f"{file}i") else set()
    return found


def missing(package: str, name: str) -> AttributeError:
    """Error about a name that a package does not have: where it is now, or what to use instead.

    Examples
    --------
    >>> print(missing("loopdyn", "Crossing"))
    module 'loopdyn' has no attribute 'Crossing'. It is now ld.events.Crossing.
    """
    old, hint = f"{package}.{name}".removeprefix("loopdyn."), ""
    if old in MOVED:
        hint = f". It is now ld.{MOVED[old]}."
    elif not name.startswith("_"):
        from loopdyn.quantities.wording import NOT_OFFERED

        hint = f". {NOT_OFFERED[name.lower()]}" if name.lower() in NOT_OFFERED else ""
    return AttributeError(f"module '{package}' has no attribute '{name}'{hint}")
