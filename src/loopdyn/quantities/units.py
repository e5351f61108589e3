"""Numbers as a user writes them: plain, as formulas of parameters, in declared units.

A model keeps every number as it was written (``0.5`` or ``"crank/2"``). A :class:`Resolver` turns them
into SI floats when the model is compiled: formulas are evaluated in the units of the model, then
converted. This is the only place where units are converted.
"""

from __future__ import annotations

import inspect
import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, GetPydanticSchema, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from loopdyn.errors import ExpressionError, ModelError, Problem
from loopdyn.errors import Path as Path
from loopdyn.quantities.expressions import Expression, Lookup, parsed
from loopdyn.quantities.wording import describe, explain, nearest

# ------------------------------------------------------------------------------------- types of fields


LARGEST = 1e60  # largest number of a model: products of a few, and their squares, stay finite


def _scalar(value: Any) -> float | str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise PydanticCustomError("number", "expected a number or a formula, found {found}", {"found": describe(value)})
    if isinstance(value, str):
        return value
    if value != value or abs(value) == math.inf:
        raise PydanticCustomError("finite", "{found} is not a finite number", {"found": str(value)})
    if abs(value) > LARGEST:
        found = describe(value) if isinstance(value, float) else "a number of many digits"
        raise PydanticCustomError("finite", "{found} is more than any machine has", {"found": found})
    return float(value)


def _vector(size: int) -> Any:
    def check(value: Any) -> tuple[float | str, ...]:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not isinstance(value, list | tuple) or len(value) != size:
            raise PydanticCustomError(
                "vector", "expected a list of {size} numbers, found {found}", {"size": size, "found": describe(value)}
            )
        return tuple(_scalar(x) for x in value)

    return check


class PointName(str):
    """Name of a point of the model, given where three coordinates could be."""

    __slots__ = ()


def _place(value: Any) -> tuple[float | str, ...] | PointName:
    if isinstance(value, str):
        return PointName(value)
    found: tuple[float | str, ...] = _vector(3)(value)
    return found


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
PLACE_SCHEMA = {"anyOf": [_vector_schema(3), {"type": "string", "description": "name of a point"}]}
# World point at the reference pose: three coordinates, or the name of a point of the model.
Place = Annotated[tuple[float | str, float | str, float | str] | PointName, *_field(_place, PLACE_SCHEMA)]


# ------------------------------------------------------------------------------------ base of all parts


class ReadableSignature:
    """``__signature__`` of a class of data: its fields with short types and defaults, made when it is asked for.

    `Number` is a number or a formula in quotes, `Vector` three of them, `Pair` two, `Quaternion` four, `Matrix` three
    rows of three; `Law` is a number, a formula, a table or a profile.
    """

    WORDS: ClassVar[dict[str, str]] = {
        r"\bScalar\b": "Number", r"\bVec2\b": "Pair", r"\bVec3\b": "Vector", r"\bVec4\b": "Quaternion",
        r"Annotated\[(\w+),.*\]": r"\1", r"\bRotationField\b": "Rotation | None", r"\bAny(?=[A-Z])": "",
        r"_parts\((\w+),[^)]*\)": r"\1 | list[\1]", r"\bMatrixField\b": "Matrix",
    }  # fmt: skip

    def __get__(self, instance: Any, owner: type[BaseModel]) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")  # of a class, not of its objects
        takes = inspect.signature(owner.__init__).parameters.values()
        own = [p.name for p in takes if p.kind is p.POSITIONAL_OR_KEYWORD and p.name in owner.model_fields]
        if issubclass(owner, Spec) and any(p.kind is p.VAR_POSITIONAL for p in takes):
            own = owner._own_fields()
        kind, given = inspect.Parameter.POSITIONAL_OR_KEYWORD, False
        found = []
        for name in own:
            p = self._parameter(owner, name, kind)
            given = given or p.default is not p.empty
            found.append(p.replace(kind=p.KEYWORD_ONLY) if given and p.default is p.empty else p)
        further = [n for n in owner.model_fields if n not in own and n not in ("type", "profile", "loopdyn")]
        found += [self._parameter(owner, name, inspect.Parameter.KEYWORD_ONLY) for name in further]
        return inspect.Signature(sorted(found, key=lambda p: p.kind))

    def _parameter(self, owner: type[BaseModel], name: str, kind: Any) -> inspect.Parameter:
        field = owner.model_fields[name]
        default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
        written = next(a[name] for c in owner.__mro__ if name in (a := inspect.get_annotations(c)))
        words = written if isinstance(written, str) else getattr(written, "__name__", str(written))
        for pattern, word in self.WORDS.items():
            words = re.sub(pattern, word, words)
        return inspect.Parameter(field.alias or name, kind, default=default, annotation=_Words(words))


