"""Numbers as a user writes them: plain, as formulas of parameters, in declared units.

A model keeps every number as it was written (``0.5`` or ``"crank/2"``). A :class:`Resolver` turns them
into SI floats when the model is compiled: formulas are evaluated in the units of the model, then
converted. This is the only place where units are converted.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, GetPydanticSchema, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from loopdyn.errors import ExpressionError, ModelError, Problem
from loopdyn.expressions import Expression, parse

Path = tuple[str | int, ...]


# ------------------------------------------------------------------------------------- types of fields


def _scalar(value: Any) -> float | str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise PydanticCustomError("number", "expected a number or a formula, found {found}", {"found": _kind(value)})
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        raise PydanticCustomError("finite", "{found} is not a finite number", {"found": str(value)})
    return float(value)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, bool):
        return "true/false"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return short(repr(value))


def short(text: str, most: int = 60) -> str:
    """A text cut to a length that fits into a message."""
    return text if len(text) <= most else text[: most - 3] + "..."


def _vector(size: int) -> Any:
    def check(value: Any) -> tuple[float | str, ...]:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not isinstance(value, list | tuple) or len(value) != size:
            raise PydanticCustomError(
                "vector", "expected a list of {size} numbers, found {found}", {"size": size, "found": _kind(value)}
            )
        return tuple(_scalar(x) for x in value)

    return check


def _field(check: Any, schema: dict[str, Any]) -> Any:
    plain = GetPydanticSchema(lambda _type, _handler: core_schema.no_info_plain_validator_function(check))
    return (plain, WithJsonSchema(schema))


_NUMBER = {"anyOf": [{"type": "number"}, {"type": "string", "description": "formula of parameters"}]}


def _vector_schema(size: int) -> dict[str, Any]:
    return {"type": "array", "items": _NUMBER, "minItems": size, "maxItems": size}


Scalar = Annotated[float | str, *_field(_scalar, _NUMBER)]
Vec2 = Annotated[tuple[float | str, float | str], *_field(_vector(2), _vector_schema(2))]
Vec3 = Annotated[tuple[float | str, float | str, float | str], *_field(_vector(3), _vector_schema(3))]
Vec4 = Annotated[tuple[float | str, float | str, float | str, float | str], *_field(_vector(4), _vector_schema(4))]
Vec6 = Annotated[tuple[float | str, ...], *_field(_vector(6), _vector_schema(6))]


# ------------------------------------------------------------------------------------ base of all parts


class Spec(BaseModel):
    """Base of everything a model is made of: immutable data, unknown keys refused, errors in words."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False)

    label: ClassVar[str] = ""

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            name = self.label or type(self).__name__
            raise ModelError(explain(error, type(self), name, data)) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # nested parts are validated in place

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(k, v) for k, v in super().__repr_args__() if v is not None and v != ()]


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the known word nearest to `word`, or all of them if none is near.

    Examples
    --------
    >>> nearest("ground_", ["ground", "crank"])
    "Did you mean 'ground'?"
    """
    words = list(known)
    close = difflib.get_close_matches(str(word), words, n=1, cutoff=0.6)
    if close:
        return _did_you_mean((close[0],))
    if not words:
        return "There are none."
    shown = ", ".join(words[:12]) + (", ..." if len(words) > 12 else "")
    return f"Known: {shown}."


@dataclass(frozen=True)
class Finding:
    """One error of pydantic in words: what it concerns, where the value stands, what is wrong and what to do."""

    subject: Path
    path: Path
    message: str
    hint: str = ""


def explain(error: ValidationError, model: type[BaseModel], element: str, data: Any) -> list[Problem]:
    """Turn pydantic's errors on `data` into problems in words, each with its path."""
    problems = []
    for f in findings(error, model, data):
        where = element if not f.subject else f"{element}, {'.'.join(str(p) for p in f.subject)}"
        problems.append(Problem(where, f.message, f.hint, path=f.path))
    return problems


