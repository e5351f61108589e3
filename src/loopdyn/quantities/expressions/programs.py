"""Programs of the stack machine as arrays: of instructions, of constants, of tables, of many programs at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import ExpressionError
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.expressions.machine import run_program

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Instruction = tuple[int, float]  # opcode with the constant, the index of the variable, or the exponent

Interpolation = Literal["monotone", "linear", "cubic"]
Outside = Literal["hold", "extend", "error"]

ROUNDING = 1e-9  # fraction of the range of a table by which a motion that reverses at its end may exceed it


@dataclass(frozen=True, eq=False)
class Lookup:
    """Table of a program, with the positions of its points, breakpoints and ends.

    Attributes
    ----------
    variable : int
        Index of the variable.
    knots : (n,) array
        Values of the variable at the points, ascending.
    corners : (k,) array
        Knots at which a derivative up to the second jumps.
    kinks : (m,) array
        Knots at which the slope jumps.
    outside : {"hold", "extend", "error"}
        Behaviour beyond the first and the last point.
    scale : float
        The table is written in `scale` times the variable.
    entry : Program, optional
        Program of a quantity that is no variable, by which the table is entered; `variable` is then -1.
    """

    variable: int
    knots: FloatArray
    corners: FloatArray
    kinks: FloatArray
    outside: Outside
    scale: float
    entry: Program | None = None

    @property
    def exits(self) -> FloatArray:
        """Values of the variable beyond which the table is left: its ends, with an allowance for rounding."""
        slack = ROUNDING * float(np.ptp(self.knots))
        return np.array([self.knots[0] - slack, self.knots[-1] + slack])

    def left_by(self, x: float) -> bool:
        """Whether a value of the variable is outside the table."""
        low, high = self.exits
        return bool(x < low or x > high)


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
    table : Lookup, optional
        Table, if the program is one.
    """

    code: IntArray
    constants: FloatArray
    depth: int
    table: Lookup | None = None

    @property
    def variables_read(self) -> int:
        """Number of variables it needs: one more than the highest index it reads."""
        operands = (self.code >> OP.BITS)[(self.code & OP.MASK) == OP.VARIABLE]
        return int(operands.max(initial=-1)) + 1

    def evaluate(self, values: Sequence[float]) -> float:
        """Value for given values of the variables."""
        jets = np.zeros((len(values), 3))
        jets[:, 0] = values
        return self.jet(jets)[0]

    def jet(self, variables: ArrayLike) -> tuple[float, float, float]:
        """Value, first and second derivative along one parameter.

        Parameters
        ----------
        variables : (nvar, 3) array
            Value, first and second derivative of each variable with respect to that parameter.
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


def assemble(instructions: Sequence[Instruction], spline: Sequence[float] = ()) -> Program:
    """Number the constants and count the rows of the stack; `spline` is the data of a spline instruction."""
    code: list[int] = []
    constants: list[float] = []
    height = depth = 0
    for op, value in instructions:
        operand = int(value)
        if op in OP.READS_CONSTANTS:
            operand = len(constants)
            constants.extend(spline if op == OP.SPLINE else [value])
        code.append(op + (operand << OP.BITS))
        height += 1 - OP.operand_count(op)
        depth = max(depth, height)
    return Program(np.array(code, dtype=np.int64), np.array(constants, dtype=np.float64), depth)


def constant_program(value: float) -> Program:
    """Program with the constant result `value`.

    Examples
    --------
    >>> constant_program(2.5).evaluate([])
    2.5
    """
    if not math.isfinite(value):
        raise ExpressionError(f"the constant is {value}. Give a finite number")
    return assemble([(OP.CONSTANT, float(value))])


def data_program(values: Sequence[float]) -> Program:
    """Numbers for a kernel, carried among the constants of programs; not to be run (:func:`data_place`).

    Examples
    --------
    >>> data_program([3.0, 4.0]).constants.tolist()
    [3.0, 4.0]
    """
    return assemble([(OP.SPLINE, 0.0)], values)


def pack(programs: Sequence[Program]) -> tuple[IntArray, FloatArray, IntArray, int]:
    """Put programs one after the other into flat arrays.

    Returns
    -------
    code, constants : int64 array, float64 array
        Instructions and constants of all programs, with adjusted references to constants.
    start : (n + 1,) int64 array
        Program k is ``code[start[k]:start[k + 1]]``.
    depth : int
        Rows of a stack on which each of them can run.

    Examples
    --------
    >>> code, constants, start, depth = pack([constant_program(1.0), constant_program(2.0)])
    >>> start.tolist(), constants.tolist(), depth
    ([0, 1, 2], [1.0, 2.0], 1)
    """
    moved, offset = [np.zeros(0, dtype=np.int64)], 0
    for program in programs:
        refers = np.isin(program.code & OP.MASK, OP.READS_CONSTANTS)
        moved.append(program.code + np.where(refers, offset << OP.BITS, 0))
        offset += len(program.constants)
    constants = np.concatenate([np.zeros(0), *(program.constants for program in programs)])
    start = np.cumsum([0, *(len(program.code) for program in programs)], dtype=np.int64)
    return np.concatenate(moved), constants, start, max((program.depth for program in programs), default=0)


# ----------------------------------------------------------------------------------------------- tables

SMOOTH = 1e-9  # fraction of a slope or curvature by which it may jump by rounding: a spline solves n equations


def table_program(
    x: ArrayLike,
    y: ArrayLike,
    variable_index: int,
    *,
    interpolation: Interpolation = "cubic",
    outside: Outside = "extend",
    input_scale: float = 1.0,
    output_scale: float = 1.0,
    periodic: bool = False,
    entry: Sequence[Instruction] = (),
) -> Program:
    """Program of a curve through points.

    Parameters
    ----------
    x, y : (n,) array_like
        At least two points, `x` strictly increasing.
    variable_index : int
        Index of the variable; -1 with an `entry`.
    interpolation : {"monotone", "linear", "cubic"}
        Monotone cubics (PCHIP: between two points the curve stays between their values; its slope is continuous),
        straight lines, or the natural cubic spline, whose curvature is continuous and which may overshoot.
    outside : {"hold", "extend", "error"}
        Beyond the ends the values of the first and last point hold, or the curve continues along its tangents. For
        "error" the ends are held as well: the caller has to check :attr:`Program.table`.
    input_scale, output_scale : float
        The table is entered at ``input_scale`` times the variable, its result is multiplied by `output_scale`.
    periodic : bool
        Make a cubic smooth at the ends as well, whose values are equal; the variable is not reduced to the range of
        the table.
    entry : list of instructions
        Program of the quantity by which the table is entered, if it is no variable.

    Raises
    ------
    ExpressionError
        If the points do not define a curve.

    Examples
    --------
    >>> ramp = table_program([0.0, 1.0], [0.0, 10.0], 0)
    >>> ramp.evaluate([0.5]), ramp.evaluate([2.0]), ramp.jet([(0.5, 3.0, 0.0)])
    (5.0, 20.0, (5.0, 30.0, 0.0))
    >>> table_program([0.0, 1.0], [0.0, 10.0], 0, outside="hold").evaluate([2.0])
    10.0
    """
    if variable_index < 0 and not entry:
        raise ExpressionError(f"variable index {variable_index} is negative. Count the variables from 0")
    check_scales(input_scale, output_scale)
    knots, values = _table_points(x, y)
    pieces = _pieces(knots, values, interpolation, outside, periodic)
    given = list(entry) or [(OP.VARIABLE, variable_index)]
    steps = [*given, (OP.SCALE, input_scale), (OP.SPLINE, 0.0), (OP.SCALE, output_scale)]
    # layout read by the kernel: n, the n knots, and for n + 1 pieces c0..c3 of powers of (x - knot)
    constants = [len(knots), *knots.tolist(), *pieces.ravel().tolist()]
    program = assemble([s for s in steps if s != (OP.SCALE, 1.0)], constants)
    slope, curvature = _jumps(knots, values, pieces)
    at = knots / input_scale
    corners, kinks = np.sort(at[slope | curvature]), np.sort(at[slope])
    of = assemble(entry) if entry else None
    return replace(program, table=Lookup(variable_index, np.sort(at), corners, kinks, outside, input_scale, of))


def check_scales(*scales: float) -> None:
    """Raise if factors between units are not finite."""
    if not all(math.isfinite(s) for s in scales):
        raise ExpressionError("a scale is not finite. Give the factor between the two units")


def _table_points(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    try:
        knots, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ExpressionError("the table contains something that is not a number. Give two lists of numbers") from None
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


def _pieces(
    knots: FloatArray, values: FloatArray, interpolation: Interpolation, outside: Outside, periodic: bool
) -> FloatArray:
    """Cubics (n + 1, 4) in ascending powers of (x - knot): before the first knot, between knots, after the last."""
    pieces = np.zeros((len(knots) + 1, 4))
    try:
        with np.errstate(all="ignore"):
            pieces[1:-1] = _inner_pieces(knots, values, interpolation, periodic)
            pieces[[0, -1], 0] = values[[0, -1]]
            if outside == "extend":
                _, c1, c2, c3 = pieces[-2]
                d = knots[-1] - knots[-2]
                pieces[0, 1], pieces[-1, 1] = pieces[1, 1], c1 + d * (2.0 * c2 + 3.0 * c3 * d)
    except ValueError:  # overflow
        pieces[0, 0] = math.nan
    if not np.isfinite(pieces).all():
        raise ExpressionError("the table is too steep for a curve. Move its points apart")
    return pieces


def _inner_pieces(knots: FloatArray, values: FloatArray, interpolation: Interpolation, periodic: bool) -> FloatArray:
    if interpolation == "linear":
        slopes = np.diff(values) / np.diff(knots)
        return np.column_stack([values[:-1], slopes, 0.0 * slopes, 0.0 * slopes])
    from scipy.interpolate import CubicSpline, PchipInterpolator  # slow to import; models without tables need neither

    if interpolation == "monotone":
        return np.asarray(PchipInterpolator(knots, values).c[::-1].T, float)
    return np.asarray(CubicSpline(knots, values, bc_type="periodic" if periodic else "natural").c[::-1].T, float)


def _jumps(knots: FloatArray, values: FloatArray, pieces: FloatArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Flags of knots at which the slope jumps, and at which the curvature jumps."""
    h = np.diff(knots)
    d = np.concatenate([[0.0], h])
    c1, c2, c3 = pieces[:-1, 1:].T
    before = np.array([c1 + d * (2.0 * c2 + 3.0 * c3 * d), 2.0 * c2 + 6.0 * c3 * d])
    after = np.array([pieces[1:, 1], 2.0 * pieces[1:, 2]])
    chord = np.abs(np.diff(values)) / h
    size = np.array([[chord.max()], [(chord / h).max()]])
    slope, curvature = np.abs(after - before) > SMOOTH * np.maximum(np.maximum(np.abs(after), np.abs(before)), size)
    return slope, curvature
