"""A point of one body on a curve of another: pins in curved slots, beads on wires, cams traced by a point.

The parameter u of the curve c(u) is no coordinate: at every pose it is that of the nearest point of the curve,

    (p - c(u)) . c'(u) = 0

found from scratch, by a search among samples of the curve and Newton's method from the nearest. With the tangent T
and a direction r fixed in F that T never comes near (for a plane curve its normal), the rows are the components of
e = p - c(u) along n1 = r x T / |r x T| and n2 = T x n1. Seen from F, derivatives by u written as ',

    n1' = -(n1 . T') T + twist n2        n2' = -(n2 . T') T - twist n1
    du/dt = c' . v / D                   D = c' . c' - e . c''

    d phi1/dt = n1 . v + twist du/dt phi2        d phi2/dt = n2 . v - twist du/dt phi1

A plane curve has no twist. Second derivatives are exact on the curve, and for plane curves everywhere; off a space
curve they lack terms that are proportional to phi and contain c''', which a C2 curve does not have.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

import numpy as np

from loopdyn.constraints.base import Array, Constraint, PairRecord, frame_rows, two_bodies
from loopdyn.engine.jit import inline
from loopdyn.errors import ExpressionError
from loopdyn.forces.base import Places, law_program
from loopdyn.joints.rows import ZERO, rot_f
from loopdyn.quantities.expressions import Program, data_place, data_program, run_program, table_program
from loopdyn.quantities.units import Path, Place, Resolver, Scalar, Vec2
from loopdyn.spatial.plucker import add, centripetal, cross, dot, put3, rot_t, scale, sub

POINT_ON_CURVE = 23

# Samples among which the search for the nearest point begins: of a formula, and of each piece of a spline. They must
# tell neighbouring branches of the curve apart; Newton's method does the rest.
SAMPLES = 400
SAMPLES_OF_PIECE = 8

# Fraction of its length by which a point may pass the end of an open curve: a bead that starts at the end does not fall
# off by rounding.
MARGIN = 1e-6

MOST_STEPS = 80  # largest number of steps, for bisection, which gains one bit per step
SETTLED = 1e-11  # fraction of the range of u; the next Newton step has an error of its square

# Layout of the data of a curve: number of samples, range of u, whether closed, direction r, samples (x, y, z).
FIRST, LAST, IS_CLOSED, ACROSS, SAMPLE = 1, 2, 3, 4, 7

# Fraction of its value by which a formula, and its derivatives, may differ at the two ends of a closed curve: rounding.
CLOSING = 1e-9

# Directions tried for r if the one of least tangents comes nearer to a tangent than this cosine.
NEAR_TANGENT = 0.9
DIRECTIONS = 400


class PointOnCurve(Constraint):
    """A point of `body` stays on a curve of `on`.

    Parameters
    ----------
    on, body : str
        Body with the curve, and the body with the point.
    point : (3,)
        The point, in world coordinates at the reference pose, like all that follows.
    points : list of (3,)
        The curve as a spline with continuous curvature (C2) through these points.
    x, y, z : formulas of ``u``
        Instead of `points`: coordinates of the curve as formulas of its parameter `u`.
    u : (2,)
        Range of the parameter.
    closed : bool
        Whether the curve closes: its end is joined to its start.

    Notes
    -----
    The multipliers are the force on `body` at the point: `fn` along r x T, `fb` along T x (r x T), where T is the
    tangent and r the normal of a plane curve (for a space curve a fixed direction chosen away from its tangents).
    Where the point is as far from the curve as the curve's centre of curvature the nearest point, and with it the
    rows, are undefined; beyond the ends of an open curve they are too. Where a curve crosses itself the nearest
    branch is taken.

    Examples
    --------
    >>> wire = PointOnCurve(on="ground", body="bead", point=(0, 0, 0), x="u", y="u**2", u=(-2, 2))
    >>> wire.rows
    ('fn', 'fb')
    """

    label: ClassVar[str] = "point_on_curve"
    code: ClassVar[int] = POINT_ON_CURVE
    rows: ClassVar[tuple[str, ...]] = ("fn", "fb")

    type: Literal["point_on_curve"] = "point_on_curve"
    on: str
    body: str
    point: Place
    points: tuple[Place, ...] = ()
    x: Scalar = 0.0
    y: Scalar = 0.0
    z: Scalar = 0.0
    u: Vec2 = (0.0, 1.0)
    closed: bool = False

    def bodies(self) -> tuple[str, ...]:
        """Its two bodies."""
        return self.on, self.body

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | None:
        """F in world axes of the reference pose, in which the programs of the curve are written."""
        bodies = two_bodies(self.on, self.body, ("on", "body"), r, places, element, path)
        p = r.vector(self.point, "length", element, (*path, "point"))
        programs = curve_programs(self, r, element, path)
        if bodies is None or programs is None:
            return None
        F, M = places.point(bodies[0], np.zeros(3)), places.point(bodies[1], p)
        axes = frame_rows(places, bodies[0], np.eye(3))
        return PairRecord(bodies, F, M, self.rows, axes, programs=programs)


class GivenCurve(Protocol):
    """Fields of a part that has a curve: of :class:`PointOnCurve`, and of profiles of contacts."""

    @property
    def points(self) -> tuple[Place, ...]: ...  # noqa: D102
    @property
    def u(self) -> Vec2: ...  # noqa: D102
    @property
    def closed(self) -> bool: ...  # noqa: D102
    @property
    def model_fields_set(self) -> set[str]: ...  # noqa: D102


_Curve = tuple[list[Program], float, float, int]  # programs of x, y, z; range of u; number of samples


def curve_programs(given: GivenCurve, r: Resolver, element: str, path: Path) -> list[Program] | None:
    """Programs of x, y, z of a curve, and its data for :func:`foot`; None if a problem was recorded."""
    by_formula = {"x", "y", "z", "u"} & given.model_fields_set
    if bool(given.points) == bool(by_formula):
        message = "its curve is given twice" if given.points else "has no curve"
        r.problem(element, message, "Give 'points', or 'x', 'y', 'z' as formulas of 'u'.", path)
        return None
    curve = _spline(given, r, element, path) if given.points else _formulas(given, r, element, path)
    data = None if curve is None or r.problems else _data(*curve, given.closed, r, element, path)
    return None if curve is None or data is None else [*curve[0], data]


def _formulas(given: GivenCurve, r: Resolver, element: str, path: Path) -> _Curve | None:
    low, high = r.vector(given.u, "number", element, (*path, "u"))
    if not low < high:
        r.problem(element, "the range of 'u' is empty", "Give its start, then its end.", (*path, "u"))
        return None
    laws = [law_program(getattr(given, k), {"u": "number"}, "length", r, element, (*path, k)) for k in "xyz"]
    start, end = (np.array([law.jet([(u, 1.0, 0.0)]) for law in laws]) for u in (low, high))
    apart = np.abs(end - start).max(axis=0) > CLOSING * (np.abs(start) + np.abs(end)).max(axis=0)
    if given.closed and np.any(apart):
        hint = "Check the range of 'u', or make it open."
        r.problem(element, "its curve does not close smoothly", hint, (*path, "closed"))
        return None
    return laws, float(low), float(high), SAMPLES


def _spline(given: GivenCurve, r: Resolver, element: str, path: Path) -> _Curve | None:
    """Spline by chord length."""
    where = (*path, "points")
    knots = np.array([r.vector(p, "length", element, (*where, n)) for n, p in enumerate(given.points)])
    if given.closed and not np.array_equal(knots[0], knots[-1]):
        knots = np.vstack([knots, knots[:1]])
    if len(knots) < 2 + 2 * given.closed:
        least = "three" if given.closed else "two"
        r.problem(element, "its curve has too few points", f"Give at least {least}.", where)
        return None
    chords = np.linalg.norm(np.diff(knots, axis=0), axis=1)
    if not np.all(chords > 0.0):
        n = int(np.flatnonzero(~(chords > 0.0))[0])
        r.problem(element, f"points {n + 1} and {n + 2} of its curve coincide", "Remove one.", (*where, n))
        return None
    u = np.concatenate([[0.0], np.cumsum(chords)])
    try:
        laws = [table_program(u, x, 0, periodic=given.closed) for x in knots.T]
    except ExpressionError as error:
        r.problem(element, str(error), path=where)
        return None
    return laws, 0.0, float(u[-1]), SAMPLES_OF_PIECE * len(chords)


def _data(
    laws: list[Program], low: float, high: float, count: int, closed: bool, r: Resolver, element: str, path: Path
) -> Program | None:
    """Data of the kernel in addition to the programs; None, with the problem recorded, if the curve is not smooth."""
    u = np.linspace(low, high, count + 1)
    jets = np.array([[law.jet([(x, 1.0, 0.0)]) for law in laws] for x in u])  # (samples, xyz, derivative)
    c, c1 = jets[:, :, 0], jets[:, :, 1]
    if not np.isfinite(jets).all():
        n = int(np.flatnonzero(~np.isfinite(jets).all(axis=(1, 2)))[0])
        r.problem(element, f"its curve is not smooth at u = {u[n]:g}", "Check its formulas and the range of 'u'.", path)
        return None
    speed = np.linalg.norm(c1, axis=1)
    if np.any(speed <= 1e-9 * speed.max()):
        n = int(np.argmin(speed))
        r.problem(
            element, f"its curve has zero derivative at u = {u[n]:g}", "Use a parameter that moves along it.", path
        )
        return None
    across = _across(c1 / speed[:, None])
    samples = c[:-1] if closed else c
    return data_program([len(samples), low, high, float(closed), *across, *samples.ravel()])


def _across(tangents: Array) -> Array:
    """A direction far from all tangents: that of their smallest components, if these are small enough."""
    best: Array = np.linalg.svd(tangents, full_matrices=True)[2][2]
    if np.abs(tangents @ best).max() < NEAR_TANGENT:
        return best
    k = np.arange(DIRECTIONS) + 0.5  # evenly over a half sphere, by the golden angle
    height, angle = k / DIRECTIONS, k * np.pi * (3.0 - np.sqrt(5.0))
    ring = np.sqrt(1.0 - height**2)
    tried = np.stack([ring * np.cos(angle), ring * np.sin(angle), height], axis=1)
    found: Array = tried[np.argmin(np.abs(tried @ tangents.T).max(axis=1))]
    return found


# -------------------------------------------------------------------------------------------------- kernels


@inline
def curve_at(model, work, program, u):
    """Point and two derivatives of the curve."""
    jets, stack, code, constants = work.jets, work.stack, model.code, model.constants
    jets[0, 0], jets[0, 1], jets[0, 2] = u, 1.0, 0.0
    a, b, c, d = model.program[program], model.program[program + 1], model.program[program + 2], program + 3
    x = run_program(code, a, b, constants, jets, stack)
    y = run_program(code, b, c, constants, jets, stack)
    z = run_program(code, c, model.program[d], constants, jets, stack)
    return (x[0], y[0], z[0]), (x[1], y[1], z[1]), (x[2], y[2], z[2])


@inline
def nearest_sample(data, at, p):
    """Number of the sample that is nearest to p."""
    best, found = np.inf, 0
    for n in range(int(data[at])):
        k = at + SAMPLE + 3 * n
        x, y, z = data[k] - p[0].real, data[k + 1] - p[1].real, data[k + 2] - p[2].real
        distance = x * x + y * y + z * z
        if distance < best:
            best, found = distance, n
    return found


@inline
def foot(model, work, program, p):
    """Parameter, point and derivatives of the curve where it is nearest to p; whether there is such a point.

    Newton's method, kept between the neighbours of the nearest sample by bisection. Beyond the end of an open curve
    there is none.
    """
    data, at = model.constants, data_place(model.code, model.program, program + 3)
    first, last, closed = data[at + FIRST], data[at + LAST], data[at + IS_CLOSED] > 0.0
    span = last - first
    step = span / data[at] if closed else span / (data[at] - 1.0)
    middle = first + step * nearest_sample(data, at, p)
    low, high = middle - step, middle + step
    if not closed:
        low, high = max(low, first - MARGIN * span), min(high, last + MARGIN * span)
    u = middle + 0.0 * p[0]
    near, done = False, False
    turn = 0.0
    c, c1, c2 = curve_at(model, work, program, u)
    for _ in range(MOST_STEPS):
        e = sub(p, c)
        slope = -dot(e, c1)  # of half the squared distance
        D = dot(c1, c1) - dot(e, c2)
        if slope.real > 0.0:
            high = u.real
        else:
            low = u.real
        newton = u - slope / D
        inside = low - SETTLED * span <= newton.real and newton.real <= high + SETTLED * span
        if D.real > 0.0 and inside:
            done = near  # the step before was tiny: this one is exact, in complex arithmetic too
            moved = newton.real - u.real
            near = -SETTLED * span <= moved and moved <= SETTLED * span
            u = newton
        else:
            near = False
            u = 0.5 * (low + high) + 0.0 * p[0]
        if closed:
            turn = span * np.floor((u.real - first) / span)
        c, c1, c2 = curve_at(model, work, program, u - turn)
        if done:
            break
    return done, c, c1, c2


@inline
def rows(model, work, program, F, d, wF, v, phi, G, gamma, k):
    """Two rows across the curve, written in axes of F and turned to world axes at the end."""
    p, velocity = rot_f(F, d), rot_f(F, v)
    found, c, c1, c2 = foot(model, work, program, p)
    e = sub(p, c)
    if not found:  # off the end of the curve: NaN, which the caller detects
        e = scale(np.nan, e)
    at = data_place(model.code, model.program, program + 3)
    r = (model.constants[at + ACROSS], model.constants[at + ACROSS + 1], model.constants[at + ACROSS + 2])
    size = np.sqrt(dot(c1, c1))
    T = scale(1.0 / size, c1)
    T1 = scale(1.0 / size, sub(c2, scale(dot(T, c2), T)))
    across = cross(r, T)
    width = np.sqrt(dot(across, across))
    n1 = scale(1.0 / width, across)
    n2 = cross(T, n1)
    twist = dot(cross(r, T1), n2) / width
    D = dot(c1, c1) - dot(e, c2)
    du = dot(c1, velocity) / D
    phi1, phi2 = dot(n1, e), dot(n2, e)
    g1 = add(n1, scale(twist * phi2 / D, c1))
    g2 = sub(n2, scale(twist * phi1 / D, c1))
    forward = dot(T, velocity)
    bend1 = dot(n1, T1) * forward - twist * (dot(n2, velocity) + dot(g2, velocity))
    bend2 = dot(n2, T1) * forward + twist * (dot(n1, velocity) + dot(g1, velocity))
    g1, g2 = rot_t(F, g1), rot_t(F, g2)
    turning = add(scale(2.0, cross(wF, v)), centripetal(wF, d))
    phi[k], phi[k + 1] = phi1, phi2
    put3(G, k, 0, ZERO)
    put3(G, k, 3, g1)
    put3(G, k + 1, 0, ZERO)
    put3(G, k + 1, 3, g2)
    gamma[k] = dot(g1, turning) + du * bend1
    gamma[k + 1] = dot(g2, turning) + du * bend2
    return k + 2
