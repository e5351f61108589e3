"""Parameters of a model: numbers and formulas that refer to each other."""

from __future__ import annotations

import keyword
import math
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from numbers import Real

import numpy as np

from loopdyn.errors import ExpressionError, ModelError, Problem
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.expressions.formulas import Expression, parsed
from loopdyn.quantities.expressions.functions import check_free
from loopdyn.quantities.expressions.reading import Token, refusal, suggestion


def resolve_parameters(
    parameters: Mapping[str, float | int | str], overrides: Mapping[str, float | int | str] | None = None
) -> dict[str, float]:
    """Compute the parameters of a model, which may refer to each other.

    Parameters
    ----------
    parameters : mapping
        Numbers or formulas of other parameters, in any order.
    overrides : mapping, optional
        Replaces some of them.

    Returns
    -------
    dict
        The value of each parameter, in the order of `parameters`.

    Raises
    ------
    ModelError
        Lists every problem found.

    Examples
    --------
    >>> resolve_parameters({"stroke": "2*crank", "crank": 0.05}, {"crank": 0.1})
    {'stroke': 0.2, 'crank': 0.1}
    >>> resolve_parameters({"a": "b + 1", "b": "2*a"})
    Traceback (most recent call last):
    ...
    loopdyn.errors.ModelError: parameter 'a': refers to itself: a -> b -> a. Give one of them as a number
    """
    given = dict(parameters)
    problems: list[Problem] = []
    for name, value in (overrides or {}).items():
        if name in parameters:
            given[name] = value
        else:
            hint = suggestion(name, parameters, "parameters")
            problems.append(_problem(name, "cannot be overridden: the model has none", hint))
    expressions = _read(given, problems)
    references = {name: sorted(e.names & expressions.keys()) for name, e in expressions.items()}
    values: dict[str, float] = {}
    order, cycles = in_order(references)
    for cycle in cycles:
        what = f"refers to itself: {' -> '.join([*cycle, cycle[0]])}"
        problems.append(_problem(cycle[0], what, "Give one of them as a number"))
    for name in order:
        if not expressions[name].names <= values.keys():
            continue  # its references have been reported
        try:
            values[name] = expressions[name].evaluate(values)
        except ExpressionError as error:
            problems.append(_problem(name, str(error)))
    if problems:
        place: dict[object, int] = {name: k for k, name in enumerate(given)}
        raise ModelError(sorted(problems, key=lambda p: place.get(p.path[1], len(place))))
    return {name: values[name] for name in given}


def _problem(name: str, message: str, hint: str = "") -> Problem:
    return Problem(f"parameter '{name}'", message, hint, path=("parameters", name))


def _read(given: Mapping[str, float | int | str], problems: list[Problem]) -> dict[str, Expression]:
    """Formulas of the parameters whose name, text and references are valid."""
    expressions = {}
    for name, value in given.items():
        try:
            _check_name(name)
            expression = _as_expression(value)
        except ExpressionError as error:
            problems.append(_problem(name, str(error)))
            continue
        undefined = {t.value: t for t in expression.tokens if t.op == OP.VARIABLE and t.value not in given}
        if not undefined:
            expressions[name] = expression
        for token in undefined.values():
            problem = expression.unknown(token, given)
            if token.value == "t":
                hint = "Use t in the formula of the motor or force itself"
                problem = refusal(expression.text, token.column, "a parameter cannot depend on the time t", hint)
            problems.append(_problem(name, str(problem)))
    return expressions


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ExpressionError(
            "is not a name that formulas can use. Use letters, digits and '_', not starting with a digit"
        )
    if name == "t":
        raise ExpressionError("'t' already means the time in formulas. Choose another name")
    check_free(name)


def _as_expression(value: object) -> Expression:
    if isinstance(value, str):
        return parsed(value)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ExpressionError(f"{value!r} is neither a number nor a formula. Give one of the two")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ExpressionError(f"{number} is not a finite number. Give a finite one")
    return Expression(repr(number), frozenset(), (Token(OP.CONSTANT, number + 0.0),))  # -0.0 is 0.0, as when read


def in_order(references: Mapping[str, list[str]]) -> tuple[list[str], list[list[str]]]:
    """Order in which things that refer to each other can be computed, and the cycles, which are left out.

    Examples
    --------
    >>> in_order({"a": ["b"], "b": [], "c": ["d"], "d": ["c"]})
    (['b', 'a'], [['c', 'd']])
    """
    if not any(references.values()):
        return list(references), []
    graph = dict(references)
    cycles: list[list[str]] = []
    place = {name: k for k, name in enumerate(references)}
    while True:
        try:
            return list(TopologicalSorter(graph).static_order()), cycles
        except CycleError as error:
            cycle: list[str] = error.args[1][:0:-1]  # given from referred to referring, the first again at the end
            first = min(range(len(cycle)), key=lambda k: place[cycle[k]])
            cycle = cycle[first:] + cycle[:first]
            cycles.append(cycle)
            graph = {n: [r for r in refs if r not in cycle] for n, refs in graph.items() if n not in cycle}
