"""Dependent coordinates from independent ones by inverse kinematics: q_D = g(q_I, t), step by step.

Blajer, Schiehlen, Schirm 1993, "Dynamic analysis of constrained multibody systems using inverse kinematics", eqs. (5),
(15)-(18). Bodies whose relative poses are known form a *part* with a frame of its own. A joint whose coordinates are
known joins two parts; a *group*, three parts joined in a ring by three joints, is solved in closed form and becomes one
part; then coordinates of joints inside a part are read from the poses of the two bodies. Coordinates without a closed
form are iterated, in blocks as small as possible. :mod:`loopdyn.formulations.closure.planner` determines the order of
these steps in advance; this module performs them.

====================  ====================  ==========================================================
paper, specification  code                  meaning
====================  ====================  ==========================================================
a, b                  ``r1``, ``r2``        sides of the triangle of a group of three pins
d                     ``w``                 from its first to its last pin, in the fixed part
s                     ``sign``              which of the two closures: sign of the determinant of the group
discriminant          ``margin``            of a group, in natural units: zero where it is singular, negative if open
====================  ====================  ==========================================================

Deviations: the paper and the specification name groups by the two unknown joints that remain when a third one is cut
(RR, RP, PR, PP). The equations do not depend on which of the three is cut, so there are only three planar groups:
three pins, two pins and a slide, one pin and two slides. In space, three hinges whose axes meet in a point are a
triangle on a sphere; a rod with a ball at each end closes a pin or a slide (RSSR, RSSP): the rod is placed by the
shortest rotation from the orientation of its tree joint, so its idle spin is unchanged. With a universal joint instead
of one ball the rod is placed by a step of its own.
Angles are never computed by arccos: bodies are rotated by sines and cosines, and joint angles are read at the end by
atan2, with the number of turns that brings them nearest to their previous values.
"""

from __future__ import annotations

import numpy as np

from loopdyn.constraints.base import motion_in_time
from loopdyn.engine.dense import cholesky, solve_cholesky
from loopdyn.engine.jit import inline, kernel, window
from loopdyn.engine.records import L_COUNT, L_FIRST, L_PROGRAM, open_model, open_work
from loopdyn.engine.status import CANNOT_CLOSE, FINE, NOT_CLOSED, NOT_THERE, SINGULAR_SET
from loopdyn.formulations.closure.closed_forms import (
    LEAST_DISCRIMINANT,
    close_hinges,
    close_hooked,
    close_level,
    close_pins,
    close_pointed,
    close_rod,
    close_skew,
    close_slide,
    close_slides,
    close_sphere,
    close_torus,
    put_line,
)
from loopdyn.formulations.closure.layout import (
    AXES,
    HANG,
    HINGES,
    HOOKED,
    ITERATE,
    J_KIND,
    J_PAR,
    J_Q0,
    JOIN,
    LEVEL,
    LINE,
    LINEAR,
    PINS,
    POINT,
    POINTED,
    READ,
    ROD_PIN,
    ROD_SLIDE,
    S_END,
    S_GROUP,
    S_JOINT,
    S_KIND,
    S_MOVED,
    SKEW,
    SLIDE,
    SPHERE,
    TORUS,
    WHICH,
    open_closing,
)
from loopdyn.formulations.closure.parts import IDENTITY, ZERO, attach, frame_at
from loopdyn.formulations.partition import kernels as partition
from loopdyn.formulations.partition.kernels import CLOSING_STEPS, LAST_CORRECTION, move
from loopdyn.formulations.partition.layout import JUMP, open_partition
from loopdyn.joints.dispatch import joint_pose, read_joint
from loopdyn.spatial.plucker import mul, put3, put9, rot_t, sub, transpose
from loopdyn.thresholds import NEARLY_CLOSED
from loopdyn.tree.jacobian import all_rows
from loopdyn.tree.kinematics import kinematics

# Discriminant of a group, in natural units, below which the motion ends at the end of a step: closer to the limit
# position, steps are too short to move the coordinate at all.
ENDS = 4.0 * LEAST_DISCRIMINANT
# Largest error of dependent speeds at the end of an accepted step, as a fraction of the fastest speed: measured were
# 2e-3 at rtol 1e-2, less below it, and 1 if a step switched to another branch (docs/decisions/0007-other-branches.md).
LANDED = 0.05


# ------------------------------------------------------------------------------------------------ all steps


@inline
def solve_linear(model, data, n, entry):
    """The coordinate of one entry from the others and the time: sum factor coordinate = program(t)."""
    line = model.linear[n]
    x = motion_in_time(model, data, line[L_PROGRAM])[0]
    for k in range(line[L_FIRST], line[L_FIRST] + line[L_COUNT]):
        if k != entry:
            x -= model.factor[k] * data.q[model.entry[k, 2]]
    data.q[model.entry[entry, 2]] = x / model.factor[entry]


@inline
def close_group(C, s, kind, g, q):
    if kind == ROD_PIN or kind == ROD_SLIDE:
        return close_rod(C, s, g, kind == ROD_SLIDE, q)
    if kind == PINS:
        return close_pins(C, s, g)
    if kind == SLIDE:
        return close_slide(C, s, g)
    if kind == SPHERE:
        return close_sphere(C, s, g)
    if kind == HOOKED:
        return close_hooked(C, s, g)
    if kind == LEVEL:
        return close_level(C, s, g)
    if kind == POINTED:
        return close_pointed(C, s, g)
    if kind == TORUS:
        return close_torus(C, s, g, q)
    if kind == SKEW:
        return close_skew(C, s, g)
    if kind == HINGES:
        return close_hinges(C, s, g)
    return close_slides(C, s, g)


