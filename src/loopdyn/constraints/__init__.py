"""Constraints beside the joints, one family a file, and the kernel helpers that write their rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from loopdyn.constraints import curve, distance, point, relation, rolling
from loopdyn.constraints.base import (
    DISTANCE,
    FIRST_CONSTRAINT,
    POINT_MOTION,
    POINT_ON_CURVE,
    POINT_ON_LINE,
    POINT_ON_PLANE,
    ROLLING_DISC,
    SLOT,
    Constraint,
)
from loopdyn.constraints.coupler import Coupler, Driver
from loopdyn.constraints.curve import PointOnCurve
from loopdyn.constraints.distance import Distance
from loopdyn.constraints.point import PointMotion, PointOnLine, PointOnPlane, Slot
from loopdyn.constraints.relation import Relation, VelocityRelation
from loopdyn.constraints.rolling import Rolling
from loopdyn.constraints.user import UserConstraint
from loopdyn.engine.jit import inline
from loopdyn.joints.reading import pick
from loopdyn.quantities.expressions import run_program

__all__ = [
    "FIRST_CONSTRAINT",
    "Constraint",
    "Coupler",
    "Distance",
    "Driver",
    "PointMotion",
    "PointOnCurve",
    "PointOnLine",
    "PointOnPlane",
    "Relation",
    "Rolling",
    "Slot",
    "UserConstraint",
    "VelocityRelation",
    "relation",
]

AnyConstraint = Annotated[
    Distance
    | PointOnLine
    | PointOnPlane
    | PointOnCurve
    | Slot
    | PointMotion
    | Rolling
    | Coupler
    | Relation
    | VelocityRelation,
    Field(discriminator="type"),
]


@inline
def motion_in_time(model, work, n):
    """Value, rate and acceleration of program n at the present time."""
    work.jets[:, :] = 0.0
    work.jets[0, 0] = work.t[0]
    work.jets[0, 1] = 1.0
    return run_program(model.code, model.program[n], model.program[n + 1], model.constants, work.jets, work.stack)


@inline
def pair_rows(model, work, kind, program, F, M, par, d, wF, wM, v, k):
    """Rows of a pair constraint of any type, from row k on."""
    phi, G, gamma, explicit = work.phi, work.rows, work.gamma, work.explicit
    if kind == DISTANCE:
        distance.rows(motion_in_time(model, work, program), d, wF, v, phi, G, gamma, explicit, k)
    elif kind == POINT_ON_LINE:
        point.on_line(F, d, wF, v, phi, G, gamma, k)
    elif kind == POINT_ON_PLANE:
        point.on_plane(F, d, wF, v, phi, G, gamma, k)
    elif kind == POINT_ON_CURVE:
        curve.rows(model, work, program, F, d, wF, v, phi, G, gamma, k)
    elif kind == SLOT:
        point.in_slot(F, M, d, wF, wM, v, phi, G, gamma, k)
    elif kind == POINT_MOTION:
        bits = int(par[0])
        for i in range(3):
            if (bits >> i) & 1 == 1:
                motion = motion_in_time(model, work, program)
                point.led(pick(F, i), motion, d, wF, v, phi, G, gamma, explicit, k)
                program += 1
                k += 1
    else:
        rolling.rows(kind == ROLLING_DISC, par[0], F, M, d, wF, wM, v, phi, G, gamma, k)