class _Words(str):
    """Text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Spec(BaseModel):
    """Base of everything a model is made of: immutable data, unknown keys refused, errors in words.

    Values without a name are the fields of a class in their order, without `type` (`profile`) and without those that
    all parts of its kind have: ``Revolute((0, 0, 1))``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False, defer_build=True)

    label: ClassVar[str] = ""

    def __init__(self, /, *values: Any, **data: Any) -> None:
        name = self.label or type(self).__name__
        if values:
            own = self._own_fields()
            twice = [key for key in own[: len(values)] if key in data]
            if len(values) > len(own) or twice:
                what = f"'{twice[0]}' is given twice" if twice else f"{len(values)} values have no name"
                hint = f"Without a name: {', '.join(own) or 'nothing'}, in this order."
                raise ModelError([Problem(name, what, hint)])
            data |= dict(zip(own, values, strict=False))
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise ModelError(explain(error, type(self), name, data)) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # nested parts are validated in place

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Give each class a signature that people can read."""
        cls.__signature__ = ReadableSignature()  # type: ignore[assignment]

    @classmethod
    def model_rebuild(cls, *, _parent_namespace_depth: int = 2, **options: Any) -> bool | None:
        """Make the class ready for validation, and keep its signature, which pydantic would replace."""
        made = super().model_rebuild(_parent_namespace_depth=_parent_namespace_depth + 1, **options)
        cls.__signature__ = ReadableSignature()  # type: ignore[assignment]
        return made

    @classmethod
    def _own_fields(cls) -> list[str]:
        """Fields in the order of their declaration, without those of the base of a kind (joint, force, ...)."""
        kinds = [c for c in cls.__mro__ if issubclass(c, Spec) and c is not Spec]
        declared = [key for c in reversed(kinds[:-1] or kinds) for key in inspect.get_annotations(c)]
        return [key for key in declared if key in cls.model_fields and key not in ("type", "profile")]

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(k, v) for k, v in super().__repr_args__() if v is not None and v != ()]


class OneOf:
    """Annotation of a union of parts of a model: `key` says which of them a mapping describes.

    As ``Field(discriminator=key)``, but a class is made ready for validation when the first of its kind is met: a model
    has few of the types, and to prepare them all takes a good part of the time of reading it.
    """

    def __init__(self, key: str):
        self.key = key

    def __get_pydantic_core_schema__(self, union: Any, handler: Any) -> Any:
        schema = self._schema(union, lambda part: core_schema.no_info_plain_validator_function(part.model_validate))
        schema["metadata"] = {"pydantic_js_functions": [lambda _, json: json(self._schema(union, _written_out))]}
        return schema

    def _schema(self, union: Any, of: Callable[[type[BaseModel]], Any]) -> Any:
        """Schema of pydantic, with that of each class made by `of`."""
        members = {part.model_fields[self.key].default: of(part) for part in get_args(union)}
        return core_schema.tagged_union_schema(members, self.key)


def _written_out(part: type[BaseModel]) -> Any:
    """Schema of a class with all its fields, of which a JSON Schema can be made."""
    part.model_rebuild()
    return part.__pydantic_core_schema__


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
        if not isinstance(value, str) or value not in table:
            raise PydanticCustomError(
                "unit",
                "unknown unit {found} of {kind}. {hint}",
                {"found": describe(value), "kind": kind, "hint": "Known: " + ", ".join(table) + "."},
            )
        return str(value)

    return _field(check, {"enum": list(table)})


class Units(Spec):
    """Units in which the numbers of a model are written; converted to SI once, when the model is compiled.

    Compound quantities follow from these: inertia is mass*length^2, density mass/length^3, stiffness
    force/length or torque/angle, damping the same times second, pitch length/angle. Time is in seconds.
    Force, torque and the acceleration of gravity stay N, N*m and m/s^2 unless they are declared too.

    Parameters
    ----------
    length, angle, mass, force, torque, acceleration : str
        Symbols: ``"mm"``, ``"deg"``, ``"g"``, ``"N"``, ``"N*mm"``, ``"m/s^2"``; an unknown one is refused.

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
        known = _factors(self)
        if not isinstance(dimension, str) or dimension not in known:
            raise ModelError([Problem("units", f"there is no dimension {dimension!r}", nearest(str(dimension), known))])
        return known[dimension]

    def symbol(self, dimension: str, rate: int = 0) -> str:
        """Unit of `dimension`, or of its derivative by time of order `rate`, in a form that programs can read.

        Examples
        --------
        >>> units = Units(length="mm", angle="deg", torque="N*mm")
        >>> units.symbol("length"), units.symbol("angle", rate=2), units.symbol("angular_stiffness")
        ('mm', 'deg/s^2', 'N*mm/deg')
        """
        self.factor(dimension)
        return _symbols(self)[dimension] + ("", "/s", "/s^2")[rate]


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