# ------------------------------------------------------------------------------------------------- iteration


@inline
def normal_equations(C, phi, speeds, stop, last):
    """N x = c of a block: its speeds are lists[speeds:stop], its rows lists[stop:last], all in natural units."""
    n = stop - speeds
    N = window(C.normal, 0, n, n)
    for i in range(n):
        x = C.lists[speeds + i]
        C.change[i] = 0.0
        for m in range(stop, last):
            row = C.lists[m]
            C.change[i] -= C.J[row, x] * C.unit[x] * phi[row] / (C.row_unit[row] * C.row_unit[row])
        for j in range(i + 1):
            y = C.lists[speeds + j]
            total = 0.0 * C.J[0, 0]
            for m in range(stop, last):
                row = C.lists[m]
                total += C.J[row, x] * C.J[row, y] / (C.row_unit[row] * C.row_unit[row])
            N[i, j] = N[j, i] = total * C.unit[x] * C.unit[y]
    return N


@inline
def iterate(model, data, C, s):
    """Close the rows of a block by its speeds, with the Gauss-Newton method: rows may be redundant.

    The squared condition number of N costs iterations, not digits: phi itself is exact.
    """
    speeds, stop, last = C.step[s, S_JOINT], C.step[s, S_JOINT + 1], C.step[s, S_JOINT + 2]
    before = np.inf
    for _ in range(CLOSING_STEPS):
        kinematics(model, data)
        all_rows(model, data, C.J, C.rate)
        N = normal_equations(C, data.phi, speeds, stop, last)
        if not cholesky(N):
            return False
        change = window(C.change, 0, stop - speeds)
        solve_cholesky(N, change)
        largest = 0.0
        for i in range(stop - speeds):
            largest = max(largest, (change[i] * change[i]).real)
        largest = np.sqrt(largest)
        if not largest < before:
            break
        before = largest
        C.motion[:] = 0.0
        for i in range(stop - speeds):
            C.motion[C.lists[speeds + i]] = change[i] * C.unit[C.lists[speeds + i]]
        move(model, data, C.motion)
        if largest < LAST_CORRECTION:
            break
    return before < NEARLY_CLOSED


@kernel
def close(ints, floats, work):
    """q_D in `work` from q_I and t there: all steps [Blajer1993 eq. (5)]."""
    model, data = open_model(ints, floats), open_work(ints, work)
    C = open_closing(ints, floats, work)
    for b in range(C.pose.shape[0]):
        put3(C.pose, b, POINT, ZERO)
        put9(C.pose, b, AXES, IDENTITY)
    for s in range(C.step.shape[0]):
        kind, j = C.step[s, S_KIND], C.step[s, S_JOINT]
        if kind == LINEAR:
            solve_linear(model, data, j, C.step[s, S_JOINT + 1])
        elif kind == HANG:
            attach(C, j, C.step[s, S_END], C.step[s, S_MOVED], C.step[s, S_MOVED + 1], ZERO, IDENTITY)
        elif kind == LINE:
            put_line(C, s)
        elif kind == ITERATE:
            if not iterate(model, data, C, s):
                return NOT_CLOSED
        elif kind == JOIN or kind == READ:
            i, par = C.joint[j, J_Q0], (C.frame[j, J_PAR], C.frame[j, J_PAR + 1])
            if kind == JOIN:
                d, E = joint_pose(C.joint[j, J_KIND], par, data.q, i)
                attach(C, j, C.step[s, S_END], C.step[s, S_MOVED], C.step[s, S_MOVED + 1], d, E)
            else:
                p, F = frame_at(C, j, 0)
                p2, M = frame_at(C, j, 1)
                E = mul(transpose(F), M)
                read_joint(C.joint[j, J_KIND], par, rot_t(F, sub(p2, p)), E, data.q, i)
        elif not close_group(C, s, kind, C.step[s, S_GROUP], data.q):
            C.notes[WHICH] = C.step[s, S_GROUP]
            return CANNOT_CLOSE
    return FINE


@inline
def at_limit(C, least):
    """Whether a group is nearly singular; notes which one."""
    for g in range(C.margin.shape[0]):
        if not C.margin[g].real > least:
            C.notes[WHICH] = g
            return True
    return False


@kernel
def accelerate(ints, floats, work):
    """Accelerations `work.a` at the q_I, v_I and t in `work`; q_D and v_D there are computed first."""
    status = close(ints, floats, work)
    if status != FINE:
        return status
    if at_limit(open_closing(ints, floats, work), LEAST_DISCRIMINANT):
        return CANNOT_CLOSE
    status = partition.accelerate(ints, floats, work)
    if status != FINE:
        return status
    P = open_partition(ints, floats, work)
    phi = open_work(ints, work).phi
    for n in range(phi.shape[0]):
        if P.holonomic[n] == 1 and not (phi[n] * phi[n]).real < (NEARLY_CLOSED * P.row_unit[n]) ** 2:
            return NOT_THERE
    return FINE


@kernel
def accepted(ints, floats, work):
    """Status of an accepted step: on another branch, at a limit position, or AGAIN for another choice."""
    P = open_partition(ints, floats, work)
    if P.notes[JUMP].real > LANDED:
        return SINGULAR_SET
    status = partition.check(ints, floats, work)
    if status == FINE and at_limit(open_closing(ints, floats, work), ENDS):
        return CANNOT_CLOSE
    return status
