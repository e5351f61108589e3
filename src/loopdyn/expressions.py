"""Formulas and tables of a model, as small programs with exact first and second derivatives.

A formula such as ``"0.1*sin(2*pi*t)"`` is read by a whitelist (:func:`parse`) and never executed as
Python. It becomes a :class:`Program` for a stack machine, and one kernel, :func:`run_program`, runs
every program of every model: nothing is compiled per model. A table becomes a natural cubic spline,
which is one more instruction of the same machine.

============  ==================================  =====================================================
thing         form                                meaning
============  ==================================  =====================================================
token         ``(op, value, column)``             a formula in postfix order, names not yet resolved
instruction   one integer, ``op + 256*operand``   operand: index of a constant or variable, or exponent
jet           ``(u, u', u'')``                    value with its derivatives along one parameter
stack         ``(depth, 3)``                      one jet per row
============  ==================================  =====================================================

Decisions that hold everywhere:

* ``abs``, ``min``, ``max``, ``clip``, ``step``, ``sign``, ``mod`` and ``a if c else b`` have the
  derivatives of the piece that is active; their jumps and kinks are not seen by the derivatives.
* Both pieces of a choice are computed and one is taken, so ``0 if x < 0 else sqrt(x)`` is safe.
* A number that is not finite stays visible: a comparison with NaN gives NaN, not false.
* An operand whose first and second derivatives are zero is taken as constant, so ``sqrt(x)`` at a
  resting ``x = 0`` has the derivative zero and not 0/0.
* The kernel runs in complex128 too. Decisions look at real parts, and a root or logarithm of a
  negative number is NaN there as well, so the complex step sees the same function.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import math
import operator
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn._jit import kernel
from loopdyn.errors import ExpressionError, ModelError, Problem

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "Expression",
    "Function",
    "Program",
    "constant_program",
    "pack",
    "parse",
    "resolve_parameters",
    "run_program",
    "table_program",
]

MAX_LENGTH = 2000  # characters of a formula
MAX_DEPTH = 60  # levels of brackets, calls and choices inside one another
MAX_INTEGER_POWER = 2**31  # beyond it an integer exponent is treated like any other number

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# ---------------------------------------------------------------------------------------------------
# Opcodes: plain integers, because kernels read them as globals. Order matters: the kernel tells the
# families apart by range.

_CONSTANT, _VARIABLE = 0, 1  # push one jet
_SCALE, _POWER, _SPLINE = 2, 3, 4  # one operand on the stack, one in the instruction
_SIN, _COS, _TAN, _ASIN, _ACOS, _ATAN = 5, 6, 7, 8, 9, 10
_SINH, _COSH, _TANH, _EXP, _LOG, _LOG10, _SQRT = 11, 12, 13, 14, 15, 16, 17
_ABS, _SIGN, _STEP, _RADIANS, _DEGREES = 18, 19, 20, 21, 22
_ADD, _SUB, _MUL, _DIV, _POW, _ATAN2, _HYPOT = 23, 24, 25, 26, 27, 28, 29
_MIN, _MAX, _MOD, _LESS, _LESS_EQUAL = 30, 31, 32, 33, 34
_WHERE = 35  # condition, value if true, value if false
_NOTHING = -1

_OPCODE_BITS = 8
_OPCODE_MASK = 2**_OPCODE_BITS - 1
_READS_CONSTANTS = (_CONSTANT, _SCALE, _SPLINE)  # their operand is an index into the constants


@dataclass(frozen=True)
class Function:
    """A function that formulas may call.

    Attributes
    ----------
    arguments : tuple of str
        Names of the arguments, for messages and documentation.
    codes : tuple of int
        The instruction that follows each argument.
    meaning : str
        What it gives.
    open_ended : bool
        Whether more arguments may follow, each with the last instruction.
    """

    arguments: tuple[str, ...]
    codes: tuple[int, ...]
    meaning: str
    open_ended: bool = False


def _one(code: int, meaning: str) -> Function:
    return Function(("x",), (code,), meaning)


def _two(code: int, names: str, meaning: str, open_ended: bool = False) -> Function:
    return Function((names[0], names[1]), (_NOTHING, code), meaning, open_ended)


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "sin": _one(_SIN, "sine of an angle in radians"),
        "cos": _one(_COS, "cosine of an angle in radians"),
        "tan": _one(_TAN, "tangent of an angle in radians"),
        "asin": _one(_ASIN, "angle whose sine is x"),
        "acos": _one(_ACOS, "angle whose cosine is x"),
        "atan": _one(_ATAN, "angle whose tangent is x"),
        "atan2": _two(_ATAN2, "yx", "angle of the direction (x, y), above -pi, up to pi"),
        "sinh": _one(_SINH, "hyperbolic sine"),
        "cosh": _one(_COSH, "hyperbolic cosine"),
        "tanh": _one(_TANH, "hyperbolic tangent"),
        "exp": _one(_EXP, "e to the power x"),
        "log": _one(_LOG, "natural logarithm"),
        "log10": _one(_LOG10, "logarithm to base ten"),
        "sqrt": _one(_SQRT, "square root"),
        "abs": _one(_ABS, "x without its sign"),
        "min": _two(_MIN, "xy", "the smallest of two or more numbers", open_ended=True),
        "max": _two(_MAX, "xy", "the largest of two or more numbers", open_ended=True),
        "sign": _one(_SIGN, "-1, 0 or 1"),
        "step": _one(_STEP, "0 for x < 0, otherwise 1"),
        "clip": Function(("x", "low", "high"), (_NOTHING, _MAX, _MIN), "x kept between two limits"),
        "hypot": _two(_HYPOT, "xy", "sqrt(x**2 + y**2)"),
        "mod": _two(_MOD, "xy", "x - y*floor(x/y), with the sign of y"),
        "radians": _one(_RADIANS, "degrees to radians"),
        "degrees": _one(_DEGREES, "radians to degrees"),
    }
)

CONSTANTS: Mapping[str, float] = MappingProxyType({"pi": math.pi, "e": math.e})

_OPERATORS: Mapping[type[ast.operator], int] = {
    ast.Add: _ADD,
    ast.Sub: _SUB,
    ast.Mult: _MUL,
    ast.Div: _DIV,
    ast.Pow: _POW,
}

# How the compiler computes the value of an operation on constants, and how messages write it.
_VALUE: Mapping[int, Callable[..., float]] = {
    _SIN: math.sin,
    _COS: math.cos,
    _TAN: math.tan,
    _ASIN: math.asin,
    _ACOS: math.acos,
    _ATAN: math.atan,
    _SINH: math.sinh,
    _COSH: math.cosh,
    _TANH: math.tanh,
    _EXP: math.exp,
    _LOG: math.log,
    _LOG10: math.log10,
    _SQRT: math.sqrt,
    _ABS: abs,
    _SIGN: lambda x: float((x > 0) - (x < 0)),
    _STEP: lambda x: float(x >= 0),
    _RADIANS: math.radians,
    _DEGREES: math.degrees,
    _ADD: operator.add,
    _SUB: operator.sub,
    _MUL: operator.mul,
    _DIV: operator.truediv,
    _POW: math.pow,
    _ATAN2: lambda y, x: math.atan2(y + 0.0, x),  # -0.0 counts as 0.0, as in the kernel
    _HYPOT: math.hypot,
    _MIN: min,
    _MAX: max,
    _MOD: operator.mod,
    _LESS: lambda a, b: float(a < b),
    _LESS_EQUAL: lambda a, b: float(a <= b),
}
_SYMBOL: Mapping[int, str] = {_ADD: "+", _SUB: "-", _MUL: "*", _DIV: "/", _POW: "**", _LESS: "<", _LESS_EQUAL: "<="}
_NAME_OF: Mapping[int, str] = {f.codes[-1]: name for name, f in FUNCTIONS.items() if name != "clip"}

# ---------------------------------------------------------------------------------------------------
# Messages

_HABITS = {"ln": "log", "heaviside": "step", "pow": "**", "fmod": "mod", "wrap": "mod"}  # usual elsewhere
_PLAIN = "Write ordinary arithmetic with * in every product, e.g. '2*x + 0.1*sin(pi*t)'"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _error(text: str, column: int | None, what: str, hint: str = "") -> ExpressionError:
    place = "" if column is None else f", column {column}"
    return ExpressionError(f"formula {_shown(text)}{place}: {what}" + (f". {hint}" if hint else ""))


def _nearest(name: str, known: Collection[str]) -> str:
    """The known name most like `name`, without regard to case; empty if none is near."""
    if name.lower() in _HABITS and _HABITS[name.lower()] in {*known, "**"}:
        return _HABITS[name.lower()]
    lowered = {k.lower(): k for k in known}
    found = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else ""


def _suggestion(name: str, known: Collection[str], kind: str) -> str:
    known = [k for k in known if isinstance(k, str)]  # files may hold other keys, reported elsewhere
    near = _nearest(name, known)
    if near:
        return f"Did you mean '{near}'?"
    if not known:
        return f"There are no {kind} here"
    names = sorted(known)
    listed = ", ".join(names[:30]) + (", ..." if len(names) > 30 else "")
    return f"The {kind} known here are: {listed}"


# ---------------------------------------------------------------------------------------------------
# From text to tokens


class _Token(NamedTuple):
    op: int
    value: float | str = 0.0  # the number of a constant, the name of a variable
    column: int = 0


def parse(text: str) -> Expression:
    """Read a formula without executing it.

    Parameters
    ----------
    text : str
        Arithmetic of numbers, names, :data:`CONSTANTS` and :data:`FUNCTIONS`, with ``+ - * / **`` and
        ``a if condition else b``; a condition is made of ``< <= > >= and or not``.

    Returns
    -------
    Expression

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
    if not isinstance(text, str):
        raise ExpressionError(f"a formula is a text, not {type(text).__name__}. Write it in quotes")
    _check_size(text)
    reader = _Reader(text)
    reader.value(_syntax_tree(text), 0)
    names = frozenset(str(token.value) for token in reader.tokens if token.op == _VARIABLE)
    return Expression(text, names, tuple(reader.tokens))


