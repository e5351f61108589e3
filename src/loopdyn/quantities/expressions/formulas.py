"""Parsed formulas: names are resolved, constant parts are computed, the rest becomes a program."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from loopdyn.errors import ExpressionError
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.expressions.functions import CONSTANTS, FUNCTIONS, check_free
from loopdyn.quantities.expressions.programs import Instruction, Program, assemble, check_scales
from loopdyn.quantities.expressions.reading import Token, read, refusal, suggestion
from loopdyn.quantities.expressions.terms import Term


def parse(text: str, with_terms: bool = False) -> Expression:
    """Read a formula without executing it.

    Parameters
    ----------
    text : str
        Arithmetic of numbers, names, :data:`CONSTANTS` and :data:`FUNCTIONS`, with ``+ - * / **`` and
        ``a if condition else b``; a condition is made of ``< <= > >= and or not``.
    with_terms : bool
        Also accept labels with dots (``A.speed``), names in quotes and functions of points (:data:`TERMS`): each of
        them is a name to be resolved.

    Raises
    ------
    ExpressionError
        If the text holds anything else.

    Examples
    --------
    >>> formula = parse("drive - 0.2*speed")
    >>> sorted(formula.names)
    ['drive', 'speed']
    >>> formula.evaluate({"drive": 1.0, "speed": 2.0})
    0.6
    >>> parse("sinn(t)")
    Traceback (most recent call last):
    ...
    loopdyn.errors.ExpressionError: formula 'sinn(t)', column 1: unknown function 'sinn'. Did you mean 'sin'?
    """
    tokens, terms = read(text, with_terms)
    return Expression(text, frozenset(str(token.value) for token in tokens if token.op == OP.VARIABLE), tokens, terms)


# The same formulas are read again with other values of their names.
parsed = lru_cache(maxsize=4096)(parse)


@dataclass(frozen=True)
class Expression:
    """Parsed formula; made by :func:`parse`.

    Attributes
    ----------
    text : str
        The formula as written.
    names : frozenset of str
        Names to be resolved, without functions and constants.
    tokens : tuple
        The formula in postfix order.
    terms : mapping
        Functions of points among its names.
    """

    text: str
    names: frozenset[str] = field(compare=False)
    tokens: tuple[Token, ...] = field(repr=False, compare=False)
    terms: Mapping[str, Term] = field(default_factory=dict, repr=False, compare=False)

    def evaluate(self, values: Mapping[str, float]) -> float:
        """Compute the formula for given values of its names.

        Raises
        ------
        ExpressionError
            If a name has no value, or the result is not a finite number.
        """
        found = self._number(values)
        return self._folded({}, values).instructions[0][1] if found is None else found

    def program(
        self,
        variables: Sequence[str],
        constants: Mapping[str, float] | None = None,
        *,
        input_scale: Sequence[float] | None = None,
        output_scale: float = 1.0,
        parts: Mapping[str, FormulaPart] | None = None,
    ) -> Program:
        """Compile to a program of the given variables.

        Parameters
        ----------
        variables : sequence of str
            Names of the variables, in the order in which the program will be given them.
        constants : mapping, optional
            Values of the other names.
        input_scale : sequence of float, optional
            The name of variable k means ``input_scale[k]*x[k]``: for units.
        output_scale : float
            Factor on the result.
        parts : mapping, optional
            Names that stand for other formulas (:meth:`part`).

        Raises
        ------
        ExpressionError
            If a name is unknown or has two meanings, or a constant part has no finite value.

        Examples
        --------
        >>> program = parse("gain*q**2").program(["t", "q"], {"gain": 3.0})
        >>> program.evaluate([0.0, 2.0])
        12.0
        >>> program.jet([(0.0, 0.0, 0.0), (2.0, 1.0, 0.0)])
        (12.0, 12.0, 6.0)
        """
        scales = [1.0] * len(variables) if input_scale is None else [float(s) for s in input_scale]
        if len(scales) != len(variables):
            raise ExpressionError(f"{len(variables)} variables have {len(scales)} input scales. Give one for each")
        check_scales(*scales, output_scale)
        for name in variables:
            check_free(name)
        meanings = {name: variable(k, scales[k]) for k, name in enumerate(variables)} | dict(parts or {})
        return assemble(self._folded(meanings, constants or {}, output_scale).instructions)

    def part(self, meanings: Mapping[str, FormulaPart], constants: Mapping[str, float] | None = None) -> FormulaPart:
        """The formula as a part of others, for names that stand for variables or for other formulas.

        Examples
        --------
        >>> half = parse("x/2").part({"x": variable(0)})
        >>> parse("1 + half").program([], parts={"half": half}).evaluate([3.0])
        2.5
        """
        return self._folded(meanings, constants or {})

    def unknown(self, token: Token, known: Collection[str]) -> ExpressionError:
        """Error for a name that is not among the `known` ones."""
        hint = suggestion(str(token.value), {*known, *CONSTANTS}, "names")
        return refusal(self.text, token.column, f"unknown name '{token.value}'", hint)

    @cached_property
    def _steps(self) -> tuple[tuple[Callable[..., float] | None, float | str, int], ...]:
        """Tokens as function, number or name, and number of operands."""
        found = []
        for t in self.tokens:
            named = t.op == OP.VARIABLE
            value = str(t.value) if named else float(t.value) if t.op == OP.CONSTANT else 0.0
            operation = None if named or t.op == OP.CONSTANT else _choice if t.op == OP.WHERE else _VALUE[t.op]
            found.append((operation, value, OP.operand_count(t.op)))
        return tuple(found)

    def _number(self, values: Mapping[str, float]) -> float | None:
        """Value by the operations of :func:`_computed` alone; None where some part has no finite value.

        Such a part may be the piece of a choice that is not used: :meth:`_folded` decides, and says what is wrong.
        """
        stack: list[float] = []
        try:
            for operation, value, count in self._steps:
                if operation is None:
                    x = float(values[value]) if isinstance(value, str) else value
                elif count == 2:
                    last = stack.pop()
                    x = float(operation(stack.pop(), last))
                else:
                    x = float(operation(*stack[-count:]))
                    del stack[-count:]
                if x - x != 0.0:  # NaN or infinite
                    return None
                stack.append(x)
        except (ArithmeticError, ValueError, KeyError):
            return None
        return stack[0]

    def _folded(
        self, variables: Mapping[str, FormulaPart], constants: Mapping[str, float], scale: float = 1.0
    ) -> FormulaPart:
        """Formula times `scale`, with its names resolved and its constant parts computed."""
        parts: list[FormulaPart] = []
        for token in (*self.tokens, Token(OP.CONSTANT, scale), Token(OP.MUL)):
            if token.op == OP.CONSTANT:
                parts.append(_constant(float(token.value)))
            elif token.op == OP.VARIABLE:
                parts.append(self._meaning(token, variables, constants))
            else:
                count = OP.operand_count(token.op)
                parts[-count:] = [_combine(token.op, parts[-count:])]
        if parts[0].fault:
            raise refusal(self.text, None, parts[0].fault, "Check the values that enter here")
        return parts[0]

    def _meaning(
        self, token: Token, variables: Mapping[str, FormulaPart], constants: Mapping[str, float]
    ) -> FormulaPart:
        name = str(token.value)
        if name in variables and name in constants:
            what = f"'{name}' is both a variable and a parameter"
            raise refusal(self.text, token.column, what, "Rename the parameter")
        if name in variables:
            return variables[name]
        if name not in constants:
            raise self.unknown(token, {*variables, *constants})
        if not math.isfinite(constants[name]):
            raise refusal(self.text, token.column, f"'{name}' is {constants[name]}", "Give it a finite number")
        return _constant(float(constants[name]))


# ---------------------------------------------------------------------------------------------- folding


class FormulaPart(NamedTuple):
    """Instructions of one part of a formula; `fault` is the reason why it has no finite value."""

    instructions: list[Instruction]
    fault: str = ""

    @property
    def constant(self) -> float | None:
        """Its value if it is a number."""
        op, value = self.instructions[-1]
        return value if op == OP.CONSTANT else None


def variable(k: int, scale: float = 1.0) -> FormulaPart:
    """Variable number k of a program times a factor."""
    return _scaled(FormulaPart([(OP.VARIABLE, k)]), scale)


def _constant(value: float) -> FormulaPart:
    return FormulaPart([(OP.CONSTANT, value)])


def _scaled(part: FormulaPart, factor: float) -> FormulaPart:
    return part if factor == 1.0 else FormulaPart([*part.instructions, (OP.SCALE, factor)])


def _combine(op: int, operands: list[FormulaPart]) -> FormulaPart:
    if op == OP.WHERE and operands[0].constant is not None and not operands[0].fault:
        return operands[1] if operands[0].constant else operands[2]
    for part in operands:
        if part.fault:
            return part
    values = [part.constant for part in operands]
    if op != OP.WHERE and None not in values:
        return _computed(op, [v for v in values if v is not None])
    if op == OP.MUL and values[1] is not None:
        return _scaled(operands[0], values[1])
    if op == OP.MUL and values[0] is not None:
        return _scaled(operands[1], values[0])
    if op == OP.POW and values[1] is not None:
        return _constant_power(operands[0], values[1])
    return FormulaPart([i for part in operands for i in part.instructions] + [(op, 0.0)])


def _constant_power(base: FormulaPart, exponent: float) -> FormulaPart:
    """Power with a constant exponent; integers become products, exact for a base of any sign and at zero."""
    if exponent == 0.0:
        return _constant(1.0)
    if exponent == 0.5:
        return FormulaPart([*base.instructions, (OP.SQRT, 0.0)])
    size = abs(exponent)
    if not exponent.is_integer() or size >= OP.MAX_INTEGER_POWER:
        return FormulaPart([*base.instructions, (OP.CONSTANT, exponent), (OP.POW, 0.0)])
    power = base if size == 1.0 else FormulaPart([*base.instructions, (OP.POWER, size)])
    return power if exponent > 0.0 else FormulaPart([(OP.CONSTANT, 1.0), *power.instructions, (OP.DIV, 0.0)])


def _computed(op: int, values: list[float]) -> FormulaPart:
    try:
        value = float(_VALUE[op](*values))
    except (ArithmeticError, ValueError):
        value = math.nan
    if math.isfinite(value):
        return _constant(value)
    shown = [f"{v:.6g}" for v in values]
    text = f" {_SYMBOL[op]} ".join(shown) if op in _SYMBOL else f"{_NAME[op]}({', '.join(shown)})"
    return FormulaPart([(OP.CONSTANT, math.nan)], f"{text} has no finite value")


def _choice(condition: float, first: float, second: float) -> float:
    return first if condition else second


_NAME = {f.codes[-1]: name for name, f in FUNCTIONS.items() if name != "clip"}
_SYMBOL = {OP.ADD: "+", OP.SUB: "-", OP.MUL: "*", OP.DIV: "/", OP.POW: "**", OP.LESS: "<", OP.LESS_EQUAL: "<="}
_VALUE: Mapping[int | None, Callable[..., float]] = {
    **{code: getattr(math, name) for code, name in _NAME.items() if hasattr(math, name)},
    OP.ATAN2: lambda y, x: math.atan2(y + 0.0, x),  # -0.0 counts as 0.0, as in the kernel
    OP.ABS: abs,
    OP.MIN: min,
    OP.MAX: max,
    OP.MOD: operator.mod,
    OP.SIGN: lambda x: float((x > 0) - (x < 0)),
    OP.STEP: lambda x: float(x >= 0),
    OP.ADD: operator.add,
    OP.SUB: operator.sub,
    OP.MUL: operator.mul,
    OP.DIV: operator.truediv,
    OP.POW: math.pow,
    OP.LESS: operator.lt,
    OP.LESS_EQUAL: operator.le,
}
