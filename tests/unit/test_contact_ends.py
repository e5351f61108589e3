"""Contact at the ends and corners of edges, against closed forms of falls and of a body that goes round a corner."""

from __future__ import annotations

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.constraints import CircleShape, CurveShape, PointShape, PolylineShape
from loopdyn.contacts import Contact

PRECISE = {"rtol": 1e-10, "progress": False}
Z = (0, 0, 1)
G = 9.81
LEDGE = PolylineShape(points=[(1, 0, 0), (-1, 0, 0)])  # material below
POINT = PointShape(at=(0, 0, 0))


def sliding(ground: object, shape: object, at: tuple[float, float], speed: tuple, e: float = 0.0) -> tuple:
    """A body in the plane whose profile at its mass centre touches that of the ground, at a place and with a speed."""
    m = ld.Mechanism("slide", gravity=(0, -G, 0))
    m.add_body("b", ld.Inertia(2.0, (0, 0, 0), np.eye(3) * 0.3))
    m.add_joint("P", ld.Planar(normal=Z), m.ground, "b", at=(0, 0, 0))
    m.add_contact("c", Contact(body1="ground", shape1=ground, body2="b", shape2=shape, restitution=e))
    system = m.compile()
    return system, system.state(q={"P.x": at[0], "P.y": at[1]}, v={"P.x": speed[0], "P.y": speed[1]})


@pytest.mark.parametrize("speed", [1.0, -0.7])
def test_a_point_slides_off_the_end_of_an_edge_and_falls(speed):
    """It stood still at the end: the distance from the end was taken for a gap that can stay closed."""
    run = ld.simulate(*sliding(LEDGE, POINT, (0, 0), (speed, 0)), (0, 2.0), **PRECISE)
    assert run.status == "finished", run.message
    left = next(e.t for e in run.events if e.kind == "separation")
    assert left == pytest.approx(1 / abs(speed), rel=1e-9)
    assert run["P.y"].values[-1] == pytest.approx(-0.5 * G * (2.0 - left) ** 2, rel=1e-9)
    assert run["P.x"].values[-1] == pytest.approx(2.0 * speed, rel=1e-9)


def test_a_point_slides_off_the_end_of_a_curve():
    """A parabola that ends at its lowest point: the speed there by the energy, then a fall."""
    curve = CurveShape(x="1 - u", y="(1 - u)**2", u=(0, 1))
    start = 0.9
    system, state = sliding(curve, POINT, (start, start**2), (0, 0))
    run = ld.simulate(system, state, (0, 2.0), **PRECISE)
    assert run.status == "finished", run.message
    left = next(e for e in run.events if e.kind == "separation")
    assert left.state["P.x"] == pytest.approx(0.0, abs=1e-9)
    speed = np.sqrt(2 * G) * start
    assert left.state["P.x.speed"] == pytest.approx(-speed, rel=1e-7)
    assert run["P.y"].values[-1] == pytest.approx(-0.5 * G * (2.0 - left.t) ** 2, rel=1e-6)


def test_a_point_flies_over_the_ridge_of_a_roof_and_lands_on_the_other_side():
    """Uphill at 30 degrees, a flight from the ridge, a landing 30 degrees downhill: parabola and line meet."""
    slope = np.tan(np.radians(30))
    roof = PolylineShape(points=[(9, -9 * slope, 0), (0, 0, 0), (-2, -2 * slope, 0)])
    speed = 4.0
    at = np.array([-1.0, -slope])
    along = np.array([1.0, slope]) / np.hypot(1, slope)
    run = ld.simulate(*sliding(roof, POINT, tuple(at), tuple(speed * along)), (0, 1.5), **PRECISE)
    assert run.status == "finished", run.message
    left = next(e for e in run.events if e.kind == "separation")
    ridge = np.sqrt(speed**2 - 2 * G * slope)
    assert left.state["P.x.speed"] == pytest.approx(ridge * along[0], rel=1e-9)
    flight = 2 * ridge * along[0] * 2 * slope / (2 * G)  # x' t slope + y' t = g t^2/2 with y'/x' = slope
    landed = next(e for e in run.events if e.kind == "impact")
    assert landed.t - left.t == pytest.approx(2 * flight, rel=1e-8)


@pytest.mark.parametrize("speed", [0.8, 1.2, 1.5])
def test_a_disc_goes_round_the_end_until_the_force_would_pull(speed):
    """cos = 2/3 + v^2/(3 g r) by energy and Newton; faster than sqrt(g r) it leaves at once."""
    r = 0.2
    disc = CircleShape(centre=(0, 0, 0), radius=r)
    run = ld.simulate(*sliding(LEDGE, disc, (0.5, r), (speed, 0)), (0, 1.5), **PRECISE)
    left = next(e for e in run.events if e.kind == "separation")
    angle = np.arctan2(left.state["P.x"] - 1, left.state["P.y"])
    expected = min(2 / 3 + speed**2 / (3 * G * r), 1.0)
    assert angle == pytest.approx(np.arccos(expected), abs=1e-8)
    assert run["c.gap"].values.min() > -1e-9
    assert run.energy_error < 1e-9


def test_a_block_slides_over_the_edge_of_a_table_and_tips():
    """A corner of the table slides along the block; once half of the block is over the edge, it turns."""
    block = PolylineShape(points=[(0.3, 0.1, 0), (-0.3, 0.1, 0), (-0.3, -0.1, 0), (0.3, -0.1, 0)], closed=True)
    run = ld.simulate(*sliding(LEDGE, block, (0.5, 0.1), (0.8, 0)), (0, 1.2), **PRECISE)
    assert run.status == "finished", run.message
    over = (1.0 - 0.5) / 0.8
    turning = np.abs(run["P.angle"].values) > 1e-6
    assert run.path.t[turning].min() >= over - 1e-9
    assert run["P.angle"].values[-1] < -0.1
    assert run["c.gap"].values.min() > -1e-8
    assert run.energy_error < 1e-7


def test_a_disc_rests_in_a_groove_by_the_closed_form():
    """Walls of slopes 1 and 1/2: forces by the balance of two directions."""
    groove = PolylineShape(points=[(1, 1, 0), (0, 0, 0), (-1, 0.5, 0)])
    r = 0.2
    n1, n2 = np.array([-1, 1]) / np.sqrt(2), np.array([0.5, 1]) / np.hypot(0.5, 1)
    centre = np.linalg.solve(np.array([n1, n2]), [r, r])
    system, state = sliding(groove, CircleShape(centre=(0, 0, 0), radius=r), tuple(centre), (0, 0))
    run = ld.simulate(system, state, (0, 0.2), **PRECISE)
    forces = np.linalg.solve(np.array([n1, n2]).T, [0, 2 * G])
    assert run["c.force"].values[-1] == pytest.approx(forces.sum(), rel=1e-10)
    assert np.abs(run.state(-1).v).max() < 1e-12