def findings(error: ValidationError, model: type[BaseModel], data: Any) -> list[Finding]:
    """Pydantic's errors on `data`, without its jargon.

    Where a value may have several forms, pydantic reports the errors of each form; only those of the form
    that the user evidently meant are kept.
    """
    raw: dict[Path, list[Any]] = {}
    for item in error.errors():
        raw.setdefault(_path_in(data, item), []).append(item)
    found = []
    for path, items in raw.items():
        if any(len(other) > len(path) and other[: len(path)] == path for other in raw):
            continue  # the form that was meant has its own errors further inside
        other_forms = ("model_type", "model_attributes_type", "dict_type", "string_type")
        meant = [item for item in items if item["type"] not in other_forms]
        if meant or len(items) == 1:
            found.append(_in_words(meant[0] if meant else items[0], path, model))
        else:
            message = f"expected a name or a mapping, found {_kind(items[0]['input'])}"
            found.append(Finding(path, path, message, "Give the name, or 'key: value' pairs."))
    meant_keys = {(f.subject, f.hint) for f in found if f.message.startswith("unknown key")}
    return [f for f in found if (f.subject, _did_you_mean(f.path)) not in meant_keys]  # one mistake, said once


def _did_you_mean(path: Path) -> str:
    return f"Did you mean '{path[-1] if path else ''}'?"


def _path_in(data: Any, item: Any) -> Path:
    """Path of an error through the data as they were given, without the names of forms that pydantic adds."""
    path: list[str | int] = []
    last = len(item["loc"]) - 1
    for k, step in enumerate(item["loc"]):
        if isinstance(data, Mapping) and step in data:
            data = data[step]
        elif isinstance(data, list | tuple) and isinstance(step, int) and step < len(data):
            data = data[step]
        elif not (k == last and item["type"].startswith("missing")):
            continue
        path.append(step)
    return tuple(path)


def _in_words(item: Any, path: Path, model: type[BaseModel]) -> Finding:
    kind, context, found = item["type"], item.get("ctx", {}), _kind(item["input"])
    key = path[-1] if path else ""
    if kind == "extra_forbidden":
        known = [name for m in _models_at(model, item["loc"][:-1]) for name in _fields(m)]
        return Finding(path[:-1], path, f"unknown key '{short(str(key))}'", nearest(str(key), dict.fromkeys(known)))
    if kind.startswith("missing"):
        if isinstance(key, int):
            return Finding(path[:-1], path[:-1], f"entry {key + 1} of the list is missing", "Add it.")
        return Finding(path[:-1], path, f"'{key}' is missing", f"Add '{key}'.")
    if kind.startswith("union_tag"):
        types = [str(m.model_fields["type"].default) for m in _models_at(model, item["loc"])]
        if kind == "union_tag_not_found":
            return Finding(path, path, "'type' is missing", f"Add one of: {', '.join(types)}.")
        return Finding(path, (*path, "type"), f"unknown type '{short(context['tag'])}'", nearest(context["tag"], types))
    if kind == "too_long":
        return Finding(path, path, f"expected a list of {context['max_length']}, found {found}", _HINTS["vector"])
    if kind in _EXPECTED:
        expected, hint = _EXPECTED[kind]
        return Finding(path, path, f"expected {expected}, found {found}", hint)
    if kind == "literal_error":
        return Finding(path, path, f"expected {context['expected']}, found {found}", "Choose one of them.")
    message = item["msg"].removeprefix("Value error, ")
    return Finding(path, path, message[:1].lower() + message[1:], _HINTS.get(kind, ""))