@lru_cache(maxsize=64)
def _symbols(units: Units) -> dict[str, str]:
    """Symbols of all dimensions of `_factors`."""
    length, angle, mass, force, torque = units.length, units.angle, units.mass, units.force, units.torque
    return {
        "number": "1",
        "length": length,
        "angle": angle,
        "mass": mass,
        "force": force,
        "torque": torque,
        "acceleration": units.acceleration,
        "inertia": f"{mass}*{length}^2",
        "density": f"{mass}/{length}^3",
        "speed": f"{length}/s",
        "angular_speed": f"{angle}/s",
        "pitch": f"{length}/{angle}",
        "stiffness": f"{force}/{length}",
        "damping": f"{force}*s/{length}",
        "angular_stiffness": f"{torque}/{angle}",
        "angular_damping": f"{torque}*s/{angle}",
    }


# --------------------------------------------------------------------------------------------- resolver


@lru_cache(maxsize=1024)
def _unit_vector(numbers: bytes) -> NDArray[np.float64] | None:
    """Unit vector along three plain numbers, read-only; None if it has to be looked at more closely."""
    v = np.frombuffer(numbers)
    length = math.sqrt(float(v @ v))
    if not 0.0 < length <= LARGEST:
        return None
    found: NDArray[np.float64] = v / length
    found.flags.writeable = False
    return found


class Resolver:
    """Turns the numbers of a model into SI floats and collects all problems.

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
        self.points: dict[str, NDArray[np.float64]] = {}  # world points at the reference pose by name; NaN if wrong
        self.measures: frozenset[str] = frozenset()  # names of measures, which laws cannot use
        self.limits: dict[str, tuple[Any, Any, Any]] = {}  # of joints by label: bounds as written, restitution or None
        self.notes: list[str] = []  # legal but suspicious values
        self.tables: list[tuple[str, str, Lookup]] = []  # element, name of the variable, and its table
        self._factors = _factors(units)
        self._values = dict(parameters)  # of formulas, in the units of the model: a name alone is one

    def problem(self, element: str, message: str, hint: str = "", path: Path = ()) -> None:
        """Record a problem; compilation continues, so that all are reported at once."""
        self.problems.append(Problem(element, message, hint, path=path))

    def expression(self, text: str, element: str, path: Path) -> Expression | None:
        """Parse a formula; None, with the problem recorded, if it cannot be read."""
        try:
            return parsed(text)
        except ExpressionError as error:
            self.problem(element, str(error), path=path)
            return None

    def scalar(self, value: float | str, dimension: str, element: str, path: Path) -> float:
        """SI value of a number or formula; NaN, with the problem recorded, if it has none."""
        if isinstance(value, str):
            value = self._values[value] if value in self._values else self._evaluated(value, element, path)
            if math.isnan(value):
                return value
        if not abs(value) <= LARGEST:
            message = f"a number is {value:g}, more than any machine has"
            self.problem(element, message, "Check exponents and units.", path)
            return math.nan
        return value * self._factors[dimension]

    def _evaluated(self, text: str, element: str, path: Path) -> float:
        """Value of a formula, in the units of the model; NaN, with the problem recorded, if it has none."""
        formula = self.expression(text, element, path)
        if formula is None:
            return math.nan
        try:
            value = formula.evaluate(self.parameters)
        except ExpressionError as error:
            self.problem(element, str(error), path=path)
            return math.nan
        self._values[text] = value
        return value

    def vector(self, value: Sequence[float | str], dimension: str, element: str, path: Path) -> NDArray[np.float64]:
        """SI values of a list of numbers or formulas, or of a point given by its name."""
        if isinstance(value, PointName):
            return self.point(value, element, path)
        factor, numbers = self._factors[dimension], []
        for i, x in enumerate(value):
            if isinstance(x, float) and -LARGEST <= x <= LARGEST:
                numbers.append(x * factor)
            else:
                numbers.append(self.scalar(x, dimension, element, (*path, i)))
        return np.array(numbers)

    def point(self, name: str, element: str, path: Path) -> NDArray[np.float64]:
        """World position of a named point at the reference pose; NaN, with the problem recorded, if there is none."""
        if name not in self.points:
            hint = f"{nearest(name, self.points)} Points are listed in 'points:'; coordinates are a list [x, y, z]."
            self.problem(element, f"there is no point '{name}'", hint, path)
            return np.full(3, np.nan)
        return self.points[name].copy()

    def direction(self, value: Sequence[float | str], element: str, path: Path) -> NDArray[np.float64]:
        """Unit vector along `value`; a zero axis is a problem."""
        try:
            known = _unit_vector(struct.pack("3d", *value))
        except struct.error:  # there are formulas, or it is the name of a point
            known = None
        if known is not None:
            return known
        v = self.vector(value, "number", element, path)
        length = math.sqrt(float(v @ v))
        if length == 0.0:
            self.problem(element, f"'{path[-1]}' has length zero", "Give a direction, e.g. [0, 0, 1].", path)
            return np.array([0.0, 0.0, 1.0])
        return v / length
