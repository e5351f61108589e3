"""Checks of the arguments of public functions against their annotations.

A wrong kind of argument raises an error that says what is needed and how to get it, before anything is computed. All
public names of the package are checked where they are looked up (:func:`check`); inside, functions trust each other.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import numbers
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np

import loopdyn
import loopdyn.events as events
import loopdyn.tree as tree  # not `from loopdyn`, which would check it by functions not yet defined
from loopdyn.errors import ModelError, Problem
from loopdyn.formulations.base import Formulation
from loopdyn.integrators.base import Integrator
from loopdyn.integrators.drift import Baumgarte
from loopdyn.public_names import NAMESPACES, listed
from loopdyn.quantities.units import Spec
from loopdyn.quantities.wording import describe, nearest, short
from loopdyn.system.system import State, System, require_state

F = TypeVar("F", bound=Callable[..., Any])
CHECKED = "__checked__"  # mark of a function whose arguments are checked
# Functions that pass their options on, and to which.
FORWARDS = {"variants": "loopdyn.run.simulate:simulate", "report": "loopdyn.run.simulate:simulate"}
# Names of arguments that were others, by function, and functions whose first arguments were in another order.
RENAMED = {
    "drive": {"times": "t_span=(start, stop) and t_eval=values"},
    "inverse_dynamics": {"times": "t_eval", "start": "near"},
    "equilibrium": {"start": "near"},
    "zero_force": {"start": "near"},
    "preload": {"pose": "state"},
    "terms": {"near": "angles"},
    "report": {"time": "t_span=(start, stop)"},
    "variants": {"time": "t_span=(start, stop)", "every": "t_eval=values"},
    "Linearization.save": {"file": "path"},
}
REORDERED = {
    "Mechanism.add_force": "add_force(name, force)",
    "preload": "preload(system, force, state)",
    "reconnect": "reconnect(system, other, state)",
    "open_tree_body_jacobian": "open_tree_body_jacobian(system, body, state)",
    "open_tree_inverse_dynamics": "open_tree_inverse_dynamics(system, a, state)",
    "readings": "readings(system, other, state)",
    "ImportedMJCF.qacc": "qacc(system, a, state)",
}
# Names that occur in annotations only; their modules are loaded by the functions that use them.
LATE = {"pandas": "pandas", "Axes": "matplotlib.axes:Axes", "Stepper": "loopdyn.integrators.stepper:Stepper"}
# Classes whose objects users make; results are made by loopdyn.
_EVENTS = (events.Add, events.At, events.Crossing, events.Limits, events.Lock, events.Release)
MADE_BY_USERS = (State, Formulation, Integrator, Baumgarte, *_EVENTS)
ALSO_MADE = ("Simulation",)  # ... by name, since loading it takes long

# How to get what is needed, by the name of its class.
HINTS = {
    "System": "Compile the mechanism: system = mechanism.compile().",
    "State": "Make one: state = ld.assemble(system, q={...}).",
    "Mechanism": "Build one with ld.Mechanism(...), or read one with ld.load(file).",
    "Joint": "Give its type and axis, e.g. ld.Revolute(axis=(0, 0, 1)).",
    "Inertia": "Give mass properties, e.g. ld.Inertia.rod(mass=1, start=(0, 0, 0), end=(1, 0, 0)).",
    "Frame": "Give one, e.g. ld.Frame(position=(0, 0, 0)).",
    "Force": "Give one, e.g. ld.forces.JointSpring(joint='A', stiffness=10).",
    "Constraint": "Give one, e.g. ld.constraints.Coupler(terms={'A': 1, 'B': 2}).",
    "Run": "Make one: run = ld.simulate(system, state, (0, 1)).",
    "Formulation": "Give its name, e.g. 'graph', or e.g. ld.Graph().",
    "Integrator": "Give its name, e.g. 'dop853', or e.g. ld.integrators.RK4(step=1e-3).",
}


@dataclass(frozen=True)
class Kind:
    """Kind of argument: a test, its description, a hint how to get one, and whether the type of a value decides."""

    fits: Callable[[Any], bool]
    words: str
    hint: str = ""
    by_type: bool = False


ANYTHING = Kind(lambda value: True, "anything", by_type=True)
NO_NUMBERS, NO_LISTS = (bool, np.bool_, str, bytes), (str, bytes, Mapping)


class AnyNumbers:
    """Stands for NumPy's `ArrayLike`, a union with many members, in annotations."""


# ----------------------------------------------------------------------------------------- kinds of values


