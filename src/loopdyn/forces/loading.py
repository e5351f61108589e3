"""Loads on bodies in kernels: moving points and frames, forces and torques, laws.

Loads on a body are subtracted from the bias wrench PW, PV of its work row (torque about its reference point, force;
world axes).
"""

from loopdyn.engine.jit import inline
from loopdyn.engine.records import FORCE_PROGRAM, PV, PW, R, V, W, X
from loopdyn.quantities.expressions import run_program
from loopdyn.spatial.plucker import add, add3, cross, get3, get9, mul, neg, rot, sub, transpose

LAW_VARIABLES = 3  # variables of the program of a law: the time and two of its type; terms of measures follow


@inline
def body_point(B, i, p):
    """World position and velocity of the point p of body i (own axes, from its reference point)."""
    arm = rot(get9(B, i, R), p)
    return add(get3(B, i, X), arm), add(get3(B, i, V), cross(get3(B, i, W), arm))


@inline
def body_frame(B, i, A):
    """World axes, as rows, of a frame whose axes are the rows of A in the axes of body i."""
    return mul(A, transpose(get9(B, i, R)))


@inline
def push(B, i, x, force):
    """Apply a force to body i at the world point x: it is subtracted from the bias wrench."""
    add3(B, i, PW, cross(force, sub(x, get3(B, i, X))))
    add3(B, i, PV, neg(force))


@inline
def twist(B, i, torque):
    """Apply a torque to body i."""
    add3(B, i, PW, neg(torque))


@inline
def wrench_pair(B, i, j, x, torque, force):
    """Apply a torque and a force at the world point x to body j, and the opposite to body i."""
    twist(B, j, torque)
    push(B, j, x, force)
    twist(B, i, neg(torque))
    push(B, i, x, neg(force))


@inline
def law(model, work, n, k, x, dx):
    """Value of program k (0 is the first) of force n for the present time and the variables x, dx."""
    first = model.force[n, FORCE_PROGRAM] + k
    work.jets[0, 0] = work.t[0]
    work.jets[1, 0] = x
    work.jets[2, 0] = dx
    begin, end = model.program[first], model.program[first + 1]
    return run_program(model.code, begin, end, model.constants, work.jets, work.stack)[0]