def _check_size(text: str) -> None:
    """Refuse what is empty, or too long or too nested to be given to Python's parser."""
    if not text.strip():
        raise _error(text, None, "it is empty", "Write a number or a formula such as '2*t'")
    if len(text) > MAX_LENGTH:
        what = f"it has {len(text)} characters, {MAX_LENGTH} are allowed"
        raise _error(text, None, what, "Split it into parameters, or give the curve as a table")
    depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth > MAX_DEPTH:
            raise _too_deep(text)


def _too_deep(text: str) -> ExpressionError:
    what = f"it is nested more than {MAX_DEPTH} levels deep"
    return _error(text, None, what, "Split it into parameters, or leave out brackets that are not needed")


def _one_line(text: str) -> tuple[str, int]:
    """The text as one line without its margin, and the width of that margin."""
    line = text.replace("\r", " ").replace("\n", " ")
    return line.lstrip(), len(line) - len(line.lstrip())


def _syntax_tree(text: str) -> ast.expr:
    source, margin = _one_line(text)
    if "#" in source:
        raise _error(text, margin + source.index("#") + 1, "a comment cannot stand inside a formula", "Remove it")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "1if x<0 else 2" is frowned upon, not wrong
            return ast.parse(source, mode="eval").body
    except SyntaxError as error:
        raise _syntax_error(text, source, margin, error) from None
    except (RecursionError, MemoryError):
        raise _too_deep(text) from None
    except ValueError:
        raise _not_text(text) from None


def _not_text(text: str) -> ExpressionError:
    return _error(text, None, "it holds characters that are not text", _PLAIN)


def _syntax_error(text: str, source: str, margin: int, error: SyntaxError) -> ExpressionError:
    if error.offset is None:
        return _not_text(text)
    if error.offset == 0:  # the parser wanted more
        return _error(text, margin + len(source.rstrip()) + 1, "it ends too early", "Complete it")
    hint = "Write only what stands right of the '='" if "=" in source else _PLAIN
    return _error(text, margin + error.offset, error.msg.split(". ")[0].rstrip("."), hint)


_REFUSED: Mapping[type[ast.expr], tuple[str, str]] = {
    ast.Attribute: ("a dot after a name is not allowed", "Write functions by their plain name, e.g. sin(x)"),
    ast.Subscript: ("indexing with [ ] is not allowed", "Use a name for each value"),
    ast.Compare: ("a comparison gives no number", "Use it as in 'a if x > 0 else b', or use step(x)"),
    ast.BoolOp: ("'and' and 'or' give no number", "Use them in the condition of 'a if condition else b'"),
    ast.Lambda: ("'lambda' is not allowed", _PLAIN),
    ast.NamedExpr: ("':=' is not allowed", "Define a parameter instead"),
    ast.Tuple: ("a comma is allowed only between the arguments of a function", "Write decimals with a point"),
    ast.List: ("a list is not allowed", "A formula gives one number"),
    ast.JoinedStr: ("text in quotes is not allowed", "Write names without quotes"),
    ast.Starred: ("'*' must stand between two factors", _PLAIN),
}

