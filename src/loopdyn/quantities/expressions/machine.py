"""Stack machine: one kernel that runs every program, for floats and for complex numbers.

A *jet* ``(u, u', u'')`` is a value with its first and second derivative along one parameter; each row of the
stack is one. Below, a, a1, a2 and b, b1, b2 are the jets of two operands.
"""

from __future__ import annotations

import math

import numpy as np

from loopdyn.engine.jit import inline, kernel
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.spatial.plucker import get3, put3, scale

_INVERSE_LOG_OF_TEN = 1.0 / math.log(10.0)
_RADIANS_PER_DEGREE = math.pi / 180.0
_DEGREES_PER_RADIAN = 180.0 / math.pi


@kernel
def run_program(code, begin, end, constants, variables, stack):
    """Run ``code[begin:end]`` and return value, first and second derivative along one parameter.

    Parameters
    ----------
    code : (n,) int64 array
        Instructions of one or several programs.
    begin, end : int
        Range of instructions to run.
    constants : (m,) float64 array
        Numbers the instructions refer to.
    variables : (nvar, 3) float64 or complex128 array
        Jets of the variables.
    stack : (depth, 3) array of the same dtype
        Work space, overwritten.

    Returns
    -------
    f, f1, f2 : numbers of that dtype
    """
    top = -1
    for k in range(begin, end):
        op = code[k] & OP.MASK
        operand = code[k] >> OP.BITS
        if op == OP.CONSTANT:
            top += 1
            put3(stack, top, 0, (constants[operand], 0.0, 0.0))
        elif op == OP.VARIABLE:
            top += 1
            put3(stack, top, 0, get3(variables, operand, 0))
        elif op == OP.SCALE:
            put3(stack, top, 0, scale(constants[operand], get3(stack, top, 0)))
        elif op < OP.ADD:
            put3(stack, top, 0, _chain(get3(stack, top, 0), _function(op, operand, constants, stack[top, 0])))
        elif op < OP.WHERE:
            top -= 1
            put3(stack, top, 0, _operation(op, get3(stack, top, 0), get3(stack, top + 1, 0)))
        else:
            top -= 2
            condition = stack[top, 0].real
            put3(stack, top, 0, get3(stack, top + 2 if condition == 0.0 else top + 1, 0))
            if condition != condition:
                put3(stack, top, 0, (np.nan, np.nan, np.nan))
    return get3(stack, 0, 0)


@inline
def data_place(code, program, n):
    """Index in the constants at which the numbers of program n, a `data_program`, begin."""
    return code[program[n]] >> OP.BITS


@inline
def _chain(jet, function):
    """Chain rule: g(u), g' u' and g'' u'^2 + g' u''."""
    u1, u2 = jet[1], jet[2]
    value, first, second = function
    if u1 == 0.0 and u2 == 0.0:  # also where `first` is infinite
        return value, u1, u2
    return value, first * u1, second * u1 * u1 + first * u2


@inline
def _divide(a, b):
    """a/b, not finite for b = 0; complex numbers would raise an error there."""
    return a / b if b != 0.0 else a * np.inf


# ---------------------------------------------------------------------------------------- one argument


@inline
def _function(op, operand, constants, x):
    """A function of x with its first and second derivative."""
    if op == OP.POWER:  # at least 2; exact at zero too
        lower = _integer_power(x, operand - 2)
        return lower * x * x, operand * lower * x, operand * (operand - 1.0) * lower
    if op == OP.SPLINE:
        return _spline(constants, operand, x)
    if op == OP.SIN:
        value = np.sin(x)
        return value, np.cos(x), -value
    if op == OP.COS:
        value = np.cos(x)
        return value, -np.sin(x), -value
    if op == OP.TAN:
        value = np.tan(x)
        first = 1.0 + value * value
        return value, first, 2.0 * value * first
    if op == OP.ATAN:
        first = 1.0 / (1.0 + x * x)
        return np.arctan(x), first, -2.0 * x * first * first
    if op == OP.EXP:
        value = np.exp(x)
        return value, value, value
    if op == OP.SINH:
        value = np.sinh(x)
        return value, np.cosh(x), value
    if op == OP.COSH:
        value = np.cosh(x)
        return value, np.sinh(x), value
    if op == OP.TANH:
        return _tanh(x)
    if op == OP.ABS:
        side = 1.0 if x.real >= 0.0 else -1.0
        return side * x, side, 0.0
    if op == OP.SIGN:
        return np.sign(x.real), 0.0, 0.0
    if op == OP.STEP:
        return _truth(OP.LESS_EQUAL, 0.0, x.real), 0.0, 0.0
    if op == OP.RADIANS:
        return _RADIANS_PER_DEGREE * x, _RADIANS_PER_DEGREE, 0.0
    if op == OP.DEGREES:
        return _DEGREES_PER_RADIAN * x, _DEGREES_PER_RADIAN, 0.0
    return _within_domain(op, x)