_EXPECTED = {
    "string_type": ("a text", "Put it in quotes."),
    "model_type": ("a mapping", "Write 'key: value' pairs."),
    "model_attributes_type": ("a mapping", "Write 'key: value' pairs."),
    "dict_type": ("a mapping", "Write 'name: value' pairs."),
    "tuple_type": ("a list", "Write it in brackets: [a, b, c]."),
    "callable_type": ("a function", "Give a function f(t, q, v, out)."),
}
_HINTS = {
    "number": "Give a number, or a formula of parameters in quotes.",
    "finite": "Give a finite number.",
    "vector": "Write it in brackets, one entry for each.",
    "value_error": "Correct the entries.",
}


def _fields(model: type[BaseModel]) -> list[str]:
    """Keys that may be written for a part; fields left out when it is saved are not for files."""
    return [f.alias or name for name, f in model.model_fields.items() if not f.exclude]


def _models_at(model: type[BaseModel], loc: Path) -> list[type[BaseModel]]:
    """Classes of parts that may stand at `loc`, a path as pydantic reports it, with the names of forms in it."""
    here = _forms(model)
    for step in loc:
        inside = [form for outer in here for form in _step_into(outer, step)]
        if inside:
            here = inside
        else:  # the name of one of several forms: a class, or the value of its 'type'
            named = [m for m in here if isinstance(m, type) and step in (m.__name__, _type_of(m))]
            here = named or here
    return [m for m in here if isinstance(m, type) and issubclass(m, BaseModel)]


def _type_of(model: Any) -> Any:
    field = getattr(model, "model_fields", {}).get("type")
    return None if field is None else field.default