_REFUSED_OPERATORS: Mapping[type[ast.operator], tuple[str, str]] = {
    ast.BitXor: ("'^' is not allowed", "Write ** for a power"),
    ast.Mod: ("'%' is not allowed", "Write mod(x, y)"),
    ast.FloorDiv: ("'//' is not allowed", "Write (x - mod(x, y))/y"),
}


class _Reader:
    """Turns the syntax tree of one formula into postfix tokens and refuses what is not on the list."""

    def __init__(self, text: str) -> None:
        self.text = text
        source, self.margin = _one_line(text)
        self.bytes = source.encode(errors="replace")  # the tree counts columns in bytes
        self.tokens: list[_Token] = []

    def value(self, node: ast.expr, depth: int) -> None:
        """Read a node that gives a number."""
        if depth > MAX_DEPTH:
            raise _too_deep(self.text)
        if isinstance(node, ast.Constant):
            self._number(node)
        elif isinstance(node, ast.Name):
            self._name(node)
        elif isinstance(node, ast.BinOp):
            self._arithmetic(node, depth)
        elif isinstance(node, ast.UnaryOp):
            self._sign(node, depth)
        elif isinstance(node, ast.Call):
            self._call(node, depth)
        elif isinstance(node, ast.IfExp):
            self.condition(node.test, depth + 1)
            self.value(node.body, depth + 1)
            self.value(node.orelse, depth + 1)
            self._emit(_WHERE)
        else:
            raise self._error(node, *_REFUSED.get(type(node), ("this is not allowed in a formula", _PLAIN)))

    def condition(self, node: ast.expr, depth: int) -> None:
        """Read a node that is true (1) or false (0)."""
        if depth > MAX_DEPTH:
            raise _too_deep(self.text)
        if isinstance(node, ast.Compare):
            self._comparison(node, depth)
        elif isinstance(node, ast.BoolOp):
            self._connection(node, depth)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.condition(node.operand, depth + 1)
            self._emit(_CONSTANT, 0.0)
            self._emit(_CONSTANT, 1.0)
            self._emit(_WHERE)
        else:
            raise self._error(node, "this is no condition", "Compare two values, e.g. 'x > 0'")

    def _number(self, node: ast.Constant) -> None:
        if isinstance(node.value, (str, bytes)):
            raise self._error(node, *_REFUSED[ast.JoinedStr])
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            raise self._error(node, f"{node.value!r} is not a real number", "Write a number such as 1 or 0.5e-3")
        try:
            number = float(node.value)
        except OverflowError:
            number = math.inf
        if math.isinf(number):
            raise self._error(node, "the number is too large", "Numbers go up to 1.8e308")
        self._emit(_CONSTANT, number)

    def _name(self, node: ast.Name) -> None:
        name = self._source(node)
        if name in FUNCTIONS:
            call = f"{name}({', '.join(FUNCTIONS[name].arguments)})"
            raise self._error(node, f"'{name}' is a function and needs its arguments", f"Write {call}")
        if name in CONSTANTS:
            self._emit(_CONSTANT, CONSTANTS[name])
        else:
            self.tokens.append(_Token(_VARIABLE, name, self._column(node)))

    def _arithmetic(self, node: ast.BinOp, depth: int) -> None:
        chain = []  # a + b + c + ... leans to the left: walked in a loop, it is one level deep
        first: ast.expr = node
        while isinstance(first, ast.BinOp):
            chain.append(first)
            first = first.left
        self.value(first, depth + 1)
        for part in reversed(chain):
            if type(part.op) not in _OPERATORS:
                other = ("this operator is not allowed", "Use + - * / and **")
                raise self._error(part, *_REFUSED_OPERATORS.get(type(part.op), other))
            self.value(part.right, depth + 1)
            self._emit(_OPERATORS[type(part.op)])

    def _sign(self, node: ast.UnaryOp, depth: int) -> None:
        if isinstance(node.op, ast.Not):
            raise self._error(node, "'not' gives no number", "Use it in the condition of 'a if condition else b'")
        if isinstance(node.op, ast.Invert):
            raise self._error(node, "'~' is not allowed", "Use + - * / and **")
        self.value(node.operand, depth + 1)
        if isinstance(node.op, ast.USub):
            self._emit(_CONSTANT, -1.0)
            self._emit(_MUL)

    def _call(self, node: ast.Call, depth: int) -> None:
        function = self._function(node)
        for index, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                raise self._error(argument, *_REFUSED[ast.Starred])
            self.value(argument, depth + 1)
            code = function.codes[min(index, len(function.codes) - 1)]
            if code != _NOTHING:
                self._emit(code)

    def _function(self, node: ast.Call) -> Function:
        if isinstance(node.func, ast.Attribute):
            raise self._error(node, *_REFUSED[ast.Attribute])
        if not isinstance(node.func, ast.Name):
            what = "only the name of a function can stand before a bracket"
            raise self._error(node, what, "Write * between the factors of a product")
        name = self._source(node.func)
        if name not in FUNCTIONS:
            raise self._error(node, f"unknown function '{name}'", _suggestion(name, FUNCTIONS, "functions"))
        function = FUNCTIONS[name]
        call = f"{name}({', '.join(function.arguments)}{', ...' if function.open_ended else ''})"
        if node.keywords:
            raise self._error(node, f"arguments of '{name}' cannot be given by name", f"Write {call}")
        count, least = len(node.args), len(function.arguments)
        if count < least or (count > least and not function.open_ended):
            plural = "" if least == 1 else "s"
            what = f"'{name}' takes {'at least ' * function.open_ended}{least} argument{plural}, {count} given"
            raise self._error(node, what, f"Write {call}")
        return function

    def _comparison(self, node: ast.Compare, depth: int) -> None:
        if len(node.ops) > 1:
            raise self._error(node, "two comparisons in a row", "Join them with 'and': 'x > 0 and x < 1'")
        kind = type(node.ops[0])
        if kind not in (ast.Lt, ast.LtE, ast.Gt, ast.GtE):
            raise self._error(node, "this comparison is not allowed", "Use < <= > >=")
        small, large = node.left, node.comparators[0]
        if kind in (ast.Gt, ast.GtE):
            small, large = large, small
        self.value(small, depth + 1)
        self.value(large, depth + 1)
        self._emit(_LESS if kind in (ast.Lt, ast.Gt) else _LESS_EQUAL)

    def _connection(self, node: ast.BoolOp, depth: int) -> None:
        """Read 'p and q' as 'q if p else 0', and 'p or q' as '1 if p else q'."""
        self.condition(node.values[0], depth + 1)
        for part in node.values[1:]:
            if isinstance(node.op, ast.Or):
                self._emit(_CONSTANT, 1.0)
            self.condition(part, depth + 1)
            if isinstance(node.op, ast.And):
                self._emit(_CONSTANT, 0.0)
            self._emit(_WHERE)

    def _emit(self, op: int, value: float = 0.0) -> None:
        self.tokens.append(_Token(op, value))

    def _source(self, node: ast.expr) -> str:
        """The name as it was written: Python would turn a micro sign into a Greek mu."""
        return self.bytes[node.col_offset : node.end_col_offset].decode()

    def _column(self, node: ast.expr) -> int:
        return self.margin + len(self.bytes[: node.col_offset].decode(errors="replace")) + 1

    def _error(self, node: ast.expr, what: str, hint: str) -> ExpressionError:
        return _error(self.text, self._column(node), what, hint)