def is_number(value: Any) -> bool:
    """Whether a value is one real number and not NaN.

    Examples
    --------
    >>> is_number(2), is_number("2"), is_number(float("nan"))
    (True, False, False)
    """
    if isinstance(value, NO_NUMBERS) or getattr(value, "ndim", 0) != 0:
        return False
    try:
        return not math.isnan(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_numeric(value: Any) -> bool:
    """Whether NumPy reads it as real numbers without NaN."""
    try:
        array = np.asarray(value)
        array = array.astype(float) if array.dtype.kind == "O" else array
    except (TypeError, ValueError, OverflowError):
        return False
    return array.size == 0 or (array.dtype.kind in "iuf" and not bool(np.isnan(array).any()))


def _is_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, NO_LISTS) and getattr(value, "ndim", 1) != 0


SIMPLE = {
    Any: ANYTHING,
    object: ANYTHING,
    None: Kind(lambda value: value is None, "", by_type=True),
    NoneType: Kind(lambda value: value is None, "", by_type=True),
    str: Kind(lambda value: isinstance(value, str), "a text", by_type=True),
    bool: Kind(lambda value: isinstance(value, bool | np.bool_), "True or False", by_type=True),
    int: Kind(_is_whole, "a whole number", by_type=True),
    float: Kind(is_number, "a number"),
    AnyNumbers: Kind(_is_numeric, "numbers"),
}