@inline
def _within_domain(op, x):
    """Functions that are NaN outside their domain, for complex numbers too."""
    if op == OP.ASIN or op == OP.ACOS:
        inside = x if x.real * x.real <= 1.0 else x * np.nan
        first = _divide(1.0, np.sqrt((1.0 - inside) * (1.0 + inside)))
        second = inside * first * first * first
        if op == OP.ASIN:
            return np.arcsin(inside), first, second
        return np.arccos(inside), -first, -second
    inside = x if x.real >= 0.0 else x * np.nan
    if op == OP.SQRT:
        value = np.sqrt(inside)
        first = _divide(0.5, value)
        return value, first, _divide(-0.5 * first, inside)
    if op == OP.LOG:
        first = _divide(1.0, inside)
        return np.log(inside), first, -first * first
    first = _divide(_INVERSE_LOG_OF_TEN, inside)
    return np.log10(inside), first, _divide(-first, inside)


@inline
def _tanh(x):
    side = 1.0 if x.real >= 0.0 else -1.0
    decay = np.exp(-2.0 * side * x)
    # far out, tanh of a complex number would overflow
    value = np.tanh(x) if x.real * x.real < 400.0 else side * (1.0 - decay) / (1.0 + decay)
    first = 4.0 * decay / ((1.0 + decay) * (1.0 + decay))  # 1 - tanh^2 without its cancellation
    return value, first, -2.0 * value * first


@inline
def _integer_power(x, n):
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


@inline
def _spline(constants, at, x):
    """Cubic piece that holds x; layout in `programs._spline_constants`."""
    count = int(constants[at])
    below = 0  # number of knots not above x
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


# --------------------------------------------------------------------------------------- two arguments


@inline
def _operation(op, u, v):
    a, a1, a2 = u
    b, b1, b2 = v
    if op == OP.ADD:
        return a + b, a1 + b1, a2 + b2
    if op == OP.SUB:
        return a - b, a1 - b1, a2 - b2
    if op == OP.MUL:
        return a * b, a1 * b + a * b1, a2 * b + 2.0 * a1 * b1 + a * b2
    if op == OP.DIV:
        f = _divide(a, b)
        f1 = _divide(a1 - f * b1, b)
        return f, f1, _divide(a2 - 2.0 * f1 * b1 - f * b2, b)
    if op == OP.POW:
        return _pow(a, a1, a2, b, b1, b2)
    if op == OP.ATAN2 or op == OP.HYPOT:
        return _polar(op, a, a1, a2, b, b1, b2)
    if op == OP.MOD:
        remainder = a.real % b.real
        count = np.round((a.real - remainder) / b.real)
        return remainder + (a - a.real) - count * (b - b.real), a1 - count * b1, a2 - count * b2
    if op == OP.MIN:
        return u if a.real <= b.real or a.real != a.real else v
    if op == OP.MAX:
        return u if a.real >= b.real or a.real != a.real else v
    return _truth(op, a.real, b.real), 0.0, 0.0


@inline
def _truth(op, a, b):
    """1 or 0 for a < b or a <= b, NaN if one of them is."""
    if a != a or b != b:
        return np.nan
    return 1.0 if a < b or (op == OP.LESS_EQUAL and a == b) else 0.0


@inline
def _power(a, b):
    """a^b; NaN for a negative base with an exponent that is no integer, in complex numbers too."""
    n = np.floor(b.real)
    if a == 0.0:
        return a + a.real**b.real
    if a.real >= 0.0:
        return a**b
    if b != n or n >= OP.MAX_INTEGER_POWER or n <= -OP.MAX_INTEGER_POWER:
        return a * np.nan
    return _integer_power(a, int(n)) if n >= 0.0 else _divide(1.0, _integer_power(a, int(-n)))


@inline
def _pow(a, a1, a2, b, b1, b2):
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


@inline
def _polar(op, a, a1, a2, b, b1, b2):
    """Angle atan2(a, b) or length hypot(a, b) of the direction with x = b and y = a."""
    square = a * a + b * b
    if op == OP.HYPOT:
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