# ---------------------------------------------------------------------------------------------------
# From tokens to instructions

_Instruction = tuple[int, float]  # opcode with the constant, the index of the variable, or the exponent


class _Part(NamedTuple):
    """Instructions of one part of a formula; `fault` says why it can have no finite value."""

    instructions: list[_Instruction]
    fault: str = ""

    @property
    def constant(self) -> float | None:
        op, value = self.instructions[-1]
        return value if op == _CONSTANT else None


def _constant(value: float) -> _Part:
    return _Part([(_CONSTANT, value)])


def _operand_count(op: int) -> int:
    return 0 if op <= _VARIABLE else 1 if op < _ADD else 2 if op < _WHERE else 3


def _fold(tokens: Iterable[_Token], lookup: Callable[[_Token], _Part]) -> _Part:
    """Put in what the names mean and compute every part that is constant."""
    parts: list[_Part] = []
    for token in tokens:
        if token.op == _CONSTANT:
            parts.append(_constant(float(token.value)))
        elif token.op == _VARIABLE:
            parts.append(lookup(token))
        else:
            count = _operand_count(token.op)
            parts[-count:] = [_combine(token.op, parts[-count:])]
    return parts[0]


def _combine(op: int, operands: list[_Part]) -> _Part:
    if op == _WHERE and operands[0].constant is not None and not operands[0].fault:
        return operands[1] if operands[0].constant else operands[2]
    for part in operands:
        if part.fault:
            return part
    values = [part.constant for part in operands]
    if op != _WHERE and None not in values:
        return _computed(op, [v for v in values if v is not None])
    if op == _MUL and values[1] is not None:
        return _scaled(operands[0], values[1])
    if op == _MUL and values[0] is not None:
        return _scaled(operands[1], values[0])
    if op == _POW and values[1] is not None:
        return _constant_power(operands[0], values[1])
    return _Part([i for part in operands for i in part.instructions] + [(op, 0.0)])


def _computed(op: int, values: list[float]) -> _Part:
    try:
        value = float(_VALUE[op](*values))
    except (ArithmeticError, ValueError):
        value = math.nan
    if math.isfinite(value):
        return _constant(value)
    shown = [f"{v:.6g}" for v in values]
    text = f" {_SYMBOL[op]} ".join(shown) if op in _SYMBOL else f"{_NAME_OF[op]}({', '.join(shown)})"
    return _Part([(_CONSTANT, math.nan)], f"{text} has no finite value")


def _scaled(part: _Part, factor: float) -> _Part:
    return part if factor == 1.0 else _Part([*part.instructions, (_SCALE, factor)])


def _constant_power(base: _Part, exponent: float) -> _Part:
    """Power with a constant exponent; integers become products, exact for a base of any sign and at zero."""
    if exponent == 0.0:
        return _constant(1.0)
    if exponent == 0.5:
        return _Part([*base.instructions, (_SQRT, 0.0)])
    if not exponent.is_integer() or abs(exponent) >= MAX_INTEGER_POWER:
        return _Part([*base.instructions, (_CONSTANT, exponent), (_POW, 0.0)])
    size = abs(exponent)
    power = base if size == 1.0 else _Part([*base.instructions, (_POWER, size)])
    return power if exponent > 0.0 else _Part([(_CONSTANT, 1.0), *power.instructions, (_DIV, 0.0)])


# ---------------------------------------------------------------------------------------------------
# Public objects