def _forms(annotation: Any) -> list[Any]:
    """All forms a value of this type may have: the members of unions, without annotations."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _forms(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [form for member in get_args(annotation) for form in _forms(member)]
    return [annotation]


def _step_into(form: Any, step: str | int) -> list[Any]:
    origin, arguments = get_origin(form), get_args(form)
    if origin is dict:
        return _forms(arguments[1])
    if origin is tuple and isinstance(step, int):
        return _forms(arguments[0])
    for name, field in getattr(form, "model_fields", {}).items():
        if step == (field.alias or name):
            return _forms(field.annotation)
    return []


# ------------------------------------------------------------------------------------------------ units

LENGTHS = {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "km": 1e3, "um": 1e-6, "in": 0.0254, "ft": 0.3048}
ANGLES = {"rad": 1.0, "deg": math.pi / 180.0, "turn": 2.0 * math.pi}
MASSES = {"kg": 1.0, "g": 1e-3, "t": 1e3, "lb": 0.45359237}
FORCES = {"N": 1.0, "mN": 1e-3, "kN": 1e3, "MN": 1e6, "lbf": 4.4482216152605}
_LBF = FORCES["lbf"]
TORQUES = {"N*m": 1.0, "N*mm": 1e-3, "kN*m": 1e3, "mN*m": 1e-3, "lbf*ft": 0.3048 * _LBF, "lbf*in": 0.0254 * _LBF}
ACCELERATIONS = {"m/s^2": 1.0, "mm/s^2": 1e-3, "g": 9.80665, "ft/s^2": 0.3048}

_TABLES = {
    "length": LENGTHS,
    "angle": ANGLES,
    "mass": MASSES,
    "force": FORCES,
    "torque": TORQUES,
    "acceleration": ACCELERATIONS,
}


def _unit(kind: str) -> Any:
    table = _TABLES[kind]

    def check(value: Any) -> str:
        if value not in table:
            raise PydanticCustomError(
                "unit",
                "unknown unit {found} of {kind}. {hint}",
                {"found": repr(value), "kind": kind, "hint": "Known: " + ", ".join(table) + "."},
            )
        return str(value)

    return _field(check, {"enum": list(table)})


class Units(Spec):
    """Units in which the numbers of a model are written; converted to SI once, when the model is compiled.

    Compound quantities follow from these: inertia is mass*length^2, density mass/length^3, stiffness
    force/length or torque/angle, damping the same times second, pitch length/angle. Time is in seconds.
    Force, torque and the acceleration of gravity stay N, N*m and m/s^2 unless they are declared too.

    Examples
    --------
    >>> Units(length="mm", angle="deg").factor("stiffness")
    1000.0
    """

    label: ClassVar[str] = "units"

    length: Annotated[str, *_unit("length")] = "m"
    angle: Annotated[str, *_unit("angle")] = "rad"
    mass: Annotated[str, *_unit("mass")] = "kg"
    force: Annotated[str, *_unit("force")] = "N"
    torque: Annotated[str, *_unit("torque")] = "N*m"
    acceleration: Annotated[str, *_unit("acceleration")] = "m/s^2"

    def factor(self, dimension: str) -> float:
        """SI value of one unit of `dimension`."""
        return _factors(self)[dimension]


@lru_cache(maxsize=64)
def _factors(units: Units) -> dict[str, float]:
    length, angle, mass = LENGTHS[units.length], ANGLES[units.angle], MASSES[units.mass]
    force, torque = FORCES[units.force], TORQUES[units.torque]
    return {
        "number": 1.0,
        "length": length,
        "angle": angle,
        "mass": mass,
        "force": force,
        "torque": torque,
        "acceleration": ACCELERATIONS[units.acceleration],
        "inertia": mass * length**2,
        "density": mass / length**3,
        "speed": length,
        "angular_speed": angle,
        "pitch": length / angle,
        "stiffness": force / length,
        "damping": force / length,
        "angular_stiffness": torque / angle,
        "angular_damping": torque / angle,
    }


# --------------------------------------------------------------------------------------------- resolver

_parse = lru_cache(maxsize=4096)(parse)


class Resolver:
    """Turns the numbers of a model into SI floats and collects everything that is wrong on the way.

    Parameters
    ----------
    parameters : mapping
        Values of the parameters, in the units of the model.
    units : Units
        Units of the model.

    Examples
    --------
    >>> r = Resolver({"crank": 120.0}, Units(length="mm"))
    >>> r.scalar("crank/2", "length", "body 'a'", ())
    0.06
    """

    def __init__(self, parameters: Mapping[str, float], units: Units):
        self.parameters = dict(parameters)
        self.units = units
        self.problems: list[Problem] = []
        self._factors = _factors(units)

    def problem(self, element: str, message: str, hint: str = "", path: Path = ()) -> None:
        """Record one problem; compiling goes on, so that all are reported at once."""
        self.problems.append(Problem(element, message, hint, path=path))

    def expression(self, text: str, element: str, path: Path) -> Expression | None:
        """Parse a formula; None, with the problem recorded, if it cannot be read."""
        try:
            return _parse(text)
        except ExpressionError as error:
            self.problem(element, str(error), path=path)
            return None

    def scalar(self, value: float | str, dimension: str, element: str, path: Path) -> float:
        """SI value of a number or formula; NaN, with the problem recorded, if it has none."""
        if isinstance(value, str):
            formula = self.expression(value, element, path)
            if formula is None:
                return math.nan
            try:
                value = formula.evaluate(self.parameters)
            except ExpressionError as error:
                self.problem(element, str(error), path=path)
                return math.nan
        return value * self._factors[dimension]

    def vector(self, value: Sequence[float | str], dimension: str, element: str, path: Path) -> NDArray[np.float64]:
        """SI values of a list of numbers or formulas."""
        return np.array([self.scalar(x, dimension, element, (*path, i)) for i, x in enumerate(value)])

    def direction(self, value: Sequence[float | str], element: str, path: Path) -> NDArray[np.float64]:
        """Unit vector along `value`; a zero axis is a problem."""
        v = self.vector(value, "number", element, path)
        length = math.sqrt(float(v @ v))
        if length == 0.0:
            self.problem(element, f"'{path[-1]}' has length zero", "Give a direction, e.g. [0, 0, 1].", path)
            return np.array([0.0, 0.0, 1.0])
        return v / length
