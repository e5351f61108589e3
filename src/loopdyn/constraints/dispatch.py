"""Constraint types: the list, and the only module that chooses among them by code.

The contract of a type is in :mod:`loopdyn.constraints.base`; everything else about it is in its own file. compile()
rejects a type that is not listed here.
"""

from __future__ import annotations

from typing import Annotated, get_args

import numpy as np

from loopdyn.constraints import (
    coupler,
    distance,
    gaps,
    point_motion,
    point_on_curve,
    point_on_line,
    point_on_plane,
    rolling,
    slot,
)
from loopdyn.constraints.base import Constraint
from loopdyn.constraints.coupler import COUPLER, Coupler
from loopdyn.constraints.distance import DISTANCE, Distance
from loopdyn.constraints.driver import Driver
from loopdyn.constraints.formula import formula_terms
from loopdyn.constraints.higher_pair import HIGHER_PAIR, HigherPair
from loopdyn.constraints.point_motion import POINT_MOTION, PointMotion
from loopdyn.constraints.point_on_curve import POINT_ON_CURVE, PointOnCurve
from loopdyn.constraints.point_on_line import POINT_ON_LINE, PointOnLine
from loopdyn.constraints.point_on_plane import POINT_ON_PLANE, PointOnPlane
from loopdyn.constraints.relation import RELATION, Relation
from loopdyn.constraints.rolling import ROLLING, Rolling
from loopdyn.constraints.shapes import CircleShape, CurveShape, LineShape, PointShape, PolylineShape
from loopdyn.constraints.slot import SLOT, Slot
from loopdyn.constraints.user import UserConstraint
from loopdyn.constraints.velocity_relation import VELOCITY_RELATION, VelocityRelation
from loopdyn.engine.jit import inline
from loopdyn.quantities.units import OneOf

# The public names of `loopdyn.constraints`.
__all__ = [
    "CircleShape",
    "Constraint",
    "Coupler",
    "CurveShape",
    "Distance",
    "Driver",
    "HigherPair",
    "LineShape",
    "PointMotion",
    "PointOnCurve",
    "PointOnLine",
    "PointOnPlane",
    "PointShape",
    "PolylineShape",
    "Relation",
    "Rolling",
    "Slot",
    "UserConstraint",
    "VelocityRelation",
]

AnyConstraint = Annotated[
    Distance
    | PointOnLine
    | PointOnPlane
    | PointOnCurve
    | Slot
    | PointMotion
    | Rolling
    | HigherPair
    | Coupler
    | Relation
    | VelocityRelation,
    OneOf("type"),
]
TYPES: tuple[type[Constraint], ...] = get_args(get_args(AnyConstraint)[0])


@inline
def pair_rows(model, work, kind, program, F, M, par, d, wF, wM, v, k):
    """Rows of a pair constraint of any type, from row k on; NaN for a type without a branch."""
    phi, G, gamma = work.phi, work.rows, work.gamma
    if kind == DISTANCE:
        distance.rows(model, work, program, d, wF, v, k)
    elif kind == POINT_ON_LINE:
        point_on_line.rows(F, d, wF, v, phi, G, gamma, k)
    elif kind == POINT_ON_PLANE:
        point_on_plane.rows(F, d, wF, v, phi, G, gamma, k)
    elif kind == POINT_ON_CURVE:
        point_on_curve.rows(model, work, program, F, d, wF, v, phi, G, gamma, k)
    elif kind == SLOT:
        slot.rows(F, M, d, wF, wM, v, phi, G, gamma, k)
    elif kind == POINT_MOTION:
        point_motion.rows(model, work, program, F, par, d, wF, v, k)
    elif kind == ROLLING:
        rolling.rows(par, F, M, d, wF, wM, v, phi, G, gamma, k)
    elif kind == HIGHER_PAIR:
        gaps.rows(model, work, program, F, M, d, wF, wM, v, phi, G, gamma, k)
    else:
        phi[k] = np.nan


@inline
def relation_terms(model, work, kind, program, first, count):
    """phi, velocity residual, gamma and phi_t of a linear record, whose entries' motions are in the jets.

    Leaves the factors of the entries in `work.factor`.
    """
    nothing = np.nan * work.t[0]
    phi, rate, gamma, phi_t = nothing, nothing, nothing, nothing
    if kind == COUPLER:
        phi, rate, gamma, phi_t = coupler.terms(model, work, program, first, count)
    elif kind == RELATION or kind == VELOCITY_RELATION:
        of_velocities = kind == VELOCITY_RELATION
        phi, rate, gamma, phi_t = formula_terms(model, work, program, first, count, of_velocities)
    return phi, rate, gamma, phi_t