@dataclass(frozen=True)
class Expression:
    """A formula that has been read; made by :func:`parse`.

    Attributes
    ----------
    text : str
        The formula as written.
    names : frozenset of str
        Names that have to be given a meaning, without functions and constants.
    """

    text: str
    names: frozenset[str] = field(compare=False)
    _tokens: tuple[_Token, ...] = field(repr=False, compare=False)

    def evaluate(self, values: Mapping[str, float]) -> float:
        """Compute the formula for given values of its names.

        Raises
        ------
        ExpressionError
            If a name has no value, or the result is not a finite number.

        Examples
        --------
        >>> parse("2*pi*radius").evaluate({"radius": 0.5}) == 3.141592653589793
        True
        """

        def lookup(token: _Token) -> _Part:
            if token.value not in values:
                raise self._unknown(token, values)
            return self._given(token, values[str(token.value)])

        return self._finite(_fold(self._tokens, lookup)).instructions[0][1]

    def program(
        self,
        variables: Sequence[str],
        constants: Mapping[str, float] | None = None,
        *,
        input_scale: Sequence[float] | None = None,
        output_scale: float = 1.0,
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

        Returns
        -------
        Program

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
        constants = {} if constants is None else constants
        scale = [1.0] * len(variables) if input_scale is None else [float(s) for s in input_scale]
        if len(scale) != len(variables):
            raise ExpressionError(f"{len(variables)} variables have {len(scale)} input scales. Give one for each")
        _check_scales([*scale, output_scale])
        for name in variables:
            _check_free(name)
        index = {name: k for k, name in enumerate(variables)}

        def lookup(token: _Token) -> _Part:
            name = str(token.value)
            if name in index and name in constants:
                what = f"'{name}' is both a variable and a parameter"
                raise _error(self.text, token.column, what, "Rename the parameter")
            if name in index:
                variable = _Part([(_VARIABLE, index[name])])
                return _combine(_MUL, [variable, _constant(scale[index[name]])])
            if name not in constants:
                raise self._unknown(token, {*variables, *constants})
            return self._given(token, constants[name])

        part = _fold(self._tokens, lookup)
        return _assemble(self._finite(_combine(_MUL, [part, _constant(float(output_scale))])).instructions)

    def _unknown(self, token: _Token, known: Collection[str]) -> ExpressionError:
        name = str(token.value)
        hint = _suggestion(name, {*known, *CONSTANTS}, "names")
        return _error(self.text, token.column, f"unknown name '{name}'", hint)

    def _given(self, token: _Token, value: float) -> _Part:
        if not math.isfinite(value):
            raise _error(self.text, token.column, f"'{token.value}' is {value}", "Give it a finite number")
        return _constant(float(value))

    def _finite(self, part: _Part) -> _Part:
        if part.fault:
            raise _error(self.text, None, part.fault, "Check the values that enter here")
        return part


@dataclass(frozen=True, eq=False)
class Program:
    """Instructions for :func:`run_program`.

    Attributes
    ----------
    code : (n,) int64 array
        Instructions, ``opcode + 256*operand``.
    constants : (m,) float64 array
        Numbers the instructions refer to.
    depth : int
        Rows of the work stack it needs.
    """

    code: IntArray
    constants: FloatArray
    depth: int

    @property
    def variables_read(self) -> int:
        """How many variables it must be given: one more than the highest index it reads."""
        operands = (self.code >> _OPCODE_BITS)[(self.code & _OPCODE_MASK) == _VARIABLE]
        return int(operands.max(initial=-1)) + 1

    def evaluate(self, values: Sequence[float]) -> float:
        """Value for given values of the variables.

        Examples
        --------
        >>> parse("x - y").program(["x", "y"]).evaluate([3.0, 1.0])
        2.0
        """
        jets = np.zeros((len(values), 3))
        jets[:, 0] = values
        return self.jet(jets)[0]

    def jet(self, variables: ArrayLike) -> tuple[float, float, float]:
        """Value, first and second derivative along one parameter.

        Parameters
        ----------
        variables : (nvar, 3) array
            Value, first and second derivative of each variable with respect to that parameter.

        Examples
        --------
        >>> parse("t**3").program(["t"]).jet([(2.0, 1.0, 0.0)])
        (8.0, 12.0, 12.0)
        """
        jets = np.array(variables, dtype=np.float64)
        if jets.size and (jets.ndim != 2 or jets.shape[1] != 3):
            raise ExpressionError(f"jets have the shape {jets.shape}. Give (value, first, second) for each variable")
        jets = jets.reshape(-1, 3)
        if len(jets) < self.variables_read:
            raise ExpressionError(f"{len(jets)} variables given, the program reads {self.variables_read}")
        stack = np.empty((self.depth, 3))
        with np.errstate(all="ignore"):
            f, f1, f2 = run_program(self.code, 0, len(self.code), self.constants, jets, stack)
        return float(f), float(f1), float(f2)


def _check_scales(scales: Iterable[float]) -> None:
    if not all(math.isfinite(s) for s in scales):
        raise ExpressionError("a scale is not finite. Give the factor between the two units")


def _assemble(instructions: Sequence[_Instruction], spline: FloatArray | None = None) -> Program:
    """Number the constants and count the rows of the stack; `spline` is what a spline instruction reads."""
    code: list[int] = []
    constants: list[float] = []
    height = depth = 0
    for op, value in instructions:
        operand = int(value)
        if op in _READS_CONSTANTS:
            operand = len(constants)
            constants.extend(spline.tolist() if op == _SPLINE and spline is not None else [value])
        code.append(op + (operand << _OPCODE_BITS))
        height += 1 - _operand_count(op)
        depth = max(depth, height)
    return Program(np.array(code, dtype=np.int64), np.array(constants, dtype=np.float64), depth)


def constant_program(value: float) -> Program:
    """A program that always gives `value`.

    Examples
    --------
    >>> constant_program(2.5).evaluate([])
    2.5
    """
    if not math.isfinite(value):
        raise ExpressionError(f"the constant is {value}. Give a finite number")
    return _assemble([(_CONSTANT, float(value))])


def table_program(
    x: ArrayLike, y: ArrayLike, variable_index: int, *, input_scale: float = 1.0, output_scale: float = 1.0
) -> Program:
    """Natural cubic spline through points, twice continuously differentiable everywhere.

    Outside the points the curve goes on along its tangent; the curvature of a natural spline is zero
    at its ends, so no derivative up to the second jumps there.

    Parameters
    ----------
    x, y : (n,) array_like
        At least two points, `x` strictly increasing.
    variable_index : int
        Which variable is looked up.
    input_scale, output_scale : float
        The table is entered at ``input_scale`` times the variable, its result is multiplied by `output_scale`.

    Returns
    -------
    Program

    Raises
    ------
    ExpressionError
        If the points do not define a spline.

    Examples
    --------
    >>> ramp = table_program([0.0, 1.0], [0.0, 10.0], 0)
    >>> ramp.evaluate([0.5]), ramp.evaluate([2.0])
    (5.0, 20.0)
    """
    if variable_index < 0:
        raise ExpressionError(f"variable index {variable_index} is negative. Count the variables from 0")
    _check_scales([input_scale, output_scale])
    instructions: list[_Instruction] = [(_VARIABLE, variable_index)]
    if input_scale != 1.0:
        instructions.append((_SCALE, float(input_scale)))
    instructions.append((_SPLINE, 0.0))
    if output_scale != 1.0:
        instructions.append((_SCALE, float(output_scale)))
    return _assemble(instructions, _spline_constants(*_table_points(x, y)))


def _table_points(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    try:
        knots, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ExpressionError("the table holds something that is not a number. Give two lists of numbers") from None
    if knots.ndim != 1 or values.ndim != 1:
        raise ExpressionError("the columns of a table are lists of numbers. Give x and y as flat lists")
    if len(knots) != len(values):
        raise ExpressionError(f"the table has {len(knots)} x and {len(values)} y. Give one y for each x")
    if len(knots) < 2:
        raise ExpressionError(f"the table has {len(knots)} point(s). Give at least two, or a constant")
    bad = np.flatnonzero(~(np.isfinite(knots) & np.isfinite(values)))
    if bad.size:
        raise ExpressionError(f"point {bad[0] + 1} of the table is not finite. Give finite numbers")
    back = np.flatnonzero(np.diff(knots) <= 0.0)
    if back.size:
        k = int(back[0])
        what = f"x of the table must increase, but point {k + 2} ({knots[k + 1]:.6g}) follows {knots[k]:.6g}"
        raise ExpressionError(f"{what}. Sort the points and remove doubles")
    return knots, values


def _spline_constants(knots: FloatArray, values: FloatArray) -> FloatArray:
    """Layout read by the kernel: n, the n knots, and for n + 1 pieces c0..c3 of powers of (x - knot).

    Piece 0 is the tangent before the first knot, piece n the tangent after the last.
    """
    from scipy.interpolate import CubicSpline  # slow to import, and models without tables need none of it

    pieces = np.zeros((len(knots) + 1, 4))
    try:
        with np.errstate(all="ignore"):
            spline = CubicSpline(knots, values, bc_type="natural")
            pieces[1:-1] = spline.c[::-1].T
            pieces[[0, -1], 0] = values[[0, -1]]
            pieces[[0, -1], 1] = spline(knots[[0, -1]], 1)
    except ValueError:  # numbers that overflow
        pieces[0, 0] = math.nan
    if not np.isfinite(pieces).all():
        raise ExpressionError("the table is too steep for a spline. Move its points apart")
    return np.concatenate([[len(knots)], knots, pieces.ravel()])


def pack(programs: Sequence[Program]) -> tuple[IntArray, FloatArray, IntArray, int]:
    """Put programs one after the other into flat arrays.

    Returns
    -------
    code, constants : int64 array, float64 array
        Of all programs, with their references to constants moved.
    start : (n + 1,) int64 array
        Program k is ``code[start[k]:start[k + 1]]``.
    depth : int
        Rows of a stack on which each of them can run.

    Examples
    --------
    >>> code, constants, start, depth = pack([constant_program(1.0), parse("t + 2").program(["t"])])
    >>> start.tolist(), constants.tolist(), depth
    ([0, 1, 4], [1.0, 2.0], 2)
    """
    moved, offset = [np.zeros(0, dtype=np.int64)], 0
    for program in programs:
        refers = np.isin(program.code & _OPCODE_MASK, _READS_CONSTANTS)
        moved.append(program.code + np.where(refers, offset << _OPCODE_BITS, 0))
        offset += len(program.constants)
    constants = np.concatenate([np.zeros(0), *(program.constants for program in programs)])
    start = np.cumsum([0, *(len(program.code) for program in programs)], dtype=np.int64)
    return np.concatenate(moved), constants, start, max((program.depth for program in programs), default=0)


# ---------------------------------------------------------------------------------------------------
# Parameters


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
        With every problem found.

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
    problems: list[tuple[str, Problem]] = []
    for name, value in (overrides or {}).items():
        if name in parameters:
            given[name] = value
        else:
            hint = _suggestion(name, parameters, "parameters")
            problems.append((name, _parameter_problem(name, "cannot be overridden: the model has none", hint)))
    expressions = _read_parameters(given, problems)
    references = {name: sorted(e.names & given.keys()) for name, e in expressions.items()}
    order = _without_cycles(references, problems)
    values: dict[str, float] = {}
    for name in order:
        if any(reference not in values for reference in references[name]):
            continue  # what it refers to has been reported
        try:
            values[name] = expressions[name].evaluate(values)
        except ExpressionError as error:
            problems.append((name, _parameter_problem(name, str(error))))
    if problems:
        place = {name: k for k, name in enumerate(given)}
        raise ModelError(problem for _, problem in sorted(problems, key=lambda p: place.get(p[0], len(place))))
    return {name: values[name] for name in given}


def _parameter_problem(name: str, message: str, hint: str = "") -> Problem:
    return Problem(f"parameter '{name}'", message, hint, path=("parameters", name))


def _read_parameters(
    given: Mapping[str, float | int | str], problems: list[tuple[str, Problem]]
) -> dict[str, Expression]:
    """Formulas of the parameters whose name, text and references are in order."""
    expressions = {}
    for name, value in given.items():
        try:
            _check_parameter_name(name)
            expression = _as_expression(value)
        except ExpressionError as error:
            problems.append((name, _parameter_problem(name, str(error))))
            continue
        undefined = {str(t.value): t for t in expression._tokens if t.op == _VARIABLE and t.value not in given}
        if not undefined:
            expressions[name] = expression
        for token in undefined.values():
            problems.append((name, _parameter_problem(name, str(_undefined(expression, token, given)))))
    return expressions


def _undefined(expression: Expression, token: _Token, given: Collection[str]) -> ExpressionError:
    if token.value == "t":
        hint = "Use t in the formula of the motor or force itself"
        return _error(expression.text, token.column, "a parameter cannot depend on the time t", hint)
    return expression._unknown(token, given)


def _check_parameter_name(name: str) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ExpressionError(
            "is not a name that formulas can use. Use letters, digits and '_', not starting with a digit"
        )
    if name == "t":
        raise ExpressionError("'t' already means the time in formulas. Choose another name")
    _check_free(name)


def _check_free(name: str) -> None:
    if name in FUNCTIONS or name in CONSTANTS:
        meaning = "a function" if name in FUNCTIONS else "a constant"
        raise ExpressionError(f"'{name}' already means {meaning} in formulas. Choose another name")


def _as_expression(value: object) -> Expression:
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ExpressionError(f"{value!r} is neither a number nor a formula. Give one of the two")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ExpressionError(f"{number} is not a finite number. Give a finite one")
    return Expression(repr(number), frozenset(), (_Token(_CONSTANT, number),))


def _without_cycles(references: Mapping[str, list[str]], problems: list[tuple[str, Problem]]) -> list[str]:
    """Order in which the parameters can be computed; those of a cycle are reported and left out."""
    graph = {name: [r for r in refs if r in references] for name, refs in references.items()}
    place = {name: k for k, name in enumerate(references)}
    while True:
        try:
            return list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            cycle: list[str] = error.args[1][:0:-1]  # given from referred to referring, the first again at the end
            first = min(range(len(cycle)), key=lambda k: place[cycle[k]])
            cycle = cycle[first:] + cycle[:first]
            what = f"refers to itself: {' -> '.join([*cycle, cycle[0]])}"
            problems.append((cycle[0], _parameter_problem(cycle[0], what, "Give one of them as a number")))
            graph = {n: [r for r in refs if r not in cycle] for n, refs in graph.items() if n not in cycle}


# ---------------------------------------------------------------------------------------------------
# Kernels. Below, x is the value of an operand and (value, first, second) a function of it with its
# derivatives; a, a1, a2 and b, b1, b2 are the jets of two operands. `Any` stands for float or complex.

_INVERSE_LOG_OF_TEN = 1.0 / math.log(10.0)
_RADIANS_PER_DEGREE = math.pi / 180.0
_DEGREES_PER_RADIAN = 180.0 / math.pi


@kernel
def run_program(code: IntArray, begin: int, end: int, constants: FloatArray, variables: Any, stack: Any) -> Any:
    """Run ``code[begin:end]`` and return value, first and second derivative along one parameter.

    Parameters
    ----------
    code : (n,) int64 array
        Instructions of one or several programs.
    begin, end : int
        Which of them to run.
    constants : (m,) float64 array
        Numbers the instructions refer to.
    variables : (nvar, 3) float64 or complex128 array
        Jets of the variables: value, first and second derivative with respect to the parameter.
    stack : (depth, 3) array of the same dtype
        Work space, overwritten.

    Returns
    -------
    f, f1, f2 : numbers of that dtype
    """
    top = -1
    for k in range(begin, end):
        op = code[k] & _OPCODE_MASK
        operand = code[k] >> _OPCODE_BITS
        if op == _CONSTANT:
            top += 1
            stack[top, 0] = constants[operand]
            stack[top, 1] = 0.0
            stack[top, 2] = 0.0
        elif op == _VARIABLE:
            top += 1
            for i in range(3):
                stack[top, i] = variables[operand, i]
        elif op == _SCALE:
            for i in range(3):
                stack[top, i] *= constants[operand]
        elif op < _ADD:
            _unary(op, operand, constants, stack, top)
        elif op < _WHERE:
            top -= 1
            _binary(op, stack, top)
        else:
            top -= 2
            _choose(stack, top)
    return stack[0, 0], stack[0, 1], stack[0, 2]


@kernel
def _unary(op: int, operand: int, constants: FloatArray, stack: Any, top: int) -> None:
    """Replace u by g(u): g' u' and g'' u'^2 + g' u''."""
    x = stack[top, 0]
    if op == _POWER:
        value, first, second = _integer_power_slopes(x, operand)
    elif op == _SPLINE:
        value, first, second = _spline(constants, operand, x)
    elif op <= _ATAN:
        value, first, second = _trigonometric(op, x)
    elif op <= _SQRT:
        value, first, second = _exponential(op, x)
    else:
        value, first, second = _piecewise(op, x)
    u1, u2 = stack[top, 1], stack[top, 2]
    stack[top, 0] = value
    if u1 != 0.0 or u2 != 0.0:  # otherwise both stay zero, also where `first` is infinite
        stack[top, 1] = first * u1
        stack[top, 2] = second * u1 * u1 + first * u2


@kernel
def _divide(a: Any, b: Any) -> Any:
    """a/b, not finite for b = 0; complex numbers would raise an error there."""
    return a / b if b != 0.0 else a * np.inf


@kernel
def _trigonometric(op: int, x: Any) -> Any:
    if op == _SIN:
        value = np.sin(x)
        first = np.cos(x)
        second = -value
    elif op == _COS:
        value = np.cos(x)
        first = -np.sin(x)
        second = -value
    elif op == _TAN:
        value = np.tan(x)
        first = 1.0 + value * value
        second = 2.0 * value * first
    elif op == _ATAN:
        value = np.arctan(x)
        first = 1.0 / (1.0 + x * x)
        second = -2.0 * x * first * first
    else:
        inside = x if x.real * x.real <= 1.0 else x * np.nan
        value = np.arcsin(inside)
        first = _divide(1.0, np.sqrt((1.0 - inside) * (1.0 + inside)))
        second = inside * first * first * first
        if op == _ACOS:
            value = np.arccos(inside)
            first = -first
            second = -second
    return value, first, second


@kernel
def _exponential(op: int, x: Any) -> Any:
    if op == _EXP:
        value = np.exp(x)
        first = value
        second = value
    elif op == _SINH:
        value = np.sinh(x)
        first = np.cosh(x)
        second = value
    elif op == _COSH:
        value = np.cosh(x)
        first = np.sinh(x)
        second = value
    elif op == _TANH:
        side = 1.0 if x.real >= 0.0 else -1.0
        decay = np.exp(-2.0 * side * x)
        # far out, tanh of a complex number would overflow
        value = np.tanh(x) if x.real * x.real < 400.0 else side * (1.0 - decay) / (1.0 + decay)
        first = 4.0 * decay / ((1.0 + decay) * (1.0 + decay))  # 1 - tanh^2 without its cancellation
        second = -2.0 * value * first
    else:
        value, first, second = _root_or_logarithm(op, x if x.real >= 0.0 else x * np.nan)
    return value, first, second


@kernel
def _root_or_logarithm(op: int, x: Any) -> Any:
    if op == _SQRT:
        value = np.sqrt(x)
        first = _divide(0.5, value)
        second = _divide(-0.5 * first, x)
    elif op == _LOG:
        value = np.log(x)
        first = _divide(1.0, x)
        second = -first * first
    else:
        value = np.log10(x)
        first = _divide(_INVERSE_LOG_OF_TEN, x)
        second = _divide(-first, x)
    return value, first, second


@kernel
def _piecewise(op: int, x: Any) -> Any:
    value = x
    first = 0.0
    if op == _ABS:
        first = 1.0 if x.real >= 0.0 else -1.0
        value = first * x
    elif op == _RADIANS:
        first = _RADIANS_PER_DEGREE
        value = first * x
    elif op == _DEGREES:
        first = _DEGREES_PER_RADIAN
        value = first * x
    elif op == _SIGN:
        value = np.sign(x.real)
    elif x.real >= 0.0:
        value = 1.0
    elif x.real < 0.0:
        value = 0.0
    return value, first, 0.0


@kernel
def _integer_power(x: Any, n: int) -> Any:
    """x^n for n >= 0 by repeated squaring."""
    result = 1.0
    factor = x
    while n > 0:
        if n & 1:
            result = result * factor
        n >>= 1
        if n:
            factor = factor * factor
    return result


@kernel
def _integer_power_slopes(x: Any, n: int) -> Any:
    """x^n for n >= 2 with its derivatives, at zero too."""
    lower = _integer_power(x, n - 2)
    return lower * x * x, n * lower * x, n * (n - 1.0) * lower


@kernel
def _spline(constants: FloatArray, at: int, x: Any) -> Any:
    """Cubic piece that holds x; layout in `_spline_constants`."""
    count = int(constants[at])
    below = 0  # how many knots are not above x
    above = count
    while below < above:
        middle = (below + above) // 2
        if constants[at + 1 + middle] <= x.real:
            below = middle + 1
        else:
            above = middle
    d = x - constants[at + 1 + max(below - 1, 0)]
    c = at + 1 + count + 4 * below
    c0, c1, c2, c3 = constants[c], constants[c + 1], constants[c + 2], constants[c + 3]
    return c0 + d * (c1 + d * (c2 + d * c3)), c1 + d * (2.0 * c2 + d * 3.0 * c3), 2.0 * c2 + 6.0 * c3 * d


@kernel
def _binary(op: int, stack: Any, top: int) -> None:
    """Replace the two topmost jets by the result of an operation on them."""
    a, a1, a2 = stack[top, 0], stack[top, 1], stack[top, 2]
    b, b1, b2 = stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2]
    if op == _ADD:
        f, f1, f2 = a + b, a1 + b1, a2 + b2
    elif op == _SUB:
        f, f1, f2 = a - b, a1 - b1, a2 - b2
    elif op == _MUL:
        f, f1, f2 = a * b, a1 * b + a * b1, a2 * b + 2.0 * a1 * b1 + a * b2
    elif op == _DIV:
        f = _divide(a, b)
        f1 = _divide(a1 - f * b1, b)
        f2 = _divide(a2 - 2.0 * f1 * b1 - f * b2, b)
    elif op == _POW:
        f, f1, f2 = _pow(a, a1, a2, b, b1, b2)
    elif op in (_ATAN2, _HYPOT):
        f, f1, f2 = _polar(op, a, a1, a2, b, b1, b2)
    elif op == _MOD:
        f, f1, f2 = _mod(a, a1, a2, b, b1, b2)
    elif op in (_MIN, _MAX):
        keep = a.real <= b.real if op == _MIN else a.real >= b.real
        f, f1, f2 = b, b1, b2
        if keep or a.real != a.real:
            f, f1, f2 = a, a1, a2
    else:
        f, f1, f2 = _truth(op, a.real, b.real), 0.0, 0.0
    stack[top, 0] = f
    stack[top, 1] = f1
    stack[top, 2] = f2


@kernel
def _truth(op: int, a: float, b: float) -> float:
    """1 or 0 for a < b or a <= b, NaN if one of them is."""
    if a != a or b != b:
        return np.nan
    if a < b or (op == _LESS_EQUAL and a == b):
        return 1.0
    return 0.0


@kernel
def _choose(stack: Any, top: int) -> None:
    """Put the chosen one of two jets in the place of the condition."""
    condition = stack[top, 0].real
    chosen = top + 2 if condition == 0.0 else top + 1
    for i in range(3):
        stack[top, i] = stack[chosen, i] if condition == condition else np.nan


@kernel
def _power(a: Any, b: Any) -> Any:
    """a^b; NaN for a negative base with an exponent that is no integer, in complex numbers too."""
    n = np.floor(b.real)
    if a == 0.0:
        return a + a.real**b.real
    if a.real >= 0.0:
        return a**b
    if b != n or n >= MAX_INTEGER_POWER or n <= -MAX_INTEGER_POWER:
        return a * np.nan
    return _integer_power(a, int(n)) if n >= 0.0 else _divide(1.0, _integer_power(a, int(-n)))


@kernel
def _pow(a: Any, a1: Any, a2: Any, b: Any, b1: Any, b2: Any) -> Any:
    f = _power(a, b)
    if b1 != 0.0 or b2 != 0.0:  # f = exp(w) with w = b log a
        rate = _divide(a1, a)
        log_a = np.log(a) if a.real > 0.0 else a * np.nan
        w1 = b1 * log_a + b * rate
        w2 = b2 * log_a + 2.0 * b1 * rate + b * (_divide(a2, a) - rate * rate)
        return f, f * w1, f * (w2 + w1 * w1)
    first = 0.0 * b1
    second = 0.0 * b1
    if (a1 != 0.0 or a2 != 0.0) and b != 0.0:
        first = b * _power(a, b - 1.0)
        if b != 1.0:
            second = b * (b - 1.0) * _power(a, b - 2.0)
    return f, first * a1, second * a1 * a1 + first * a2


@kernel
def _polar(op: int, a: Any, a1: Any, a2: Any, b: Any, b1: Any, b2: Any) -> Any:
    """Angle atan2(a, b) or length hypot(a, b) of the direction with x = b and y = a."""
    square = a * a + b * b
    if op == _HYPOT:
        f = np.sqrt(square)
        f1 = _divide(a * a1 + b * b1, f)
        f2 = _divide(a1 * a1 + b1 * b1 + a * a2 + b * b2 - f1 * f1, f)
    else:
        angle = np.arctan2(np.abs(a.real), b.real)  # the sign of a zero is not to be relied on
        if a.real < 0.0:
            angle = -angle
        # The turn from the direction of the real parts is zero for floats; complex has no arctan2.
        along = a * a.real + b * b.real
        turn = (a * b.real - b * a.real) / along if along != 0.0 else 0.0 * a
        f = angle + np.arctan(turn)
        f1 = _divide(b * a1 - a * b1, square)
        f2 = _divide(b * a2 - a * b2 - 2.0 * f1 * (a * a1 + b * b1), square)
    if a1 == 0.0 and b1 == 0.0 and a2 == 0.0 and b2 == 0.0:
        return f, a1, a2
    return f, f1, f2


@kernel
def _mod(a: Any, a1: Any, a2: Any, b: Any, b1: Any, b2: Any) -> Any:
    remainder = a.real % b.real
    count = np.round((a.real - remainder) / b.real)
    return remainder + (a - a.real) - count * (b - b.real), a1 - count * b1, a2 - count * b2
