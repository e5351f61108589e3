"""Formulas and tables of a model, as small programs with exact first and second derivatives.

A formula such as ``"0.1*sin(2*pi*t)"`` is read by a whitelist and never executed as Python. It becomes a
:class:`Program` for a stack machine, and one kernel, :func:`run_program`, runs every program of every model:
nothing is compiled per model. A table becomes cubics in pieces, which are one more instruction of the same
machine.

=================  ================================================================================
``functions``      functions of formulas
``reading``        from text to tokens: the formula in postfix order
``terms``          functions of named points, in the formulas of measures
``formulas``       :func:`parse` and :class:`Expression`: from tokens to instructions
``parameters``     numbers and formulas that refer to each other
``programs``       instructions and tables as arrays
``opcodes``        the instruction set
``machine``        the kernels that run it
=================  ================================================================================

Decisions that hold everywhere:

* ``abs``, ``min``, ``max``, ``clip``, ``step``, ``sign``, ``mod`` and ``a if c else b`` have the
  derivatives of the active piece; derivatives ignore their jumps and kinks.
* Both pieces of a choice are computed and one is used, so ``0 if x < 0 else sqrt(x)`` is safe.
* A number that is not finite stays visible: a comparison with NaN gives NaN, not false.
* An operand whose first and second derivatives are zero is taken as constant, so ``sqrt(x)`` at a
  resting ``x = 0`` has the derivative zero and not 0/0.
* The kernel runs in complex128 too. Decisions use real parts, and a root or logarithm of a negative
  number is NaN there as well, so the complex step differentiates the same function.
"""

from loopdyn.quantities.expressions.formulas import Expression, FormulaPart, parse, parsed, variable
from loopdyn.quantities.expressions.functions import CONSTANTS, FUNCTIONS, Function
from loopdyn.quantities.expressions.machine import data_place, run_program
from loopdyn.quantities.expressions.parameters import in_order, resolve_parameters
from loopdyn.quantities.expressions.programs import (
    Interpolation,
    Lookup,
    Outside,
    Program,
    constant_program,
    data_program,
    pack,
    table_program,
)
from loopdyn.quantities.expressions.reading import MAX_DEPTH, MAX_LENGTH
from loopdyn.quantities.expressions.terms import TERMS, Term

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "MAX_DEPTH",
    "MAX_LENGTH",
    "TERMS",
    "Expression",
    "FormulaPart",
    "Function",
    "Interpolation",
    "Lookup",
    "Outside",
    "Program",
    "Term",
    "constant_program",
    "data_place",
    "data_program",
    "in_order",
    "pack",
    "parse",
    "parsed",
    "resolve_parameters",
    "run_program",
    "table_program",
    "variable",
]