@functools.cache
def kind_of(annotation: Any) -> Kind:
    """Kind of the values of an annotation.

    Examples
    --------
    >>> kind_of(float | None).words, kind_of(float | None).fits("1")
    ('a number', False)
    """
    if annotation in SIMPLE:
        return SIMPLE[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return kind_of(arguments[0])
    if origin in (Union, UnionType):
        return _any_of([kind_of(a) for a in arguments])
    if origin is Literal:
        words = " or ".join(repr(a) for a in arguments)
        return Kind(lambda value: isinstance(value, str | int) and value in arguments, words)
    if origin is tuple:
        return _tuple_of(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping_of(*(kind_of(a) for a in arguments))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _list_of(kind_of(arguments[0]))
    if origin is Iterable:
        return Kind(lambda value: isinstance(value, Iterable) and not isinstance(value, str), "a list")
    if origin is Callable:
        return Kind(callable, "a function")
    plain = origin or annotation
    if not isinstance(plain, type) or getattr(plain, "_is_protocol", False):
        return ANYTHING
    return _instance_of(plain)


def _instance_of(kind: type) -> Kind:
    names = {os.PathLike: "the name of a file", np.ndarray: "an array"}
    words = names.get(kind, f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}")
    return Kind(lambda value: isinstance(value, kind), words, HINTS.get(kind.__name__, ""), by_type=True)


def _any_of(kinds: Sequence[Kind]) -> Kind:
    words = " or ".join(dict.fromkeys(k.words for k in kinds if k.words))
    hint = next((k.hint for k in kinds if k.hint), "")
    by_type = all(k.by_type for k in kinds)
    return Kind(lambda value: any(k.fits(value) for k in kinds), words, hint, by_type)


def _tuple_of(arguments: Sequence[Any]) -> Kind:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return _list_of(kind_of(arguments[0]))
    kinds = [kind_of(a) for a in arguments]

    def fits(value: Any) -> bool:
        return _is_list(value) and len(value) == len(kinds) and all(k.fits(x) for k, x in zip(kinds, value))

    return Kind(fits, f"({', '.join(k.words for k in kinds)})")


def _mapping_of(key: Kind, value: Kind) -> Kind:
    def fits(given: Any) -> bool:
        return isinstance(given, Mapping) and all(key.fits(k) and value.fits(x) for k, x in given.items())

    return Kind(fits, f"a mapping {{{key.words}: {value.words}}}")


def _list_of(entry: Kind) -> Kind:
    return Kind(
        lambda value: _is_list(value) and all(entry.fits(x) for x in value),
        "a list" if entry is ANYTHING else f"a list, each entry {entry.words}",
        entry.hint,
    )


# ------------------------------------------------------------------------------------------------ functions


@dataclass(frozen=True)
class Expected:
    """Kinds of the arguments of a function: in order, by name, and of further ones if it accepts any."""

    order: tuple[tuple[str, Kind], ...]
    by_name: Mapping[str, Kind]
    further: Kind | None = None
    options: Kind | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    reordered: str = ""
    right: set[tuple[type, ...]] = field(default_factory=set)  # types of arguments in order that need no other test

    def problem(self, types: tuple[type, ...], values: Sequence[Any], named: Mapping[str, Any]) -> str:
        """Error message for given arguments, whose types are `types`; empty if they are valid."""
        if named or types not in self.right:
            problem = self._wrong_kind(values, named)
            if problem:
                return problem
            if not named and all(kind.by_type for (_, kind), _ in zip(self.order, values)) and not self.further:
                self.right.add(types)
        if State not in types and not named:
            return ""
        return _misfit([*zip((n for n, _ in self.order), values), *named.items()])

    def _wrong_kind(self, values: Sequence[Any], named: Mapping[str, Any]) -> str:
        for (name, kind), value in zip(self.order, values):
            if not kind.fits(value):
                order = f" The order is {self.reordered}." if self.reordered else ""
                return _wrong(name, kind, value) + order
        for value in values[len(self.order) :]:
            if self.further is None:
                return f"more than {len(self.order)} arguments have no name. Name them: {_names(self.by_name)}."
            if not self.further.fits(value):
                return _wrong("an entry", self.further, value)
        for name, value in named.items():
            wanted = self.by_name.get(name) or self.options
            if wanted is None and name in self.renamed:
                return f"there is no argument '{name}'. It is {self.renamed[name]} now."
            if wanted is None:
                return f"there is no argument '{name}'. {nearest(name, self.by_name)}"
            if not wanted.fits(value):
                return _wrong(name, wanted, value)
        return ""


def checked(function: F) -> F:
    """Function with its arguments checked against their annotations.

    Examples
    --------
    >>> @checked
    ... def half(x: float) -> float:
    ...     return x / 2
    >>> half("1")
    Traceback (most recent call last):
    loopdyn.errors.ModelError: half: x is '1'. Give a number.
    """

    @functools.cache  # made at the first call: annotations may name what is imported later
    def expected() -> Expected:
        return _expected(function)

    passed: set[tuple[type, ...]] = set()  # types of arguments in order that need no test at all

    @functools.wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        types = (*map(type, values),)
        if named or types not in passed:
            problem = expected().problem(types, values, named)
            if problem:
                raise ModelError([Problem(_title(function, values), problem)])
            if types in expected().right and State not in types:
                passed.add(types)
        return function(*values, **named)

    setattr(call, CHECKED, True)
    return call  # type: ignore[return-value]


def _title(function: Callable[..., Any], values: Sequence[Any]) -> str:
    """Name of a function, with the class of its object if it is a method."""
    if "." not in function.__qualname__ or "<locals>" in function.__qualname__ or not values:
        return function.__name__
    kind = values[0] if isinstance(values[0], type) else type(values[0])
    return kind.__name__ if function.__name__ == "__init__" else f"{kind.__name__}.{function.__name__}"


def _names(known: Mapping[str, Kind]) -> str:
    return ", ".join(f"{name}=..." for name in known if name != "self")


def _wrong(name: str, kind: Kind, value: Any) -> str:
    return f"{name} is {_found(value)}. Give {kind.words}.{kind.hint and ' '}{kind.hint}"


def _found(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    if type(value).__module__.startswith("loopdyn"):
        return f"a {type(value).__name__}"
    if isinstance(value, Mapping) and value:
        return short("{" + ", ".join(f"{k!r}: {_found(x)}" for k, x in value.items()) + "}", 80)
    if isinstance(value, list | tuple) and value:
        return short("[" + ", ".join(_found(x) for x in value) + "]", 80)
    return describe(value)


def _misfit(given: Sequence[tuple[str, Any]]) -> str:
    """Error message for states that do not fit the system: their size, or NaN."""
    states = [(name, value) for name, value in given if isinstance(value, State) and name != "self"]
    system = next((value for _, value in given if isinstance(value, System)), None) if states else None
    if system is None:
        return ""
    for name, state in states:
        require_state(system, state)
        for labels, values in ((system.coordinates, state.q), (system.speeds, state.v)):
            if not (math.isfinite(np.dot(values, values)) or np.isfinite(values).all()):  # a sum of squares is quick
                k = int(np.argmin(np.isfinite(values)))
                return f"'{labels[k]}' of {name} is {values[k]}. Give finite numbers."
    return ""


def _expected(function: Callable[..., Any]) -> Expected:
    order: list[tuple[str, Kind]] = []
    by_name: dict[str, Kind] = {}
    further = options = None
    for p in inspect.signature(function).parameters.values():
        kind = kind_of(_evaluated(p.annotation, function))
        if p.kind is p.VAR_POSITIONAL:
            further = kind
        elif p.kind is p.VAR_KEYWORD:
            options = kind
        else:
            if p.kind is not p.KEYWORD_ONLY:
                order.append((p.name, kind))
            if p.kind is not p.POSITIONAL_ONLY:
                by_name[p.name] = kind
    if function.__qualname__ in FORWARDS:
        module, _, name = FORWARDS[function.__qualname__].partition(":")
        to = getattr(importlib.import_module(module), name)
        keywords = [p.name for p in inspect.signature(to).parameters.values() if p.kind is p.KEYWORD_ONLY]
        by_name = {**{n: k for n, k in _expected(inspect.unwrap(to)).by_name.items() if n in keywords}, **by_name}
        options = None
    name = function.__qualname__
    old, order_now = RENAMED.get(name, {}), REORDERED.get(name, "")
    return Expected(tuple(order), by_name, further, options, renamed=old, reordered=order_now)


def _evaluated(annotation: Any, function: Callable[..., Any]) -> Any:
    """Evaluated annotation that was written as text, including names imported for type checkers only."""
    if annotation is inspect.Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    return eval(annotation, {}, _Names({**inspect.unwrap(function).__globals__, "ArrayLike": AnyNumbers}))


class _Names(dict[str, Any]):
    """Names in annotations: those of a module, public ones, and those imported when needed."""

    def __getitem__(self, name: str) -> Any:
        if name in self:
            return super().__getitem__(name)
        if name in LATE:
            module, _, member = LATE[name].partition(":")
            found = importlib.import_module(module)
            return getattr(found, member) if member else found
        for place in (loopdyn, *(importlib.import_module(f"loopdyn.{n}") for n in NAMESPACES)):
            if name in place.__all__:
                return getattr(place, name)
        raise KeyError(name)  # a builtin


# -------------------------------------------------------------------------------------------- all public names


def check(thing: Any, place: str) -> Any:
    """Public object with its arguments checked: a function, the methods of a class, all public names of a module.

    The function stays unchecked where it is defined, for internal use. `place` is the module in which the checked one
    is public, where pickle finds it.
    """
    if inspect.ismodule(thing):
        check_public(vars(thing), [n for n in thing.__all__ if n in vars(thing)])  # others when they are asked for
    elif inspect.isclass(thing):
        check_class(thing)
    elif inspect.isfunction(thing) and not hasattr(thing, CHECKED):
        made = checked(thing)
        made.__module__, made.__qualname__ = place, thing.__name__
        return made
    return thing


_LOOKED_AT: set[str] = set()  # modules whose names are all checked


@functools.cache
def _public_names() -> frozenset[str]:
    """Names of what users call: parts of a model and errors check themselves, or take anything."""
    return frozenset({*listed(), *events.__all__})


def check_loaded() -> None:
    """Check arguments of all public classes in the modules loaded so far: users get them as results, too."""
    for name, module in list(sys.modules.items()):
        if name in _LOOKED_AT or not name.startswith("loopdyn."):
            continue
        _LOOKED_AT.add(name)
        for own in [vars(module)[key] for key in _public_names() if key in vars(module)]:
            if inspect.isclass(own) and own.__module__ == name:
                check_class(own)


def check_public(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Check arguments of all public names of a module."""
    for name in names:
        namespace[name] = check(namespace[name], namespace["__name__"])


def check_class(kind: type) -> None:
    """Check arguments of the public methods of a class, and of its constructor if users call it.

    Parts of a model check themselves as they are made (:class:`loopdyn.quantities.units.Spec`).
    """
    if issubclass(kind, Exception | Spec):
        return
    for base in kind.__mro__:
        if not base.__module__.startswith("loopdyn"):
            continue
        made_here = (issubclass(kind, MADE_BY_USERS) or kind.__name__ in ALSO_MADE) and "__init__" in vars(base)
        for name in [n for n in vars(base) if not n.startswith("_")] + ["__init__"] * made_here:
            found = vars(base)[name]
            inner = found.__func__ if isinstance(found, classmethod) else found
            own = inspect.isfunction(inner) and inner.__module__.startswith("loopdyn")
            if not own or hasattr(inner, CHECKED):
                continue
            made: Any = checked(inner)
            setattr(base, name, classmethod(made) if isinstance(found, classmethod) else made)


check_public(vars(tree), tree.__all__)  # public itself, and imported by others before a user accesses it
