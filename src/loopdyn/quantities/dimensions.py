"""Dimensions of formulas: which unit a result has, and which sums have no meaning.

Numbers and parameters have no dimension of their own: in a sum they are meant in the unit of what they are added to, in
a product they are plain numbers. Formulas are computed in the units of the model, and a unit is converted by nobody in
the middle of a formula: a sum of N m and N mm is refused like one of mm and deg.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from loopdyn.errors import ExpressionError
from loopdyn.quantities.expressions import FUNCTIONS, Expression
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.expressions.reading import Token, refusal
from loopdyn.quantities.units import Units

BASES = ("mass", "force", "torque", "length", "angle", "time")
ROUNDING = 1e-12  # relative: factors of units that differ by less are the same unit

Dimension = tuple[Fraction, ...]  # exponents of BASES


def dimension(**exponents: int) -> Dimension:
    """Dimension of a product of powers.

    Examples
    --------
    >>> unit_symbol(dimension(length=1, time=-2), Units(length="mm"))
    'mm/s^2'
    """
    return tuple(Fraction(exponents.get(base, 0)) for base in BASES)


NUMBER = dimension()
TIME = dimension(time=1)
ANGLE = dimension(angle=1)


def _unit(base: str, units: Units) -> str:
    return "s" if base == "time" else units.symbol(base)


def _raised(text: str, exponent: Fraction) -> str:
    return (f"({text})" if "*" in text else text) + ("" if exponent == 1 else f"^{exponent}")


def unit_symbol(of: Dimension, units: Units) -> str:
    """Unit of a dimension in a form that programs can read; "1" for plain numbers.

    Examples
    --------
    >>> unit_symbol(dimension(torque=1, angle=1, time=-1), Units(angle="deg"))
    'N*m*deg/s'
    """
    above = "*".join(
        _unit(b, units) if e == 1 else _raised(_unit(b, units), e) for b, e in zip(BASES, of, strict=True) if e > 0
    )
    below = [_raised(_unit(b, units), -e) for b, e in zip(BASES, of, strict=True) if e < 0]
    return "/".join([above or "1", *below])


def unit_factor(of: Dimension, units: Units) -> float:
    """SI value of one unit of a dimension."""
    factor = 1.0
    for base, e in zip(BASES, of, strict=True):
        if e and base != "time":
            factor *= units.factor(base) ** float(e)
    return factor


def reduced(of: Dimension, units: Units) -> Dimension:
    """Dimension in which a torque is a force times a length, if the units of the model are such that it is one."""
    force, torque, length = (BASES.index(b) for b in ("force", "torque", "length"))
    product = units.factor("force") * units.factor("length")
    if not of[torque] or abs(units.factor("torque") / product - 1.0) > ROUNDING:
        return of
    exponents = list(of)
    exponents[force] += of[torque]
    exponents[length] += of[torque]
    exponents[torque] = Fraction(0)
    return tuple(exponents)


class _Part(NamedTuple):
    """Part of a formula: its dimension (None for numbers and parameters), and its value if it is a number."""

    of: Dimension | None
    value: float | None = None


SUMS = {OP.ADD: "+", OP.SUB: "-", OP.MIN: "min", OP.MAX: "max", OP.MOD: "mod", OP.HYPOT: "hypot", OP.ATAN2: "atan2"}
SUMS |= {OP.LESS: "a comparison", OP.LESS_EQUAL: "a comparison", OP.WHERE: "if ... else"}
TURNING = (OP.SIN, OP.COS, OP.TAN)
INVERSE = (OP.ASIN, OP.ACOS, OP.ATAN)
PLAIN = (OP.SINH, OP.COSH, OP.TANH, OP.EXP, OP.LOG, OP.LOG10, *TURNING, *INVERSE)
_NAMES = {f.codes[-1]: name for name, f in FUNCTIONS.items()}


def dimension_of(formula: Expression, meanings: Mapping[str, Dimension], units: Units) -> Dimension:
    """Dimension of a formula whose names have these dimensions; other names are parameters.

    Raises
    ------
    ExpressionError
        With the place of a sum or function that has no meaning.

    Examples
    --------
    >>> from loopdyn.quantities.expressions import parse
    >>> length = dimension(length=1)
    >>> unit_symbol(dimension_of(parse("2*a/b + 1"), {"a": length, "b": TIME}, Units()), Units())
    'm/s'
    >>> dimension_of(parse("a + b"), {"a": length, "b": TIME}, Units())
    Traceback (most recent call last):
    ...
    loopdyn.errors.ExpressionError: formula 'a + b', column 5: '+' joins m and s. Convert one of them
    """
    found = _Check(formula, units).run(meanings)
    return NUMBER if found is None else found


class _Check:
    """The dimensions of the parts of one formula, in the order of its tokens."""

    def __init__(self, formula: Expression, units: Units):
        self.formula, self.units = formula, units

    def run(self, meanings: Mapping[str, Dimension]) -> Dimension | None:
        parts: list[_Part] = []
        for token in self.formula.tokens:
            count = OP.operand_count(token.op)
            operands = parts[len(parts) - count :]
            del parts[len(parts) - count :]
            if token.op == OP.CONSTANT:
                parts.append(_Part(None, float(token.value)))
            elif token.op == OP.VARIABLE:
                given = meanings.get(str(token.value))
                parts.append(_Part(None if given is None else reduced(given, self.units)))
            elif token.op in SUMS:
                parts.append(self._sum(token, operands))
            else:
                parts.append(self._product(token, operands) if count == 2 else self._function(token, operands[0]))
        return parts[0].of

    def _sum(self, token: Token, operands: list[_Part]) -> _Part:
        a, b = operands[-2:]
        if a.of is not None and b.of is not None and a.of != b.of:
            units = f"{unit_symbol(a.of, self.units)} and {unit_symbol(b.of, self.units)}"
            raise self._error(token, f"'{SUMS[token.op]}' joins {units}", "Convert one of them")
        if token.op == OP.ATAN2:
            return _Part(self._radians())
        if token.op in (OP.LESS, OP.LESS_EQUAL):
            return _Part(NUMBER)
        return _Part(b.of if a.of is None else a.of)

    def _product(self, token: Token, operands: list[_Part]) -> _Part:
        a, b = operands
        if token.op == OP.POW:
            return self._power(token, a, b)
        if a.of is None and b.of is None:
            both = token.op == OP.MUL and a.value is not None and b.value is not None
            return _Part(None, a.value * b.value if both else None)  # type: ignore[operator]
        sign = 1 if token.op == OP.MUL else -1
        return _Part(tuple(x + sign * y for x, y in zip(a.of or NUMBER, b.of or NUMBER, strict=True)))

    def _power(self, token: Token, a: _Part, b: _Part) -> _Part:
        if b.of not in (None, NUMBER):
            raise self._error(token, f"the exponent is in {self._shown(b)}", "Divide it by a unit of that kind")
        if a.of in (None, NUMBER):
            return _Part(a.of)
        if b.value is None:
            raise self._error(token, f"a power of {self._shown(a)} needs a plain number as its exponent", "Write one")
        exponent = Fraction(b.value).limit_denominator(12)
        return _Part(tuple(e * exponent for e in a.of))

    def _function(self, token: Token, x: _Part) -> _Part:
        op = token.op
        if op in (OP.SIGN, OP.STEP):
            return _Part(NUMBER)
        if op == OP.ABS:
            return _Part(x.of)
        if op == OP.SQRT:
            return _Part(None if x.of is None else tuple(e / 2 for e in x.of))
        plain = x.of in (None, NUMBER)
        if op in (OP.RADIANS, OP.DEGREES):
            wanted, result = (("deg", "turn"), "rad") if op == OP.RADIANS else (("rad",), "deg")
            if not plain and not (x.of == ANGLE and self.units.angle in wanted):
                raise self._error(token, f"'{_NAMES[op]}' of {self._shown(x)}", f"Give it an angle in {wanted[0]}")
            return _Part(ANGLE if self.units.angle == result else NUMBER)
        assert op in PLAIN
        if op in TURNING and x.of == ANGLE and self.units.angle != "rad":
            turn = "radians(...)" if self.units.angle == "deg" else "radians(360*...)"
            hint = f"Write {_NAMES[op]}({turn})"
            raise self._error(token, f"'{_NAMES[op]}' takes radians, its argument is in {self.units.angle}", hint)
        # times a number, t is a phase: the number is then a frequency
        if not (plain or x.of == TIME or (op in TURNING and x.of == ANGLE)):
            raise self._error(token, f"'{_NAMES[op]}' of a quantity in {self._shown(x)}", "Make it a plain number")
        return _Part(self._radians() if op in INVERSE else NUMBER)

    def _radians(self) -> Dimension:
        return ANGLE if self.units.angle == "rad" else NUMBER

    def _shown(self, part: _Part) -> str:
        return unit_symbol(part.of or NUMBER, self.units)

    def _error(self, token: Token, what: str, hint: str) -> ExpressionError:
        return refusal(self.formula.text, token.column or None, what, hint)
