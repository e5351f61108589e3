"""Laws of actuators as MJCF has them: affine in length, speed and one control, within limits.

The reader writes them as formulas, e.g. ``clip((50.0)*clip(ctrl_A, -1.0, 1.0) + (-50.0)*position, -2.0, 2.0)``; here
such a formula is taken apart again.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass

import numpy as np

from loopdyn.interchange.compiled import AFFINE, Compiled

CONTROL = "ctrl_"  # parameters whose names begin like this are controls
Triple = tuple[float, float, float]
Range = tuple[float, float]
EVERYTHING: Range = (-math.inf, math.inf)


@dataclass(frozen=True)
class Servo:
    """force = clip(gain * clip(control) + bias), gain and bias affine in length and speed, SI."""

    gain: Triple
    bias: Triple
    control: str = ""  # name of the parameter; none if there is no control
    control_range: Range = EVERYTHING
    force_range: Range = EVERYTHING


def servo(c: Compiled, law: object, first: str, dimension: str, speed: str, out: str) -> Servo | None:
    """Servo with the law of the variables `first` and ``speed``; None if it is not one. Arguments as for `c.affine`."""
    plain = c.affine(law, first, dimension, speed, out)
    if plain is not None and not (isinstance(law, str) and CONTROL in law):
        return Servo((0.0, 0.0, 0.0), plain)
    try:
        node: ast.expr = ast.parse(str(law), mode="eval").body
    except SyntaxError:
        return None
    scale, limits = 1.0, EVERYTHING
    while (peeled := _peel(node)) is not None:
        node, factor, own = peeled
        scale *= factor
        limits = _both(limits, (min(scale * x for x in own), max(scale * x for x in own)))
    if limits[0] > limits[1]:
        return None
    control = _control(node)
    if control is None:
        return None
    name, reach, inner = control
    at = [c.affine(_text(inner, name, u), first, dimension, speed, out) for u in (0.0, 1.0, 2.5)]
    found = np.array([x for x in at if x is not None])
    if len(found) < len(at):
        return None
    bias, gain = found[0], found[1] - found[0]
    size = np.maximum(np.abs(found).max(axis=0), np.abs(gain))
    if np.any(np.abs(bias + 2.5 * gain - found[2]) > AFFINE * size):
        return None
    unit = c.r.units.factor(out)
    a, b = ((float(x[0]), float(x[1]), float(x[2])) for x in (scale * gain, scale * bias))
    return Servo(a, b, name, reach, (limits[0] * unit, limits[1] * unit))


def _peel(node: ast.expr) -> tuple[ast.expr, float, Range] | None:
    """Formula x of ``number*x`` or ``clip(x, low, high)``, the number, and the limits; None for other formulas."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and (x := _number(node.left)) is not None:
        return node.right, x, EVERYTHING
    limits = _limits(node)
    return None if limits is None else (limits[0], 1.0, limits[1])


def _limits(node: ast.expr) -> tuple[ast.expr, Range] | None:
    """Argument and limits of a ``clip`` with numbers."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "clip"):
        return None
    low, high = (_number(x) for x in node.args[1:]) if len(node.args) == 3 else (None, None)
    return None if low is None or high is None else (node.args[0], (low, high))


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        x = _number(node.operand)
        return None if x is None else -x
    return float(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, int | float) else None


def _both(a: Range, b: Range) -> Range:
    """Limits of limits."""
    return max(a[0], b[0]), min(a[1], b[1])


def _control(node: ast.expr) -> tuple[str, Range, ast.expr] | None:
    """Single control of a formula, its limits, and the formula without the limits; None if there are several."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id.startswith(CONTROL)}
    if len(names) > 1:
        return None
    name = next(iter(names), "")
    found: list[Range] = []

    class _Bare(ast.NodeTransformer):
        def visit_Call(self, call: ast.Call) -> ast.expr:
            limits = _limits(call)
            if limits is not None and isinstance(limits[0], ast.Name) and limits[0].id == name:
                found.append(limits[1])
                return limits[0]
            self.generic_visit(call)
            return call

    bare = _Bare().visit(node)
    uses = sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(bare))
    if found and (len(found) != uses or len(set(found)) > 1):
        return None
    return name, found[0] if found else EVERYTHING, bare


def _text(node: ast.expr, name: str, value: float) -> str:
    """Formula with a number in place of the control."""

    class _Put(ast.NodeTransformer):
        def visit_Name(self, n: ast.Name) -> ast.expr:
            return ast.Constant(value) if n.id == name else n

    return ast.unparse(_Put().visit(ast.parse(ast.unparse(node), mode="eval").body))
