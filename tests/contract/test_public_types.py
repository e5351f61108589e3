"""Types that a user meets can be imported, and their signatures and docstrings can be read."""

import builtins
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import loopdyn as ld
from loopdyn.formulations.base import Formulation
from loopdyn.integrators.base import Integrator
from loopdyn.public_names import NAMESPACES
from loopdyn.quantities.units import Spec

PLACES = [ld, ld.library, ld.profiles, ld.tree, *(getattr(ld, name) for name in NAMESPACES)]
PUBLIC = {name for place in PLACES for name in place.__all__}
# Words of annotations that are no types of loopdyn.
FOREIGN = {"Any", "Array", "Marks", "Axes", "Figure", "Callable", "Iterator", "Literal", "Mapping", "NDArray", "Path"}
FOREIGN |= {"NDArray", "ArrayLike", "Self", "DataFrame", "Dataset", "DataArray", "MultiGraph", "np", "pandas", "xarray"}
FOREIGN |= {
    "networkx",
    "sympy",
    "bool_",
    "complex128",
    "int64",
    "intp",
    "Sequence",
    "Expr",
    "Matrix",
    "Symbol",
    "Function",
    "True",
    "False",
}
# Names of unions of plain types and functions.
FOREIGN |= {"Action", "Kind", "Ints", "Value"}
# Members for kernels and for authors of types: raw arrays, frozen structure, what is kept between calls.
INTERNAL = {"System.kept", "System.model", "System.open_work", "Mechanism.resolver", "Inertia.resolve", "user_rows"}
INTERNAL |= {"Curve.program", "ClosurePlan.add_to", "Solver.kernels"}
INTERNAL |= {"CompiledMeasure.dimension", "CompiledMeasure.program", "CompiledMeasure.quantities"}


def classes() -> dict[str, type]:
    found = {n: getattr(place, n) for place in PLACES for n in place.__all__}
    return {n: kind for n, kind in sorted(found.items()) if inspect.isclass(kind)}


def results() -> Iterator[tuple[str, Any]]:
    """What public functions, and methods and attributes of public classes return, as it is annotated."""
    for place in PLACES:
        for name in place.__all__:
            thing = getattr(place, name)
            if inspect.isfunction(thing):
                yield name, inspect.unwrap(thing).__annotations__.get("return")
    contract = (Spec, Formulation, Integrator, Exception)  # their methods are for authors of types
    for name, kind in classes().items():
        if issubclass(kind, contract):
            continue
        if is_dataclass(kind):
            yield from ((f"{name}.{f.name}", f.type) for f in fields(kind) if f.repr and not f.name.startswith("_"))
        for key, member in vars(kind).items():
            inner = getattr(member, "__func__", member)
            inner = inner.fget if isinstance(inner, property) else inner
            inner = inner.func if hasattr(inner, "attrname") else inner  # a cached property
            if inspect.isfunction(inner) and not key.startswith("_"):
                yield f"{name}.{key}", inspect.unwrap(inner).__annotations__.get("return")


def test_every_type_that_a_public_function_returns_can_be_imported_from_a_public_place():
    missing = {}
    for name, annotation in results():
        words = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'|\"[^\"]*\"", "", str(annotation))))
        unknown = {w for w in words - FOREIGN - PUBLIC if not hasattr(builtins, w)}
        if unknown and name not in INTERNAL:
            missing[name] = unknown
    assert missing == {}


PARTS = {n: kind for n, kind in classes().items() if issubclass(kind, Spec) and n != "Curve"}


@pytest.mark.parametrize("name", [*PARTS, "Mechanism"])
def test_the_signature_of_a_part_can_be_read(name):
    text = str(inspect.signature(PARTS.get(name, ld.Mechanism)))
    assert len(text) < 900
    assert not re.search(r"pydantic|Annotated|lambda|loopdyn\.|values", text)


def test_the_signature_of_a_pin_shows_its_axis_first_and_limits_by_name():
    found = inspect.signature(ld.Revolute).parameters
    assert str(found["axis"]) == "axis: Vector"
    assert str(found["limits"]) == "limits: Pair | dict[str, Pair] | None = None"
    assert found["limits"].kind is inspect.Parameter.KEYWORD_ONLY
    assert list(inspect.signature(ld.forces.SpringDamper).parameters)[:5] == [
        "body1", "body2", "point1", "point2", "stiffness",
    ]  # fmt: skip
    assert str(inspect.signature(ld.forces.Motor)).startswith("(joint: str, torque: Law | None = None, ")


@pytest.mark.parametrize("name", sorted({*ld.joints.__all__, *ld.forces.__all__, *ld.constraints.__all__} - {"Law"}))
def test_the_docstring_of_a_part_lists_its_fields(name):
    kind = classes()[name]
    text = inspect.getdoc(kind) or ""
    found = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n\w+\n---|\Z)", text, re.M | re.S)
    listed = re.findall(r"^([\w, ]+) : ", found[1], re.M) if found else []
    assert set(kind._own_fields()) <= {word for line in listed for word in line.split(", ")}
